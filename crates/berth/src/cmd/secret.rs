//! `berth secret`. A value never stands on a command line, where others could see it.

use super::identity::team_of;
use crate::complete;
use crate::context::Context;
use crate::fail::Result;
use crate::prompt;
use crate::show::{Look, Page, Table};
use berth_api::wire::{Items, Secret as Row, SecretSet};
use clap::{Args, Subcommand};

#[derive(Subcommand, Debug)]
pub enum Secret {
    /// Save or change a secret; the value comes from a prompt or standard input
    Set(SecretArgs),
    /// List names of secrets
    List,
    /// Delete a secret
    Rm(SecretArgs),
}

#[derive(Args, Debug)]
pub struct SecretArgs {
    #[arg(value_name = "NAME", add = complete::secrets())]
    name: String,
    /// The team (your default team)
    #[arg(short, long, value_name = "TEAM", add = complete::teams())]
    team: Option<String>,
}

pub async fn run(context: &Context, args: &Secret) -> Result<()> {
    let client = context.client()?;
    match args {
        Secret::Set(SecretArgs { name, team }) => {
            let team = team_of(context, team.as_deref()).await?;
            let value = prompt::secret(&format!("Value of {name}"))?;
            let saved = client.set_secret(&team, name, &SecretSet { value }).await?;
            let said = |saved: &Row| format!("Saved secret {} for {}", saved.name, saved.team);
            context.done(saved, |saved| saved.name.clone(), said)
        }
        Secret::List => {
            let names = |all: &Items<Row>| all.items.iter().map(|one| one.name.clone()).collect();
            context.show(&Page::new(client.secrets().await?, list, names))
        }
        Secret::Rm(SecretArgs { name, team }) => {
            let team = team_of(context, team.as_deref()).await?;
            client.delete_secret(&team, name).await?;
            context.gone(name, &format!("Deleted secret {name} of {team}"))
        }
    }
}

fn list(all: &Items<Row>, look: &Look) -> String {
    let mut table = Table::new(&["NAME", "TEAM", "BY", "SINCE"]);
    for secret in &all.items {
        table.row(vec![
            secret.name.as_str().into(),
            secret.team.as_str().into(),
            secret.by.as_str().into(),
            look.at(secret.created).into(),
        ]);
    }
    table.or(look, "No secrets.")
}
