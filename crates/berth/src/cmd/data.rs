//! `berth data`: versions of data.

use super::data_push;
use super::identity::team_of;
use super::storage::bytes;
use crate::complete;
use crate::context::Context;
use crate::data_get;
use crate::fail::{Exit, Failure, Result};
use crate::prompt;
use crate::show::{Look, Page, Table, words};
use berth_api::wire::{
    DataChanges, DataClean, DataCleaned, DataDiff, DataDiffQuery, DataFile, DataFilesQuery,
    DataQuery, DataVersion, Items,
};
use clap::{Args, Subcommand};
use serde::Serialize;
use std::path::PathBuf;

/// Paths of each kind of change that a table names.
const MOST_PATHS: usize = 20;

#[derive(Subcommand, Debug)]
pub enum Data {
    /// Push a folder or a file, and name it as a version
    Push {
        /// A folder, a file, or a .dvc file whose data was pushed with `dvc push`
        #[arg(value_name = "PATH")]
        path: PathBuf,
        /// Such as c4@v3; without a version the next one
        #[arg(value_name = "NAME")]
        name: String,
        /// The version that it was made from, by its number; the one before it where left out
        #[arg(long, value_name = "N")]
        parent: Option<u64>,
        /// What others should know of it
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
        #[command(flatten)]
        team: OfTeam,
    },
    /// Versions, the newest of each name first
    #[command(visible_alias = "list")]
    Ls {
        /// Versions of one name
        #[arg(value_name = "NAME")]
        name: Option<String>,
        /// Those of one team
        #[arg(short, long, value_name = "TEAM", add = complete::teams())]
        team: Option<String>,
    },
    /// One version with its files
    Show {
        #[arg(value_name = "NAME")]
        name: String,
        /// List its files
        #[arg(long)]
        files: bool,
        #[command(flatten)]
        team: OfTeam,
    },
    /// What is different between two versions
    Diff {
        #[arg(value_name = "FROM")]
        from: String,
        #[arg(value_name = "TO")]
        to: String,
        #[command(flatten)]
        team: OfTeam,
    },
    /// Fetch a version into a folder
    Get {
        #[arg(value_name = "NAME")]
        name: String,
        /// A folder to make; the name where left out
        #[arg(value_name = "FOLDER")]
        to: Option<PathBuf>,
        #[command(flatten)]
        team: OfTeam,
    },
    /// Remove a version; its files stay until the data of the team is cleaned
    Rm {
        #[arg(value_name = "NAME")]
        name: String,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
        #[command(flatten)]
        team: OfTeam,
    },
    /// Delete files that were pushed and that neither a version nor a job needs
    Clean {
        /// Only what was pushed so long ago, such as 7d (30d)
        #[arg(long, value_name = "TIME")]
        older_than: Option<String>,
        /// Show what would be deleted
        #[arg(long)]
        dry_run: bool,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
        #[command(flatten)]
        team: OfTeam,
    },
}

#[derive(Args, Debug)]
pub struct OfTeam {
    /// Its team (the one that is set)
    #[arg(short, long, value_name = "TEAM", add = complete::teams())]
    team: Option<String>,
}

pub async fn run(context: &Context, args: &Data) -> Result<()> {
    let client = context.client()?;
    let of = async |named: &OfTeam| team_of(context, named.team.as_deref()).await;
    match args {
        Data::Push { path, name, parent, note, team } => {
            let team = of(team).await?;
            let wish = data_push::Wish { name, parent: *parent, note: note.clone() };
            let made = data_push::push(client, &team, path, wish).await?;
            let said = |made: &DataVersion| {
                let files = words::count(made.files, "file");
                format!("Named {}: {files}, {}", label(made), bytes(made.bytes))
            };
            context.done(made, label, said)
        }
        Data::Ls { name, team } => {
            let query = DataQuery { team: team.clone(), name: name.clone() };
            let names = |all: &Items<DataVersion>| all.items.iter().map(label).collect();
            context.show(&Page::new(client.data(&query).await?, list, names))
        }
        Data::Show { name, files, team } => {
            let team = of(team).await?;
            let version = client.data_version(&team, name).await?;
            let files = match files {
                true => Some(all_files(client, &team, &label(&version)).await?),
                false => None,
            };
            let shown = Shown { version, files };
            context.show(&Page::new(shown, show, |shown| vec![label(&shown.version)]))
        }
        Data::Diff { from, to, team } => {
            let query = DataDiffQuery { to: to.clone() };
            let found = client.diff_data(&of(team).await?, from, &query).await?;
            context.show(&Page::new(found, diff, |found| {
                let kinds = [&found.added, &found.removed, &found.changed];
                kinds.iter().flat_map(|kind| kind.paths.clone()).collect()
            }))
        }
        Data::Get { name, to, team } => {
            let team = of(team).await?;
            let version = client.data_version(&team, name).await?;
            let to = to.clone().unwrap_or_else(|| PathBuf::from(&version.name));
            let from = data_get::Source { team: &team, hash: &version.hash, name: &version.name };
            data_get::get(client, from, &to).await?;
            let said = |version: &DataVersion| format!("Fetched {}", label(version));
            context.done(version, label, said)
        }
        Data::Rm { name, yes, team } => {
            let team = of(team).await?;
            if !yes && !prompt::is_sure(&format!("Remove {name} of {team}?"))? {
                return Err(Failure::new(Exit::Failed, "nothing was removed"));
            }
            client.delete_data(&team, name).await?;
            context.gone(name, &format!("Removed {name} of {team}"))
        }
        Data::Clean { older_than, dry_run, yes, team } => {
            let team = of(team).await?;
            let question = format!("Delete all data of {team} that no version and no job needs?");
            if !dry_run && !yes && !prompt::is_sure(&question)? {
                return Err(Failure::new(Exit::Failed, "nothing was deleted"));
            }
            let wish = DataClean { older_than: older_than.clone(), dry_run: *dry_run };
            let cleaned = client.clean_data(&team, &wish).await?;
            let said = |cleaned: &DataCleaned| {
                let verb = if cleaned.dry_run { "Would delete" } else { "Deleted" };
                let objects = words::count(cleaned.objects, "object");
                format!("{verb} {objects}, {}", bytes(cleaned.bytes))
            };
            context.done(cleaned, |cleaned| cleaned.objects.to_string(), said)
        }
    }
}

