//! Groups of tasks: what a job asks for.

use super::nodes::titled;
use crate::error::{Error, Result};
use crate::fields::{
    Fields, boolean, int, list, map, name, named, one_or_more, unit, unit_from_zero,
};
use crate::out::{Out, Record};
use crate::tree::{Node, Value};
use berth_model::{
    Bytes, Cpu, GpuAsk, GroupSpec, JobTarget, LabelAsk, Milli, ModelAsk, Name, Near, NodeAsk,
    Segment, Spread, Toleration, TopologyAsk,
};
use std::collections::BTreeSet;

pub(crate) const GROUP: &[&str] = &[
    "name",
    "count",
    "min",
    "groups",
    "gpus",
    "fraction",
    "gpu_memory",
    "mig",
    "mps",
    "time_slice",
    "models",
    "min_gpu_memory",
    "cpu",
    "memory",
    "topology",
    "spread",
    "labels",
    "tolerations",
    "near",
    "away",
    "counted",
    "nodes",
    "tasks",
];

/// What a group is called that has no name: there is something to show, and it is unique.
fn default_name(index: usize, of: usize) -> Name {
    match of {
        1 => Name::new("main"),
        _ => Name::from(format!("group-{index}")),
    }
}

pub(crate) fn read_all(nodes: &[Node]) -> Result<Vec<GroupSpec>> {
    let read_one = |(index, node)| read(node, &default_name(index, nodes.len()));
    nodes.iter().enumerate().map(read_one).collect()
}

fn read(node: &Node, default: &Name) -> Result<GroupSpec> {
    let fields = Fields::of(node, &titled(node, "group"), GROUP)?;
    let groups = read_all(fields.list("groups")?)?;
    let leaf = groups.is_empty();
    if !leaf && (fields.get("count").is_some() || fields.get("tasks").is_some()) {
        let message = format!("{} holds groups, so it has no count or tasks itself", fields.what);
        return Err(Error::new(node.at, message));
    }
    let count = fields.read("count", int)?.unwrap_or(u32::from(leaf));
    let all = if leaf { count } else { groups.len() as u32 };
    Ok(GroupSpec {
        name: fields.read("name", name)?.unwrap_or(default.clone()),
        count,
        min: fields.read("min", int)?.unwrap_or(all),
        groups,
        gpus: read_ask(&fields)?,
        models: read_models(&fields)?,
        min_gpu_memory: fields.read("min_gpu_memory", unit_from_zero)?,
        cpu: fields.read("cpu", unit_from_zero)?.unwrap_or(Cpu::ZERO),
        memory: fields.read("memory", unit_from_zero)?.unwrap_or(Bytes::ZERO),
        topology: fields.read("topology", read_topology)?,
        spread: fields.read("spread", read_spread)?,
        labels: fields.read("labels", read_labels)?.unwrap_or_default(),
        tolerations: fields
            .list("tolerations")?
            .iter()
            .map(read_toleration)
            .collect::<Result<_>>()?,
        near: read_nears(&fields)?,
        counted: fields.read("counted", |node| named(node, int))?.unwrap_or_default(),
        nodes: fields.read("nodes", read_nodes)?,
    })
}

