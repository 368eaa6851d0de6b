//! Nodes and their GPUs.

use super::words::{EFFECTS, HEALTHS, LIFECYCLES, word};
use crate::error::{Error, Result, did_you_mean, or_list};
use crate::fields::{Fields, choice, int, list, moment, name, named, unit, unit_from_zero};
use crate::out::{Out, Record};
use crate::tree::{Node, Value};
use berth_model::{
    Bytes, Division, Effect, GpuSpec, Health, Lifecycle, MigLayout, MigProfile, MigSlot, Name,
    NodeSnapshot, NodeSpec, NodeState, Taint, Time, catalog,
};

pub(crate) const KEYS: &[&str] = &[
    "name",
    "count",
    "gpus",
    "model",
    "gpu_memory",
    "cpu",
    "memory",
    "labels",
    "zone",
    "taints",
    "nvlink",
    "state",
    "leaves_at",
    "price",
    "pool",
    "lifecycle",
    "tasks",
    "counted",
    "idle_since",
    "since",
    "billed",
    "data",
];

const DIVISIONS: [(&str, Division); 4] = [
    ("whole", Division::Whole),
    ("mig", Division::Mig),
    ("mps", Division::Mps { shares: 0 }),
    ("time-slice", Division::TimeSlice { shares: 0 }),
];

pub(crate) const STATES: [(&str, NodeState); 6] = [
    ("ready", NodeState::Ready),
    ("cordoned", NodeState::Cordoned),
    ("draining", NodeState::Draining),
    ("troubled", NodeState::Troubled),
    ("failed", NodeState::Failed),
    ("leaving", NodeState::Leaving { at: Time(0) }),
];

/// A node as read; whether it is idle is known only when the tasks are placed.
pub(crate) struct ReadNode {
    pub snapshot: NodeSnapshot,
    /// `idle_since` was written down.
    pub idle_said: bool,
}

/// The nodes of one entry: several where it has a count.
pub(crate) fn read(node: &Node, now: Time) -> Result<Vec<ReadNode>> {
    let fields = Fields::of(node, &title(node), KEYS)?;
    let spec = read_spec(&fields, now)?;
    let time = |node| moment(node, now);
    let since = fields.read("since", time)?.unwrap_or(now);
    let billed = fields.read("billed", time)?.unwrap_or(now);
    let idle_since = fields.read("idle_since", time)?;
    let idle_said = fields.raw("idle_since").is_some();
    let data = fields.read("data", |node| named(node, unit_from_zero))?.unwrap_or_default();
    let one = |spec| ReadNode {
        snapshot: NodeSnapshot { spec, idle_since, since, billed, data: data.clone() },
        idle_said,
    };
    let Some(count) = fields.read("count", int::<u32>)? else {
        return Ok(vec![one(spec)]);
    };
    let copies = (0..count).map(|index| {
        let name = Name::from(format!("{}-{index}", spec.name));
        one(NodeSpec { name, ..spec.clone() })
    });
    Ok(copies.collect())
}

/// Whether the map says more than a new state.
pub(crate) fn is_description(node: &Node) -> bool {
    match &node.value {
        Value::Map(entries) => entries
            .iter()
            .any(|entry| !["name", "state", "leaves_at"].contains(&entry.key.as_str())),
        Value::Null | Value::Scalar { .. } | Value::List(_) => false,
    }
}

fn title(node: &Node) -> String {
    titled(node, "node")
}

/// `node a`, or `a node` where it has no readable name.
pub(crate) fn titled(node: &Node, kind: &str) -> String {
    let Value::Map(entries) = &node.value else { return format!("a {kind}") };
    match entries.iter().find(|entry| entry.key == "name").map(|entry| &entry.value.value) {
        Some(Value::Scalar { text, .. }) => format!("{kind} {text}"),
        _ => format!("a {kind}"),
    }
}

fn read_spec(fields: &Fields<'_>, now: Time) -> Result<NodeSpec> {
    let mut labels = fields.read("labels", |node| named(node, name))?.unwrap_or_default();
    if let Some(zone) = fields.read("zone", name)? {
        labels.insert(Name::new("zone"), zone);
    }
    let gpus = read_gpus(fields)?;
    let nvlink = read_nvlink(fields, gpus.len())?;
    Ok(NodeSpec {
        name: fields.demand("name", name)?,
        gpus,
        cpu: fields.read("cpu", unit_from_zero)?,
        memory: fields.read("memory", unit_from_zero)?,
        labels,
        taints: fields.list("taints")?.iter().map(read_taint).collect::<Result<_>>()?,
        nvlink,
        state: read_state(fields, now)?,
        price: fields.read("price", unit)?,
        pool: fields.read("pool", name)?,
        lifecycle: fields.read("lifecycle", |node| choice(node, &LIFECYCLES))?.unwrap_or_default(),
        tasks: fields.read("tasks", int)?,
        counted: fields.read("counted", |node| named(node, int))?.unwrap_or_default(),
    })
}

