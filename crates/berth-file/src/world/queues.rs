//! Queues, reservations by hand, and history.

use super::nodes::titled;
use super::words::{ACTIONS, ORDERS, PERIODS, word};
use crate::error::{Error, Result, did_you_mean};
use crate::fields::{
    Fields, amount, boolean, choice, int, moment, name, named, names, percent, text, unit,
    unit_from_zero,
};
use crate::out::{Out, Record};
use crate::tree::{Node, Value};
use berth_model::{
    Amount, Budget, ClassLimit, GpuQuota, History, Micros, Milli, Name, QueueSnapshot, QueueSpec,
    Quota, Reservation, Time,
};
use std::collections::BTreeMap;

pub(crate) const QUEUE: &[&str] = &[
    "name",
    "parent",
    "quota",
    "weight",
    "priority",
    "limit",
    "borrow",
    "lend",
    "user_limit",
    "order",
    "min_runtime",
    "preempt_after",
    "time_sharing",
    "class_limit",
    "budget",
    "credits",
    "past_use",
    "spent",
];

/// The keys that say what a queue is meant to be: all but its budget and its books, which are last.
pub(crate) const WISHED: &[&str] = QUEUE.split_at(QUEUE.len() - 4).0;

/// A queue; keys that are left out are as in `before`.
pub(crate) fn read(node: &Node, before: Option<&QueueSnapshot>) -> Result<QueueSnapshot> {
    let fields = Fields::of(node, &titled(node, "queue"), QUEUE)?;
    let own = fields.demand("name", name)?;
    let start = before.cloned().unwrap_or_else(|| QueueSnapshot {
        spec: QueueSpec::new(&own),
        credits: 0,
        past_use: 0,
        spent: Micros::ZERO,
        daily: Vec::new(),
    });
    let old = start.spec;
    let quota = |key, old| Ok::<_, Error>(fields.read(key, read_quota)?.unwrap_or(old));
    let (budget, spent) = match fields.read("budget", read_budget)? {
        Some((budget, spent)) => (Some(budget), spent),
        None => (old.budget, None),
    };
    let own_spent = fields.read("spent", unit)?;
    let spec = QueueSpec {
        name: own,
        parent: fields.read_or_null("parent", old.parent, name)?,
        quota: quota("quota", old.quota)?,
        weight: fields.read("weight", unit_from_zero)?.unwrap_or(old.weight),
        priority: fields.read("priority", int)?.unwrap_or(old.priority),
        limit: quota("limit", old.limit)?,
        borrow: quota("borrow", old.borrow)?,
        lend: quota("lend", old.lend)?,
        user_limit: quota("user_limit", old.user_limit)?,
        order: fields.read("order", |node| choice(node, &ORDERS))?.or(old.order),
        min_runtime: fields.read("min_runtime", unit_from_zero)?.or(old.min_runtime),
        preempt_after: fields.read("preempt_after", unit_from_zero)?.or(old.preempt_after),
        time_sharing: fields.read("time_sharing", boolean)?.or(old.time_sharing),
        budget,
        class_limit: fields.read("class_limit", read_class_limit)?.unwrap_or(old.class_limit),
    };
    // GPU-seconds are written, thousandths of them kept.
    let seconds = |key| fields.read(key, unit::<Milli>);
    Ok(QueueSnapshot {
        spec,
        credits: seconds("credits")?.map_or(start.credits, |n| n.0),
        past_use: seconds("past_use")?.map_or(start.past_use, |n| n.0),
        spent: spent.or(own_spent).unwrap_or(start.spent),
        daily: start.daily,
    })
}

/// A parent that exists, no name twice and no circle.
pub(crate) fn check(queues: &[(&Node, QueueSnapshot)]) -> Result<()> {
    let mut by_name: BTreeMap<&str, &QueueSpec> = BTreeMap::new();
    for (node, queue) in queues {
        if by_name.insert(&queue.spec.name, &queue.spec).is_some() {
            let message = format!("there are two queues called `{}`", queue.spec.name);
            return Err(Error::new(node.at, message));
        }
    }
    for (node, queue) in queues {
        let mut below = &queue.spec;
        for _ in 0..queues.len() {
            let Some(parent) = &below.parent else { break };
            let Some(above) = by_name.get(parent.as_str()) else {
                let hint = did_you_mean(parent, by_name.keys().copied());
                let message = format!(
                    "queue {} has the parent `{parent}`, which is not there{hint}",
                    below.name
                );
                return Err(Error::new(node.at, message));
            };
            below = above;
            if below.name == queue.spec.name {
                let message = format!("queue {} lies below itself", queue.spec.name);
                return Err(Error::new(node.at, message));
            }
        }
    }
    Ok(())
}

