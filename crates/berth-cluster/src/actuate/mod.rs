//! Carrying out what was decided, at the API server.

pub mod executor;
pub mod holder;
pub mod managed;
mod prepare;
pub mod publish;
pub mod reasons;
pub mod reserve;
mod suspend;
mod volumes;
mod window;
