//! The control loop and everything people and programs talk to. Wiring, no policy: what is started
//! or stopped is what the core decided, and who may ask for what is one table in `berth-api`.

pub mod app;
mod clock;
pub mod engine;
pub mod hands;
pub mod home;
pub mod http;

mod notices;
mod ports;
mod setup;
mod task;
mod token;
pub mod vault;
mod views;
