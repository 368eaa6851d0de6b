//! Acting on jobs: stop, pause, resume, clone, set.

use super::flags::JobFlags;
use super::run::announce;
use super::{preview, ps};
use crate::complete;
use crate::context::Context;
use crate::fail::{Failure, Result};
use crate::show;
use berth_api::client;
use berth_api::wire::{Job, JobChange, JobClone, JobStop};
use berth_file::job::{self, JobFile};
use clap::Args;

#[derive(Args, Debug)]
pub struct Jobs {
    /// Jobs, by number or name
    #[arg(value_name = "JOB", required = true, add = complete::jobs())]
    jobs: Vec<String>,
}

#[derive(Args, Debug)]
pub struct Stop {
    #[command(flatten)]
    jobs: Jobs,
    /// Kill the jobs without time to save
    #[arg(long)]
    now: bool,
    /// Only show what would be lost
    #[arg(long)]
    preview: bool,
    /// Do not ask (stop never asks)
    #[arg(short, long)]
    yes: bool,
}

pub async fn stop(context: &Context, args: &Stop) -> Result<()> {
    if args.preview {
        for job in &args.jobs.jobs {
            preview::stop(context, job).await?;
        }
        return Ok(());
    }
    let (client, how) = (context.client()?, JobStop { now: args.now });
    each(context, &args.jobs, async |job| client.stop_job(job, &how).await).await
}

pub async fn pause(context: &Context, args: &Jobs) -> Result<()> {
    let client = context.client()?;
    each(context, args, async |job| client.pause_job(job).await).await
}

pub async fn resume(context: &Context, args: &Jobs) -> Result<()> {
    let client = context.client()?;
    each(context, args, async |job| client.resume_job(job).await).await
}

/// All of them, also when one fails; the first failure is the command's.
async fn each(
    context: &Context,
    args: &Jobs,
    act: impl AsyncFn(&str) -> client::Result<Job>,
) -> Result<()> {
    let mut first = None;
    for name in &args.jobs {
        match act(name).await {
            Ok(job) => tell(context, job)?,
            Err(error) => {
                let failure = Failure::from(error);
                match first {
                    None => first = Some(failure),
                    Some(_) => show::note(&failure.to_string()),
                }
            }
        }
    }
    first.map_or(Ok(()), Err)
}

fn tell(context: &Context, job: Job) -> Result<()> {
    match context.format.is_for_programs() {
        true => context.show(&ps::one(job)),
        false => show::print(&format!("{} {} {}\n", job.id, job.name, job.state.as_str())),
    }
}

#[derive(Args, Debug)]
pub struct Clone {
    /// A job, by number or name
    #[arg(value_name = "JOB", add = complete::all_jobs())]
    job: String,
    /// Continue from the checkpoint of the old job
    #[arg(long)]
    resume: bool,
    /// Leave out these keys of the old job file, such as after,begin
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    without: Vec<String>,
    /// Return at once (clone always does)
    #[arg(short, long)]
    detach: bool,
    #[command(flatten)]
    keys: JobFlags,
}

pub async fn clone(context: &Context, args: &Clone) -> Result<()> {
    let changes = JobClone { file: overlay(&args.keys.0, &args.without), resume: args.resume };
    announce(context, context.client()?.clone_job(&args.job, &changes).await?)
}

/// What is laid over the old file; what is left out of it is null there.
fn overlay(keys: &JobFile, without: &[String]) -> Option<String> {
    let written = match *keys == JobFile::default() {
        true => String::new(),
        false => job::write(keys),
    };
    let left_out: String = without.iter().map(|key| format!("{key}: null\n")).collect();
    let file = written + &left_out;
    (!file.is_empty()).then_some(file)
}

#[derive(Args, Debug)]
pub struct Set {
    /// A job, by number or name
    #[arg(value_name = "JOB", add = complete::jobs())]
    job: String,
    /// priority, time, deadline, team or hold; `deadline=none` removes it
    #[arg(value_name = "KEY=VALUE", required = true)]
    changes: Vec<String>,
}

pub async fn set(context: &Context, args: &Set) -> Result<()> {
    let change = change(&args.changes)?;
    tell(context, context.client()?.set_job(&args.job, &change).await?)
}

const SETTABLE: [&str; 5] = ["priority", "time", "deadline", "team", "hold"];

fn change(pairs: &[String]) -> Result<JobChange> {
    let mut change = JobChange::default();
    for pair in pairs {
        let (key, value) = pair.split_once('=').ok_or_else(|| {
            Failure::usage(format!("`{pair}` is not a change"))
                .next("Write KEY=VALUE, such as priority=high.")
        })?;
        let text = Some(value.to_owned());
        match key {
            "priority" => change.priority = text,
            "time" => change.time = text,
            "deadline" if matches!(value, "" | "none") => change.deadline = Some(None),
            "deadline" => change.deadline = Some(text),
            "team" => change.team = text,
            "hold" => change.hold = Some(is_on(value)?),
            _ => {
                let keys = SETTABLE.join(", ");
                return Err(Failure::usage(format!("`{key}` of a job cannot be changed"))
                    .next(format!("Change one of {keys}, or clone the job with other keys.")));
            }
        }
    }
    Ok(change)
}

fn is_on(value: &str) -> Result<bool> {
    match value {
        "true" | "yes" => Ok(true),
        "false" | "no" => Ok(false),
        _ => Err(Failure::usage(format!("hold is true or false, not `{value}`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(pairs: &[&str]) -> String {
        let pairs: Vec<String> = pairs.iter().map(|pair| (*pair).to_owned()).collect();
        match change(&pairs) {
            Ok(change) => serde_json::to_string(&change).unwrap(),
            Err(failure) => failure.to_string(),
        }
    }

    #[test]
    fn a_copy_leaves_out_what_it_is_to_be_without() {
        let gpus = JobFile { nodes: Some(2), ..JobFile::default() };
        assert_eq!(overlay(&JobFile::default(), &[]), None);
        let text = overlay(&gpus, &["after".to_owned(), "begin".to_owned()]).unwrap();
        assert_eq!(text, "nodes: 2\nafter: null\nbegin: null\n");
        let parsed = job::read(&text).unwrap();
        assert_eq!(parsed.left_out.into_iter().collect::<Vec<_>>(), ["after", "begin"]);
        let old = job::read("run: x\nafter: [a]\nbegin: 6h\nnodes: 4\n").unwrap().file;
        let new = old.without(&["after", "begin"].into()).merge(&gpus);
        assert_eq!(new, job::read("run: x\nnodes: 2\n").unwrap().file);
    }

    #[test]
    fn changes_are_pairs_of_what_can_be_changed() {
        assert_eq!(
            json(&["priority=high", "time=6h", "hold=no"]),
            r#"{"priority":"high","time":"6h","hold":false}"#
        );
        assert_eq!(json(&["deadline=none"]), r#"{"deadline":null}"#);
        assert_eq!(json(&["deadline=2d"]), r#"{"deadline":"2d"}"#);
        assert!(json(&["priority"]).contains("Write KEY=VALUE"));
        assert!(json(&["gpus=8"]).contains("Change one of priority, time, deadline, team, hold"));
        assert!(json(&["hold=perhaps"]).contains("true or false"));
    }
}
