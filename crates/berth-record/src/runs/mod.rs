//! The tracked run of each job.
