//! Real surroundings for tests: programs that are started for a test and are gone after it,
//! however it ends.
//!
//! Nothing here ships: crates may name it among their dev-dependencies only, but for the one that
//! reproduces published figures.

mod account;
mod bill;
mod guard;
pub mod kube;
mod postgres;
mod server;
mod siege;
mod survival;

pub use account::Account;
pub use bill::Bill;
pub use postgres::{Postgres, Stop};
pub use server::{Server, eventually, until};
pub use siege::{Blow, Siege, besiege};
pub use survival::{Load, SEED, Survival, survive};