fn label(version: &DataVersion) -> String {
    format!("{}@v{}", version.name, version.version)
}

async fn all_files(client: &berth_api::Client, team: &str, name: &str) -> Result<Vec<DataFile>> {
    let mut files: Vec<DataFile> = Vec::new();
    loop {
        let after = files.last().map(|file| file.path.clone());
        let query = DataFilesQuery { after, limit: Some(10_000) };
        let page = client.data_files(team, name, &query).await?;
        files.extend(page.files);
        if !page.more {
            return Ok(files);
        }
    }
}

fn list(all: &Items<DataVersion>, look: &Look) -> String {
    let mut table = Table::new(&["NAME", "TEAM", "SIZE", "FILES", "FROM", "BY", "SINCE", "NOTE"]);
    for version in &all.items {
        table.row(vec![
            label(version).into(),
            version.team.as_str().into(),
            bytes(version.bytes).into(),
            words::thousands(version.files).into(),
            parent(version).into(),
            version.by.as_str().into(),
            look.at(version.created).into(),
            version.note.as_str().into(),
        ]);
    }
    table.or(look, "No data. `berth data push PATH NAME@v1` adds some.")
}

fn parent(version: &DataVersion) -> String {
    version.parent.map_or_else(String::new, |parent| format!("v{parent}"))
}

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    version: DataVersion,
    #[serde(rename = "paths", skip_serializing_if = "Option::is_none")]
    files: Option<Vec<DataFile>>,
}

fn show(shown: &Shown, look: &Look) -> String {
    let version = &shown.version;
    let mut text = format!(
        "{} of {}\n  hash   {}\n  size   {} in {}\n  from   {}\n  by     {}, {}\n",
        label(version),
        version.team,
        version.hash,
        bytes(version.bytes),
        words::count(version.files, "file"),
        if version.parent.is_some() { parent(version) } else { "-".to_owned() },
        version.by,
        look.at(version.created),
    );
    if !version.note.is_empty() {
        text.push_str(&format!("  note   {}\n", version.note));
    }
    if let Some(files) = &shown.files {
        let mut table = Table::new(&["PATH", "SIZE", "MD5"]);
        for file in files {
            table.row(vec![
                file.path.as_str().into(),
                bytes(file.bytes).into(),
                file.md5.as_str().into(),
            ]);
        }
        text.push('\n');
        text.push_str(&table.or(look, "No files."));
    }
    text
}

fn diff(found: &DataDiff, _: &Look) -> String {
    let mut text = format!("{} to {}\n", label(&found.from), label(&found.to));
    let mut kind = |sign: char, word: &str, changes: &DataChanges| {
        let files = words::count(changes.files, "file");
        text.push_str(&format!("{word:<9} {files}, {}\n", bytes(changes.bytes)));
        for path in changes.paths.iter().take(MOST_PATHS) {
            text.push_str(&format!("  {sign} {path}\n"));
        }
        let more = changes.files.saturating_sub(MOST_PATHS as u64);
        if more > 0 {
            text.push_str(&format!("  … and {} more\n", words::thousands(more)));
        }
    };
    kind('+', "added", &found.added);
    kind('-', "removed", &found.removed);
    kind('~', "changed", &found.changed);
    text
}
