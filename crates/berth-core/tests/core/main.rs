//! Tests of the scheduling core through its public interface, in one binary.

mod check;
mod forecast;
mod nodes;
mod oracle;
mod properties;
mod reasons;
mod room;
mod support;
mod whatif;
