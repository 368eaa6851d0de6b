//! Jobs: submitted, looked at, acted on.

pub mod act;
pub mod find;
pub mod list;
pub mod plan;
pub mod show;
pub mod submit;
pub mod why;
