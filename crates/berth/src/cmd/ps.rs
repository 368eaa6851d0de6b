//! `berth ps`.

use super::when;
use crate::complete;
use crate::context::Context;
use crate::fail::Result;
use crate::show::{Cell, Look, Page, Table, words};
use crate::watch::{self, Watch};
use berth_api::Client;
use berth_api::wire::{At, Job, JobList, JobQuery, JobState};
use clap::Args;
use clap::builder::RangedU64ValueParser;

#[derive(Args, Debug)]
pub struct Ps {
    /// These jobs, by number or name (those that have not ended)
    #[arg(value_name = "JOB", add = complete::all_jobs())]
    jobs: Vec<String>,
    /// Also the ended ones
    #[arg(short, long)]
    all: bool,
    /// Only one's own
    #[arg(long, conflicts_with = "user")]
    mine: bool,
    /// In these states, separated by commas
    #[arg(long, value_name = "STATES")]
    state: Option<String>,
    #[arg(long, value_name = "USER", add = complete::users())]
    user: Option<String>,
    #[arg(short, long, value_name = "TEAM", add = complete::teams())]
    team: Option<String>,
    #[arg(short, long, value_name = "PROJECT", add = complete::projects())]
    project: Option<String>,
    #[arg(long, value_name = "EXPERIMENT")]
    experiment: Option<String>,
    /// With this in their name, comment or tags
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Submitted since: a moment, or a time ago such as 2d
    #[arg(long, value_name = "WHEN", value_parser = when::past)]
    since: Option<At>,
    /// By id, submitted, name, state, priority, gpus, cost or eta; with - before it the largest first
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    sort: Option<String>,
    /// How many to show
    #[arg(short = 'n', long, value_name = "N", default_value = "100", value_parser = from_one())]
    limit: u32,
    #[command(flatten)]
    watch: Watch,
}

/// None at all is no question.
pub fn from_one() -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(1..)
}

/// The most jobs of one answer.
const PAGE: u32 = 1_000;

pub async fn run(context: &Context, args: &Ps) -> Result<()> {
    let client = context.client()?;
    let user = match args.mine {
        true => Some(client.me().await?.user),
        false => args.user.clone(),
    };
    let fetch = async || {
        let list = match args.jobs.is_empty() {
            true => list(client, &args.query(user.clone()), args.limit).await?,
            false => named(client, &args.jobs).await?,
        };
        Ok(Page::new(list, text, names).remarks(remarks))
    };
    watch::show(context, args.watch, "job,queue", fetch).await
}

impl Ps {
    fn query(&self, user: Option<String>) -> JobQuery {
        let active = (!self.all).then(|| "active".to_owned());
        JobQuery {
            state: self.state.clone().or(active),
            user,
            team: self.team.clone(),
            project: self.project.clone(),
            experiment: self.experiment.clone(),
            text: self.search.clone(),
            since: self.since,
            sort: self.sort.clone(),
            ..JobQuery::default()
        }
    }
}

/// Page by page, as many as are asked for.
pub async fn list(client: &Client, query: &JobQuery, limit: u32) -> Result<JobList> {
    let mut query = JobQuery { limit: Some(limit.min(PAGE)), ..query.clone() };
    let mut all = client.jobs(&query).await?;
    while let Some(next) = all.next.take() {
        let have = u32::try_from(all.jobs.len()).unwrap_or(u32::MAX);
        if have >= limit {
            all.next = Some(next);
            break;
        }
        (query.cursor, query.limit) = (Some(next), Some((limit - have).min(PAGE)));
        query.counts = false;
        let page = client.jobs(&query).await?;
        all.jobs.extend(page.jobs);
        all.next = page.next;
    }
    Ok(all)
}

async fn named(client: &Client, names: &[String]) -> Result<JobList> {
    let mut list = JobList::default();
    for name in names {
        let job = client.job(name).await?;
        *list.counts.entry(job.state).or_default() += 1;
        list.jobs.push(job);
    }
    Ok(list)
}

fn remarks(list: &JobList) -> Vec<String> {
    let mut remarks = Vec::new();
    if list.next.is_some() {
        let shown = words::thousands(list.jobs.len() as u64);
        remarks.push(format!(
            "the newest {shown} jobs, of more; --limit shows more, --state and others choose"
        ));
    }
    if list.jobs.iter().any(|job| job.declared) {
        remarks.push(words::DECLARED.to_owned());
    }
    remarks
}

