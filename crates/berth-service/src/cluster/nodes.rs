//! Machines, and whether they take work.

use crate::caller::Caller;
use crate::fault::Fault;
use crate::service::Service;
use crate::{live, names, node_reason};
use berth_api::access::Permission;
use berth_api::{Code, wire};
use berth_engine::{Act, LiveJob, Write};
use berth_model::{Event, Health, Micros, Name, NodeSpec, NodeState};
use berth_store::{Batch, SettingRow};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

pub async fn list(service: &Service, caller: &Caller) -> Result<wire::Items<wire::Node>, Fault> {
    let mut items = all(service, caller);
    add_reasons(service, &mut items).await?;
    Ok(wire::Items { items })
}

pub async fn get(service: &Service, caller: &Caller, name: &str) -> Result<wire::Node, Fault> {
    let mut found = vec![one(service, caller, name)?];
    add_reasons(service, &mut found).await?;
    Ok(found.remove(0))
}

pub async fn drain(
    service: &Service,
    caller: &Caller,
    name: &str,
    how: wire::NodeChange,
) -> Result<wire::Node, Fault> {
    change(service, caller, name, NodeState::Draining, how).await
}

pub async fn cordon(
    service: &Service,
    caller: &Caller,
    name: &str,
    how: wire::NodeChange,
) -> Result<wire::Node, Fault> {
    change(service, caller, name, NodeState::Cordoned, how).await
}

pub async fn resume(service: &Service, caller: &Caller, name: &str) -> Result<wire::Node, Fault> {
    change(service, caller, name, NodeState::Ready, wire::NodeChange::default()).await
}

const LONGEST_REASON: usize = 200;

async fn add_reasons(service: &Service, nodes: &mut [wire::Node]) -> Result<(), Fault> {
    use wire::NodeState::{Cordoned, Draining};
    for node in nodes.iter_mut().filter(|node| matches!(node.state, Cordoned | Draining)) {
        node.reason = node_reason::of(service, &node.name).await?;
    }
    Ok(())
}

async fn change(
    service: &Service,
    caller: &Caller,
    name: &str,
    to: NodeState,
    how: wire::NodeChange,
) -> Result<wire::Node, Fault> {
    let before = get(service, caller, name).await?;
    if matches!(before.state, wire::NodeState::Failed | wire::NodeState::Leaving) {
        let (word, _) = state(to);
        let detail =
            format!("node {name} is {}, so it cannot be {}", before.state.word(), word.word());
        let next = "it joins again by itself when its server starts";
        return Err(Fault::new(Code::WrongState, detail).next(next));
    }
    let reason = how.reason.map(|reason| reason.trim().to_owned()).filter(|text| !text.is_empty());
    if reason.as_ref().is_some_and(|text| text.chars().count() > LONGEST_REASON) {
        let detail = format!("the reason is longer than {LONGEST_REASON} characters");
        return Err(Fault::new(Code::BadRequest, detail).next("shorten it"));
    }
    let moves = before.state != state(to).0;
    if moves || (reason.is_some() && reason != before.reason) {
        let event = Event::NodeChanged { node: Name::new(name), state: to };
        let mut detail = json!({ "before": before.state, "after": state(to).0 });
        let mut documents = Batch::default();
        match &reason {
            Some(reason) => {
                detail["reason"] = json!(reason);
                documents.put(&SettingRow { name: node_reason::row(name), value: reason.clone() });
            }
            // A node that is drained after it was cordoned keeps the reason.
            None if to == NodeState::Ready => {
                documents.delete::<SettingRow>(&node_reason::row(name))
            }
            None => {}
        }
        let audit = caller.audit(format!("node {name}"), detail);
        let write = match moves {
            true => Write { documents, ..Write::act(Act::Events(vec![event]), audit) },
            false => Write::documents(documents, audit),
        };
        service.engine.write(write).await?;
    }
    get(service, caller, name).await
}

fn one(service: &Service, caller: &Caller, name: &str) -> Result<wire::Node, Fault> {
    let mut nodes = all(service, caller);
    match nodes.iter().position(|node| node.name == name) {
        Some(at) => Ok(nodes.swap_remove(at)),
        None => Err(names::unknown("node", name, nodes.iter().map(|node| node.name.as_str()))),
    }
}

