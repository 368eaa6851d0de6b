//! What the server remembers of sessions beyond the database: their limits, and counts.

use crate::token_use::TokenUse;
use berth_api::wire::SignInMeans;
use berth_model::Span;
use std::sync::atomic::{AtomicU64, Ordering};

/// How long sessions last, and how many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLimits {
    /// However much it is used.
    pub longest: Span,
    /// Without being used.
    pub idle: Span,
    /// Of one user; whoever signs in once more ends the one that was not used for longest.
    pub most_per_user: usize,
}

impl Default for SessionLimits {
    fn default() -> SessionLimits {
        SessionLimits { longest: Span::hours(12), idle: Span::hours(1), most_per_user: 20 }
    }
}

#[derive(Default)]
pub struct Sessions {
    pub limits: SessionLimits,
    /// When each of them was noted last.
    pub(crate) uses: TokenUse,
    opened_by_token: AtomicU64,
    opened_by_oidc: AtomicU64,
    refused: AtomicU64,
}

impl Sessions {
    pub fn new(limits: SessionLimits) -> Sessions {
        Sessions { limits, ..Sessions::default() }
    }

    /// Sign-ins since the start, with a token and by a provider, and those that were refused.
    pub fn totals(&self) -> [(&'static str, u64); 3] {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        [
            ("token", read(&self.opened_by_token)),
            ("oidc", read(&self.opened_by_oidc)),
            ("refused", read(&self.refused)),
        ]
    }

    pub fn note_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_opened(&self, means: SignInMeans) {
        let count = match means {
            SignInMeans::Token => &self.opened_by_token,
            SignInMeans::Oidc => &self.opened_by_oidc,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}
