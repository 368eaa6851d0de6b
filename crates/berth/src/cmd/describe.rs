//! `berth describe`: everything about one job on a page.

use super::ps;
use super::timeline::{named, told};
use crate::complete;
use crate::context::Context;
use crate::fail::{Failure, Result};
use crate::show::{Cell, Look, Page, Table, words};
use crate::watch::{self, Watch};
use berth_api::wire::{Attempt, Job, JobState, Timeline, Why};
use berth_api::{Client, Code};
use berth_file::job;
use berth_model::Cause;
use clap::Args;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write;

#[derive(Args, Debug)]
pub struct Describe {
    /// A job, by number or name
    #[arg(value_name = "JOB", add = complete::all_jobs())]
    job: String,
    #[command(flatten)]
    watch: Watch,
}

/// All that is known of a job.
#[derive(Debug, Serialize)]
struct Described {
    job: Job,
    /// Why it waits, while it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<Why>,
    attempts: Vec<Attempt>,
    /// None of an array: each element has its own.
    timeline: Option<Timeline>,
    /// Of an array, the first ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    elements: Vec<Job>,
    file: String,
}

/// Elements of an array that are listed.
const MOST_ELEMENTS: u32 = 20;
/// Attempts that are listed: the newest.
const MOST_ATTEMPTS: usize = 20;

pub async fn run(context: &Context, args: &Describe) -> Result<()> {
    let client = context.client()?;
    let fetch = async || {
        let found = describe(client, &args.job).await?;
        Ok(Page::new(found, text, |found| vec![found.job.id.to_string()]))
    };
    watch::show(context, args.watch, "job,queue", fetch).await
}

async fn describe(client: &Client, name: &str) -> Result<Described> {
    let job = client.job(name).await?;
    let id = job.id.to_string();
    let file = client.job_file(&id).await?;
    let why = match job.state {
        JobState::Pending | JobState::Paused => Some(client.why(&id).await?),
        _ => None,
    };
    let timeline = match client.timeline(&id).await.map_err(Failure::from) {
        Ok(timeline) => Some(timeline),
        Err(failure) if failure.code() == Some(Code::WrongState) => None,
        Err(failure) => return Err(failure),
    };
    let is_array = timeline.is_none();
    let attempts = match is_array {
        true => Vec::new(),
        false => client.attempts(&id).await?.items,
    };
    let elements = match is_array {
        true => ps::elements_of(client, &job, MOST_ELEMENTS).await?,
        false => Vec::new(),
    };
    Ok(Described { why, attempts, timeline, elements, file, job })
}

fn text(found: &Described, look: &Look) -> String {
    let mut out = head(&found.job, look);
    for (label, value) in facts(found, look) {
        let _ = writeln!(out, " {label:<11} {}", plain(&value));
    }
    section(&mut out, "Attempts", attempts(found, look));
    section(&mut out, "Elements", elements_table(found, look));
    section(&mut out, "Events", events(found, look));
    let file = without_variables(&found.file).0;
    let file: String = file.lines().map(|line| format!("  {}\n", plain(line))).collect();
    section(&mut out, "Job file", Some(file));
    out
}

fn section(out: &mut String, title: &str, body: Option<String>) {
    if let Some(body) = body {
        let _ = write!(out, "\n{title}\n{body}");
    }
}

fn head(job: &Job, look: &Look) -> String {
    let state = look.paint(words::state_tone(job.state), &job.state.as_str().to_uppercase());
    format!("{} {}   {state}\n", look.job_text(&job.id.to_string()), plain(&job.name))
}

/// What there is to say, each under its label.
fn facts(found: &Described, look: &Look) -> Vec<(&'static str, String)> {
    let job = &found.job;
    let mut facts = vec![("user", job.user.clone()), ("team", job.team.clone())];
    let mut add = |label: &'static str, value: String| {
        if !value.is_empty() {
            facts.push((label, value));
        }
    };
    add("project", job.project.clone());
    add("experiment", job.experiment.clone());
    let nodes = if job.nodes > 1 { format!(" on {} nodes", job.nodes) } else { String::new() };
    let declared = if job.declared { " (declared GPUs)" } else { "" };
    add("asks", format!("{}{nodes}{declared}", words::asks(&job.asks)));
    add("priority", job.priority.to_string());
    add("submitted", look.at_second(job.submitted));
    add("started", job.started.map(|at| look.at_second(at)).unwrap_or_default());
    add("ended", job.ended.map(|at| look.at_second(at)).unwrap_or_default());
    if let Some(time) = &found.timeline {
        let (waited, ran) = (words::span(time.waited_ms), words::span(time.ran_ms));
        add("time", format!("waited {waited}, ran {ran}"));
    }
    add("cost", cost(job));
    add("places", places(found));
    if let Some(why) = &found.why {
        let line = why.position.map(|position| {
            format!("{} of {} in {}", words::ordinal(position), why.waiting, why.queue)
        });
        add("in line", line.unwrap_or_default());
        let starts = why.eta.as_ref().map(|eta| super::plan::moments(eta, look));
        add("starts", starts.filter(|_| why.state == JobState::Pending).unwrap_or_default());
    }
    add("reason", look.local(job.reason.as_deref().unwrap_or_default()));
    add("preempted", preempted(found, look));
    add("exit", job.exit.as_ref().map(|exit| exit.text.clone()).unwrap_or_default());
    add("url", job.url.clone().unwrap_or_default());
    let pairs = |of: &std::collections::BTreeMap<String, String>| {
        of.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(", ")
    };
    add("run", job.run.clone().unwrap_or_default());
    add("parameters", pairs(&job.parameters));
    add("variables", without_variables(&found.file).1.join(", "));
    add("labels", pairs(&job.labels));
    add("tags", job.tags.join(", "));
    add("comment", job.comment.clone().unwrap_or_default());
    facts
}