/// The state of a node by its word, and when it leaves.
pub(crate) fn read_state(fields: &Fields<'_>, now: Time) -> Result<NodeState> {
    let state = fields.read("state", |node| choice(node, &STATES))?.unwrap_or_default();
    let leaves = fields.read("leaves_at", |node| moment(node, now))?;
    match (state, leaves) {
        (NodeState::Leaving { .. }, Some(at)) => Ok(NodeState::Leaving { at }),
        (NodeState::Leaving { .. }, None) => {
            Err(Error::new(fields.node.at, format!("{} is leaving: say leaves_at", fields.what)))
        }
        (_, Some(_)) => Err(Error::new(
            fields.node.at,
            format!("{} has leaves_at, so its state must be leaving", fields.what),
        )),
        (state, None) => Ok(state),
    }
}

/// The memory of a GPU by what the catalogue, or else the end of the model's name, says.
pub(crate) fn memory_of(model: &str) -> Option<Bytes> {
    catalog(model)
        .map(|info| info.memory)
        .or_else(|| model.rsplit_once('-')?.1.parse::<Bytes>().ok().filter(|b| b.0 >= 1 << 20))
}

pub(crate) fn read_memory(fields: &Fields<'_>, key: &str, model: &str, at: &Node) -> Result<Bytes> {
    match fields.read(key, unit_from_zero)? {
        Some(memory) => Ok(memory),
        None => memory_of(model).ok_or_else(|| {
            let message = format!("the memory of GPU model `{model}` is not known: say {key}");
            Error::new(at.at, message)
        }),
    }
}

fn read_gpus(fields: &Fields<'_>) -> Result<Vec<GpuSpec>> {
    let Some(node) = fields.get("gpus") else { return Ok(Vec::new()) };
    if let Value::List(items) = &node.value {
        return items.iter().map(|item| read_gpu(item, fields)).collect();
    }
    let count: u32 = fields.demand("gpus", int)?;
    if count == 0 {
        return Ok(Vec::new());
    }
    let model = fields.demand("model", name)?;
    let memory = read_memory(fields, "gpu_memory", &model, node)?;
    let gpu = GpuSpec { model, memory, health: Health::Ok, mig: None, division: None };
    Ok(vec![gpu; count as usize])
}

fn read_gpu(node: &Node, of: &Fields<'_>) -> Result<GpuSpec> {
    let what = format!("a GPU of {}", of.what);
    let fields =
        Fields::of(node, &what, &["model", "memory", "health", "mig", "division", "shares"])?;
    let model = match of.read("model", name)? {
        Some(model) if fields.get("model").is_none() => model,
        _ => fields.demand("model", name)?,
    };
    let memory = read_memory(&fields, "memory", &model, node)?;
    let health = fields.read("health", |node| choice(node, &HEALTHS))?.unwrap_or_default();
    let mig = fields.read("mig", |node| read_mig(node, &model))?;
    let division = read_division(&fields)?;
    Ok(GpuSpec { model, memory, health, mig, division })
}

/// How a GPU is handed out by somebody else.
fn read_division(fields: &Fields<'_>) -> Result<Option<Division>> {
    let Some(division) = fields.read("division", |node| choice(node, &DIVISIONS))? else {
        return Ok(None);
    };
    Ok(Some(match division {
        Division::Mps { .. } => Division::Mps { shares: fields.demand("shares", int)? },
        Division::TimeSlice { .. } => Division::TimeSlice { shares: fields.demand("shares", int)? },
        unshared => unshared,
    }))
}

