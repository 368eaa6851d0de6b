//! A check of one GPU by a helper process, and what is remembered of such checks.

mod book;

pub use book::{CheckBook, Checked};

use crate::inventory::Device;
use crate::launcher::Launcher;
use berth_gpucheck::{Check, Helper, Played, Subject};
use std::time::Duration;

/// The word by which a helper knows that it is to check a GPU.
pub(crate) const WORD: &str = "gpu-check";
/// The longest check. One of a GPU that is well takes about ten seconds.
const LIMIT: Duration = Duration::from_secs(45);

/// Whether there is something to check: a real GPU, or what a recording says of one.
pub fn can_be_checked(device: &Device, played: Option<&Played>) -> bool {
    !device.declared() || played.is_some()
}

/// Checks a GPU that nothing else uses. This blocks, for [`LIMIT`] and a few seconds at the most;
/// `step` hears what the check does. Nothing of a declared GPU of which nobody says anything.
pub fn check_gpu(
    launcher: &Launcher,
    device: &Device,
    played: Option<Played>,
    step: impl FnMut(&str),
) -> Option<Check> {
    let limit = played.as_ref().and_then(|played| played.limit_ms);
    let limit = limit.map_or(LIMIT, Duration::from_millis);
    let subject = match (&device.uuid, played) {
        (_, Some(played)) => Subject::Played(played),
        (Some(uuid), None) => Subject::Gpu(uuid.clone()),
        (None, None) => return None,
    };
    let args = launcher.args.iter().cloned().chain([WORD.into()]).collect();
    let helper = Helper { exe: launcher.exe.clone(), args };
    Some(berth_gpucheck::check(&helper, subject, &device.model, limit, step))
}