fn cost(job: &Job) -> String {
    let mut cost = words::money(job.cost_micros);
    if let Some(price) = job.price_micros_per_hour {
        cost.push_str(&format!(", {} an hour", words::money(price)));
    }
    if let Some(projected) = job.projected_micros {
        cost.push_str(&format!(", {} expected in all", words::money(projected)));
    }
    cost
}

/// `n1 GPU 0-3, n2 GPU 0`: where it runs, or ran last.
fn places(found: &Described) -> String {
    let Some(last) = found.attempts.last() else { return found.job.on.join(", ") };
    let place = |lease: &berth_api::wire::Lease| match lease.gpus.is_empty() {
        true => lease.node.clone(),
        false => format!("{} GPU {}", lease.node, numbers(&lease.gpus)),
    };
    let places: BTreeSet<String> = last.leases.iter().map(place).collect();
    places.into_iter().collect::<Vec<_>>().join(", ")
}

/// `0-3,6`.
fn numbers(all: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for number in all {
        match runs.last_mut() {
            Some((_, end)) if *end + 1 == *number => *end = *number,
            _ => runs.push((*number, *number)),
        }
    }
    let run = |(from, to): &(u32, u32)| match from == to {
        true => from.to_string(),
        false => format!("{from}-{to}"),
    };
    runs.iter().map(run).collect::<Vec<_>>().join(",")
}

/// By whom it was last preempted, and how often it was.
fn preempted(found: &Described, look: &Look) -> String {
    let Some(time) = &found.timeline else { return String::new() };
    let gave_way: Vec<_> = time.segments.iter().filter(|one| super::why::gave_way(one)).collect();
    let Some(last) = gave_way.last() else { return String::new() };
    let by = last.by.as_ref().map_or_else(|| "others".to_owned(), named);
    let times = match gave_way.len() {
        1 => String::new(),
        many => format!(", {many} times in all"),
    };
    let why = last.text.as_ref().map(|text| format!(" ({text})")).unwrap_or_default();
    format!("by {by} at {}{why}{times}", look.at(last.from))
}

fn attempts(found: &Described, look: &Look) -> Option<String> {
    let left_out = found.attempts.len().saturating_sub(MOST_ATTEMPTS);
    let shown = &found.attempts[left_out..];
    if shown.is_empty() {
        return None;
    }
    let mut table = Table::new(&["#", "STARTED", ">TIME", ">COST", "NODES", "END"]).indented();
    for attempt in shown {
        let nodes: BTreeSet<&str> =
            attempt.leases.iter().map(|lease| lease.node.as_str()).collect();
        let from = attempt.started.unwrap_or(attempt.opened);
        let time = attempt.closed.map_or_else(|| look.since_ms(from), |end| (end.0 - from.0).0);
        table.row(vec![
            attempt.number.into(),
            look.at_second(from).into(),
            words::span(time).into(),
            words::money(attempt.cost_micros).into(),
            nodes.into_iter().collect::<Vec<_>>().join(",").into(),
            end(found, attempt).into(),
        ]);
    }
    let mut body = table.text(look);
    if left_out > 0 {
        let _ = writeln!(body, "  {} are left out", words::count(left_out as u64, "older attempt"));
    }
    Some(body)
}

/// The cause of tasks that end because a peer has failed.
const PEER_FAILED: &str = Cause::PeerFailed.code();

/// How an attempt ended: told to by Berth, which knows why and for whom, or by itself.
fn end(found: &Described, attempt: &Attempt) -> String {
    let segments = found.timeline.iter().flat_map(|time| &time.segments);
    let stopped = segments
        .filter(|segment| segment.attempt == Some(attempt.number))
        // Show the end of the failed task, not those of its peers.
        .find(|segment| segment.cause.as_deref().is_some_and(|cause| cause != PEER_FAILED));
    if let Some(segment) = stopped {
        let why = segment.text.clone().or_else(|| segment.cause.clone()).unwrap_or_default();
        let by = segment.by.as_ref().map(|by| format!(", for {}", named(by)));
        return format!("{why}{}", by.unwrap_or_default());
    }
    attempt.exit.as_ref().map(|exit| exit.text.clone()).unwrap_or_default()
}