fn read_ask(fields: &Fields<'_>) -> Result<GpuAsk> {
    let shares = ["fraction", "gpu_memory", "mig", "mps", "time_slice"];
    let present: Vec<&str> = shares.into_iter().filter(|key| fields.get(key).is_some()).collect();
    if let [first, second, ..] = present.as_slice() {
        let message = format!("{} asks for {first} and for {second}: choose one", fields.what);
        return Err(Error::new(fields.node.at, message));
    }
    let whole = |node| {
        int::<u32>(node).map_err(|_| {
            Error::expected(node.at, &node.found(), "whole GPUs; write a share as fraction: 0.5")
        })
    };
    let gpus = fields.read("gpus", whole)?;
    let count = gpus.unwrap_or(1);
    Ok(match present.first().copied() {
        None => gpus.filter(|n| *n > 0).map_or(GpuAsk::None, |count| GpuAsk::Whole { count }),
        Some("fraction") => {
            let milli = fields.demand("fraction", |node| between(node, Milli(1), Milli(1_000)))?;
            GpuAsk::Fraction { milli, count }
        }
        Some("gpu_memory") => {
            GpuAsk::Memory { bytes: fields.demand("gpu_memory", unit_from_zero)?, count }
        }
        Some("mig") => GpuAsk::Mig { profile: fields.demand("mig", name)?, count },
        Some("mps") => GpuAsk::Mps { percent: fields.demand("mps", percent_of_threads)?, count },
        Some(_) => GpuAsk::TimeSlice { of: fields.demand("time_slice", slices)?, count },
    })
}

fn between(node: &Node, least: Milli, most: Milli) -> Result<Milli> {
    let value: Milli = unit(node)?;
    match (least..=most).contains(&value) {
        true => Ok(value),
        false => Err(Error::expected(node.at, &node.found(), "a share of a GPU from 0.001 to 1")),
    }
}

fn percent_of_threads(node: &Node) -> Result<u32> {
    let value: u32 = int(node)?;
    match (1..=100).contains(&value) {
        true => Ok(value),
        false => Err(Error::expected(node.at, &node.found(), "a percentage from 1 to 100")),
    }
}

fn slices(node: &Node) -> Result<u32> {
    let value: u32 = int(node)?;
    match (1..=1_000).contains(&value) {
        true => Ok(value),
        false => Err(Error::expected(node.at, &node.found(), "into how many slices, 1 to 1000")),
    }
}

fn read_models(fields: &Fields<'_>) -> Result<Vec<ModelAsk>> {
    let one = |node: &Node| match &node.value {
        Value::Map(entries) if entries.len() == 1 => Ok(ModelAsk {
            model: Name::new(&entries[0].key),
            speed: unit_from_zero(&entries[0].value)?,
        }),
        Value::Scalar { text, .. } => Ok(ModelAsk { model: Name::new(text), speed: Milli::ONE }),
        Value::Map(_) | Value::List(_) | Value::Null => Err(Error::expected(
            node.at,
            &node.found(),
            "a GPU model, or one with its relative speed such as {A100-40GB: 0.5}",
        )),
    };
    let all = |node| one_or_more(node).iter().map(one).collect();
    Ok(fields.read("models", all)?.unwrap_or_default())
}

fn read_topology(node: &Node) -> Result<TopologyAsk> {
    let fields =
        Fields::of(node, "a topology request", &["in", "required", "preferred", "segment"])?;
    let segment = |node| {
        let fields = Fields::of(node, "a segment", &["size", "within"])?;
        Ok(Segment { size: fields.demand("size", int)?, within: fields.demand("within", name)? })
    };
    Ok(TopologyAsk {
        within: fields.read("in", name)?,
        required: fields.read("required", name)?,
        preferred: fields.read("preferred", name)?,
        segment: fields.read("segment", segment)?,
    })
}

fn read_spread(node: &Node) -> Result<Spread> {
    let fields = Fields::of(node, "a spread", &["over", "at_most"])?;
    Ok(Spread {
        over: fields.demand("over", name)?,
        at_most: fields.read("at_most", int)?.unwrap_or(1),
    })
}

fn read_labels(node: &Node) -> Result<LabelAsk> {
    let fields = Fields::of(node, "a label request", &["need", "prefer", "weights"])?;
    let labels = |key| fields.read(key, |node| named(node, name));
    Ok(LabelAsk {
        need: labels("need")?.unwrap_or_default(),
        prefer: labels("prefer")?.unwrap_or_default(),
        weights: fields.read("weights", |node| named(node, int))?.unwrap_or_default(),
    })
}

