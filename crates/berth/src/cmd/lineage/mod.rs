//! `berth lineage`: inputs and outputs of a model, run, job or version of data.

mod openlineage;
mod tree;

use crate::complete;
use crate::context::Context;
use crate::fail::Result;
use crate::show::{self, Format, Page};
use berth_api::wire::{LineageQuery, LineageWay};
use clap::Args;

#[derive(Args, Debug)]
pub struct Lineage {
    /// model:NAME@VERSION, run:ID, job:JOB, data:NAME@vN or logged_model:ID
    #[arg(value_name = "KIND:NAME")]
    of: String,
    /// Only upstream: what it was made from
    #[arg(long, conflicts_with = "down")]
    up: bool,
    /// Only downstream: what was made from it
    #[arg(long)]
    down: bool,
    /// The maximum number of nodes (2000)
    #[arg(short = 'n', long, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=2000))]
    limit: Option<u32>,
    /// The team (your default team)
    #[arg(short, long, value_name = "TEAM", add = complete::teams())]
    team: Option<String>,
}

pub async fn run(context: &Context, args: &Lineage) -> Result<()> {
    let way = match (args.up, args.down) {
        (true, _) => LineageWay::Up,
        (_, true) => LineageWay::Down,
        _ => LineageWay::Both,
    };
    let team = context.team(args.team.as_deref());
    let query = LineageQuery { of: args.of.clone(), team, way, limit: args.limit };
    let client = context.client()?;
    let found = client.lineage(&query).await?;
    if context.format == Format::Openlineage {
        let server = client.url().as_str().trim_end_matches('/');
        let lines: String =
            openlineage::events(&found, server).iter().map(|event| format!("{event}\n")).collect();
        return show::print(&lines);
    }
    let page = Page::new(found, tree::text, |found| {
        found.nodes.iter().map(|node| node.id.clone()).collect()
    });
    context.show(&page.remarks(|found| {
        let cut = "The limit cut the answer: there is more. Ask for a part of it with --up or --down, \
                   or begin at another node.";
        found.more.then(|| cut.to_owned()).into_iter().collect()
    }))
}
