//! Keeps the processes of a sandbox from abstract unix sockets of the machine.
//!
//! Such a socket has a name and no file, so no view hides it, and whoever listens there is told the
//! account of the caller. Landlock does it from Linux 6.12 on. What begins inside is reached from
//! inside: libraries such as NCCL connect the processes of a task in this way.

use landlock::{CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetError, Scope};
use std::io;

/// Whether this kernel can. Where it cannot, tasks reach abstract sockets of the machine.
pub fn hides_abstract_sockets() -> bool {
    scoped(CompatLevel::HardRequirement).is_ok()
}

/// Holds for this process and those that it starts from now on.
pub(crate) fn leave_abstract_sockets() -> io::Result<()> {
    let ruleset = scoped(CompatLevel::BestEffort).and_then(Ruleset::create);
    ruleset.and_then(|ruleset| ruleset.restrict_self()).map(|_| ()).map_err(plain)
}

/// The error of the operating system that is in there: callers tell from its number what passes.
fn plain(error: RulesetError) -> io::Error {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(found) = cause {
        let number = found.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
        if let Some(number) = number {
            return io::Error::from_raw_os_error(number);
        }
        cause = found.source();
    }
    io::Error::other(error.to_string())
}

fn scoped(level: CompatLevel) -> Result<Ruleset, RulesetError> {
    Ruleset::default().set_compatibility(level).scope(Scope::AbstractUnixSocket)
}