fn elements_table(found: &Described, look: &Look) -> Option<String> {
    if found.elements.is_empty() {
        return None;
    }
    let mut table = Table::new(&["ID", "STATE", ">COST", "PARAMETERS", "REASON"]).indented();
    for job in &found.elements {
        table.row(vec![
            Cell::of_job(look, &job.id.to_string()),
            job.state.as_str().into(),
            words::money(job.cost_micros).into(),
            words::parameters(&job.parameters).into(),
            job.reason.as_deref().into(),
        ]);
    }
    let mut body = table.text(look);
    if found.elements.len() == MOST_ELEMENTS as usize {
        let _ =
            writeln!(body, "  See the others with `berth ps --all --elements {}`.", found.job.id);
    }
    Some(body)
}

fn events(found: &Described, look: &Look) -> Option<String> {
    let time = found.timeline.as_ref()?;
    let mut body = String::new();
    for segment in &time.segments {
        let _ = writeln!(body, "  {}  {}", look.at_second(segment.from), plain(&told(segment)));
    }
    (!body.is_empty()).then_some(body)
}

/// The file without the variables it sets, and their names: there can be many of a terminal's, and
/// their values may be confidential.
fn without_variables(text: &str) -> (String, Vec<String>) {
    let Ok(parsed) = job::read(text) else { return (text.to_owned(), Vec::new()) };
    let mut file = parsed.file;
    let variables = std::mem::take(&mut file.env).0;
    match variables.is_empty() {
        true => (text.to_owned(), Vec::new()),
        false => (job::write(&file), variables.into_keys().collect()),
    }
}

fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::tests::{job, preempted};
    use berth_api::wire::Lease;

    fn described() -> Described {
        let at = |text: &str| text.parse().unwrap();
        let lease = Lease {
            id: "17/0#0".into(),
            task: 0,
            node: "n1".into(),
            gpus: vec![0, 1, 2, 3, 6],
            gpus_milli: 5_000,
            price_micros_per_hour: 1_200_000,
            opened: at("2026-11-15T13:00:00Z"),
            started: Some(at("2026-11-15T13:00:00Z")),
            closed: Some(at("2026-11-15T13:31:00Z")),
            exit: None,
            cost_micros: 600_000,
        };
        let attempt = Attempt {
            number: 0,
            opened: lease.opened,
            started: lease.started,
            closed: lease.closed,
            exit: None,
            cost_micros: 600_000,
            leases: vec![lease],
        };
        Described {
            job: Job { state: JobState::Pending, price_micros_per_hour: None, ..job() },
            why: None,
            attempts: vec![attempt],
            timeline: Some(preempted()),
            elements: Vec::new(),
            file: "gpus: H100:8\nrun: [python, train.py]\n".into(),
        }
    }

    #[test]
    fn a_job_is_described_with_its_attempts_events_cost_and_file_and_who_preempted_it() {
        let expect = "\
17 bert   PENDING
 user        kim
 team        nlp
 project     llama
 asks        H100:8
 priority    50
 submitted   2026-11-15 13:30:00
 started     2026-11-15 14:00:00
 time        waited 59m, ran 31m
 cost        $1.20
 places      n1 GPU 0-3,6
 preempted   by 4688 vit-l (vision) at 14:31 (made room for a job of a higher class)

Attempts
  #  STARTED              TIME   COST  NODES  END
  0  2026-11-15 14:00:00   31m  $0.60  n1     made room for a job of a higher class, for 4688 vit-l (vision)

Events
  2026-11-15 13:30:00  waiting
  2026-11-15 14:00:00  running (attempt 0)
  2026-11-15 14:30:00  saving (attempt 0): made room for a job of a higher class, for 4688 vit-l (vision)
  2026-11-15 14:31:00  preempted: made room for a job of a higher class, for 4688 vit-l (vision)

Job file
  gpus: H100:8
  run: [python, train.py]
";
        assert_eq!(text(&described(), &Look::fixed()), expect);
    }

    #[test]
    fn variables_of_a_job_are_named_and_their_values_are_not_shown() {
        let file = "env: {FOO: hunter2}\nrun: [python, train.py]\n".into();
        let text = text(&Described { file, ..described() }, &Look::fixed());
        assert!(text.contains(" variables   FOO\n"), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }

    #[test]
    fn an_array_is_described_by_its_elements() {
        let element = Job {
            id: "17_0".parse().unwrap(),
            parameters: [("lr".to_owned(), "0.1".to_owned())].into(),
            ..job()
        };
        let array = Described {
            timeline: None,
            attempts: Vec::new(),
            elements: vec![element],
            ..described()
        };
        let text = text(&array, &Look::fixed());
        assert!(text.contains("Elements\n  ID    STATE     COST  PARAMETERS  REASON\n"), "{text}");
        assert!(text.contains("  17_0  running  $1.20  lr=0.1      -\n"), "{text}");
        assert!(!text.contains("Attempts"), "{text}");
    }

    #[test]
    fn a_name_cannot_move_the_cursor() {
        let odd = Described {
            job: Job { name: "a\x1b[2J".into(), ..job() },
            file: "run: \x1b[31mx\n".into(),
            ..described()
        };
        assert!(!text(&odd, &Look::fixed()).contains('\x1b'));
    }
}
