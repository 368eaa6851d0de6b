//! What people may ask for, as functions with the caller's rights: submit, find, plan, stop, apply,
//! budgets, identity, audit. HTTP handlers, Kubernetes objects and schedules call these.
//!
//! Deliberately absent: HTTP, Kubernetes, and any write that does not go through the engine.

pub mod admin;
pub mod apply;
mod approver;
mod audit;
pub mod audit_end;
pub mod audit_key;
pub mod audit_watch;
pub mod caller;
pub mod checks;
pub mod cluster;
pub mod code;
pub mod credentials;
mod device_book;
pub mod fault;
mod figure_book;
mod figure_options;
pub mod figures;
mod heavy_reads;
pub mod home;
pub mod host;
pub mod identity;
mod job_schema;
pub mod job_token;
pub mod jobs;
pub mod live;
mod maker;
pub mod money;
mod names;
mod node_reason;
pub mod notify_address;
pub mod objects;
mod on_behalf;
pub mod pem;
pub mod refusals;
pub mod schedules;
mod service;
mod session_book;
pub mod sessions;
pub mod sign_in;
mod sign_in_limits;
pub mod stream_checks;
pub mod stream_right;
pub mod templates;
pub mod token;
mod token_use;
mod trial;
pub mod vault;
mod volume_disk;
pub mod volumes;

pub use audit::{put_as_server, server_audit};
pub use caller::Caller;
pub use fault::Fault;
pub use figure_book::{Book, KeepFigures};
pub use figure_options::{FigureOptions, Figures};
pub use heavy_reads::{HeavyReads, ReadTurn};
pub use home::Home;
pub use host::JobHost;
pub use job_schema::job_schema;
pub use service::{Parts, Service};
pub use stream_right::StreamRight;
pub use token_use::TokenUse;
pub use vault::Vault;
