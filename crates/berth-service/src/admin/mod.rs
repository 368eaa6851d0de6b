//! Schedules, the audit log and backups.

pub mod audit;
pub mod backup;
pub mod schedules;
