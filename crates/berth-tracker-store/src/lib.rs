//! The store of experiments, runs and models, in tables of its own: a SQLite file beside the server's
//! database, or a schema of the server's PostgreSQL database. The statements are the same for both.
//!
//! One writer carries out changes in groups: it takes all that have arrived into one transaction, and
//! answers each request after the commit. Readers read beside it.
//!
//! Deliberately absent: rights, and what names and values may be. Those are `berth-tracker`'s.

mod backup;
mod best;
mod database;
mod error;
mod figures;
mod history;
mod memory;
mod packed;
mod read;
mod removal;
mod rows;
mod runs;
mod search;
mod store;
mod writer;

pub use backup::{BackupError, Filled, Restored, restore};
pub use database::{Backend, Options};
pub use error::OpenError;
pub use figures::Figures;
pub use removal::{Clean, Cleaned, Removal};
pub use store::TrackingStore;
