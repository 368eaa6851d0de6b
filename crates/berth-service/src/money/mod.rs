//! What was spent, and what may be.

pub mod budgets;
pub mod burn;
pub mod cost;
mod csv;
pub mod idle;
pub mod series;
pub mod spent;

pub use cost::month_start;
