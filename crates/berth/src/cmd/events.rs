//! `berth events`: what happened, and what happens.

use super::ps::from_one;
use super::{timeline, when};
use crate::complete;
use crate::context::Context;
use crate::fail::{BadValue, Failure, Result};
use crate::outage::Outage;
use crate::show::{self, Look, Page, Table};
use berth_api::Client;
use berth_api::wire::{At, Event, EventKind, EventQuery, Job, Timeline};
use clap::Args;
use serde::Serialize;

/// What is shown unless `--kind` names others: output and queues change too often to read.
const USUAL: &str = "job,node,alert,gap";

const KINDS: [&str; 6] = ["job", "node", "alert", "queue", "log", "gap"];

fn kinds(text: &str) -> Result<String, BadValue> {
    match text.split(',').map(str::trim).find(|kind| !KINDS.contains(kind)) {
        None => Ok(text.to_owned()),
        Some(odd) => {
            Err(BadValue(format!("there is no kind `{odd}`; the kinds are {}", KINDS.join(", "))))
        }
    }
}

#[derive(Args, Debug)]
pub struct Events {
    /// Only events of this job, by number or name
    #[arg(value_name = "JOB", add = complete::all_jobs())]
    job: Option<String>,
    /// Keep showing new events
    #[arg(short, long)]
    follow: bool,
    /// Kinds, separated by commas: job, node, alert, queue, log (job,node,alert)
    #[arg(long, value_name = "KINDS", value_parser = kinds)]
    kind: Option<String>,
    #[arg(short, long, value_name = "TEAM", add = complete::teams())]
    team: Option<String>,
    /// Since: a time, or a time ago such as 2h
    #[arg(long, value_name = "WHEN", value_parser = when::past)]
    since: Option<At>,
    /// How many past events to show
    #[arg(short = 'n', long, value_name = "N", default_value = "100", value_parser = from_one())]
    limit: u32,
}

/// One event as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Row {
    at: At,
    kind: &'static str,
    /// The job, node or queue.
    about: String,
    text: String,
}

#[derive(Debug, Serialize)]
struct Rows {
    items: Vec<Row>,
    /// Older ones were left out.
    more: bool,
}

pub async fn run(context: &Context, args: &Events) -> Result<()> {
    let client = context.client()?;
    let job = match &args.job {
        Some(name) => Some(client.job(name).await?),
        None => None,
    };
    let mut query = EventQuery {
        kind: Some(args.kind.clone().unwrap_or_else(|| USUAL.to_owned())),
        job: job.as_ref().map(|job| job.id.to_string()),
        team: args.team.clone(),
        ..EventQuery::default()
    };
    let (rows, last) = past(client, &query, job.as_ref()).await?;
    let rows = newest(rows, args.since, args.limit);
    if !args.follow {
        let names = |rows: &Rows| rows.items.iter().map(|row| row.about.clone()).collect();
        return context.show(&Page::new(rows, text, names).remarks(remarks));
    }
    for row in &rows.items {
        tell(context, row)?;
    }
    query.after = last;
    follow(context, client, query).await
}

/// What is known of the past. The server keeps the whole time of a job, and of everything else the
/// newest events since it started.
async fn past(
    client: &Client,
    query: &EventQuery,
    job: Option<&Job>,
) -> Result<(Vec<Row>, Option<u64>)> {
    let (mut rows, mut last) = (Vec::new(), None);
    let mut stream = client.events(&EventQuery { past: true, ..query.clone() }).await?;
    while let Some(event) = stream.next().await? {
        last = last.max(Some(event.seq));
        rows.extend(row(&event)?);
    }
    if let Some(job) = job
        && let Ok(time) = client.timeline(&job.id.to_string()).await
    {
        // It says the same as the events of the job, and survives a restart of the server.
        rows.retain(|row| row.kind != "job");
        rows.extend(of_job(job, &time));
        rows.sort_by_key(|row| row.at);
    }
    Ok((rows, last))
}

fn newest(mut rows: Vec<Row>, since: Option<At>, limit: u32) -> Rows {
    rows.retain(|row| since.is_none_or(|since| row.at >= since));
    let left_out = rows.len().saturating_sub(limit as usize);
    rows.drain(..left_out);
    Rows { items: rows, more: left_out > 0 }
}

fn remarks(rows: &Rows) -> Vec<String> {
    rows.more
        .then(|| "older events are left out; --limit shows more".to_owned())
        .into_iter()
        .collect()
}

fn text(rows: &Rows, look: &Look) -> String {
    let mut table = Table::new(&["TIME", "KIND", "ABOUT", "EVENT"]);
    for row in &rows.items {
        table.row(vec![
            look.at_second(row.at).into(),
            row.kind.into(),
            row.about.as_str().into(),
            row.text.as_str().into(),
        ]);
    }
    table.or(look, "No events.")
}