fn read_mig(node: &Node, model: &str) -> Result<Vec<MigSlot>> {
    let mut layout = MigLayout::default();
    let mut slots = Vec::new();
    let mut add = |at: &Node, profile: &str, start: Option<u8>| -> Result<()> {
        let known = profile_of(at, model, profile)?;
        let start = match start.or_else(|| layout.place(known)) {
            Some(start) if layout.fits(known, start) => start,
            Some(start) => {
                let message = format!("{profile} cannot start at {start} here: {}", starts(known));
                return Err(Error::new(at.at, message));
            }
            None => {
                let message = format!("there is no room left for another {profile}");
                return Err(Error::new(at.at, message));
            }
        };
        layout.take(known, start);
        slots.push(MigSlot { profile: Name::new(profile), start });
        Ok(())
    };
    match &node.value {
        Value::List(items) => {
            for item in items {
                let slot = read_slot(item)?;
                add(item, &slot.profile, Some(slot.start))?;
            }
        }
        Value::Map(entries) => {
            for entry in entries {
                for _ in 0..int::<u32>(&entry.value)?.min(8) {
                    add(&entry.value, &entry.key, None)?;
                }
            }
        }
        Value::Null | Value::Scalar { .. } => {
            let expected = "a list of {profile, start}, or a map of profiles with their counts";
            return Err(Error::expected(node.at, &node.found(), expected));
        }
    }
    Ok(slots)
}

fn starts(profile: &MigProfile) -> String {
    let mut starts = profile.starts.to_vec();
    starts.sort_unstable();
    let starts: Vec<String> = starts.iter().map(u8::to_string).collect();
    format!(
        "it may start at {}, where no other instance lies",
        or_list(starts.iter().map(|s| &**s))
    )
}

pub(crate) fn read_slot(node: &Node) -> Result<MigSlot> {
    let fields = Fields::of(node, "a MIG instance", &["profile", "start"])?;
    Ok(MigSlot { profile: fields.demand("profile", name)?, start: fields.demand("start", int)? })
}

/// The profile of that name, or which ones the model has.
pub(crate) fn profile_of(node: &Node, model: &str, profile: &str) -> Result<&'static MigProfile> {
    MigProfile::find(model, profile).ok_or_else(|| {
        let message = match MigProfile::names(model) {
            None => format!("found MIG profile `{profile}`, but {model} has no MIG"),
            Some(names) => format!(
                "{model} has no MIG profile `{profile}`; it has {}{}",
                names.join(", "),
                did_you_mean(profile, names.iter().copied())
            ),
        };
        Error::new(node.at, message)
    })
}

fn read_nvlink(fields: &Fields<'_>, gpus: usize) -> Result<Vec<Vec<u32>>> {
    let island = |node: &Node| -> Result<Vec<u32>> {
        list(node)?
            .iter()
            .map(|item| {
                let index: u32 = int(item)?;
                match (index as usize) < gpus {
                    true => Ok(index),
                    false => Err(no_gpu(item, &fields.what, gpus)),
                }
            })
            .collect()
    };
    let islands = |node| list(node)?.iter().map(island).collect();
    Ok(fields.read("nvlink", islands)?.unwrap_or_default())
}

pub(crate) fn no_gpu(node: &Node, what: &str, gpus: usize) -> Error {
    let expected = match gpus {
        0 => format!("no GPU at all: {what} has none"),
        1 => format!("0: {what} has one GPU"),
        _ => format!("a GPU from 0 to {}: {what} has {gpus}", gpus - 1),
    };
    Error::expected(node.at, &node.found(), &expected)
}

fn read_taint(node: &Node) -> Result<Taint> {
    let fields = Fields::of(node, "a taint", &["key", "value", "effect"])?;
    Ok(Taint {
        key: fields.demand("key", name)?,
        value: fields.read("value", name)?.unwrap_or_default(),
        effect: fields.read("effect", |node| choice(node, &EFFECTS))?.unwrap_or(Effect::NoSchedule),
    })
}

/// Nodes that are alike but for a running number are written as one entry with a count.
pub(crate) fn write(nodes: &[NodeSnapshot], busy: &[bool], now: Time) -> Out {
    // What is written as idle: nothing where it is as by default, so that busy and idle nodes of
    // one kind share a line.
    let idle = |index: usize| {
        let default = (!busy[index]).then_some(now);
        (nodes[index].idle_since != default).then_some(nodes[index].idle_since)
    };
    let mut out = Vec::new();
    let mut index = 0;
    while index < nodes.len() {
        let first = &nodes[index];
        let prefix = first.spec.name.strip_suffix("-0").unwrap_or_default();
        let alike = |count: &usize| {
            let Some(next) = nodes.get(index + count) else { return false };
            next.spec.name.as_str() == format!("{prefix}-{count}")
                && idle(index + count) == idle(index)
                && NodeSnapshot {
                    spec: NodeSpec { name: first.spec.name.clone(), ..next.spec.clone() },
                    idle_since: first.idle_since,
                    ..next.clone()
                } == *first
        };
        let count = match prefix {
            "" => 1,
            _ => 1 + (1..).take_while(alike).count(),
        };
        let (name, many) = match count {
            1 => (first.spec.name.clone(), None),
            _ => (Name::new(prefix), Some(count)),
        };
        out.push(write_node(first, &name, many, idle(index), now));
        index += count;
    }
    Out::List(out)
}

