//! `berth files` and `berth cp`: what a job has written into its folder.

use crate::complete;
use crate::context::Context;
use crate::fail::{Failure, Result};
use crate::show::{self, Look, Page, Table, words};
use berth_api::client::Pieces;
use berth_api::wire::{FileKind, JobFileList, JobFileQuery};
use clap::Args;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
pub struct Files {
    /// A job, by number or name
    #[arg(value_name = "JOB", add = complete::all_jobs())]
    job: String,
    /// A folder below that of the job
    #[arg(value_name = "PATH", default_value = "")]
    path: String,
}

pub async fn files(context: &Context, args: &Files) -> Result<()> {
    let query = JobFileQuery { path: args.path.clone() };
    let list = context.client()?.files(&args.job, &query).await?;
    let names = |list: &JobFileList| list.entries.iter().map(|entry| entry.name.clone()).collect();
    let remarks = |list: &JobFileList| {
        let more = list.more.then(|| "there are more than one answer has".to_owned());
        more.into_iter().chain(results(list)).collect()
    };
    context.show(&Page::new(list, text, names).remarks(remarks))
}

/// A note with the working folder of the command, if it is not the listed folder.
fn results(list: &JobFileList) -> Option<String> {
    let workdir = list.workdir.as_ref().filter(|_| list.path.is_empty())?;
    let job = list.job;
    Some(match workdir.starts_with('/') {
        true => format!(
            "The command of job {job} ran in {workdir}, on the machine that had it: what it wrote \
             there is not listed. Its checkpoints are in this folder."
        ),
        false => format!(
            "The command of job {job} ran in {workdir}: `berth files {job} {workdir}` lists it."
        ),
    })
}

fn text(list: &JobFileList, look: &Look) -> String {
    let mut table = Table::new(&["NAME", ">SIZE", "CHANGED"]);
    for entry in &list.entries {
        let (end, size) = match entry.kind {
            FileKind::File => ("", Some(words::bytes(entry.bytes.min(i64::MAX as u64) as i64))),
            FileKind::Dir => ("/", None),
            FileKind::Link => ("@", None),
            FileKind::Other => ("=", None),
        };
        table.row(vec![
            format!("{}{end}", entry.name).into(),
            size.into(),
            entry.modified_at.map(|at| look.at(at)).into(),
        ]);
    }
    table.or(look, "There is nothing in it.")
}

#[derive(Args, Debug)]
pub struct Copy {
    /// A file of a job, such as 17:out/model.pt
    #[arg(value_name = "JOB:PATH")]
    from: String,
    /// The destination: a folder, a file, or - for standard output
    #[arg(value_name = "LOCAL", default_value = ".")]
    to: PathBuf,
    /// Overwrite an existing file
    #[arg(short, long)]
    force: bool,
}

pub async fn copy(context: &Context, args: &Copy) -> Result<()> {
    let (job, path) = match args.from.split_once(':') {
        Some((job, path)) if !job.is_empty() && !path.trim_matches('/').is_empty() => (job, path),
        _ => {
            return Err(no_file(&args.from, &args.to));
        }
    };
    let query = JobFileQuery { path: path.to_owned() };
    if args.to == Path::new("-") {
        let mut pieces = context.client()?.file(job, &query).await?;
        return write(&mut pieces, &mut std::io::stdout().lock(), "standard output").await;
    }
    let name = path.trim_matches('/').rsplit('/').next().unwrap_or_default();
    let to = if args.to.is_dir() { args.to.join(name) } else { args.to.clone() };
    if to.exists() && !args.force {
        let what = format!("{} already exists", to.display());
        return Err(Failure::usage(what).next("Overwrite it with --force, or choose another name."));
    }
    let mut pieces = context.client()?.file(job, &query).await?;
    let length = pieces.length();
    // Beside its place until it is whole: a file that broke off is not taken for one.
    let part = to.with_file_name(format!(".{}.part", file_name(&to)));
    let failed = |error| Failure::io(format!("writing {}", part.display()), &error);
    let mut file = File::create(&part).map_err(failed)?;
    let written = write(&mut pieces, &mut file, &part.display().to_string()).await;
    let placed = written.and_then(|()| {
        let size = file.metadata().map_err(failed)?.len();
        if length.is_some_and(|length| length != size) {
            return Err(Failure::internal(format!("{name} broke off after {size} bytes")));
        }
        std::fs::rename(&part, &to)
            .map_err(|error| Failure::io(format!("writing {}", to.display()), &error))
    });
    if placed.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    placed?;
    show::note(&format!("{}", to.display()));
    Ok(())
}

fn no_file(from: &str, to: &Path) -> Failure {
    let is_of_a_job = to.to_str().and_then(|to| to.split_once(':')).is_some();
    if is_of_a_job && !to.exists() {
        let what = "files are copied out of a job, and not into one";
        let next = "A job gets files with `berth run --code FOLDER`, or from a volume.";
        return Failure::usage(what).next(next);
    }
    Failure::usage(format!("`{from}` names no file of a job"))
        .next("Write JOB:PATH, such as 17:out/model.pt.")
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

async fn write(pieces: &mut Pieces, to: &mut impl Write, name: &str) -> Result<()> {
    let failed = |error| Failure::io(format!("writing {name}"), &error);
    while let Some(bytes) = pieces.next().await? {
        to.write_all(&bytes).map_err(failed)?;
    }
    to.flush().map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(path: &str, workdir: Option<&str>) -> JobFileList {
        JobFileList {
            job: "17".parse().unwrap(),
            path: path.into(),
            entries: Vec::new(),
            more: false,
            workdir: workdir.map(str::to_owned),
        }
    }

    #[test]
    fn a_list_says_where_the_results_are_that_are_not_in_it() {
        let elsewhere = results(&list("", Some("/home/kim/x"))).unwrap();
        assert!(elsewhere.contains("ran in /home/kim/x"), "{elsewhere}");
        let code = results(&list("", Some("code/src"))).unwrap();
        assert!(code.contains("`berth files 17 code/src`"), "{code}");
        assert_eq!(results(&list("", None)), None);
        assert_eq!(results(&list("checkpoints", Some("/home/kim/x"))), None);
    }
}
