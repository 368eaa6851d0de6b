//! Real surroundings for tests: programs that are started for a test and are gone after it,
//! however it ends.
//!
//! Nothing here ships: crates may name it among their dev-dependencies only, but for the one that
//! reproduces published figures.

mod account;
mod bill;
mod chaos;
mod crashes;
pub mod fuzz;
mod guard;
mod http;
pub mod kube;
mod postgres;
mod server;
mod surroundings;

pub use account::Account;
pub use bill::Bill;
pub use chaos::{ChaosReport, Fault, run_chaos};
pub use crashes::{CrashReport, Load, SEED, run_through_faults};
pub use postgres::{Postgres, Stop};
pub use server::{Server, eventually, until};
pub use surroundings::{Surroundings, fill};
