//! The columns in which jobs are listed, and which of them there is room for.

use crate::fail::BadValue;
use crate::show::{Cell, Look, Table, words};
use berth_api::wire::{Job, JobState};
use std::collections::BTreeMap;

pub struct Column {
    /// What `--columns` calls it.
    pub name: &'static str,
    title: &'static str,
    cell: fn(&Job, &Look) -> Cell,
}

const fn column(name: &'static str, title: &'static str, cell: fn(&Job, &Look) -> Cell) -> Column {
    Column { name, title, cell }
}

#[rustfmt::skip]
const COLUMNS: &[Column] = &[
    column("id", "ID", |job, look| Cell::of_job(look, &job.id.to_string())),
    column("name", "NAME", |job, _| job.name.as_str().into()),
    column("state", "STATE", |job, _| Cell::toned(job.state.as_str(), words::state_tone(job.state))),
    column("gpus", ">GPUS", |job, _| words::gpus(job.gpus_milli, job.declared).into()),
    column("user", "USER", |job, _| job.user.as_str().into()),
    column("team", "TEAM", |job, _| job.team.as_str().into()),
    column("time", ">WAIT/RUN", |job, look| words::span(time_ms(job, look)).into()),
    column("cost", ">COST", |job, _| words::money(job.cost_micros).into()),
    column("line", ">LINE", |job, _| job.position.into()),
    column("eta", "ETA", |job, look| job.eta.map(|eta| format!("~{}", look.at(eta))).into()),
    column("project", "PROJECT", |job, _| job.project.as_str().into()),
    column("experiment", "EXPERIMENT", |job, _| job.experiment.as_str().into()),
    column("priority", ">PRIO", |job, _| job.priority.into()),
    column("asks", "ASKS", |job, _| job.asks.as_str().into()),
    column("tries", ">TRIES", |job, _| job.attempts.into()),
    column("submitted", "SUBMITTED", |job, look| look.at(job.submitted).into()),
    column("started", "STARTED", |job, look| look.maybe_at(job.started).into()),
    column("ended", "ENDED", |job, look| look.maybe_at(job.ended).into()),
    column("projected", ">PROJECTED", |job, _| job.projected_micros.map(words::money).into()),
    column("on", "ON", |job, _| job.on.join(",").into()),
    column("exit", "EXIT", |job, _| exit(job).into()),
    column("labels", "LABELS", |job, _| pairs(&job.labels).into()),
    column("tags", "TAGS", |job, _| job.tags.join(",").into()),
    column("comment", "COMMENT", |job, _| job.comment.as_deref().into()),
    column("url", "URL", |job, _| job.url.as_deref().into()),
    column("parameters", "PARAMETERS", |job, _| words::parameters(&job.parameters).into()),
    column("reason", "REASON", |job, look| look.local(&reason(job)).into()),
];

const USUAL: [&str; 11] =
    ["id", "name", "state", "gpus", "user", "team", "time", "cost", "line", "eta", "reason"];

const WIDE: [&str; 19] = [
    "id",
    "name",
    "state",
    "gpus",
    "user",
    "team",
    "time",
    "cost",
    "line",
    "eta",
    "project",
    "experiment",
    "priority",
    "asks",
    "tries",
    "submitted",
    "projected",
    "on",
    "reason",
];

/// What goes first where a terminal is too narrow for the reason.
const DISPENSABLE: [&str; 7] = ["team", "user", "cost", "time", "gpus", "eta", "line"];

/// So much of a reason has to fit beside the other columns. What is longer goes on in the next line.
const LEAST_REASON: usize = 30;

pub type Columns = Vec<&'static Column>;

/// Reads `--columns id,name,reason`.
pub fn parse(text: &str) -> Result<&'static Column, BadValue> {
    let name = text.trim().to_ascii_lowercase();
    COLUMNS.iter().find(|column| column.name == name).ok_or_else(|| {
        let names: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
        BadValue(format!("there is no column `{name}`; the columns are {}", names.join(", ")))
    })
}

fn named(names: &[&str]) -> Columns {
    let find = |name: &&str| COLUMNS.iter().find(|column| column.name == *name);
    names.iter().filter_map(find).collect()
}

/// The usual columns, with the values of sweeps where there are any.
pub fn usual(jobs: &[Job], look: &Look) -> Columns {
    let mut columns = named(if look.wide { &WIDE } else { &USUAL });
    if jobs.iter().any(|job| !job.parameters.is_empty()) {
        columns.insert(2, named(&["parameters"])[0]);
    }
    match (look.wide, look.width) {
        (false, Some(width)) => fitting(columns, jobs, look, width),
        _ => columns,
    }
}

/// Leaves out columns until there is room for the reason.
fn fitting(mut columns: Columns, jobs: &[Job], look: &Look, width: usize) -> Columns {
    let longest =
        jobs.iter().map(|job| look.local(&reason(job)).chars().count()).max().unwrap_or(0);
    let wanted = longest.min(LEAST_REASON);
    for name in DISPENSABLE {
        let without_reason: Columns =
            columns.iter().copied().filter(|column| column.name != "reason").collect();
        let taken = table_of(&without_reason, jobs, look).natural_width();
        if taken + 2 + wanted <= width {
            break;
        }
        columns.retain(|column| column.name != name);
    }
    columns
}

