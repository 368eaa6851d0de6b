//! `berth volume`. What is in a volume cannot be brought back, so deleting one is asked about.

use super::identity::team_of;
use crate::complete;
use crate::context::Context;
use crate::fail::{Exit, Failure, Result};
use crate::prompt;
use crate::show::{Look, Page, Table, words};
use berth_api::wire::{Items, Volume as Row, VolumeDelete, VolumeQuery};
use clap::{Args, Subcommand};

/// Jobs that a line of the table names.
const MOST_JOBS: usize = 3;

#[derive(Subcommand, Debug)]
pub enum Volume {
    /// Volumes with what they take, and the jobs that use them
    List {
        /// Those of one team
        #[arg(short, long, value_name = "TEAM", add = complete::teams())]
        team: Option<String>,
    },
    /// Make an empty volume; one that is there stays as it is
    Create(VolumeArgs),
    /// Delete a volume with all that is in it
    Delete {
        #[command(flatten)]
        volume: VolumeArgs,
        /// Also while jobs that wait use it; they then start with an empty one
        #[arg(long)]
        force: bool,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
}

#[derive(Args, Debug)]
pub struct VolumeArgs {
    #[arg(value_name = "NAME", add = complete::volumes())]
    name: String,
    /// Its team (the one that is set)
    #[arg(short, long, value_name = "TEAM", add = complete::teams())]
    team: Option<String>,
}

pub async fn run(context: &Context, args: &Volume) -> Result<()> {
    let client = context.client()?;
    match args {
        Volume::List { team } => {
            let query = VolumeQuery { team: team.clone() };
            let names = |all: &Items<Row>| all.items.iter().map(|one| one.name.clone()).collect();
            context.show(&Page::new(client.volumes(&query).await?, list, names))
        }
        Volume::Create(VolumeArgs { name, team }) => {
            let team = team_of(context, team.as_deref()).await?;
            let made = client.create_volume(&team, name).await?;
            let said = |made: &Row| format!("Created volume {} of {}", made.name, made.team);
            context.done(made, |made| made.name.clone(), said)
        }
        Volume::Delete { volume: VolumeArgs { name, team }, force, yes } => {
            let team = team_of(context, team.as_deref()).await?;
            let question = format!("Delete the volume {name} of {team} with all that is in it?");
            if !yes && !prompt::is_sure(&question)? {
                return Err(Failure::new(Exit::Failed, "nothing was deleted"));
            }
            let how = VolumeDelete { force: force.then_some(true) };
            client.delete_volume(&team, name, &how).await?;
            context.gone(name, &format!("Deleted volume {name} of {team}"))
        }
    }
}

fn list(all: &Items<Row>, look: &Look) -> String {
    let mut table = Table::new(&["NAME", "TEAM", "SIZE", "FILES", "SINCE", "JOBS"]);
    for volume in &all.items {
        let least = if volume.partial { ">" } else { "" };
        let bytes = words::bytes(i64::try_from(volume.bytes).unwrap_or(i64::MAX));
        table.row(vec![
            volume.name.as_str().into(),
            volume.team.as_str().into(),
            format!("{least}{bytes}").into(),
            format!("{least}{}", words::thousands(volume.files)).into(),
            look.maybe_at(volume.created).into(),
            jobs(volume).into(),
        ]);
    }
    table.or(look, "No volumes.")
}

/// The first jobs that use it, and how many more do.
fn jobs(volume: &Row) -> String {
    let named = volume.jobs.iter().take(MOST_JOBS);
    let mut words: Vec<String> = named.map(ToString::to_string).collect();
    let more = volume.job_count.saturating_sub(words.len() as u64);
    if more > 0 {
        words.push(format!("+{more}"));
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_api::wire::{At, Id};
    use berth_model::{JobId, Time};

    #[test]
    fn a_list_says_what_is_only_the_least_and_names_the_first_jobs() {
        let volume = |name: &str, partial, jobs: u64| Row {
            team: "nlp".into(),
            name: name.into(),
            bytes: 3 << 29,
            files: 12_345,
            partial,
            created: partial.then_some(At(Time(0))),
            jobs: (1..=jobs).map(|job| Id(JobId::new(job))).collect(),
            job_count: jobs,
        };
        let items = vec![volume("data", false, 0), volume("large", true, 5)];
        let shown = list(&Items { items }, &Look::fixed());
        let lines: Vec<Vec<&str>> = shown.lines().map(|l| l.split("  ").collect()).collect();
        let cells = |line: usize| -> Vec<&str> {
            lines[line].iter().map(|cell| cell.trim()).filter(|cell| !cell.is_empty()).collect()
        };
        assert_eq!(cells(1), ["data", "nlp", "1.5 GiB", "12,345", "-", "-"]);
        let large = cells(2);
        assert_eq!(large[2..4], [">1.5 GiB", ">12,345"]);
        assert_eq!(large.last(), Some(&"1 2 3 +2"));
    }
}