fn all(service: &Service, caller: &Caller) -> Vec<wire::Node> {
    let core = service.engine.core();
    let nodes = core.state.node_snapshots();
    let nodes = nodes.iter().map(|node| {
        let spec = &node.spec;
        let used = Used::of(core.jobs.values(), &spec.name, caller);
        let facts = service.host.node(&spec.name).unwrap_or_default();
        wire::Node {
            declared: facts.declared,
            cgroup: facts.limits_jobs,
            isolation: facts.isolation,
            output_bytes: (!facts.output.is_empty())
                .then(|| facts.output.values().map(|bytes| bytes.0).sum()),
            trouble: facts.trouble.filter(|_| spec.state == NodeState::Troubled),
            ..shown(spec, core.state.prices(), used)
        }
    });
    nodes.collect()
}

/// What tasks hold of one node.
#[derive(Default)]
struct Used {
    gpus_milli: i64,
    cpu: i64,
    memory: i64,
    /// Those that the caller may read.
    jobs: BTreeSet<wire::Id>,
}

impl Used {
    fn of<'a>(jobs: impl Iterator<Item = &'a LiveJob>, node: &str, caller: &Caller) -> Used {
        let mut used = Used::default();
        for job in jobs {
            let seen = caller.may(Permission::JobsRead, Some(&job.row.team), Some(&job.row.user));
            for lease in job.leases.values().filter(|lease| lease.row.node == node) {
                let slices = live::slices(&lease.row.slices);
                used.gpus_milli += slices.iter().map(|one| live::share(&one.share).0).sum::<i64>();
                used.cpu += job.detail.cpu.map_or(0, |cpu| cpu.0);
                used.memory += job.detail.memory.map_or(0, |memory| memory.0);
                if seen {
                    used.jobs.insert(job.row.id.into());
                }
            }
        }
        used
    }
}

fn shown(spec: &NodeSpec, prices: &BTreeMap<Name, Micros>, used: Used) -> wire::Node {
    let mut models: BTreeMap<String, u32> = BTreeMap::new();
    for gpu in &spec.gpus {
        *models.entry(gpu.model.to_string()).or_default() += 1;
    }
    let healthy = spec.gpus.iter().filter(|gpu| gpu.health == Health::Ok).count() as i64;
    let price: i64 = match spec.price {
        Some(whole) => whole.0,
        None => (0..spec.gpus.len()).map(|gpu| live::price(spec, gpu, prices).0).sum(),
    };
    let (state, until) = state(spec.state);
    wire::Node {
        name: spec.name.to_string(),
        state,
        until,
        reason: None,
        trouble: None,
        output_bytes: None,
        gpus: models,
        declared: false,
        gpus_milli: spec.gpus.len() as i64 * 1_000,
        free_milli: (healthy * 1_000 - used.gpus_milli).max(0),
        cpu_milli: spec.cpu.map(|cpu| cpu.0),
        cpu_free_milli: spec.cpu.map(|cpu| (cpu.0 - used.cpu).max(0)),
        memory_bytes: spec.memory.map(|memory| memory.0),
        memory_free_bytes: spec.memory.map(|memory| (memory.0 - used.memory).max(0)),
        price_micros_per_hour: price,
        labels: spec
            .labels
            .iter()
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect(),
        jobs: used.jobs.into_iter().collect(),
        cgroup: false,
        isolation: None,
    }
}

pub(super) fn state(state: NodeState) -> (wire::NodeState, Option<wire::At>) {
    match state {
        NodeState::Ready => (wire::NodeState::Ready, None),
        NodeState::Cordoned => (wire::NodeState::Cordoned, None),
        NodeState::Draining => (wire::NodeState::Draining, None),
        NodeState::Troubled => (wire::NodeState::Troubled, None),
        NodeState::Failed => (wire::NodeState::Failed, None),
        NodeState::Leaving { at } => (wire::NodeState::Leaving, Some(at.into())),
    }
}
