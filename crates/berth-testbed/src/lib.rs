//! Real surroundings for tests: programs that are started for a test and are gone after it,
//! however it ends.
//!
//! Nothing here ships: crates may name it among their dev-dependencies only.

mod account;
mod guard;
mod postgres;

pub use account::Account;
pub use postgres::{Postgres, Stop};