pub(crate) fn read_quota(node: &Node) -> Result<Quota> {
    if let Value::Scalar { text, .. } = &node.value {
        if text == "unlimited" {
            return Ok(Quota {
                gpu: GpuQuota { total: Some(Amount::Unlimited), models: BTreeMap::new() },
                cpu: Some(Amount::Unlimited),
                memory: Some(Amount::Unlimited),
            });
        }
        return Err(Error::expected(
            node.at,
            &node.found(),
            "a map such as {gpu: 4}, or unlimited",
        ));
    }
    let fields = Fields::of(node, "an amount per resource", &["gpu", "cpu", "memory"])?;
    Ok(Quota {
        gpu: fields.read("gpu", read_gpu_quota)?.unwrap_or_default(),
        cpu: fields.read("cpu", |node| amount(node, "a number of CPU cores"))?,
        memory: fields.read("memory", |node| amount(node, "an amount of memory"))?,
    })
}

fn read_gpu_quota(node: &Node) -> Result<GpuQuota> {
    let gpus = |node: &Node| amount(node, "a number of GPUs");
    if let Some((model, count)) = gpus_of_model(node) {
        return Ok(GpuQuota { total: None, models: [(model, Amount::Of(count))].into() });
    }
    if !matches!(node.value, Value::Map(_)) {
        return Ok(GpuQuota { total: Some(gpus(node)?), models: BTreeMap::new() });
    }
    let mut models = named(node, gpus)?;
    Ok(GpuQuota { total: models.remove("total"), models })
}

/// `8xH100` or `H100:8`, as jobs ask for them.
fn gpus_of_model(node: &Node) -> Option<(Name, Milli)> {
    let text = text(node, "GPUs").ok()?;
    let (count, model) = match text.split_once(':') {
        Some((model, count)) => (count, model),
        None => text.split_once('x')?,
    };
    let count: u32 = count.trim().parse().ok()?;
    let is_model = model.starts_with(|c: char| c.is_ascii_alphabetic());
    is_model.then(|| (Name::new(model.trim()), Milli(i64::from(count) * 1_000)))
}

/// The keys of a limit are the words of the roles it is about.
fn read_class_limit(node: &Node) -> Result<ClassLimit> {
    let fields = Fields::of(node, "a limit of classes", &["researcher", "team_lead"])?;
    Ok(ClassLimit {
        researcher: fields.read("researcher", name)?,
        team_lead: fields.read("team_lead", name)?,
    })
}

fn write_class_limit(ClassLimit { researcher, team_lead }: &ClassLimit) -> Out {
    let mut out = Record::default();
    out.maybe("researcher", researcher.as_ref(), |class| Out::text(class));
    out.maybe("team_lead", team_lead.as_ref(), |class| Out::text(class));
    out.done()
}

pub(crate) fn read_budget(node: &Node) -> Result<(Budget, Option<Micros>)> {
    let keys = &["limit", "spent", "per", "action", "thresholds"];
    let fields = Fields::of(node, "a budget", keys)?;
    let budget = Budget {
        limit: fields.demand("limit", unit_from_zero)?,
        per: fields.read("per", |node| choice(node, &PERIODS))?.unwrap_or_default(),
        action: fields.read("action", |node| choice(node, &ACTIONS))?.unwrap_or_default(),
        thresholds: fields.list("thresholds")?.iter().map(percent).collect::<Result<_>>()?,
    };
    Ok((budget, fields.read("spent", unit)?))
}

