//! One machine, end to end: the real binary, real processes, a real database.

mod backup;
mod bad;
mod clock;
mod crash;
mod http;
mod jobs;
mod matrix;
mod server;
mod tour;
mod trouble;
