//! Jobs from a trace.

use super::error::Result;
use super::select::Select;
use super::table::{Row, Schema, Table, Use};
use crate::random::Rng;
use berth_file::error::{did_you_mean, or_list};
use berth_model::{Bytes, Cpu, Milli, Name, Span, Time};
use std::collections::BTreeSet;

/// A row of a trace. What the trace does not tell is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub id: Name,
    /// The line of the file, to point at.
    pub line: u32,
    /// Counted from the trace's own beginning, which may lie after the first submission.
    pub submit: Time,
    /// How long it held its GPUs.
    pub duration: Option<Span>,
    /// Over all nodes; below one for a share of a GPU, 0 for a job without.
    pub gpus: Milli,
    pub nodes: Option<u32>,
    /// A model, or several of which any will do: `A|B`. See [`Job::gpu_types`].
    pub gpu_type: Option<Name>,
    pub cpu: Option<Cpu>,
    pub memory: Option<Bytes>,
    pub team: Option<Name>,
    pub user: Option<Name>,
    pub queue: Option<Name>,
    pub status: Option<Name>,
    /// How long the real scheduler let it wait.
    pub wait: Option<Span>,
    /// The run time its user asked for.
    pub limit: Option<Span>,
    /// After submission.
    pub deadline: Option<Span>,
    pub model: Option<Name>,
}

impl Job {
    pub fn gpu_types(&self) -> impl Iterator<Item = &str> {
        self.gpu_type.iter().flat_map(|types| types.split('|'))
    }
}

static JOBS: Schema = Schema {
    what: "job traces",
    columns: &[
        ("job_id", Use::Needed),
        ("submit_s", Use::Needed),
        ("gpus", Use::Needed),
        ("duration_s", Use::Read),
        ("nodes", Use::Read),
        ("gpu_type", Use::Read),
        ("cpu", Use::Read),
        ("mem_gib", Use::Read),
        ("team", Use::Read),
        ("user", Use::Read),
        ("queue", Use::Read),
        ("status", Use::Read),
        ("wait_s", Use::Read),
        ("limit_s", Use::Read),
        ("deadline_s", Use::Read),
        ("model", Use::Read),
        ("set", Use::Read),
        ("variant", Use::Read),
        ("kind", Use::Ignored),
        ("deadlines_s", Use::Ignored),
        ("values", Use::Ignored),
    ],
};

/// Reads jobs from the text of `file`, in order of submission; jobs of the same moment stay in
/// the order of the file. `file` is only for messages.
pub fn jobs(file: &str, text: &str, select: &Select) -> Result<Vec<Job>> {
    let mut table = Table::open(file, text, &JOBS)?;
    let set_column = ["set", "variant"].into_iter().find(|name| table.has(name));
    let mut names = Names::default();
    let (mut sets, mut teams) = (BTreeSet::new(), BTreeSet::new());
    let mut found = Vec::new();
    while let Some(row) = table.next_row()? {
        if let Some(set) = set_column.and_then(|column| row.text(column)) {
            let set = names.get(set);
            let wanted = select.set.as_deref().is_none_or(|wanted| wanted == set.as_str());
            sets.insert(set);
            if !wanted {
                continue;
            }
        }
        if let Some(wanted) = &select.team {
            let team = names.get(row.text("team").unwrap_or(""));
            let other = team.as_str() != wanted;
            teams.insert(team);
            if other {
                continue;
            }
        }
        let job = read(&row, &mut names)?;
        if select.wants_time(job.submit) {
            found.push(job);
        }
    }
    match &select.set {
        None if sets.len() > 1 => {
            let all = or_list(sets.iter().map(Name::as_str));
            let message = format!("the file holds several workloads: choose {all}");
            return Err(table.whole(message));
        }
        Some(wanted) if !sets.contains(wanted.as_str()) => {
            return Err(table.whole(no_such("workload", wanted, &sets)));
        }
        _ => {}
    }
    if let Some(wanted) = &select.team
        && !teams.contains(wanted.as_str())
    {
        return Err(table.whole(no_such("team", wanted, &teams)));
    }
    // Stable, so the order of the file remains among equals.
    found.sort_by_key(|job| job.submit);
    Ok(found)
}

/// Puts jobs submitted at the same moment into an order by chance. A third of a trace may share
/// its seconds with other jobs, and a policy that lives on the order of the file would not work
/// elsewhere: compare a few seeds.
pub fn shuffle_ties(jobs: &mut [Job], seed: u64) {
    let mut rng = Rng::new(seed);
    for group in jobs.chunk_by_mut(|a, b| a.submit == b.submit) {
        for place in (1..group.len()).rev() {
            group.swap(place, rng.below(place as u64 + 1) as usize);
        }
    }
}

fn no_such(what: &str, wanted: &str, there: &BTreeSet<Name>) -> String {
    let names = || there.iter().map(Name::as_str).filter(|name| !name.is_empty());
    if names().next().is_none() {
        return format!("there is no {what} `{wanted}`: the file names none");
    }
    let near = did_you_mean(wanted, names());
    let near = if near.is_empty() { format!("; there is {}", or_list(names())) } else { near };
    format!("there is no {what} `{wanted}`{near}")
}

fn read(row: &Row<'_, '_>, names: &mut Names) -> Result<Job> {
    let id = row.text("job_id").ok_or_else(|| row.wrong("job_id", "a name for the job"))?;
    let id = Name::new(id);
    let submit = row.number("submit_s", "seconds such as 90, 12.5 or -3", |_| true)?;
    let gpus = row.number("gpus", "a number of GPUs such as 8 or 0.5", |gpus| gpus >= 0)?;
    let gpus = gpus.ok_or_else(|| row.wrong("gpus", "a number of GPUs such as 8 or 0.5"))?;
    let span = |name| {
        let seconds = row.number(name, "seconds such as 90 or 12.5", |ms| ms >= 0)?;
        Ok(seconds.map(Span))
    };
    let cpu = row.number("cpu", "a number of CPU cores such as 8 or 0.5", |cpu| cpu >= 0)?;
    let mut name = |column| row.text(column).map(|text| names.get(text));
    Ok(Job {
        id,
        line: row.line as u32,
        // Lists that were made for packing have no times: everything is there from the beginning.
        submit: Time(submit.unwrap_or(0)),
        gpus: Milli(gpus),
        gpu_type: name("gpu_type"),
        team: name("team"),
        user: name("user"),
        queue: name("queue"),
        status: name("status"),
        model: name("model"),
        duration: span("duration_s")?,
        wait: span("wait_s")?,
        limit: span("limit_s")?,
        deadline: span("deadline_s")?,
        nodes: row.count("nodes")?,
        cpu: cpu.map(Cpu),
        memory: gibibytes(row, "mem_gib")?,
    })
}

pub(super) fn gibibytes(row: &Row<'_, '_>, name: &str) -> Result<Option<Bytes>> {
    let wanted = "gibibytes such as 64 or 0.5";
    let thousandths = row.number(name, wanted, |amount| amount >= 0)?;
    let bytes = |amount: i64| i64::try_from((i128::from(amount) << 30) / 1_000).map(Bytes);
    thousandths.map(bytes).transpose().map_err(|_| row.wrong(name, wanted))
}

/// Names that were met before, so that a million jobs of ten teams share ten names.
#[derive(Default)]
pub(super) struct Names {
    known: BTreeSet<Name>,
}

impl Names {
    pub(super) fn get(&mut self, text: &str) -> Name {
        if let Some(name) = self.known.get(text) {
            return name.clone();
        }
        let name = Name::new(text);
        self.known.insert(name.clone());
        name
    }
}
