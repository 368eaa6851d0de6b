//! How many files this process may have open.
//!
//! Systems start programs with a low limit that each may raise for itself: some old programs fail
//! with more. So the server raises its own, and its helpers lower theirs again before they start
//! what people run.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::ffi::{OsStr, OsString};

/// A limit of open files, before and after it was raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenFiles {
    pub before: u64,
    pub now: u64,
}

/// The variable that tells helpers the limit.
const WORD: &str = "files=";

impl OpenFiles {
    /// Raises the limit to the highest that this process may have.
    pub fn raise() -> OpenFiles {
        let limit = getrlimit(Resource::Nofile);
        // None is no limit.
        let before = limit.current.unwrap_or(u64::MAX);
        let raised = Rlimit { current: limit.maximum, ..limit };
        let now = match setrlimit(Resource::Nofile, raised) {
            Ok(()) => limit.maximum.unwrap_or(u64::MAX),
            Err(_) => before,
        };
        OpenFiles { before, now }
    }

    /// The word among a helper's arguments by which it has the limit from before.
    pub fn word(self) -> OsString {
        format!("{WORD}{}", self.before).into()
    }

    /// Whether this is such a word; sets the limit if it is.
    pub fn restore(word: &OsStr) -> bool {
        let Some(limit) = word.to_str().and_then(|word| word.strip_prefix(WORD)) else {
            return false;
        };
        if let Ok(limit) = limit.parse::<u64>() {
            let now = getrlimit(Resource::Nofile);
            let current = Some(limit).filter(|limit| *limit != u64::MAX);
            // Lowering is always allowed. Should it fail, what is started may open more files.
            let _ = setrlimit(Resource::Nofile, Rlimit { current, ..now });
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_was_raised_is_restored_from_its_word() {
        let raised = OpenFiles::raise();
        assert!(raised.now >= raised.before);
        let limit = || getrlimit(Resource::Nofile);
        assert_eq!(limit().current, limit().maximum);
        let lower = OpenFiles { before: raised.now.min(5_000) - 1, ..raised };
        assert!(OpenFiles::restore(&lower.word()));
        assert_eq!(limit().current, Some(lower.before));
        assert_eq!(OpenFiles::raise().now, raised.now, "the highest stays what it was");
        assert!(!OpenFiles::restore(OsStr::new("supervise")));
    }
}
