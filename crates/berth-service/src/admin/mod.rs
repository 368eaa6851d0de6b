//! Templates, schedules, the audit log and backups.

pub mod audit;
pub mod backup;
pub mod schedules;
pub mod templates;

pub use templates::named as template;
