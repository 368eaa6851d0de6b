//! `berth ps`.

use super::job_columns::{self, Column, Columns};
use super::when;
use crate::complete;
use crate::context::Context;
use crate::fail::{BadValue, Result};
use crate::show::{Look, Page, words};
use crate::watch::{self, Watch};
use berth_api::Client;
use berth_api::wire::{At, IncompleteGang, Job, JobList, JobQuery, JobState};
use clap::Args;
use clap::builder::RangedU64ValueParser;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

pub use job_columns::table;

#[derive(Args, Debug)]
pub struct Ps {
    /// These jobs, by number or name (jobs that have not ended)
    #[arg(value_name = "JOB", add = complete::all_jobs())]
    jobs: Vec<String>,
    /// Also show jobs that have ended
    #[arg(short, long)]
    all: bool,
    /// Only your own jobs
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
    /// With this label; give it again for several
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    label: Vec<(String, String)>,
    /// With this text in their name, comment or tags
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Submitted since: a time, or a time ago such as 2d
    #[arg(long, value_name = "WHEN", value_parser = when::past)]
    since: Option<At>,
    /// Sort by id, submitted, name, state, priority, gpus, cost or eta; with - before it, largest first
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    sort: Option<String>,
    /// Show these columns, such as id,name,labels,reason
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', value_parser = column)]
    columns: Vec<Chosen>,
    /// Show each element of arrays and sweeps on a line of its own
    #[arg(long)]
    elements: bool,
    /// How many to show
    #[arg(short = 'n', long, value_name = "N", default_value = "100", value_parser = from_one())]
    limit: u32,
    #[command(flatten)]
    watch: Watch,
}

/// A column that `--columns` names.
#[derive(Clone, Copy)]
struct Chosen(&'static Column);

impl std::fmt::Debug for Chosen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.name)
    }
}

fn column(text: &str) -> Result<Chosen, BadValue> {
    job_columns::parse(text).map(Chosen)
}

fn label(text: &str) -> Result<(String, String), BadValue> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(BadValue::new("expected KEY=VALUE, such as owner=kim")),
    }
}

/// At least 1.
pub fn from_one() -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(1..)
}

/// The most jobs of one answer.
const PAGE: u32 = 1_000;
/// Jobs that are looked through for as many lines as are asked for.
const MOST_LOOKED_AT: usize = 50_000;
/// Arrays of which the server is asked for the state of all elements.
const MOST_ARRAYS: usize = 20;

/// Jobs, and how they are shown: programs get each job, people a line for each array.
#[derive(Debug, Serialize)]
struct Listed {
    #[serde(flatten)]
    list: JobList,
    #[serde(skip)]
    lines: Vec<Job>,
    #[serde(skip)]
    columns: Vec<Chosen>,
}

