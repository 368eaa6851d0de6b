//! Completion with the names that are there now. A server that does not answer at once has none.

use crate::settings::{Flags, Places, Settings};
use berth_api::Client;
use berth_api::client::Result;
use berth_api::wire::{JobQuery, VolumeQuery};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use std::time::Duration;

/// Longer than this nobody waits for the tab key.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(500);

/// Names, each with a word about it.
type Names = Vec<(String, String)>;

pub fn jobs() -> ArgValueCandidates {
    ArgValueCandidates::new(|| ask(async |client| names_of_jobs(&client, "active").await))
}

/// The ended ones too.
pub fn all_jobs() -> ArgValueCandidates {
    ArgValueCandidates::new(|| ask(async |client| names_of_jobs(&client, "").await))
}

async fn names_of_jobs(client: &Client, state: &str) -> Result<Names> {
    let state = (!state.is_empty()).then(|| state.to_owned());
    let query = JobQuery { state, limit: Some(200), ..JobQuery::default() };
    let jobs = client.jobs(&query).await?.jobs;
    let by_id = |job: &berth_api::wire::Job| {
        (job.id.to_string(), format!("{} {}", job.name, job.state.as_str()))
    };
    Ok(jobs.iter().map(by_id).chain(jobs.iter().map(|job| named(&job.name))).collect())
}

macro_rules! lists {
    ($($name:ident = $call:ident, $field:ident;)*) => {
        $(pub fn $name() -> ArgValueCandidates {
            ArgValueCandidates::new(|| ask(async |client: Client| {
                let items = client.$call().await?.items;
                Ok(items.into_iter().map(|item| named(&item.$field)).collect())
            }))
        })*
    };
}

lists! {
    queues = queues, name;
    nodes = nodes, name;
    teams = teams, name;
    users = users, name;
    projects = projects, name;
    secrets = secrets, name;
    templates = templates, name;
    schedules = schedules, id;
    tokens = tokens, id;
}

/// Named volumes of teams.
pub fn volumes() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        ask(async |client: Client| {
            let items = client.volumes(&VolumeQuery::default()).await?.items;
            Ok(items.into_iter().map(|item| (item.name, item.team)).collect())
        })
    })
}

/// Browsers that are signed in.
pub fn sessions() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        ask(async |client: Client| {
            let items = client.sessions().await?.items;
            Ok(items.into_iter().map(|item| (item.id, item.agent)).collect())
        })
    })
}

/// Templates as `berth run` names them.
pub fn at_templates() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        ask(async |client: Client| {
            let items = client.templates().await?.items;
            Ok(items.into_iter().map(|item| named(&format!("@{}", item.name))).collect())
        })
    })
}

fn named(name: &str) -> (String, String) {
    (name.to_owned(), String::new())
}

fn ask(names: impl AsyncFnOnce(Client) -> Result<Names>) -> Vec<CompletionCandidate> {
    let found = || -> Option<Names> {
        let settings = Settings::load(&Flags::default(), &Places::real()).ok()?;
        let client = settings.client(Some(REQUEST_TIMEOUT)).ok()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        runtime.block_on(names(client)).ok()
    };
    let candidate = |(name, about): (String, String)| {
        let help = (!about.is_empty()).then(|| about.into());
        CompletionCandidate::new(name).help(help)
    };
    let mut names = found().unwrap_or_default();
    names.sort();
    names.dedup_by(|one, other| one.0 == other.0);
    names.into_iter().map(candidate).collect()
}
