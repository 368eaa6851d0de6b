//! A sandbox for the processes of one task: namespaces with a view of the file system that holds
//! what the task may see and nothing else, an account, and a filter of system calls.
//!
//! ```text
//! supervisor                    outside; its children are born in the new PID namespace
//!   ├── init                    PID 1 in there; builds the view and reaps orphans
//!   └── enter ──exec──▶ rank    joins the view, gives up its rights, becomes the command
//! ```
//!
//! All processes of the sandbox die with `init`, and `init` dies with the supervisor: the kernel
//! sees to both. Each step is a helper process of its own, because a process that has threads
//! cannot change its namespaces, and because this crate has no `unsafe`.
//!
//! Deliberately absent: what a task is, and what it should see. The caller says it in a
//! [`Sandbox`].

mod access;
mod channel;
mod enter;
mod init;
mod loopback;
mod mountinfo;
mod named;
mod parent;
mod point;
mod probe;
mod protect;
mod scope;
mod spec;
mod syscalls;
mod tree;
mod tree_error;

pub use access::{Access, everybody_may, may_access};
pub use enter::{Enter, EnterError, Limits, unseen};
pub use mountinfo::other_names;
pub use parent::{Helper, Joined, Running, StartError, close_inherited, join};
pub use probe::{ProbeError, probe};
pub use scope::hides_abstract_sockets;
pub use spec::{Account, Mount, Network, Opener, Sandbox, Source};

use std::ffi::OsStr;
use std::process::ExitCode;

/// The hidden commands of the binary that belong to this crate; nothing for other words.
pub fn helper(word: &OsStr) -> Option<ExitCode> {
    match word.to_str()? {
        init::WORD => Some(init::run()),
        enter::WORD => Some(enter::run()),
        probe::WORD => Some(probe::run()),
        _ => None,
    }
}
