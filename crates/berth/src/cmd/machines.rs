//! GPUs and nodes.

use super::{gpu_check, gpu_history, preview, when};
use crate::complete;
use crate::context::Context;
use crate::fail::Result;
use crate::show::{Cell, Look, Page, Table, Tone, words};
use crate::watch::{self, Watch};
use berth_api::wire::{At, Gpu, GpuResume, Items, Node, NodeChange, NodeIsolation, NodeState};
use clap::Args;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Args, Debug)]
pub struct Gpus {
    /// Show one figure over time, since a time or a time ago such as 2h
    #[arg(long, value_name = "WHEN", value_parser = when::past)]
    since: Option<At>,
    /// The figure to show (utilization)
    #[arg(long, value_name = "FIGURE")]
    figure: Option<String>,
    #[command(flatten)]
    watch: Watch,
}

pub async fn gpus(context: &Context, args: &Gpus) -> Result<()> {
    if args.since.is_some() || args.figure.is_some() {
        return gpu_history::run(context, args.since, args.figure.as_deref()).await;
    }
    let client = context.client()?;
    let fetch = async || {
        let all = client.gpus().await?;
        let names = |all: &Items<Gpu>| {
            all.items.iter().map(|gpu| format!("{}/{}", gpu.node, gpu.index)).collect()
        };
        Ok(Page::new(all, gpus_text, names).remarks(remarks))
    };
    watch::show(context, args.watch, "job,node", fetch).await
}

fn remarks(all: &Items<Gpu>) -> Vec<String> {
    let any = all.items.iter().any(|gpu| gpu.declared);
    let declared = any.then(|| words::DECLARED.to_owned());
    let held = all.items.iter().filter_map(|gpu| {
        let held = gpu.held.as_ref()?;
        Some(format!("{}: {held}; Berth does not use it until then", gpu.node))
    });
    let failed = all.items.iter().filter(|gpu| !gpu.healthy).filter_map(|gpu| {
        let (why, node, index) = (gpu.failed.as_ref()?, &gpu.node, gpu.index);
        let again = format!("berth uncordon {node} --gpu {index}");
        Some(format!("GPU {index} of {node} has failed: {why}; run `{again}` when it is repaired"))
    });
    let checking = all.items.iter().filter_map(|gpu| {
        let (why, node, index) = (gpu.checking.as_ref()?, &gpu.node, gpu.index);
        Some(format!("GPU {index} of {node} is being checked before it takes work: {why}"))
    });
    declared.into_iter().chain(held).chain(failed).chain(checking).collect()
}

fn gpus_text(all: &Items<Gpu>, look: &Look) -> String {
    let table = if look.wide { each_gpu(&all.items) } else { by_node(&all.items) };
    table.or(look, "No GPUs.")
}

fn by_node(gpus: &[Gpu]) -> Table {
    let mut groups: BTreeMap<(&str, &str, i64), Vec<&Gpu>> = BTreeMap::new();
    for gpu in gpus {
        groups.entry((&gpu.node, &gpu.model, gpu.memory_bytes)).or_default().push(gpu);
    }
    let titles =
        ["NODE", "MODEL", ">GPUS", ">FREE", ">MEMORY", ">PRICE/H", ">BUSY", "JOBS", "HEALTH"];
    let mut table = Table::new(&titles);
    for ((node, model, memory), gpus) in groups {
        let count = gpus.len() as i64 * 1_000;
        let busy: Vec<u32> = gpus.iter().filter_map(|gpu| gpu.utilization).collect();
        let mean = (!busy.is_empty()).then(|| busy.iter().sum::<u32>() / busy.len() as u32);
        let jobs: BTreeSet<String> = gpus
            .iter()
            .flat_map(|gpu| gpu.holders.iter().map(|holder| holder.job.to_string()))
            .collect();
        table.row(vec![
            node.into(),
            model.into(),
            words::gpus(count, gpus.iter().any(|gpu| gpu.declared)).into(),
            words::gpus(gpus.iter().map(|gpu| gpu.usable_milli()).sum(), false).into(),
            words::bytes(memory).into(),
            words::money(gpus[0].price_micros_per_hour).into(),
            mean.map(|percent| format!("{percent}%")).into(),
            jobs.into_iter().collect::<Vec<_>>().join(",").into(),
            health(&gpus),
        ]);
    }
    table
}