/// New events until Ctrl-C, also over a restart of the server.
async fn follow(context: &Context, client: &Client, mut query: EventQuery) -> Result<()> {
    let mut outage = Outage::default();
    loop {
        let mut stream = match client.events(&query).await {
            Ok(stream) => stream,
            Err(error) => {
                outage.sit_out(error.into()).await?;
                continue;
            }
        };
        loop {
            match stream.next().await {
                Ok(Some(event)) => {
                    outage.is_over();
                    query.after = Some(event.seq);
                    if let Some(row) = row(&event)? {
                        tell(context, &row)?;
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    outage.sit_out(error.into()).await?;
                    break;
                }
            }
        }
    }
}

fn tell(context: &Context, row: &Row) -> Result<()> {
    let line = match context.format.is_for_programs() {
        true => serde_json::to_string(row)
            .map_err(|error| Failure::internal(format!("an event in JSON: {error}")))?,
        false => {
            let at = context.look().at_second(row.at);
            let plain = |text: &str| text.replace(char::is_control, " ");
            format!("{at}  {:<5}  {}  {}", row.kind, plain(&row.about), plain(&row.text))
        }
    };
    show::print(&format!("{line}\n"))
}

fn row(event: &Event) -> Result<Option<Row>> {
    let (kind, about, text) = match &event.kind {
        EventKind::Job { id, name, team, state, text } => {
            let text = match text.is_empty() || text == state.as_str() {
                true => state.as_str().to_owned(),
                false => format!("{}: {text}", state.as_str()),
            };
            ("job", format!("{id} {name} ({team})"), text)
        }
        EventKind::Node { node, state, text } => {
            let text = if text.is_empty() { state.clone() } else { format!("{state}: {text}") };
            ("node", node.clone(), text)
        }
        EventKind::Queue { queue } => ("queue", queue.clone(), "changed".to_owned()),
        EventKind::Alert { code, text, team } => {
            ("alert", team.clone().unwrap_or_default(), format!("{text} [{code}]"))
        }
        EventKind::Log { id, rank, .. } => {
            ("log", id.to_string(), format!("output of rank {rank}"))
        }
        EventKind::Gap => ("gap", String::new(), "older events are not kept".to_owned()),
        EventKind::End { problem } => return Err((**problem).clone().into()),
    };
    Ok(Some(Row { at: event.at, kind, about, text }))
}

/// The time of a job as events: when it was submitted, and each change since.
fn of_job(job: &Job, time: &Timeline) -> Vec<Row> {
    let about = format!("{} {}", job.id, job.name);
    let row = |at: At, text: String| Row { at, kind: "job", about: about.clone(), text };
    let mut rows = vec![row(job.submitted, format!("submitted by {}", job.user))];
    // It waits from the moment it is submitted.
    let first_wait = |at: usize| {
        at == 0 && time.segments[0].cause.is_none() && job.submitted == time.segments[0].from
    };
    let changes = time.segments.iter().enumerate().filter(|(at, _)| !first_wait(*at));
    rows.extend(changes.map(|(_, segment)| row(segment.from, timeline::told(segment))));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_of_events_that_there_is_not_is_refused() {
        assert_eq!(kinds("node,alert").unwrap(), "node,alert");
        let error = kinds("job,foo").unwrap_err().to_string();
        assert!(error.starts_with("there is no kind `foo`; the kinds are job, node"), "{error}");
    }
    use crate::cmd::tests::{job, preempted};

    #[test]
    fn events_of_a_job_say_who_preempted_it() {
        let rows = of_job(&job(), &preempted());
        let shown = text(&Rows { items: rows, more: false }, &Look::fixed());
        let expect = "\
TIME                 KIND  ABOUT    EVENT
2026-11-15 13:30:00  job   17 bert  submitted by kim
2026-11-15 14:00:00  job   17 bert  running (attempt 0)
2026-11-15 14:30:00  job   17 bert  saving (attempt 0): made room for a job of a higher class, for \
4688 vit-l (vision)
2026-11-15 14:31:00  job   17 bert  preempted: made room for a job of a higher class, for 4688 vit-l \
(vision)
";
        assert_eq!(shown, expect);
    }

    #[test]
    fn only_the_newest_events_are_shown_and_the_rest_is_said_to_be_left_out() {
        let rows = of_job(&job(), &preempted());
        let two = newest(rows.clone(), None, 2);
        assert_eq!((two.items.len(), two.more), (2, true));
        assert_eq!(remarks(&two), ["older events are left out; --limit shows more"]);
        let late = newest(rows, Some("2026-11-15T13:31:00Z".parse().unwrap()), 100);
        assert_eq!((late.items.len(), late.more), (1, false));
    }

    #[test]
    fn an_event_of_each_kind_is_a_row() {
        let shown = |json: &str| {
            let event = format!(r#"{{"seq":1,"at":"2026-11-15T13:00:00Z",{json}}}"#);
            let row = row(&serde_json::from_str(&event).unwrap()).unwrap().unwrap();
            format!("{} {}: {}", row.kind, row.about, row.text)
        };
        assert_eq!(
            shown(r#""kind":"job","id":"17","name":"a","team":"nlp","state":"pending","text":"x""#),
            "job 17 a (nlp): pending: x"
        );
        assert_eq!(
            shown(r#""kind":"node","node":"n1","state":"draining","text":"""#),
            "node n1: draining"
        );
        assert_eq!(
            shown(r#""kind":"alert","code":"A1","text":"disk is full","team":null"#),
            "alert : disk is full [A1]"
        );
    }
}
