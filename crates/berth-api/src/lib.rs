//! Berth over HTTP: the types on the wire, the table of routes with who may use them, problems
//! with stable codes, and a typed client.
//!
//! Nothing is decided here and nothing is stored. Times are RFC 3339 in UTC, money is whole
//! millionths of a dollar in fields that end in `_micros`, GPUs are thousandths in fields that end
//! in `_milli`, lengths of time are milliseconds in fields that end in `_ms`.

pub mod access;
#[cfg(feature = "client")]
pub mod client;
pub mod code;
pub mod problem;
pub mod routes;
pub mod wire;

pub use access::{Least, Needs, Owner, Permission, Role, Scope, Standing};
#[cfg(feature = "client")]
pub use client::Client;
pub use code::Code;
pub use problem::{FieldError, Problem};
pub use routes::{Method, ROUTES, Route};
