//! The first process of a sandbox. It builds the view, then waits for orphans until it is killed;
//! all other processes of the sandbox die with it.

use crate::channel;
use crate::loopback;
use crate::spec::{Network, Sandbox};
use crate::tree;
use nix::sched::CloneFlags;
use nix::sys::signal::{SigSet, Signal as NixSignal};
use rustix::process::{
    DumpableBehavior, Signal, WaitOptions, set_dumpable_behavior, set_parent_process_death_signal,
};
use serde::{Deserialize, Serialize};
use std::io;
use std::process::ExitCode;

pub(crate) const WORD: &str = "sandbox-init";

/// What `init` says once the view is there, or cannot be.
#[derive(Serialize, Deserialize)]
pub(crate) enum Built {
    Done,
    Failed { why: String, errno: Option<i32> },
}

pub(crate) fn run() -> ExitCode {
    match prepare() {
        Ok(()) => reap_for_ever(),
        Err(error) => {
            eprintln!("the sandbox could not be made: {error}");
            ExitCode::FAILURE
        }
    }
}

fn prepare() -> io::Result<()> {
    let (sandbox, answer) = channel::receive::<Sandbox>()?;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // A job of the same account must not look into this process.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    SigSet::from(NixSignal::SIGCHLD).thread_block()?;
    let built = match isolate(&sandbox) {
        Ok(()) => Built::Done,
        Err(failed) => failed,
    };
    // The job's account, which this process had for a while, has undone both.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    // Where the supervisor died before it could be noticed, nobody reads this, and it fails.
    answer.send(&built)?;
    match built {
        Built::Done => Ok(()),
        Built::Failed { why, .. } => Err(io::Error::other(why)),
    }
}

fn isolate(sandbox: &Sandbox) -> Result<(), Built> {
    let mut flags = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC;
    if sandbox.network == Network::None {
        flags |= CloneFlags::CLONE_NEWNET;
    }
    let failed = |what: &str, error: io::Error| Built::Failed {
        why: format!("{what}: {error}"),
        errno: error.raw_os_error(),
    };
    nix::sched::unshare(flags).map_err(|error| failed("no namespaces", error.into()))?;
    if sandbox.network == Network::None {
        loopback::bring_up().map_err(|error| failed("no loopback", error))?;
    }
    let failed = |error: crate::tree_error::TreeError| Built::Failed {
        why: error.to_string(),
        errno: error.errno(),
    };
    tree::build(sandbox).map_err(failed)
}

/// Processes whose parent has ended become children of this one.
fn reap_for_ever() -> ExitCode {
    let child_ended = SigSet::from(NixSignal::SIGCHLD);
    loop {
        while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
        if child_ended.wait().is_err() {
            return ExitCode::FAILURE;
        }
    }
}
