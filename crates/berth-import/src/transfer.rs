//! An import or export from start to end.

#[cfg(test)]
mod tests;

use crate::check;
use crate::copy::{Checked, Copy, Options, Watch};
use crate::error::Result;
use crate::report::{Problems, Report};
use crate::sink::Sink;
use crate::source::Source;
use std::cell::RefCell;

/// Moves everything from a source to a sink, and compares both sides at the end.
pub async fn copy(
    source: &dyn Source,
    sink: &dyn Sink,
    options: &Options,
    problems: &Problems,
    watch: &dyn Watch,
) -> Result<Report> {
    let copy = Copy { source, sink, options, problems, watch, map: RefCell::default() };
    let (pairs, mut report) = copy.run().await?;
    if !options.dry_run {
        if options.checked != Checked::Nothing {
            check::compare(&copy, &pairs, &mut report).await?;
        }
        problems.must_be_none(options.strict)?;
    }
    report.finish(problems);
    Ok(report)
}
