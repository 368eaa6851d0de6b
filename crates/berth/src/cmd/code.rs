//! The files that a job runs with: sent as a snapshot where a job is submitted, and fetched back with
//! `berth code`.

use crate::complete;
use crate::context::Context;
use crate::fail::{Failure, Result};
use crate::show::{self, words};
use berth_api::client::Error;
use berth_code::{Limits, Origin, Packed, cut_diff, pack_with_origin, unpack};
use berth_file::job::{self, JobFile};
use berth_model::CodeId;
use clap::Args;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A folder that was packed for a submission.
pub struct Snapshot {
    packed: Packed,
    archive: Vec<u8>,
}

impl Snapshot {
    /// Packs the folder that a file names as its code, and puts the name of the snapshot in its
    /// place. A relative folder is one beside the file, or below where the command was typed.
    pub fn take(file: &mut JobFile, beside: &Path) -> Result<Option<Snapshot>> {
        let Some(code) = &file.code else { return Ok(None) };
        if code.parse::<CodeId>().is_ok() {
            return Ok(None);
        }
        let folder = beside.join(code);
        let mut archive = Vec::new();
        let origin = origin(&folder);
        let packed = pack_with_origin(&folder, origin.as_ref(), Limits::default(), &mut archive);
        let packed = packed.map_err(|error| {
            let what = format!("packing the code in {}: {error}", folder.display());
            Failure::usage(what).next(
                "Name what the job does not need in .gitignore or .berthignore, and keep data in a \
                 volume.",
            )
        })?;
        file.code = Some(packed.id.to_string());
        Ok(Some(Snapshot { packed, archive }))
    }

    /// Sends it, unless the server has it already.
    pub async fn send(&self, context: &Context, team: Option<&str>) -> Result<()> {
        let client = context.client()?;
        let team = match team {
            Some(team) => team.to_owned(),
            None => client.me().await?.default_team.ok_or_else(|| {
                Failure::usage("you are in no team, so the code belongs to none")
                    .next("Name a team with --team.")
            })?,
        };
        let id = self.packed.id.to_string();
        match client.code(&team, &id).await {
            Ok(_) => return Ok(()),
            Err(Error::Problem(problem)) if problem.status == 404 => {}
            Err(error) => return Err(error.into()),
        }
        let bytes = |bytes: u64| words::bytes(i64::try_from(bytes).unwrap_or(i64::MAX));
        let Packed { files, packed, .. } = self.packed;
        let many = if files == 1 { "" } else { "s" };
        show::note(&format!("Sending the code: {files} file{many}, {} packed", bytes(packed)));
        client.put_code(&team, &id, self.archive.clone()).await?;
        Ok(())
    }
}

/// The commit of a folder and the changes since; `None` outside of a repository.
fn origin(folder: &Path) -> Option<Origin> {
    let commit = git(folder, &["rev-parse", "HEAD"])?.trim().to_owned();
    let dirty = !git(folder, &["status", "--porcelain", "--", "."])?.is_empty();
    let args = ["diff", "--no-color", "--no-ext-diff", "--no-textconv", "HEAD", "--", "."];
    let diff = if dirty { git(folder, &args)? } else { String::new() };
    Some(Origin { commit, dirty, diff: cut_diff(diff) })
}

/// The output of git, up to a limit.
fn git(folder: &Path, args: &[&str]) -> Option<String> {
    const MOST: u64 = 4 << 20;
    let mut git = Command::new("git");
    git.arg("-C").arg(folder).args(args).env("GIT_OPTIONAL_LOCKS", "0");
    let started = git.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = started.ok()?;
    let mut printed = Vec::new();
    child.stdout.take()?.take(MOST).read_to_end(&mut printed).ok()?;
    // git ends when we close the pipe early.
    let ended = child.wait().ok()?;
    let is_whole = ended.success() || printed.len() as u64 == MOST;
    is_whole.then(|| String::from_utf8_lossy(&printed).into_owned())
}

/// The arguments of `berth code`.
#[derive(Args, Debug)]
pub struct Code {
    /// A job, by number or name
    #[arg(value_name = "JOB", add = complete::all_jobs())]
    job: String,
    /// A folder to make; `code-JOB` where left out
    #[arg(value_name = "FOLDER")]
    to: Option<PathBuf>,
}

/// Unpacks the files that a job was submitted with.
pub async fn code(context: &Context, args: &Code) -> Result<()> {
    let client = context.client()?;
    let found = client.job(&args.job).await?;
    let file = client.job_file(&args.job).await?;
    let parsed = job::read(&file).ok();
    let Some(id) = parsed.and_then(|parsed| parsed.file.code) else {
        let what = format!("job {} was submitted without code", found.id);
        return Err(Failure::usage(what)
            .next("`berth run --code . -- COMMAND` takes the files of a folder along."));
    };
    let to = args.to.clone().unwrap_or_else(|| PathBuf::from(format!("code-{}", found.id)));
    let failed = |error| Failure::io(format!("making {}", to.display()), &error);
    let mut pieces = client.code_content(&found.team, &id).await?;
    let mut archive = Vec::new();
    while let Some(bytes) = pieces.next().await? {
        archive.extend_from_slice(&bytes);
    }
    fs::create_dir(&to).map_err(failed)?;
    unpack(&archive[..], &to).map_err(|error| {
        Failure::internal(format!("the snapshot {id} cannot be unpacked: {error}"))
    })?;
    show::note(&format!("{}", to.display()));
    Ok(())
}