pub(crate) fn write(queue: &QueueSnapshot) -> Out {
    // What was spent day by day decides nothing until a budget is set: a world does not say it.
    let QueueSnapshot { spec, credits, past_use, spent, daily: _ } = queue;
    let QueueSpec {
        name,
        parent,
        quota,
        weight,
        priority,
        limit,
        borrow,
        lend,
        user_limit,
        order,
        min_runtime,
        preempt_after,
        time_sharing,
        budget,
        class_limit,
    } = spec;
    let mut out = Record::default();
    out.put("name", Out::text(name));
    out.maybe("parent", parent.as_ref(), |parent| Out::text(parent));
    out.put_if(!quota.is_empty(), "quota", || write_quota(quota));
    out.put_if(*weight != Milli::ONE, "weight", || Out::raw(weight));
    out.put_if(*priority != 0, "priority", || Out::raw(priority));
    for (key, bound) in
        [("limit", limit), ("borrow", borrow), ("lend", lend), ("user_limit", user_limit)]
    {
        out.put_if(!bound.is_empty(), key, || write_quota(bound));
    }
    out.maybe("order", *order, |order| Out::raw(word(&ORDERS, order)));
    out.maybe("min_runtime", *min_runtime, Out::raw);
    out.maybe("preempt_after", *preempt_after, Out::raw);
    out.maybe("time_sharing", *time_sharing, Out::raw);
    out.put_if(!class_limit.is_empty(), "class_limit", || write_class_limit(class_limit));
    out.put_if(*credits != 0, "credits", || Out::raw(Milli(*credits)));
    out.put_if(*past_use != 0, "past_use", || Out::raw(Milli(*past_use)));
    match budget {
        Some(budget) => out.put("budget", write_budget(budget, *spent)),
        None => out.put_if(!spent.is_zero(), "spent", || Out::raw(spent)),
    }
    out.done()
}

fn write_quota(Quota { gpu, cpu, memory }: &Quota) -> Out {
    let mut out = Record::default();
    match (&gpu.total, gpu.models.is_empty()) {
        (None, true) => {}
        (Some(total), true) => out.put("gpu", Out::amount(total)),
        (total, false) => {
            let mut amounts = Record::default();
            amounts.maybe("total", total.as_ref(), Out::amount);
            for (model, of) in &gpu.models {
                amounts.put(model, Out::amount(of));
            }
            out.put("gpu", amounts.done());
        }
    }
    out.maybe("cpu", cpu.as_ref(), Out::amount);
    out.maybe("memory", memory.as_ref(), Out::amount);
    out.done()
}

fn write_budget(Budget { limit, per, action, thresholds }: &Budget, spent: Micros) -> Out {
    let mut out = Record::default();
    out.put("limit", Out::raw(limit));
    out.put_if(!spent.is_zero(), "spent", || Out::raw(spent));
    out.put("per", Out::raw(word(&PERIODS, *per)));
    out.put("action", Out::raw(word(&ACTIONS, *action)));
    out.list("thresholds", thresholds, |threshold| Out::percent(*threshold));
    out.done()
}

/// The keys of a reservation by hand and of a promise to a job: both stand in one list.
pub(crate) const RESERVATION: &[&str] =
    &["name", "owner", "nodes", "from", "to", "job", "at", "places", "firm"];

pub(crate) fn read_reservation(fields: &Fields<'_>, now: Time) -> Result<Reservation> {
    let time = |node| moment(node, now);
    Ok(Reservation {
        name: fields.demand("name", name)?,
        owner: fields.read("owner", name)?.unwrap_or_default(),
        nodes: fields.demand("nodes", names)?,
        from: fields.read("from", time)?.unwrap_or(now),
        to: fields.demand("to", time)?,
    })
}

pub(crate) fn write_reservation(reservation: &Reservation) -> Out {
    let Reservation { name, owner, nodes, from, to } = reservation;
    let mut out = Record::default();
    out.put("name", Out::text(name));
    out.name("owner", owner);
    out.put("nodes", Out::names(nodes));
    out.put("from", Out::time(*from));
    out.put("to", Out::time(*to));
    out.done()
}

pub(crate) fn read_history(node: &Node) -> Result<History> {
    let fields = Fields::of(node, "an entry of the history", &["user", "name", "runs", "ratio"])?;
    Ok(History {
        user: fields.read("user", name)?.unwrap_or_default(),
        name: fields.demand("name", name)?,
        runs: fields.demand("runs", int)?,
        ratio: fields.demand("ratio", unit_from_zero)?,
    })
}

pub(crate) fn write_history(History { user, name, runs, ratio }: &History) -> Out {
    let mut out = Record::default();
    out.name("user", user);
    out.put("name", Out::text(name));
    out.put("runs", Out::raw(runs));
    out.put("ratio", Out::raw(ratio));
    out.done()
}
