//! Tasks whose supervisor is gone, or never came.
//!
//! Whoever holds the lock of a task may close it. The supervisor holds it from before its first
//! step until after its last; so once the driver gets the lock of a task that was begun, that
//! supervisor is dead, and how the task ended is unknown.

use super::{Driver, Live};
use crate::cgroup::Cgroup;
use crate::error::Error;
use crate::folder::folder_name;
use crate::home::{Begun, Home};
use crate::process::{self, Process};
use crate::trouble::{Lack, Trouble};
use berth_model::Ended;
use berth_model::{Cause, LeaseId, Span, Time};
use rustix::process::Signal;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

/// How often killed processes are looked for before the next look around.
const SWEEPS: u32 = 50;
const SWEEP_PAUSE: Duration = Duration::from_millis(2);

impl Driver {
    /// Writes the end of a task whose supervisor is gone and will not write it. Where the machine
    /// could not begin with it, nothing is written, since there may be no room: the end is
    /// returned, and the folder is gone.
    pub(super) fn close_if_lost(
        &self,
        lease: LeaseId,
        live: &Live,
    ) -> Result<Option<Ended>, Error> {
        let mut trouble = None;
        with_lock(live, |begun| match (begun, &live.gone) {
            (Some(begun), _) => close_lost(lease, &live.home, &begun),
            (None, Some(gone)) => {
                let asked = live.home.stop_request()?.and_then(|request| request.wanted());
                let mut ended = Ended::unknown(lease, process::now());
                ended.asked = asked;
                match gone.trouble() {
                    Some(found) => {
                        // What cannot be deleted is tidied up by the next server.
                        let _ = fs::remove_dir_all(&live.home.dir);
                        ended.trouble = Some(found.to_string());
                        trouble = Some(ended);
                        Ok(())
                    }
                    None => {
                        ended.not_started = Some(last_complaint(&live.home));
                        close(live, &ended)
                    }
                }
            }
            // Either its supervisor has yet to take the lock, or it has not been started.
            (None, None) => Ok(()),
        })?;
        Ok(trouble)
    }

    /// Ends a task that has a folder and was never begun.
    pub(super) fn close_unbegun(
        &self,
        lease: LeaseId,
        live: &Live,
        cause: Option<Cause>,
    ) -> Result<(), Error> {
        with_lock(live, |begun| match begun {
            Some(_) => Ok(()),
            None => {
                let mut ended = Ended::unknown(lease, process::now());
                ended.stopped_before_its_start(cause);
                close(live, &ended)
            }
        })
    }

    /// Ends a task whose folder was deleted, by itself or by somebody else: its supervisor can
    /// neither be asked to stop nor say how it ended. `None` while something of it is left.
    pub(super) fn end_without_folder(
        &self,
        lease: LeaseId,
        live: &mut Live,
    ) -> Result<Option<Ended>, Error> {
        let begun = live.lock.begun()?;
        let child = live.child.as_ref().and_then(|child| i32::try_from(child.id()).ok());
        let supervisor = match (child, &begun) {
            // A child that nobody has waited for keeps its number.
            (Some(pid), _) => Process::of(pid),
            (None, Some(begun)) if begun.boot == process::boot_id() => supervisor(begun),
            _ => None,
        };
        if let Some(supervisor) = supervisor.filter(|found| found.is_alive()) {
            // Those below it first have to be known: without it they are nobody's children.
            let below = process::descendants(supervisor.pid);
            supervisor.signal(Signal::KILL);
            process::signal(&below, Signal::KILL);
        }
        if let Some(child) = &mut live.child {
            let _ = child.wait();
        }
        let is_gone = match &begun {
            Some(begun) if begun.boot == process::boot_id() => sweep(&live.home, begun),
            Some(_) => true,
            None => sweep_marked(&live.home.dir),
        };
        if !is_gone {
            return Ok(None);
        }
        live.child = None;
        let why = "the folder of the task was deleted while it ran";
        let ended = Ended::lost(lease, process::now(), why.to_owned());
        // Where only a part was deleted, the rest stays with the ended ones.
        if live.home.dir.exists() {
            let _ = live.home.write_ended(&ended);
        }
        Ok(Some(ended))
    }

    /// Kills what is left of a task that has no folder here any more; whether nothing is left.
    pub fn sweep(&self, lease: LeaseId) -> bool {
        sweep_marked(&self.tasks.join(folder_name(lease)))
    }
}

impl super::Gone {
    /// What the machine lacked, where that is why the supervisor did not begin.
    fn trouble(&self) -> Option<Trouble> {
        let status = self.status?;
        match status.code() {
            // The loader of programs ends with 127 where it cannot map a library.
            Some(127) => Some(Trouble::new(Lack::Memory, "its supervisor could not be loaded")),
            Some(code) => Trouble::of_exit_code(code),
            // Nobody but the system and the operator has reason to kill it that early.
            None => {
                let detail = format!("its supervisor was killed before it could begin ({status})");
                Some(Trouble::new(Lack::Memory, detail))
            }
        }
    }
}

/// The supervisor that has begun a task. Before start times were kept, the number had to do.
fn supervisor(begun: &Begun) -> Option<Process> {
    let found = Process::of(begun.supervisor)?;
    begun.start.is_none_or(|start| start == found.start).then_some(found)
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
    let boot = process::boot_id();
    let begun = Begun { at: ended.at, boot, supervisor: 0, start: None, cgroup: None };
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
    // What ran before the machine was started has ended by then, however late it is found.
    let at = if same_boot { process::now() } else { boot_time().max(begun.at) };
    let mut ended = Ended::unknown(lease, at);
    ended.started_at = home.running()?.map(|running| running.at);
    ended.asked = home.stop_request()?.and_then(|request| request.wanted());
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
        let left = left_behind(&home.dir, begun);
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

/// The same for a task of which only its folder's name is known.
fn sweep_marked(dir: &Path) -> bool {
    for _ in 0..SWEEPS {
        let left = process::marked(dir);
        if left.is_empty() {
            return true;
        }
        process::signal(&left, Signal::KILL);
        sleep(SWEEP_PAUSE);
    }
    false
}

/// When the machine was started.
fn boot_time() -> Time {
    process::now() - Span(i64::try_from(process::uptime_ms()).unwrap_or(0))
}

/// Processes that name the task's folder in their environment, and those of the supervisor's
/// session: some programs overwrite their environment with a title. A session whose leader is
/// alive is another one that was given the same number, and so is one with processes that are older
/// than the supervisor.
fn left_behind(home: &Path, begun: &Begun) -> Vec<Process> {
    let all = process::all();
    let session = begun.supervisor;
    let is_ours = session > 0 && !all.iter().any(|p| p.pid == session && !p.is_zombie);
    let first = begun.start.unwrap_or(0);
    let of_session = all
        .iter()
        .filter(|p| is_ours && p.session == session && !p.is_zombie && p.start >= first)
        .map(|p| p.process());
    of_session.chain(process::marked(home)).collect()
}

fn last_complaint(home: &Home) -> String {
    let log = std::fs::read_to_string(home.file("supervisor.log")).unwrap_or_default();
    let last = log.lines().last().and_then(|line| line.split_once(' '));
    let why = last.map_or("is the disk full?", |(_, why)| why);
    format!("its supervisor gave up before it could start it: {why}")
}
