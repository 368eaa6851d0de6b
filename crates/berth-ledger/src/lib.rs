//! Leases × prices → cost rows, budgets, credits and alerts.
//!
//! Money is integers and telescopes: every row is the difference of two cumulative costs, so the
//! rows of a machine sum to what the machine cost, to the last millionth of a dollar, however often
//! it was billed in between. Attributed + idle + shared = what the machines cost.
//!
//! Deliberately absent: a clock (every call carries its time), floats, hash order, and any opinion
//! about who should run. The ledger says what things cost and what has been spent; the core decides
//! what follows from it.

// Integers only, so that a plan and a bill come out the same on every machine. The ban of types in
// clippy.toml catches a float that is named; this catches one that is inferred.
#![cfg_attr(not(test), deny(clippy::float_arithmetic))]

pub mod budget;
mod burn;
mod calendar;
pub mod cost;
pub mod credit;
mod ledger;
mod row;
mod spending;
mod totals;

pub use budget::{Alert, BudgetMeter, Standing};
pub use burn::Burn;
pub use ledger::{Closed, LeaseAccount, Ledger, NodeAccount};
pub use row::{CostRow, Keys, Loss};
pub use spending::Spending;
pub use totals::{Amounts, Totals};
