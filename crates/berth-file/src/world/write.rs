//! A snapshot as text.

use super::nodes;
use super::refs::JobNames;
use super::runs_out::Writer;
use super::words::{OUTCOMES, word};
use super::{Context, JobScript, default_classes, policy, pools, queues};
use crate::out::{Out, Record, json, yaml};
use berth_model::{JobId, Name, NodeSpec, PriorityClass, RecentAsk, Snapshot};
use std::collections::{BTreeMap, BTreeSet};

/// The world as YAML; what is as by default is left out.
pub fn write(snapshot: &Snapshot) -> String {
    yaml(document(snapshot, &BTreeMap::new()))
}

/// The world as JSON, with the same names.
pub fn write_json(snapshot: &Snapshot) -> String {
    json(document(snapshot, &BTreeMap::new()))
}

/// The world as YAML with what a scenario knows of its jobs.
pub fn write_world(snapshot: &Snapshot, scripts: &BTreeMap<JobId, JobScript>) -> String {
    yaml(document(snapshot, scripts))
}

fn document(snapshot: &Snapshot, scripts: &BTreeMap<JobId, JobScript>) -> Record {
    // Naming every field makes a new part of the state without a key an error of the compiler.
    let Snapshot {
        now,
        seq,
        topologies,
        policy: rules,
        classes,
        prices,
        speeds,
        watts,
        nodes: machines,
        pools: shops,
        claims,
        claims_made,
        queues: tree,
        history,
        jobs,
        outcomes,
        reservations,
        promises,
        moves,
        recent,
        disruptions,
    } = snapshot;
    let context = Context { now: *now, classes: classes.clone(), grace: rules.grace };
    let mut names = JobNames::default();
    jobs.iter().for_each(|job| names.add(&job.spec.name, job.id()));
    let specs: BTreeMap<&str, &NodeSpec> =
        machines.iter().map(|node| (node.spec.name.as_str(), &node.spec)).collect();
    let writer = Writer { context: &context, names: &names, nodes: &specs, prices };

    let mut out = Record::default();
    out.put("now", Out::time(*now));
    out.put_if(*seq != 0, "seq", || Out::raw(seq));
    write_topologies(&mut out, topologies);
    let policy = policy::write(rules);
    out.put_if(!policy.is_empty(), "policy", || policy.done());
    out.put_if(*classes != default_classes(), "classes", || Out::named(classes, write_class));
    out.put_if(!prices.is_empty(), "prices", || Out::named(prices, |n| Out::raw(n)));
    out.put_if(!speeds.is_empty(), "speeds", || Out::named(speeds, |n| Out::raw(n)));
    out.put_if(!watts.is_empty(), "watts", || Out::named(watts, |n| Out::raw(n)));

    let held: BTreeSet<&str> =
        jobs.iter().flat_map(|job| &job.leases).map(|lease| lease.node.as_str()).collect();
    let busy: Vec<bool> =
        machines.iter().map(|node| held.contains(node.spec.name.as_str())).collect();
    out.put_if(!machines.is_empty(), "nodes", || nodes::write(machines, &busy, *now));
    let (shops_out, beside) = pools::write(shops, claims, &names, *now);
    out.put_if(!shops.is_empty(), "pools", || shops_out);
    out.put_if(!beside.is_empty(), "claims", || Out::List(beside));
    out.put_if(*claims_made != claims.len() as u64, "claims_made", || Out::raw(claims_made));
    // Left out altogether they would be one default queue.
    out.put("queues", Out::list(tree, queues::write));
    out.list("history", history, queues::write_history);
    out.put_if(!jobs.is_empty(), "jobs", || Out::List(writer.jobs(jobs, scripts)));
    out.list("outcomes", outcomes, |(id, name, outcome)| {
        let mut out = Record::default();
        out.put("id", Out::raw(id));
        out.name("name", name);
        out.put("outcome", Out::raw(word(&OUTCOMES, *outcome)));
        out.done()
    });
    let written = reservations.iter().map(queues::write_reservation);
    let promised = promises.iter().map(|promise| writer.promise(promise, jobs));
    let reserved: Vec<Out> = written.chain(promised).collect();
    out.put_if(!reserved.is_empty(), "reservations", || Out::List(reserved));
    out.list("moves", moves, |time| Out::time(*time));
    out.list("recent", recent, |RecentAsk { gpus, cpu, memory }| {
        let mut out = Record::default();
        out.put("gpus", Out::raw(gpus));
        out.put_if(!cpu.is_zero(), "cpu", || Out::raw(cpu));
        out.put_if(!memory.is_zero(), "memory", || Out::raw(memory));
        out.done()
    });
    out.put_if(!disruptions.is_empty(), "disruptions", || {
        Out::named(disruptions, |left| Out::raw(left))
    });
    out
}

fn write_topologies(out: &mut Record, topologies: &BTreeMap<Name, Vec<Name>>) {
    match topologies.get("default") {
        Some(levels) if topologies.len() == 1 => {
            out.put_if(!levels.is_empty(), "topology", || Out::names(levels));
        }
        _ => out.put("topology", Out::named(topologies, |levels| Out::names(levels))),
    }
}

fn write_class(class: &PriorityClass) -> Out {
    let PriorityClass { value, across } = class;
    if !across {
        return Out::raw(value);
    }
    let mut out = Record::default();
    out.put("value", Out::raw(value));
    out.flag("across", *across);
    out.done()
}