pub async fn run(context: &Context, args: &Ps) -> Result<()> {
    let client = context.client()?;
    let user = match args.mine {
        true => Some(client.me().await?.user),
        false => args.user.clone(),
    };
    let collapse = !args.elements && !context.format.is_for_programs();
    let fetch = async || {
        let listed = match args.jobs.is_empty() {
            true => args.listed(client, user.clone(), collapse).await?,
            false => args.named(client).await?,
        };
        Ok(Page::new(listed, text, names).remarks(remarks))
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

    fn has_labels(&self, job: &Job) -> bool {
        self.label.iter().all(|(key, value)| job.labels.get(key) == Some(value))
    }

    async fn listed(
        &self,
        client: &Client,
        user: Option<String>,
        collapse: bool,
    ) -> Result<Listed> {
        let query = self.query(user);
        if !collapse && self.label.is_empty() {
            return Ok(self.each(list(client, &query, self.limit).await?));
        }
        let list = self.search(client, query, collapse).await?;
        let lines = match collapse {
            true => collapsed(client, &list.jobs).await?,
            false => list.jobs.clone(),
        };
        Ok(Listed { list, lines, columns: self.columns.clone() })
    }

    fn each(&self, list: JobList) -> Listed {
        Listed { lines: list.jobs.clone(), list, columns: self.columns.clone() }
    }

    /// Page by page, until there are as many lines as are asked for.
    async fn search(
        &self,
        client: &Client,
        mut query: JobQuery,
        collapse: bool,
    ) -> Result<JobList> {
        let mut found = JobList::default();
        let (mut looked_at, mut lines, mut arrays) = (0, 0, BTreeSet::new());
        // A page of a list without arrays is no longer than it has to be.
        query.limit = Some(self.limit.min(PAGE));
        loop {
            let page = client.jobs(&query).await?;
            looked_at += page.jobs.len();
            for job in page.jobs.into_iter().filter(|job| self.has_labels(job)) {
                let array = job.id.0.element.filter(|_| collapse).map(|_| job.id.0.number);
                if array.is_none_or(|array| arrays.insert(array)) {
                    lines += 1;
                }
                if lines > self.limit {
                    found.next = Some(job.id.to_string());
                    return Ok(found);
                }
                found.jobs.push(job);
            }
            found.next = page.next;
            found.incomplete.extend(page.incomplete);
            // More elements of the last array may follow on the next page.
            let is_array = found.jobs.last().is_some_and(|job| job.id.0.element.is_some());
            let full = lines == self.limit && !(collapse && is_array);
            if found.next.is_none() || full || looked_at >= MOST_LOOKED_AT {
                return Ok(found);
            }
            (query.cursor, query.limit) = (found.next.clone(), Some(PAGE));
        }
    }

    async fn named(&self, client: &Client) -> Result<Listed> {
        let mut list = JobList::default();
        for name in &self.jobs {
            let job = client.job(name).await?;
            let elements = match self.elements {
                true => elements_of(client, &job, self.limit).await?,
                false => Vec::new(),
            };
            *list.counts.entry(job.state).or_default() += 1;
            match elements.is_empty() {
                true => list.jobs.push(job),
                false => list.jobs.extend(elements),
            }
        }
        list.jobs.retain(|job| self.has_labels(job));
        Ok(self.each(list))
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

/// The first elements of an array, in their order; none of a single job.
pub async fn elements_of(client: &Client, array: &Job, limit: u32) -> Result<Vec<Job>> {
    let query = JobQuery {
        name: Some(array.name.clone()),
        team: Some(array.team.clone()),
        sort: Some("id".to_owned()),
        since: Some(array.submitted),
        ..JobQuery::default()
    };
    let mut jobs = list(client, &query, PAGE.max(limit)).await?.jobs;
    jobs.retain(|job| job.id.0.number == array.id.0.number && job.id.0.element.is_some());
    jobs.truncate(limit as usize);
    Ok(jobs)
}

/// A line for each array, in the place of its first element.
async fn collapsed(client: &Client, jobs: &[Job]) -> Result<Vec<Job>> {
    let mut lines: Vec<Job> = Vec::new();
    let mut arrays: BTreeMap<u64, Vec<&Job>> = BTreeMap::new();
    for job in jobs.iter().filter(|job| job.id.0.element.is_some()) {
        arrays.entry(job.id.0.number).or_default().push(job);
    }
    let mut asked = 0;
    for job in jobs {
        if job.id.0.element.is_none() {
            lines.push(job.clone());
            continue;
        }
        let Some(elements) = arrays.remove(&job.id.0.number) else { continue };
        asked += 1;
        let whole = match asked <= MOST_ARRAYS {
            true => client.job(&job.id.0.number.to_string()).await.ok(),
            false => None,
        };
        lines.push(array(&elements, whole));
    }
    Ok(lines)
}

/// An array as one line: from what the server says of all its elements, or from those that are listed.
fn array(elements: &[&Job], whole: Option<Job>) -> Job {
    let first = elements[0];
    let id = berth_api::wire::Id(berth_model::JobId::new(first.id.0.number));
    let mut line = whole.unwrap_or_else(|| Job {
        id,
        state: elements
            .iter()
            .map(|job| job.state)
            .min_by_key(|state| rank(*state))
            .unwrap_or(first.state),
        cost_micros: elements.iter().map(|job| job.cost_micros).sum(),
        reason: Some(format!(
            "{}: {}",
            words::count(elements.len() as u64, "element"),
            counts(elements)
        )),
        exit: None,
        ..first.clone()
    });
    line.parameters.clear();
    line.run = None;
    let over = line.state.is_final();
    let goes_on = elements.iter().filter(|job| over || !job.state.is_final());
    line.gpus_milli = goes_on.map(|job| job.gpus_milli).sum();
    line.position = elements.iter().filter_map(|job| job.position).min();
    line.eta = elements.iter().filter_map(|job| job.eta).min();
    let told = line.reason.take().unwrap_or_default();
    let waits = elements.iter().find(|job| job.state == JobState::Pending && job.reason.is_some());
    line.reason = Some(match waits.and_then(|job| job.reason.as_ref()) {
        Some(reason) => format!("{told}; {reason}"),
        None => told,
    });
    line
}

/// The first of these states that any element is in is the array's.
fn rank(state: JobState) -> usize {
    match state {
        JobState::Running => 0,
        JobState::Starting => 1,
        JobState::Stopping => 2,
        JobState::Pending => 3,
        JobState::Paused => 4,
        JobState::Failed => 5,
        JobState::Cancelled => 6,
        JobState::Done => 7,
    }
}

/// `2 running, 5 pending`.
fn counts(elements: &[&Job]) -> String {
    let mut counts: BTreeMap<usize, (&str, u64)> = BTreeMap::new();
    for job in elements {
        counts.entry(rank(job.state)).or_insert((job.state.as_str(), 0)).1 += 1;
    }
    let parts: Vec<String> =
        counts.values().map(|(state, count)| format!("{count} {state}")).collect();
    parts.join(", ")
}

fn remarks(listed: &Listed) -> Vec<String> {
    let mut remarks = Vec::new();
    if listed.list.next.is_some() {
        let shown = words::thousands(listed.lines.len() as u64);
        remarks.push(format!(
            "only the first {shown} are shown; --limit shows more, --state and others choose"
        ));
    }
    let is_array = |job: &&Job| job.id.0.element.is_none();
    let collapsed = listed.lines.len() < listed.list.jobs.len();
    if collapsed && listed.lines.iter().any(|job| is_array(&job)) {
        remarks.push("--elements shows each element of arrays and sweeps".to_owned());
    }
    if listed.list.jobs.iter().any(|job| job.declared) {
        remarks.push(words::DECLARED.to_owned());
    }
    remarks
}

fn names(listed: &Listed) -> Vec<String> {
    listed.list.jobs.iter().map(|job| job.id.to_string()).collect()
}

fn text(listed: &Listed, look: &Look) -> String {
    let columns: Columns = match listed.columns.is_empty() {
        true => job_columns::usual(&listed.lines, look),
        false => listed.columns.iter().map(|chosen| chosen.0).collect(),
    };
    let table = job_columns::table_of(&columns, &listed.lines, look).or(look, "No jobs.");
    let gangs = listed.list.incomplete.iter();
    let gangs: String = gangs.map(|gang| format!("\n{}", incomplete(gang))).collect();
    if gangs.is_empty() { table } else { format!("{}\n{gangs}\n", table.trim_end_matches('\n')) }
}

/// A gang that is no job yet.
fn incomplete(gang: &IncompleteGang) -> String {
    let IncompleteGang { namespace, name, queue, reason, .. } = gang;
    format!("Not a job yet: gang {namespace}/{name} for queue {queue}: {reason}.")
}

/// One job, as an answer to what was done with it.
pub fn one(job: Job) -> Page<Job> {
    let text = |job: &Job, look: &Look| table(std::slice::from_ref(job), look).text(look);
    Page::new(job, text, |job| vec![job.id.to_string()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::tests::job;
    use crate::show::Format;

    fn listed(jobs: Vec<Job>, lines: Vec<Job>) -> Page<Listed> {
        let list = JobList { jobs, ..JobList::default() };
        Page::new(Listed { list, lines, columns: Vec::new() }, text, names).remarks(remarks)
    }

    fn element(number: u32, state: JobState) -> Job {
        Job { id: format!("17_{number}").parse().unwrap(), state, gpus_milli: 1_000, ..job() }
    }

    #[test]
    fn numbers_are_the_names_of_jobs() {
        let other = Job { id: "4711".parse().unwrap(), ..job() };
        let page = listed(vec![job(), other.clone()], vec![job(), other]);
        assert_eq!(page.print(Format::Name, &Look::fixed()).unwrap(), "17\n4711\n");
        let json = page.print(Format::Json, &Look::fixed()).unwrap();
        assert!(json.contains("\"submitted\": \"2026-11-15T12:30:00Z\""), "{json}");
        let yaml = page.print(Format::Yaml, &Look::fixed()).unwrap();
        assert!(yaml.contains("state: running"), "{yaml}");
    }

    #[test]
    fn gangs_that_miss_pods_are_shown_below_the_jobs() {
        let gang = IncompleteGang {
            namespace: "ml".into(),
            name: "train".into(),
            queue: "vision".into(),
            pods: 2,
            needed: 3,
            since: At(berth_model::Time(0)),
            reason: "2 of 3 pods of gang train exist; it starts when the others exist too".into(),
        };
        let list = JobList { incomplete: vec![gang], ..JobList::default() };
        let listed = Listed { list, lines: Vec::new(), columns: Vec::new() };
        let page = Page::new(listed, text, names);
        let shown = page.print(Format::Table, &Look::fixed()).unwrap();
        assert!(shown.contains("gang ml/train for queue vision: 2 of 3 pods"), "{shown}");
    }

    #[test]
    fn an_array_is_one_line_with_counts_and_the_reason_of_those_that_wait() {
        let waits = Job {
            reason: Some("needs 1 GPU".into()),
            position: Some(2),
            ..element(2, JobState::Pending)
        };
        let elements = [element(0, JobState::Done), element(1, JobState::Running), waits];
        let all: Vec<&Job> = elements.iter().collect();
        let line = array(&all, None);
        assert_eq!((line.id.to_string().as_str(), line.state), ("17", JobState::Running));
        assert_eq!((line.gpus_milli, line.position), (2_000, Some(2)));
        assert_eq!(line.cost_micros, 3_600_000);
        let reason = "3 elements: 1 running, 1 pending, 1 done; needs 1 GPU";
        assert_eq!(line.reason.as_deref(), Some(reason));
        let told = Job { reason: Some("100 elements: 97 done, 1 running".into()), ..job() };
        let line = array(&all[..2], Some(told));
        assert_eq!(line.reason.as_deref(), Some("100 elements: 97 done, 1 running"));
    }

    #[test]
    fn programs_get_each_element() {
        let elements = vec![element(0, JobState::Running), element(1, JobState::Running)];
        let line = array(&elements.iter().collect::<Vec<_>>(), None);
        let page = listed(elements, vec![line]);
        assert_eq!(page.print(Format::Name, &Look::fixed()).unwrap(), "17_0\n17_1\n");
        let text = page.print(Format::Table, &Look::fixed()).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains("2 elements: 2 running"), "{text}");
    }

    #[test]
    fn a_label_is_a_key_and_a_value() {
        assert_eq!(label("owner=kim").unwrap(), ("owner".to_owned(), "kim".to_owned()));
        assert!(label("owner").unwrap_err().to_string().contains("KEY=VALUE"));
    }
}
