//! Carrying out what was decided, at the API server.

pub mod executor;
pub mod holder;
pub mod managed;
pub mod pod_events;
mod prepare;
pub mod publish;
pub mod reasons;
pub mod reserve;
mod suspend;
pub mod time_limits;
mod volumes;
mod window;
