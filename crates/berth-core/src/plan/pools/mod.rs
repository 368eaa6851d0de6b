//! Pools: machines are claimed for jobs that cannot fit what is there, from the offering that
//! costs the least in expectation, and given back when they have been idle.

mod buy;
mod give_back;
pub(crate) mod offering;
mod room;
mod supply;
