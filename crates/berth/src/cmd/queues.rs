//! `berth queue` and `berth share`.

use crate::complete;
use crate::context::Context;
use crate::fail::Result;
use crate::show::{Cell, Look, Page, Table, words};
use crate::watch::{self, Watch};
use berth_api::wire::{Items, Queue as Row, Share as ShareRow};
use berth_model::Milli;
use clap::Args;
use std::fmt::Write;

#[derive(Args, Debug)]
pub struct Queue {
    /// Show one queue and the jobs that wait in it
    #[arg(value_name = "QUEUE", add = complete::queues())]
    queue: Option<String>,
    #[command(flatten)]
    watch: Watch,
}

pub async fn queue(context: &Context, args: &Queue) -> Result<()> {
    let client = context.client()?;
    match &args.queue {
        None => {
            let fetch = async || {
                let names = |all: &Items<Row>| all.items.iter().map(|q| q.name.clone()).collect();
                let text = |all: &Items<Row>, look: &Look| table(&all.items).or(look, "No queues.");
                Ok(Page::new(client.queues().await?, text, names))
            };
            watch::show(context, args.watch, "queue,job", fetch).await
        }
        Some(name) => {
            let fetch = async || {
                let ids = |queue: &Row| queue.line.iter().map(|line| line.id.to_string()).collect();
                Ok(Page::new(client.queue(name).await?, line, ids))
            };
            watch::show(context, args.watch, "queue,job", fetch).await
        }
    }
}

fn table(queues: &[Row]) -> Table {
    let titles = [
        "QUEUE",
        "PARENT",
        ">USED",
        ">QUOTA",
        ">SHARE",
        ">RUNNING",
        ">WAITING",
        ">WAIT P50",
        ">WAIT P90",
    ];
    let mut table = Table::new(&titles);
    for queue in queues {
        table.row(vec![
            queue.name.as_str().into(),
            queue.parent.as_deref().into(),
            Milli(queue.used_milli).to_string().into(),
            Milli(queue.quota_milli).to_string().into(),
            Milli(queue.fair_share_milli).to_string().into(),
            queue.running.into(),
            queue.waiting.into(),
            queue.wait_p50_ms.map(words::span).into(),
            queue.wait_p90_ms.map(words::span).into(),
        ]);
    }
    table
}

fn line(queue: &Row, look: &Look) -> String {
    let mut out = table(std::slice::from_ref(queue)).text(look);
    if queue.overcommitted {
        out.push_str("The quotas of its queues exceed its own.\n");
    }
    let mut table = Table::new(&[">#", "ID", "NAME", "USER", "ASKS", "STARTS", "REASON"]);
    for job in &queue.line {
        table.row(vec![
            job.position.into(),
            Cell::of_job(look, &job.id.to_string()),
            job.name.as_str().into(),
            job.user.as_str().into(),
            job.asks.as_str().into(),
            job.eta.map(|eta| format!("~{}", look.at(eta))).into(),
            look.local(&job.reason).into(),
        ]);
    }
    let _ = write!(out, "\n{}", table.or(look, "No jobs wait."));
    out
}

#[derive(Args, Debug)]
pub struct Share {
    #[command(flatten)]
    watch: Watch,
}

pub async fn share(context: &Context, args: &Share) -> Result<()> {
    let client = context.client()?;
    let fetch = async || {
        let names = |all: &Items<ShareRow>| all.items.iter().map(|row| row.queue.clone()).collect();
        Ok(Page::new(client.shares().await?, shares, names))
    };
    watch::show(context, args.watch, "queue", fetch).await
}

fn shares(all: &Items<ShareRow>, look: &Look) -> String {
    let mut titles =
        vec!["QUEUE", ">USED", ">SHARE", ">QUOTA", ">WEIGHT", ">DEMAND", ">BORROWED", ">LENT"];
    if look.wide {
        titles.extend([">CREDITS GPU-H", ">PAST GPU-H"]);
    }
    titles.push("WHY");
    let mut table = Table::new(&titles);
    for share in &all.items {
        let milli = |value: i64| Milli(value).to_string().into();
        let mut row = vec![
            share.queue.as_str().into(),
            milli(share.used_milli),
            milli(share.fair_share_milli),
            milli(share.quota_milli),
            milli(share.weight_milli),
            milli(share.demand_milli),
            milli(share.borrowed_milli),
            milli(share.lent_milli),
        ];
        if look.wide {
            row.push((share.credits_gpu_s / 3_600).into());
            row.push((share.past_use_gpu_s / 3_600).into());
        }
        row.push(share.text.as_str().into());
        table.row(row);
    }
    table.or(look, "No queues.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_api::wire::QueueLine;

    fn nlp() -> Row {
        Row {
            name: "nlp".into(),
            parent: None,
            quota_milli: 128_000,
            used_milli: 96_000,
            fair_share_milli: 112_500,
            running: 7,
            waiting: 1,
            overcommitted: false,
            wait_p50_ms: Some(720_000),
            wait_p90_ms: None,
            line: vec![QueueLine {
                position: 1,
                id: "4713".parse().unwrap(),
                name: "eval".into(),
                user: "kim".into(),
                asks: "H100".into(),
                reason: "next".into(),
                eta: Some("2026-11-15T14:05:00Z".parse().unwrap()),
            }],
        }
    }

    #[test]
    fn a_queue_shows_what_it_uses_and_who_waits() {
        let expect = "\
QUEUE  PARENT  USED  QUOTA  SHARE  RUNNING  WAITING  WAIT P50  WAIT P90
nlp    -         96    128  112.5        7        1       12m         -

#  ID    NAME  USER  ASKS  STARTS  REASON
1  4713  eval  kim   H100  ~15:05  next
";
        assert_eq!(line(&nlp(), &Look::fixed()), expect);
        assert!(
            line(&Row { line: Vec::new(), ..nlp() }, &Look::fixed()).ends_with("No jobs wait.\n")
        );
    }
}
