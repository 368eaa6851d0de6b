//! Which rows of a trace are wanted.

use berth_model::Time;

/// A part of a trace. The default is all of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Select {
    /// Of a file with several workloads, told apart by a first column `set` or `variant`: which.
    pub set: Option<String>,
    pub team: Option<String>,
    /// Submitted then or later.
    pub from: Option<Time>,
    /// Submitted before.
    pub until: Option<Time>,
}

impl Select {
    pub fn set(name: &str) -> Select {
        Select { set: Some(name.to_owned()), ..Select::default() }
    }

    pub fn team(name: &str) -> Select {
        Select { team: Some(name.to_owned()), ..Select::default() }
    }

    pub(super) fn wants_time(&self, submit: Time) -> bool {
        self.from.is_none_or(|from| from <= submit) && self.until.is_none_or(|end| submit < end)
    }
}