fn names(list: &JobList) -> Vec<String> {
    list.jobs.iter().map(|job| job.id.to_string()).collect()
}

fn text(list: &JobList, look: &Look) -> String {
    table(&list.jobs, look).or(look, "No jobs.")
}

/// One job, as an answer to what was done with it.
pub fn one(job: Job) -> Page<Job> {
    let text = |job: &Job, look: &Look| table(std::slice::from_ref(job), look).text(look);
    Page::new(job, text, |job| vec![job.id.to_string()])
}

pub fn table(jobs: &[Job], look: &Look) -> Table {
    let mut titles =
        vec!["ID", "NAME", "STATE", ">GPUS", "USER", "TEAM", ">WAIT/RUN", ">COST", "ETA"];
    if look.wide {
        let more = [
            "PROJECT",
            "EXPERIMENT",
            ">PRIO",
            ">POS",
            "ASKS",
            ">TRIES",
            "SUBMITTED",
            ">PROJECTED",
            "ON",
        ];
        titles.extend(more);
    }
    titles.push("REASON");
    let mut table = Table::new(&titles);
    for job in jobs {
        let mut row = row(job, look);
        if look.wide {
            row.extend(wide(job, look));
        }
        row.push(reason(job).into());
        table.row(row);
    }
    table
}

fn row(job: &Job, look: &Look) -> Vec<Cell> {
    vec![
        job.id.to_string().into(),
        job.name.as_str().into(),
        Cell::toned(job.state.as_str(), words::state_tone(job.state)),
        words::gpus(job.gpus_milli, job.declared).into(),
        job.user.as_str().into(),
        job.team.as_str().into(),
        words::span(time_ms(job, look)).into(),
        words::money(job.cost_micros).into(),
        job.eta.map(|eta| format!("~{}", look.at(eta))).into(),
    ]
}

fn wide(job: &Job, look: &Look) -> Vec<Cell> {
    vec![
        job.project.as_str().into(),
        job.experiment.as_str().into(),
        job.priority.into(),
        job.position.into(),
        job.asks.as_str().into(),
        job.attempts.into(),
        look.at(job.submitted).into(),
        job.projected_micros.map(words::money).into(),
        job.on.join(",").into(),
    ]
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
fn reason(job: &Job) -> String {
    match (&job.reason, &job.url) {
        (Some(reason), _) => reason.clone(),
        (None, Some(url)) if job.ready => url.clone(),
        (None, Some(url)) => format!("not ready yet: {url}"),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::tests::job;
    use crate::show::Format;

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
ID    NAME       STATE    GPUS  USER  TEAM  WAIT/RUN   COST  ETA     REASON
17    bert       running     8  kim   nlp         1h  $1.20  -       -
4711  llama-70b  pending   32*  kim   nlp      1h30m  $0.00  ~16:40  5 nodes free but split
";
        assert_eq!(table(&jobs(), &Look::fixed()).text(&Look::fixed()), expect);
    }

    #[test]
    fn wide_shows_more_columns() {
        let look = Look { wide: true, ..Look::fixed() };
        let text = table(&jobs(), &look).text(&look);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].contains("PROJECT  EXPERIMENT  PRIO  POS  ASKS"), "{text}");
        assert!(lines[1].contains("H100:8"), "{text}");
        assert!(lines[1].contains("n1"), "{text}");
    }

    #[test]
    fn the_state_is_coloured_on_a_terminal() {
        let look = Look { colour: true, ..Look::fixed() };
        let text = table(&jobs(), &look).text(&look);
        assert!(text.contains("\x1b[32mrunning\x1b[0m"), "{text:?}");
        assert!(text.contains("\x1b[33mpending\x1b[0m"), "{text:?}");
    }

    #[test]
    fn numbers_are_the_names_of_jobs() {
        let list = JobList { jobs: jobs(), ..JobList::default() };
        let page = Page::new(list, text, names);
        assert_eq!(page.print(Format::Name, &Look::fixed()).unwrap(), "17\n4711\n");
        let json = page.print(Format::Json, &Look::fixed()).unwrap();
        assert!(json.contains("\"submitted\": \"2026-11-15T12:30:00Z\""), "{json}");
        let yaml = page.print(Format::Yaml, &Look::fixed()).unwrap();
        assert!(yaml.contains("state: running"), "{yaml}");
    }
}
