//! Schedules, the audit log and backups.

pub mod audit;
pub mod audit_watch;
pub mod backup;
pub mod refusals;
pub mod schedules;
