//! What goes with a team, user or project that is deleted, told before it is.

use crate::context::someone_is_there;
use crate::fail::{Exit, Failure, Result};
use crate::prompt;
use crate::show::words;
use berth_api::Client;
use berth_api::routes::Method;
use berth_api::wire::JobQuery;
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy)]
pub enum Deletion<'a> {
    Team(&'a str),
    User(&'a str),
    Project(&'a str),
}

/// Asks at a terminal; a script has made up its mind.
pub async fn confirm(client: &Client, deletion: Deletion<'_>, yes: bool) -> Result<()> {
    if yes || !someone_is_there() {
        return Ok(());
    }
    let goes = goes_along(client, deletion).await;
    match prompt::is_sure(&question(deletion, &goes))? {
        true => Ok(()),
        false => Err(Failure::new(Exit::Failed, "nothing was deleted")),
    }
}

/// What goes with it, as far as the caller may see it; how many there are of each.
async fn goes_along(client: &Client, deletion: Deletion<'_>) -> Vec<(u64, &'static str)> {
    let mut goes = Vec::new();
    let count = |of: usize| of as u64;
    match deletion {
        Deletion::Team(team) => {
            if let Ok(all) = client.members(team).await {
                goes.push((count(all.items.len()), "membership"));
            }
            if let Ok(all) = client.projects().await {
                goes.push((
                    count(all.items.iter().filter(|one| one.team == team).count()),
                    "project",
                ));
            }
            if let Ok(all) = client.secrets().await {
                goes.push((
                    count(all.items.iter().filter(|one| one.team == team).count()),
                    "secret",
                ));
            }
            if let Ok(all) = client.templates().await {
                goes.push((
                    count(all.items.iter().filter(|one| one.team == team).count()),
                    "template",
                ));
            }
            if let Ok(all) = client.schedules().await {
                goes.push((
                    count(all.items.iter().filter(|one| one.team == team).count()),
                    "schedule",
                ));
            }
            let experiments = (Method::Post, "experiments/search", "experiments");
            goes.push((tracked(client, team, experiments).await, "experiment"));
            let models = (Method::Get, "registered-models/search", "registered_models");
            goes.push((tracked(client, team, models).await, "registered model"));
        }
        Deletion::User(user) => {
            if let Ok(all) = client.tokens().await {
                let theirs =
                    all.items.iter().filter(|one| one.user == user && one.revoked.is_none());
                goes.push((count(theirs.count()), "token"));
            }
            if let Ok(all) = client.users().await {
                let teams = all.items.iter().find(|one| one.name == user);
                goes.push((count(teams.map_or(0, |one| one.teams.len())), "membership"));
            }
        }
        Deletion::Project(project) => {
            let query = JobQuery {
                project: Some(project.to_owned()),
                state: Some("active".to_owned()),
                limit: Some(1),
                counts: true,
                ..JobQuery::default()
            };
            if let Ok(list) = client.jobs(&query).await {
                goes.push((list.counts.values().sum(), "running or waiting job"));
            }
        }
    }
    goes.retain(|(count, _)| *count > 0);
    goes
}

/// The number of experiments or registered models of a team, without those that others share with it.
async fn tracked(client: &Client, team: &str, (method, path, list): (Method, &str, &str)) -> u64 {
    let (mut count, mut fields) = (0, json!({ "max_results": 1000 }));
    let path = format!("2.0/mlflow/{path}");
    let place = format!("mlflow-artifacts:/{team}/");
    // Lists contain what other teams share: experiments at another place, models as `TEAM/NAME`.
    let is_own = |one: &&Value| match one["artifact_location"].as_str() {
        Some(at) => at.starts_with(&place),
        None => one["name"].as_str().is_none_or(|name| !name.contains('/')),
    };
    while let Ok(page) = client.tracked((method, &path), &fields, Some(team)).await {
        count += page[list].as_array().map_or(0, |all| all.iter().filter(is_own).count());
        match page["next_page_token"].as_str() {
            Some(next) if !next.is_empty() => fields["page_token"] = json!(next),
            _ => break,
        }
    }
    count as u64
}

fn question(deletion: Deletion<'_>, goes: &[(u64, &str)]) -> String {
    let parts: Vec<String> = goes.iter().map(|(count, what)| words::count(*count, what)).collect();
    let list = match parts.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    };
    let (what, more) = match deletion {
        Deletion::Team(team) => (format!("team {team}"), "This also deletes"),
        Deletion::User(user) => (format!("user {user}"), "This also deletes"),
        Deletion::Project(project) => (format!("project {project}"), "It has"),
    };
    match list.is_empty() {
        true => format!("Delete {what}?"),
        false => format!("Delete {what}? {more} {list}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_says_what_goes_with_it() {
        let goes = [(2, "membership"), (1, "project"), (3, "secret")];
        assert_eq!(
            question(Deletion::Team("nlp"), &goes),
            "Delete team nlp? This also deletes 2 memberships, 1 project and 3 secrets."
        );
        assert_eq!(question(Deletion::User("kim"), &[]), "Delete user kim?");
        assert_eq!(
            question(Deletion::Project("llama"), &[(1, "running or waiting job")]),
            "Delete project llama? It has 1 running or waiting job."
        );
    }
}
