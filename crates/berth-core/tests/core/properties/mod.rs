//! Properties of the core over small random worlds and random sequences of events.
//!
//! `PROPTEST_CASES` raises the number of cases, `PROPTEST_RNG_SEED` chooses others.

mod invariants;
mod preemption;
mod refusals;
mod waiting;

use crate::support::draw::Bytes as Raw;
use crate::support::drive::Run;
use crate::support::world::Tale;
use proptest::prelude::TestCaseError;
use std::panic::{AssertUnwindSafe, catch_unwind};

type Verdict = Result<(), String>;

fn fail(what: impl Into<String>) -> Verdict {
    Err(what.into())
}

/// Plays a tale; what goes wrong, panics included, is told with everything that led to it.
fn play(tale: &Tale, body: impl FnOnce(&mut Run, &[Raw]) -> Verdict) -> Result<(), TestCaseError> {
    let mut run = Run::set_up(tale);
    let verdict = catch_unwind(AssertUnwindSafe(|| body(&mut run, &tale.steps)));
    let what = match verdict {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(what)) => what,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()));
            format!("panicked: {}", text.unwrap_or_default())
        }
    };
    Err(TestCaseError::fail(format!("{what}\n{}", run.story())))
}
