//! The check against what it guards from: real plans pass, and every way to spoil one is found.

mod place;
mod pools;
mod promises;
mod random;
mod start;
mod stops;
mod transactions;
pub mod world;
