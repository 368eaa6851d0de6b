//! One job with a deadline, where machines are cheap but come and go.
//!
//! The job needs so many hours of work. Spot machines cost a part of the on-demand price and are
//! there or not, as recorded; machines on demand are always there. Whoever starts on a machine
//! first pays for the overhead of a start, and does no work in it. What was worked is kept when a
//! machine is lost. The question is what the work costs, and that it is never late.

mod bound;
mod market;
mod play;
mod rules;
mod seen;
mod steady;

pub use bound::bound;
pub use market::{Market, Terms};
pub use play::{Outcome, play};
pub use rules::{Action, Greedy, On, OnDemand, Rule, UniformProgress, View};
pub use steady::Steady;