pub fn table(jobs: &[Job], look: &Look) -> Table {
    table_of(&usual(jobs, look), jobs, look)
}

pub fn table_of(columns: &[&'static Column], jobs: &[Job], look: &Look) -> Table {
    let titles: Vec<&'static str> = columns.iter().map(|column| column.title).collect();
    let mut table = Table::new(&titles).wrapped();
    for job in jobs {
        table.row(columns.iter().map(|column| (column.cell)(job, look)).collect());
    }
    table
}

/// How long it has run, or waited where it has not begun.
fn time_ms(job: &Job, look: &Look) -> i64 {
    let from = job.started.unwrap_or(job.submitted);
    match (job.ended, job.state) {
        (Some(ended), _) => (ended.0 - from.0).0,
        (None, JobState::Pending) => look.since_ms(job.submitted),
        (None, _) => look.since_ms(from),
    }
}

/// Why it waits or how it ended; where it answers, for what runs.
pub fn reason(job: &Job) -> String {
    match (&job.reason, &job.url) {
        (Some(reason), _) => reason.clone(),
        (None, Some(url)) if job.ready => url.clone(),
        (None, Some(url)) => format!("not ready yet: {url}"),
        (None, None) => String::new(),
    }
}

fn exit(job: &Job) -> Option<String> {
    let exit = job.exit.as_ref()?;
    let signal = exit.signal.map(|signal| format!("signal {signal}"));
    signal.or_else(|| exit.code.map(|code| code.to_string()))
}

fn pairs(all: &BTreeMap<String, String>) -> String {
    let pairs: Vec<String> = all.iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::tests::job;

    fn jobs() -> Vec<Job> {
        let waits = Job {
            id: "4711".parse().unwrap(),
            name: "llama-70b".into(),
            state: JobState::Pending,
            gpus_milli: 32_000,
            started: None,
            cost_micros: 0,
            eta: Some("2026-11-15T15:40:00Z".parse().unwrap()),
            reason: Some("5 nodes free but split".into()),
            position: Some(3),
            on: Vec::new(),
            declared: true,
            ..job()
        };
        vec![job(), waits]
    }

    #[test]
    fn a_row_for_each_job_says_what_it_has_waits_for_and_costs() {
        let expect = "\
ID    NAME       STATE    GPUS  USER  TEAM  WAIT/RUN   COST  LINE  ETA     REASON
17    bert       running     8  kim   nlp         1h  $1.20     -  -       -
4711  llama-70b  pending   32*  kim   nlp      1h30m  $0.00     3  ~16:40  5 nodes free but split
";
        assert_eq!(table(&jobs(), &Look::fixed()).text(&Look::fixed()), expect);
    }

    #[test]
    fn wide_shows_more_columns() {
        let look = Look { wide: true, ..Look::fixed() };
        let text = table(&jobs(), &look).text(&look);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].contains("LINE  ETA     PROJECT  EXPERIMENT  PRIO  ASKS"), "{text}");
        assert!(lines[1].contains("H100:8"), "{text}");
        assert!(lines[1].contains("n1"), "{text}");
    }

    #[test]
    fn eighty_columns_have_room_for_the_whole_reason() {
        let mut jobs = jobs();
        jobs[1].reason = Some(
            "needs 4 nodes x 8 H100 in one rack, and 5 nodes are free but split over three racks"
                .into(),
        );
        let look = Look { width: Some(80), ..Look::fixed() };
        let text = table(&jobs, &look).text(&look);
        let expect = "\
ID    NAME       STATE    GPUS  LINE  ETA     REASON
17    bert       running     8     -  -       -
4711  llama-70b  pending   32*     3  ~16:40  needs 4 nodes x 8 H100 in one
                                              rack, and 5 nodes are free but
                                              split over three racks
";
        assert_eq!(text, expect);
    }

    #[test]
    fn columns_can_be_chosen() {
        let columns: Columns = ["id", "State", "exit"].map(|name| parse(name).unwrap()).into();
        let text = table_of(&columns, &jobs(), &Look::fixed()).text(&Look::fixed());
        assert_eq!(text, "ID    STATE    EXIT\n17    running  -\n4711  pending  -\n");
        let error = parse("colour").map(|column| column.name).unwrap_err().to_string();
        assert!(
            error.starts_with("there is no column `colour`; the columns are id, name,"),
            "{error}"
        );
    }

    #[test]
    fn values_of_a_sweep_are_shown() {
        let mut jobs = jobs();
        jobs[0].parameters = [("lr".to_owned(), "1e-4".to_owned())].into();
        let text = table(&jobs, &Look::fixed()).text(&Look::fixed());
        assert!(text.starts_with("ID    NAME       PARAMETERS  STATE"), "{text}");
        assert!(text.contains("lr=1e-4"), "{text}");
    }

    #[test]
    fn the_state_is_coloured_on_a_terminal() {
        let look = Look { colour: true, ..Look::fixed() };
        let text = table(&jobs(), &look).text(&look);
        assert!(text.contains("\x1b[32mrunning\x1b[0m"), "{text:?}");
        assert!(text.contains("\x1b[33mpending\x1b[0m"), "{text:?}");
    }
}
