//! `berth storage`: what artifacts, data and code of teams take.

use crate::complete;
use crate::context::Context;
use crate::fail::{Failure, Result};
use crate::show::{Look, Page, Table, words};
use berth_api::wire::{Items, Storage as Row, StorageSet};
use berth_model::Bytes;
use clap::Subcommand;

/// Has a team keep what every team may.
const DEFAULT: &str = "default";

#[derive(Subcommand, Debug)]
pub enum Storage {
    /// Teams with what they keep, and what they may
    List,
    /// Set what a team may keep
    Quota {
        #[arg(value_name = "TEAM", add = complete::teams())]
        team: String,
        /// Such as 5TiB; `default` is what every team may keep
        #[arg(value_name = "SIZE")]
        size: String,
    },
}

pub async fn run(context: &Context, args: &Storage) -> Result<()> {
    let client = context.client()?;
    match args {
        Storage::List => {
            let names = |all: &Items<Row>| all.items.iter().map(|one| one.team.clone()).collect();
            context.show(&Page::new(client.storage().await?, list, names))
        }
        Storage::Quota { team, size } => {
            let quota = match size.as_str() {
                DEFAULT => None,
                size => {
                    let parsed = size.parse::<Bytes>().ok();
                    let parsed = parsed.and_then(|size| u64::try_from(size.0).ok());
                    Some(parsed.ok_or_else(|| {
                        Failure::usage(format!("found `{size}`, expected a size such as 5TiB"))
                    })?)
                }
            };
            let set = client.set_storage(team, &StorageSet { quota }).await?;
            let said = |set: &Row| format!("Team {} may keep {}", set.team, bytes(set.quota));
            context.done(set, |set| set.team.clone(), said)
        }
    }
}

pub fn bytes(bytes: u64) -> String {
    words::bytes(i64::try_from(bytes).unwrap_or(i64::MAX))
}

fn list(all: &Items<Row>, look: &Look) -> String {
    let mut table = Table::new(&["TEAM", "OBJECTS", "SIZE", "QUOTA"]);
    for row in &all.items {
        table.row(vec![
            row.team.as_str().into(),
            words::thousands(row.objects).into(),
            bytes(row.bytes).into(),
            bytes(row.quota).into(),
        ]);
    }
    table.or(look, "No teams.")
}
