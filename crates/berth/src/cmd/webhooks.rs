//! `berth models webhook`: messages about the registry of models.

use super::tracker::{Tracker, text, time};
use crate::complete;
use crate::context::Context;
use crate::fail::{Exit, Failure, Result};
use crate::prompt;
use crate::show::{Look, Page, Table};
use berth_api::routes::Method;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

/// The default events of a webhook.
const USUAL: [&str; 2] = ["model_version.created", "model_version_alias.created"];

#[derive(Subcommand, Debug)]
pub enum Webhook {
    /// List webhooks of a team
    List {
        /// The team (your default team)
        #[arg(short, long, value_name = "TEAM", add = complete::teams())]
        team: Option<String>,
    },
    /// Add a webhook: an address that gets a message about each event
    Add(AddArgs),
    /// Send a test message with invented data and show the result
    Test(OneArgs),
    /// Remove a webhook
    Rm(OneArgs),
}

#[derive(Args, Debug)]
pub struct AddArgs {
    #[arg(value_name = "NAME")]
    name: String,
    #[arg(value_name = "URL")]
    url: String,
    /// An event to subscribe to, such as model_version.created; repeatable (new versions and aliases)
    #[arg(long, value_name = "EVENT", value_parser = is_event)]
    on: Vec<String>,
    /// Sign messages with a secret, which comes from a prompt or standard input
    #[arg(long)]
    secret: bool,
    /// The team (your default team)
    #[arg(short, long, value_name = "TEAM", add = complete::teams())]
    team: Option<String>,
}

#[derive(Args, Debug)]
pub struct OneArgs {
    /// Name or id
    #[arg(value_name = "WEBHOOK")]
    webhook: String,
    /// The team (your default team)
    #[arg(short, long, value_name = "TEAM", add = complete::teams())]
    team: Option<String>,
}

fn is_event(text: &str) -> std::result::Result<String, String> {
    match text.split_once('.') {
        Some(_) => Ok(text.to_owned()),
        None => Err("expected an event such as model_version.created".to_owned()),
    }
}

pub async fn run(context: &Context, args: &Webhook) -> Result<()> {
    match args {
        Webhook::List { team } => {
            let found = all(&Tracker::new(context, team.as_deref())).await?;
            let names = |all: &Vec<Value>| all.iter().map(|one| text(&one["name"])).collect();
            context.show(&Page::new(found, |all: &Vec<Value>, look| list(all, look), names))
        }
        Webhook::Add(args) => add(context, args).await,
        Webhook::Test(OneArgs { webhook, team }) => {
            let tracker = Tracker::new(context, team.as_deref());
            let path = format!("webhooks/{}/test", id(&tracker, webhook).await?);
            let answer = tracker.ask(Method::Post, &path, json!({})).await?;
            let result = &answer["result"];
            match result["success"].as_bool() {
                Some(true) => context.gone(webhook, &format!("{webhook} took the message")),
                _ => {
                    let why = text(&result["error_message"]);
                    let said = format!("{webhook} did not take the message: {why}");
                    Err(Failure::new(Exit::Failed, said))
                }
            }
        }
        Webhook::Rm(OneArgs { webhook, team }) => {
            let tracker = Tracker::new(context, team.as_deref());
            let path = format!("webhooks/{}", id(&tracker, webhook).await?);
            tracker.ask(Method::Delete, &path, json!({})).await?;
            context.gone(webhook, &format!("Removed webhook {webhook}"))
        }
    }
}

async fn all(tracker: &Tracker<'_>) -> Result<Vec<Value>> {
    tracker.all((Method::Get, "webhooks", "webhooks"), json!({}), usize::MAX).await
}

async fn id(tracker: &Tracker<'_>, named: &str) -> Result<String> {
    let all = all(tracker).await?;
    let is_meant = |one: &&Value| one["name"] == named || one["webhook_id"] == named;
    let found: Vec<&Value> = all.iter().filter(is_meant).collect();
    match found.as_slice() {
        [one] => Ok(text(&one["webhook_id"])),
        [] => Err(Failure::new(Exit::NotFound, format!("there is no webhook `{named}`"))
            .next("`berth models webhook list` lists webhooks; name another team with --team")),
        several => {
            let ids: Vec<String> = several.iter().map(|one| text(&one["webhook_id"])).collect();
            Err(Failure::new(Exit::Failed, format!("several webhooks are called `{named}`"))
                .next(format!("name one of {}", ids.join(", "))))
        }
    }
}

async fn add(context: &Context, args: &AddArgs) -> Result<()> {
    let AddArgs { name, url, on, secret, team } = args;
    let on: Vec<&str> = match on.as_slice() {
        [] => USUAL.to_vec(),
        named => named.iter().map(String::as_str).collect(),
    };
    let event = |name: &&str| {
        let (entity, action) = name.split_once('.').unwrap_or((name, ""));
        json!({ "entity": entity.to_uppercase(), "action": action.to_uppercase() })
    };
    let events: Vec<Value> = on.iter().map(event).collect();
    let mut fields = json!({ "name": name, "url": url, "events": events });
    if *secret {
        fields["secret"] = json!(prompt::secret(&format!("Secret of {name}"))?);
    }
    let tracker = Tracker::new(context, team.as_deref());
    let mut made = tracker.ask(Method::Post, "webhooks", fields).await?["webhook"].take();
    made["events"] = json!(events_of(&made));
    let said = |made: &Value| format!("Added webhook {}", text(&made["name"]));
    context.done(made, |made| text(&made["webhook_id"]), said)
}

/// Such as `model_version.created`.
fn events_of(webhook: &Value) -> Vec<String> {
    let events = webhook["events"].as_array().into_iter().flatten();
    let name = |one: &Value| format!("{}.{}", text(&one["entity"]), text(&one["action"]));
    events.map(|one| name(one).to_lowercase()).collect()
}

fn list(all: &[Value], look: &Look) -> String {
    let mut table = Table::new(&["NAME", "STATE", "SINCE", "EVENTS", "URL"]);
    for one in all {
        table.row(vec![
            text(&one["name"]).into(),
            text(&one["status"]).to_lowercase().into(),
            time(look, &one["creation_timestamp"]).into(),
            events_of(one).join(" ").into(),
            text(&one["url"]).into(),
        ]);
    }
    table.or(look, "No webhooks.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_read_as_on_the_command_line() {
        let event = |entity: &str, action: &str| json!({ "entity": entity, "action": action });
        let webhook = json!({ "events": [event("MODEL_VERSION_TAG", "SET")] });
        assert_eq!(events_of(&webhook), ["model_version_tag.set"]);
        assert!(is_event("model_version.created").is_ok() && is_event("created").is_err());
    }
}
