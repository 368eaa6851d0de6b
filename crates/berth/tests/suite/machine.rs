//! One machine, end to end: the real binary, real processes, a real database.

mod audit;
mod backup;
mod bad;
mod clock;
mod code;
mod crash;
mod figures;
mod gone_gpus;
mod gpu_checks;
mod gpu_energy;
mod gpu_faults;
pub mod http;
mod identity;
mod jobs;
mod lost;
mod matrix;
mod notify;
pub mod people;
mod pressure;
mod refused;
mod rights;
pub mod server;
mod streams;
mod tour;
mod trouble;
mod views;
mod volumes;
