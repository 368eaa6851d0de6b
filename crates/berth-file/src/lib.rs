//! Files that people write: worlds, job files, and what they share with other files: YAML and JSON
//! with the place of every value, known keys with suggestions for unknown ones, and writing the
//! same back.
//!
//! There is no file, clock or thread here: text comes in, values or a refusal with line and
//! column go out.

mod array;
pub mod cron;
pub mod documents;
pub mod error;
pub mod fields;
pub mod job;
pub mod object;
pub mod out;
mod spec_keys;
pub mod tree;
pub mod world;