fn read_nodes(node: &Node) -> Result<NodeAsk> {
    let fields = Fields::of(node, "a choice of nodes", &["only", "never", "prefer"])?;
    let names = |node: &Node| list(node)?.iter().map(name).collect::<Result<BTreeSet<Name>>>();
    Ok(NodeAsk {
        only: fields.read("only", names)?,
        never: fields.read("never", names)?.unwrap_or_default(),
        prefer: fields.read("prefer", names)?.unwrap_or_default(),
    })
}

fn read_toleration(node: &Node) -> Result<Toleration> {
    let fields = Fields::of(node, "a toleration", &["key", "value"])?;
    Ok(Toleration { key: fields.demand("key", name)?, value: fields.read("value", name)? })
}

fn read_nears(fields: &Fields<'_>) -> Result<Vec<Near>> {
    let mut nears = Vec::new();
    for (key, away) in [("near", false), ("away", true)] {
        let all = |node| one_or_more(node).iter().map(|item| read_near(item, away)).collect();
        nears.extend::<Vec<Near>>(fields.read(key, all)?.unwrap_or_default());
    }
    Ok(nears)
}

fn read_near(node: &Node, away: bool) -> Result<Near> {
    let fields = Fields::of(node, "near", &["job", "label", "within", "away"])?;
    let label = |node: &Node| match map(node)? {
        [one] => Ok(JobTarget::Label { key: Name::new(&one.key), value: name(&one.value)? }),
        _ => Err(Error::expected(node.at, &node.found(), "one label such as {app: data}")),
    };
    let job = fields.read("job", |node| name(node).map(JobTarget::Name))?;
    let target = match (job, fields.read("label", label)?) {
        (Some(target), None) | (None, Some(target)) => target,
        _ => return Err(Error::new(node.at, "near and away name a job or a label, one of them")),
    };
    Ok(Near {
        target,
        within: fields.read("within", name)?.unwrap_or(Name::new("node")),
        away: fields.read("away", boolean)?.unwrap_or(away),
    })
}

/// A group; `tasks` gives what is written about the tasks of each leaf, in order.
pub(crate) fn write_all(
    groups: &[GroupSpec],
    tasks: &mut dyn FnMut(&GroupSpec) -> Vec<Out>,
) -> Out {
    let of = groups.len();
    let written = groups.iter().enumerate();
    Out::List(written.map(|(i, group)| write(group, &default_name(i, of), tasks)).collect())
}

fn write(group: &GroupSpec, default: &Name, tasks: &mut dyn FnMut(&GroupSpec) -> Vec<Out>) -> Out {
    let GroupSpec {
        name,
        count,
        min,
        groups,
        gpus,
        models,
        min_gpu_memory,
        cpu,
        memory,
        topology,
        spread,
        labels,
        tolerations,
        near,
        counted,
        nodes,
    } = group;
    let leaf = group.is_leaf();
    let mut out = Record::default();
    out.put_if(name != default, "name", || Out::text(name));
    out.put_if(*count != u32::from(leaf), "count", || Out::raw(count));
    let all = if leaf { *count } else { groups.len() as u32 };
    out.put_if(*min != all, "min", || Out::raw(min));
    write_ask(&mut out, gpus);
    out.list("models", models, write_model);
    out.maybe("min_gpu_memory", *min_gpu_memory, Out::raw);
    out.put_if(!cpu.is_zero(), "cpu", || Out::raw(cpu));
    out.put_if(!memory.is_zero(), "memory", || Out::raw(memory));
    out.maybe("topology", topology.as_ref(), write_topology);
    out.maybe("spread", spread.as_ref(), |Spread { over, at_most }| {
        let mut out = Record::default();
        out.put("over", Out::text(over));
        out.put("at_most", Out::raw(at_most));
        out.done()
    });
    out.put_if(*labels != LabelAsk::default(), "labels", || {
        let mut out = Record::default();
        out.labels("need", &labels.need);
        out.labels("prefer", &labels.prefer);
        let weights = &labels.weights;
        out.put_if(!weights.is_empty(), "weights", || Out::named(weights, |n| Out::raw(n)));
        out.done()
    });
    out.list("tolerations", tolerations, |Toleration { key, value }| {
        let mut out = Record::default();
        out.put("key", Out::text(key));
        out.maybe("value", value.as_ref(), |value| Out::text(value));
        out.done()
    });
    write_nears(&mut out, near);
    out.put_if(!counted.is_empty(), "counted", || Out::named(counted, |n| Out::raw(n)));
    out.maybe("nodes", nodes.as_ref(), write_nodes);
    out.put_if(!leaf, "groups", || write_all(groups, tasks));
    if leaf {
        let tasks = tasks(group);
        out.put_if(!tasks.is_empty(), "tasks", || Out::List(tasks));
    }
    out.done()
}