/// In a word why it takes no work.
fn out_of_use(gpu: &Gpu) -> Option<&'static str> {
    match (gpu.healthy, &gpu.held, &gpu.checking) {
        (true, _, _) => gpu.closed.map(NodeState::word),
        (false, Some(_), _) => Some("held"),
        (false, None, Some(_)) => Some("checking"),
        (false, None, None) => Some("failed"),
    }
}

/// `ok`, or `1 failed, 2 held`.
fn health(gpus: &[&Gpu]) -> Cell {
    let count = |word: &&str| {
        let count = gpus.iter().filter(|gpu| out_of_use(gpu) == Some(*word)).count();
        (count > 0).then(|| format!("{count} {word}"))
    };
    let mut told: Vec<String> = ["failed", "held", "checking"].iter().filter_map(count).collect();
    let is_bad = !told.is_empty();
    // All GPUs of a node share the state of the node.
    told.extend(gpus.iter().find_map(|gpu| gpu.closed).map(|state| state.word().to_owned()));
    match (told.is_empty(), is_bad) {
        (true, _) => Cell::toned("ok", Tone::Good),
        (false, true) => Cell::toned(told.join(", "), Tone::Bad),
        (false, false) => Cell::toned(told.join(", "), Tone::Busy),
    }
}

fn each_gpu(gpus: &[Gpu]) -> Table {
    let titles = [
        "NODE", ">GPU", "MODEL", ">FREE", ">MEMORY", ">USED", ">BUSY", ">WATTS", ">°C", ">PRICE/H",
        "HEALTH", "JOBS", "UUID",
    ];
    let mut table = Table::new(&titles);
    for gpu in gpus {
        let holders = gpu.holders.iter().map(|holder| {
            format!(
                "{} {} ({} {})",
                holder.job,
                holder.name,
                holder.share,
                words::gpus(holder.milli, false)
            )
        });
        table.row(vec![
            gpu.node.as_str().into(),
            words::gpus(i64::from(gpu.index) * 1_000, false).into(),
            gpu.model.as_str().into(),
            words::gpus(gpu.usable_milli(), false).into(),
            words::bytes(gpu.memory_bytes).into(),
            gpu.used_bytes.map(words::bytes).into(),
            gpu.utilization.map(|percent| format!("{percent}%")).into(),
            gpu.watts.into(),
            gpu.celsius.into(),
            words::money(gpu.price_micros_per_hour).into(),
            match out_of_use(gpu) {
                None => Cell::toned("ok", Tone::Good),
                Some("checking") => Cell::toned("checking", Tone::Busy),
                Some(word) => Cell::toned(word, Tone::Bad),
            },
            holders.collect::<Vec<_>>().join(", ").into(),
            match (&gpu.uuid, gpu.declared) {
                (_, true) => "declared".into(),
                (uuid, false) => uuid.as_deref().into(),
            },
        ]);
    }
    table
}

#[derive(Args, Debug)]
pub struct Nodes {
    /// Only these nodes
    #[arg(value_name = "NODE", add = complete::nodes())]
    nodes: Vec<String>,
    #[command(flatten)]
    watch: Watch,
}

pub async fn nodes(context: &Context, args: &Nodes) -> Result<()> {
    let client = context.client()?;
    let fetch = async || {
        let mut all = Items { items: Vec::new() };
        match args.nodes.is_empty() {
            true => all = client.nodes().await?,
            false => {
                for node in &args.nodes {
                    all.items.push(client.node(node).await?);
                }
            }
        }
        let names = |all: &Items<Node>| all.items.iter().map(|node| node.name.clone()).collect();
        Ok(Page::new(all, nodes_text, names).remarks(troubles))
    };
    watch::show(context, args.watch, "node,job", fetch).await
}

