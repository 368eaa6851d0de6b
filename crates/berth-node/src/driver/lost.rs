//! Tasks whose supervisor is gone, or never came.
//!
//! Whoever holds the lock of a task may close it. The supervisor holds it from before its first
//! step until after its last; so once the driver gets the lock of a task that was begun, that
//! supervisor is dead, and how the task ended is unknown.

use super::{Driver, Live};
use crate::cgroup::Cgroup;
use crate::error::Error;
use crate::home::{Begun, Home};
use crate::process;
use berth_model::Ended;
use berth_model::{Cause, LeaseId};
use rustix::process::{Pid, Signal};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

/// How often killed processes are looked for before the next look around.
const SWEEPS: u32 = 50;
const SWEEP_PAUSE: Duration = Duration::from_millis(2);

impl Driver {
    /// Writes the end of a task whose supervisor is gone and will not write it.
    pub(super) fn close_if_lost(&self, lease: LeaseId, live: &Live) -> Result<(), Error> {
        with_lock(live, |begun| match begun {
            Some(begun) => close_lost(lease, &live.home, &begun),
            None if live.child_gone => {
                let mut ended = Ended::unknown(lease, process::now());
                ended.asked = live.home.stop_request()?.map(|request| request.cause);
                ended.not_started = Some(last_complaint(&live.home));
                close(live, &ended)
            }
            // Either its supervisor has yet to take the lock, or it has not been started.
            None => Ok(()),
        })
    }

    /// Ends a task that has a folder and was never begun.
    pub(super) fn close_unbegun(
        &self,
        lease: LeaseId,
        live: &Live,
        cause: Cause,
    ) -> Result<(), Error> {
        with_lock(live, |begun| match begun {
            Some(_) => Ok(()),
            None => {
                let mut ended = Ended::unknown(lease, process::now());
                ended.asked = Some(cause);
                ended.not_started = Some("it was asked to stop before it was started".to_owned());
                close(live, &ended)
            }
        })
    }
}

/// Acts under the lock of the task, unless another process has the lock or the task has ended.
fn with_lock(
    live: &Live,
    act: impl FnOnce(Option<Begun>) -> Result<(), Error>,
) -> Result<(), Error> {
    if !live.lock.try_take() {
        return Ok(());
    }
    let done = if live.home.has_ended() { Ok(()) } else { live.lock.begun().and_then(act) };
    live.lock.give_back();
    done
}

/// Shuts the door to a supervisor that comes late, then writes the end.
fn close(live: &Live, ended: &Ended) -> Result<(), Error> {
    let begun = Begun { at: ended.at, boot: process::boot_id(), supervisor: 0, cgroup: None };
    let path = live.home.dir.clone();
    live.lock
        .begin(&begun)
        .and_then(|()| live.home.write_ended(ended))
        .map_err(|source| Error::Write { path, source })
}

fn close_lost(lease: LeaseId, home: &Home, begun: &Begun) -> Result<(), Error> {
    let same_boot = begun.boot == process::boot_id();
    if same_boot && !sweep(home, begun) {
        // Something cannot be killed yet: the GPUs are not free, so it has not ended.
        return Ok(());
    }
    let mut ended = Ended::unknown(lease, process::now());
    ended.started_at = home.running()?.map(|running| running.at);
    ended.asked = home.stop_request()?.map(|request| request.cause);
    ended.lost = Some(
        match same_boot {
            true => "its supervisor was killed",
            false => "the machine was restarted while it ran",
        }
        .to_owned(),
    );
    home.write_ended(&ended).map_err(|source| Error::Write { path: home.dir.clone(), source })
}

/// Kills what the task has left; whether all of it is gone.
fn sweep(home: &Home, begun: &Begun) -> bool {
    let group = begun.cgroup.as_deref().map(Cgroup::at);
    for _ in 0..SWEEPS {
        let left = left_behind(&home.dir, begun.supervisor);
        let in_group = group.as_ref().is_some_and(|group| !group.is_empty());
        if left.is_empty() && !in_group {
            if let Some(group) = &group {
                group.remove();
            }
            return true;
        }
        if let Some(group) = &group {
            group.kill();
        }
        process::signal(&left, Signal::KILL);
        sleep(SWEEP_PAUSE);
    }
    false
}

/// Processes that name the task's folder in their environment, and those of the supervisor's
/// session: some programs overwrite their environment with a title. A session whose leader is
/// alive is another one that was given the same number.
fn left_behind(home: &Path, session: i32) -> Vec<Pid> {
    let all = process::all();
    let is_ours = session > 0 && !all.iter().any(|p| p.pid == session && !p.is_zombie);
    let of_session = all
        .iter()
        .filter(|p| is_ours && p.session == session && !p.is_zombie)
        .filter_map(|p| Pid::from_raw(p.pid));
    of_session.chain(process::marked(home)).collect()
}

fn last_complaint(home: &Home) -> String {
    let log = std::fs::read_to_string(home.file("supervisor.log")).unwrap_or_default();
    let last = log.lines().last().and_then(|line| line.split_once(' '));
    let why = last.map_or("is the disk full?", |(_, why)| why);
    format!("its supervisor gave up before it could start it: {why}")
}