fn write_nodes(NodeAsk { only, never, prefer }: &NodeAsk) -> Out {
    let mut out = Record::default();
    out.maybe("only", only.as_ref(), Out::names);
    out.put_if(!never.is_empty(), "never", || Out::names(never));
    out.put_if(!prefer.is_empty(), "prefer", || Out::names(prefer));
    out.done()
}

fn write_ask(out: &mut Record, ask: &GpuAsk) {
    match ask {
        GpuAsk::None => return,
        GpuAsk::Whole { count } => return out.put("gpus", Out::raw(count)),
        GpuAsk::Fraction { milli, .. } => out.put("fraction", Out::raw(milli)),
        GpuAsk::Memory { bytes, .. } => out.put("gpu_memory", Out::raw(bytes)),
        GpuAsk::Mig { profile, .. } => out.put("mig", Out::text(profile)),
        GpuAsk::Mps { percent, .. } => out.put("mps", Out::raw(percent)),
        GpuAsk::TimeSlice { of, .. } => out.put("time_slice", Out::raw(of)),
    }
    out.put_if(ask.count() != 1, "gpus", || Out::raw(ask.count()));
}

fn write_model(ModelAsk { model, speed }: &ModelAsk) -> Out {
    match *speed == Milli::ONE {
        true => Out::text(model),
        false => Out::Map(vec![(model.to_string(), Out::raw(speed))]),
    }
}

fn write_topology(TopologyAsk { within, required, preferred, segment }: &TopologyAsk) -> Out {
    let mut out = Record::default();
    let named = [("in", within), ("required", required), ("preferred", preferred)];
    for (key, value) in named {
        out.maybe(key, value.as_ref(), |value| Out::text(value));
    }
    out.maybe("segment", segment.as_ref(), |Segment { size, within }| {
        let mut out = Record::default();
        out.put("size", Out::raw(size));
        out.put("within", Out::text(within));
        out.done()
    });
    out.done()
}

/// `near` comes before `away`; where they are mixed, all stand under `near`, in order.
fn write_nears(out: &mut Record, nears: &[Near]) {
    let split = nears.iter().position(|near| near.away).unwrap_or(nears.len());
    let mixed = nears[split..].iter().any(|near| !near.away);
    let write = |near: &Near| {
        let Near { target, within, away } = near;
        let mut out = Record::default();
        match target {
            JobTarget::Name(name) => out.put("job", Out::text(name)),
            JobTarget::Label { key, value } => {
                out.put("label", Out::Map(vec![(key.to_string(), Out::text(value))]));
            }
        }
        out.put("within", Out::text(within));
        out.flag("away", *away && mixed);
        out.done()
    };
    let one_or_list = |nears: &[Near]| match nears {
        [one] => write(one),
        more => Out::list(more, write),
    };
    let (near, away) = nears.split_at(if mixed { nears.len() } else { split });
    out.put_if(!near.is_empty(), "near", || one_or_list(near));
    out.put_if(!away.is_empty(), "away", || one_or_list(away));
}
