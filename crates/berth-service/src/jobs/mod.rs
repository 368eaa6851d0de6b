//! Jobs: submitted, looked at, acted on.

pub mod act;
mod depend;
pub mod find;
pub mod list;
pub mod plan;
mod priority;
pub mod show;
pub mod submit;
pub mod why;
