//! Which of the jobs in memory are asked for.

use berth_engine::LiveJob;
use berth_store::JobFilter;

/// Whether the store would find it, too.
pub(super) fn is_meant(filter: &JobFilter, job: &LiveJob) -> bool {
    let row = &job.row;
    let same = |wish: &Option<String>, is: &str| wish.as_deref().is_none_or(|wish| wish == is);
    let has =
        |text: &String| row.name.to_ascii_lowercase().contains(text.to_ascii_lowercase().as_str());
    (filter.states.is_empty() || filter.states.contains(&job.state()))
        && (filter.teams.is_empty() || filter.teams.contains(&row.team))
        && filter.kind.is_none_or(|kind| kind == row.kind)
        && same(&filter.user, &row.user)
        && same(&filter.project, &row.project)
        && same(&filter.experiment, &row.experiment)
        && same(&filter.name, &row.name)
        && filter.text.as_ref().is_none_or(has)
        && filter.since.is_none_or(|since| row.submitted >= since)
        && filter.until.is_none_or(|until| row.submitted < until)
}