fn troubles(all: &Items<Node>) -> Vec<String> {
    let troubled = all.items.iter().filter_map(|node| {
        let trouble = node.trouble.as_ref()?;
        Some(format!("{} starts no jobs until this is fixed: {trouble}", node.name))
    });
    troubled.collect()
}

fn nodes_text(all: &Items<Node>, look: &Look) -> String {
    let mut text = nodes_table(&all.items, look).or(look, "No nodes.");
    let open = all.items.iter().filter(|node| node.isolation == Some(NodeIsolation::None));
    for node in open {
        text += &format!(
            "\nWarning: jobs on {} are not isolated. Each can reach what the server can.\n",
            node.name
        );
    }
    text
}

fn nodes_table(nodes: &[Node], look: &Look) -> Table {
    let mut titles =
        vec!["NODE", "STATE", "GPUS", ">FREE", ">CPU FREE", ">MEMORY FREE", ">PRICE/H"];
    if look.wide {
        titles.extend(["LIMITS", "ISOLATION", ">OUTPUT", "LABELS"]);
    }
    titles.push("JOBS");
    let mut table = Table::new(&titles);
    for node in nodes {
        let of = |free: Option<String>, all: Option<String>| {
            free.zip(all).map(|(free, all)| format!("{free} of {all}"))
        };
        let cpu = |milli: Option<i64>| milli.map(|milli| words::gpus(milli, false));
        let mut row = vec![
            node.name.as_str().into(),
            state(node, look),
            models(node).into(),
            words::gpus(node.free_milli, false).into(),
            of(cpu(node.cpu_free_milli), cpu(node.cpu_milli)).into(),
            of(node.memory_free_bytes.map(words::bytes), node.memory_bytes.map(words::bytes))
                .into(),
            words::money(node.price_micros_per_hour).into(),
        ];
        if look.wide {
            row.push(if node.cgroup { "held".into() } else { "not held".into() });
            row.push(isolation(node).into());
            row.push(node.output_bytes.map(words::bytes).into());
            let labels = node.labels.iter().map(|(key, value)| format!("{key}={value}"));
            row.push(labels.collect::<Vec<_>>().join(",").into());
        }
        let jobs: Vec<String> = node.jobs.iter().map(ToString::to_string).collect();
        row.push(jobs.join(",").into());
        table.row(row);
    }
    table
}

fn isolation(node: &Node) -> &'static str {
    match node.isolation {
        Some(NodeIsolation::Accounts) => "sandbox, accounts",
        Some(NodeIsolation::Sandbox) => "sandbox",
        Some(NodeIsolation::None) => "none",
        None => "",
    }
}

/// `8 x H100-80GB, declared`.
fn models(node: &Node) -> String {
    let models = node.gpus.iter().map(|(model, count)| format!("{count} x {model}"));
    let mut models: Vec<String> = models.collect();
    if node.declared && !models.is_empty() {
        models.push("declared".to_owned());
    }
    models.join(", ")
}

fn state(node: &Node, look: &Look) -> Cell {
    let (word, tone) = match node.state {
        NodeState::Ready => ("ready", Tone::Good),
        NodeState::Cordoned => ("cordoned", Tone::Busy),
        NodeState::Draining => ("draining", Tone::Busy),
        NodeState::Troubled => ("in trouble", Tone::Bad),
        NodeState::Failed => ("failed", Tone::Bad),
        NodeState::Leaving => ("leaving", Tone::Busy),
    };
    let until = node.until.map(|at| format!(" {}", look.at(at))).unwrap_or_default();
    let reason = node.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    Cell::toned(format!("{word}{until}{reason}"), tone)
}

#[derive(Args, Debug)]
pub struct NodeArgs {
    /// Nodes
    #[arg(value_name = "NODE", required = true, add = complete::nodes())]
    nodes: Vec<String>,
}

