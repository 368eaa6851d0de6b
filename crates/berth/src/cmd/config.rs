//! `berth config`.

use crate::context::Context;
use crate::fail::Result;
use crate::show::{Look, Page, Table};
use berth_api::wire::{ConfigEntry, Items};
use clap::Subcommand;

#[derive(Subcommand, Debug)]
pub enum Config {
    /// Show the settings of this program and where each comes from
    Explain,
    /// Show the settings of the server and where each comes from
    Server,
}

pub async fn run(context: &Context, args: &Config) -> Result<()> {
    let all = match args {
        Config::Explain => {
            let rows = context.settings.explain().into_iter();
            let entry = |(key, value, source): (&str, String, String)| ConfigEntry {
                key: key.to_owned(),
                value,
                source,
            };
            Items { items: rows.map(entry).collect() }
        }
        Config::Server => context.client()?.config().await?,
    };
    let names = |all: &Items<ConfigEntry>| all.items.iter().map(|one| one.key.clone()).collect();
    context.show(&Page::new(all, text, names))
}

fn text(all: &Items<ConfigEntry>, look: &Look) -> String {
    let mut table = Table::new(&["KEY", "VALUE", "FROM"]);
    for entry in &all.items {
        let cells = [entry.key.as_str(), entry.value.as_str(), entry.source.as_str()];
        table.row(cells.into_iter().map(Into::into).collect());
    }
    table.or(look, "No settings.")
}
