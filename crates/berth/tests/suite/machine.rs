//! One machine, end to end: the real binary, real processes, a real database.

#[path = "machine/backup.rs"]
mod backup;
#[path = "machine/bad.rs"]
mod bad;
#[path = "machine/crash.rs"]
mod crash;
#[path = "machine/http.rs"]
mod http;
#[path = "machine/jobs.rs"]
mod jobs;
#[path = "machine/matrix.rs"]
mod matrix;
#[path = "machine/server.rs"]
mod server;
#[path = "machine/tour.rs"]
mod tour;