fn write_node(
    node: &NodeSnapshot,
    name: &Name,
    count: Option<usize>,
    idle: Option<Option<Time>>,
    now: Time,
) -> Out {
    let NodeSnapshot { spec, idle_since: _, since, billed, data } = node;
    let NodeSpec {
        name: _,
        gpus,
        cpu,
        memory,
        labels,
        taints,
        nvlink,
        state,
        price,
        pool,
        lifecycle,
        tasks,
        counted,
    } = spec;
    let mut out = Record::default();
    out.put("name", Out::text(name));
    out.maybe("count", count, Out::raw);
    write_gpus(&mut out, gpus);
    out.maybe("cpu", *cpu, Out::raw);
    out.maybe("memory", *memory, Out::raw);
    out.labels("labels", labels);
    out.list("nvlink", nvlink, |island| Out::list(island, Out::raw));
    out.list("taints", taints, write_taint);
    if *state != NodeState::Ready {
        write_state(&mut out, *state);
    }
    out.maybe("price", *price, Out::raw);
    out.maybe("pool", pool.as_ref(), |pool| Out::text(pool));
    out.put_if(*lifecycle != Lifecycle::OnDemand, "lifecycle", || {
        Out::raw(word(&LIFECYCLES, *lifecycle))
    });
    out.maybe("tasks", *tasks, Out::raw);
    out.put_if(!counted.is_empty(), "counted", || Out::named(counted, |n| Out::raw(n)));
    out.maybe("idle_since", idle, |since| since.map_or_else(Out::null, Out::time));
    out.put_if(*since != now, "since", || Out::time(*since));
    out.put_if(*billed != now, "billed", || Out::time(*billed));
    out.put_if(!data.is_empty(), "data", || Out::named(data, |bytes| Out::raw(bytes)));
    out.done()
}

fn write_state(out: &mut Record, state: NodeState) {
    if let NodeState::Leaving { at } = state {
        out.put("state", Out::raw("leaving"));
        out.put("leaves_at", Out::time(at));
    } else {
        out.put("state", Out::raw(word(&STATES, state)));
    }
}

fn write_gpus(out: &mut Record, gpus: &[GpuSpec]) {
    let Some(first) = gpus.first() else { return };
    let plain = first.health == Health::Ok && first.mig.is_none() && first.division.is_none();
    if plain && gpus.iter().all(|gpu| gpu == first) {
        out.put("gpus", Out::raw(gpus.len()));
        out.put("model", Out::text(&first.model));
        out.put_if(memory_of(&first.model) != Some(first.memory), "gpu_memory", || {
            Out::raw(first.memory)
        });
        return;
    }
    out.list("gpus", gpus, |GpuSpec { model, memory, health, mig, division }| {
        let mut gpu = Record::default();
        gpu.put("model", Out::text(model));
        gpu.put_if(memory_of(model) != Some(*memory), "memory", || Out::raw(memory));
        gpu.put_if(*health != Health::Ok, "health", || Out::raw(word(&HEALTHS, *health)));
        gpu.maybe("mig", mig.as_ref(), |slots| Out::list(slots, write_slot));
        if let Some(division) = division {
            let (kind, shares) = match *division {
                Division::Mps { shares } => (Division::Mps { shares: 0 }, Some(shares)),
                Division::TimeSlice { shares } => (Division::TimeSlice { shares: 0 }, Some(shares)),
                unshared => (unshared, None),
            };
            gpu.put("division", Out::raw(word(&DIVISIONS, kind)));
            gpu.maybe("shares", shares.as_ref(), Out::raw);
        }
        gpu.done()
    });
}

pub(crate) fn write_slot(MigSlot { profile, start }: &MigSlot) -> Out {
    let mut out = Record::default();
    out.put("profile", Out::text(profile));
    out.put("start", Out::raw(start));
    out.done()
}

fn write_taint(Taint { key, value, effect }: &Taint) -> Out {
    let mut out = Record::default();
    out.put("key", Out::text(key));
    out.name("value", value);
    out.put("effect", Out::raw(word(&EFFECTS, *effect)));
    out.done()
}