#[derive(Args, Debug)]
pub struct CordonArgs {
    #[command(flatten)]
    nodes: NodeArgs,
    /// Why; `berth nodes` shows it until the node takes work again
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

#[derive(Args, Debug)]
pub struct DrainArgs {
    #[command(flatten)]
    nodes: NodeArgs,
    /// Why; `berth nodes` shows it until the node takes work again
    #[arg(long, value_name = "TEXT", conflicts_with = "preview")]
    reason: Option<String>,
    /// Only show what would be stopped and lost
    #[arg(long)]
    preview: bool,
}

pub async fn drain(context: &Context, args: &DrainArgs) -> Result<()> {
    if !args.preview {
        return act(context, &args.nodes, NodeAction::Drain, args.reason.as_deref()).await;
    }
    for node in &args.nodes.nodes {
        preview::drain(context, node).await?;
    }
    Ok(())
}

#[derive(Args, Debug)]
pub struct UncordonArgs {
    #[command(flatten)]
    nodes: NodeArgs,
    /// Put only this failed GPU back, if it passes a check
    #[arg(long, value_name = "GPU")]
    gpu: Option<u32>,
    /// Put the GPU back without a check
    #[arg(long, requires = "gpu")]
    no_check: bool,
}

pub async fn uncordon(context: &Context, args: &UncordonArgs) -> Result<()> {
    let Some(gpu) = args.gpu else {
        return act(context, &args.nodes, NodeAction::Uncordon, None).await;
    };
    let client = context.client()?;
    for node in &args.nodes.nodes {
        let how = GpuResume { no_check: args.no_check };
        let back = client.resume_gpu(node, &gpu.to_string(), &how).await?;
        // The last check of one that is put back as it is says nothing about now.
        let text = match args.no_check {
            true => |gpu: &Gpu, look: &Look| each_gpu(std::slice::from_ref(gpu)).text(look),
            false => put_back,
        };
        let page = Page::new(back, text, |gpu| vec![format!("{}/{}", gpu.node, gpu.index)]);
        context.show(
            &page.remarks(|gpu| gpu.checked.as_ref().map(gpu_check::remarks).unwrap_or_default()),
        )?;
    }
    Ok(())
}

fn put_back(gpu: &Gpu, look: &Look) -> String {
    let check = gpu.checked.as_ref().map(|check| gpu_check::text(check, look));
    let gap = if check.is_some() { "\n" } else { "" };
    format!("{}{gap}{}", each_gpu(std::slice::from_ref(gpu)).text(look), check.unwrap_or_default())
}

/// What is done to a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NodeAction {
    Drain,
    Cordon,
    Uncordon,
}

pub async fn cordon(context: &Context, args: &CordonArgs) -> Result<()> {
    act(context, &args.nodes, NodeAction::Cordon, args.reason.as_deref()).await
}

