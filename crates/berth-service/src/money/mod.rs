//! What was spent, and what may be.

pub mod budgets;
pub mod cost;

pub use cost::month_start;