async fn act(
    context: &Context,
    args: &NodeArgs,
    act: NodeAction,
    reason: Option<&str>,
) -> Result<()> {
    let client = context.client()?;
    let how = NodeChange { reason: reason.map(str::to_owned) };
    for name in &args.nodes {
        let node = match act {
            NodeAction::Drain => client.drain_node(name, &how).await?,
            NodeAction::Cordon => client.cordon_node(name, &how).await?,
            NodeAction::Uncordon => client.resume_node(name).await?,
        };
        let text =
            |node: &Node, look: &Look| nodes_table(std::slice::from_ref(node), look).text(look);
        let page = Page::new(node, text, |node| vec![node.name.clone()]);
        context.show(&page)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_api::wire::GpuHolder;

    fn gpu(index: u32, free_milli: i64) -> Gpu {
        let holder = GpuHolder {
            job: "17".parse().unwrap(),
            name: "bert".into(),
            user: "kim".into(),
            team: "nlp".into(),
            since: None,
            milli: 1_000 - free_milli,
            share: "whole".into(),
        };
        Gpu {
            node: "n1".into(),
            index,
            model: "H100-80GB".into(),
            memory_bytes: 80 << 30,
            uuid: None,
            declared: true,
            healthy: true,
            held: None,
            failed: None,
            checking: None,
            checked: None,
            closed: None,
            free_milli,
            holders: if free_milli == 1_000 { Vec::new() } else { vec![holder] },
            price_micros_per_hour: 3_100_000,
            utilization: None,
            used_bytes: None,
            watts: None,
            celsius: None,
            idle_ms: None,
        }
    }

    fn shown(wide: bool) -> String {
        let all = Items { items: vec![gpu(0, 0), gpu(1, 1_000)] };
        gpus_text(&all, &Look { wide, ..Look::fixed() })
    }

    #[test]
    fn gpus_are_counted_by_node_and_model_with_what_is_free() {
        let expect = "\
NODE  MODEL      GPUS  FREE  MEMORY  PRICE/H  BUSY  JOBS  HEALTH
n1    H100-80GB    2*     1  80 GiB    $3.10     -  17    ok
";
        assert_eq!(shown(false), expect);
    }

    #[test]
    fn gpus_of_a_node_that_drains_are_not_free_and_say_so() {
        let drains = |index| Gpu { closed: Some(NodeState::Draining), ..gpu(index, 1_000) };
        let all = Items { items: vec![drains(0), drains(1)] };
        for wide in [false, true] {
            let text = gpus_text(&all, &Look { wide, ..Look::fixed() });
            assert!(text.contains("draining"), "{text}");
            assert_eq!(text.lines().nth(1).unwrap().split_whitespace().nth(3), Some("0"), "{text}");
        }
    }

    #[test]
    fn wide_shows_each_gpu_and_who_holds_it() {
        let text = shown(true);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].contains("17 bert (whole 1)"), "{text}");
        assert!(lines[2].ends_with("declared"), "{text}");
    }

    #[test]
    fn gpus_that_take_no_work_are_counted_by_why() {
        let out = |index, held: Option<&str>, checking: Option<&str>| Gpu {
            healthy: false,
            held: held.map(str::to_owned),
            checking: checking.map(str::to_owned),
            ..gpu(index, 1_000)
        };
        let all =
            [out(0, None, None), out(1, Some("GPU 1 is held"), None), out(2, None, Some("new"))];
        let table = by_node(&all).text(&Look::fixed());
        assert!(table.contains("1 failed, 1 held, 1 checking"), "{table}");
    }

    #[test]
    fn a_node_says_what_it_has_and_in_which_state_it_is() {
        let node = Node {
            name: "n1".into(),
            state: NodeState::Leaving,
            until: Some("2026-11-15T15:00:00Z".parse().unwrap()),
            reason: None,
            trouble: None,
            output_bytes: None,
            gpus: BTreeMap::from([("H100-80GB".to_owned(), 8)]),
            declared: true,
            gpus_milli: 8_000,
            free_milli: 2_500,
            cpu_milli: Some(64_000),
            cpu_free_milli: Some(31_500),
            memory_bytes: Some(512 << 30),
            memory_free_bytes: Some(100 << 30),
            price_micros_per_hour: 24_800_000,
            labels: BTreeMap::new(),
            jobs: vec!["17".parse().unwrap()],
            cgroup: true,
            isolation: Some(NodeIsolation::Sandbox),
        };
        let expect = "\
NODE  STATE          GPUS                     FREE    CPU FREE         MEMORY FREE  PRICE/H  JOBS
n1    leaving 16:00  8 x H100-80GB, declared   2.5  31.5 of 64  100 GiB of 512 GiB   $24.80  17
";
        assert_eq!(
            nodes_table(std::slice::from_ref(&node), &Look::fixed()).text(&Look::fixed()),
            expect
        );
        let drained = Node {
            state: NodeState::Draining,
            until: None,
            reason: Some("kernel update".into()),
            ..node
        };
        let text = nodes_table(&[drained], &Look::fixed()).text(&Look::fixed());
        assert!(text.contains("n1    draining (kernel update)  8 x"), "{text}");
    }
}
