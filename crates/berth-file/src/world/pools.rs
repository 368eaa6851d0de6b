//! Pools of machines that can be bought, and the machines being bought.

use super::nodes::{memory_of, read_memory, titled};
use super::refs::JobNames;
use super::words::{LIFECYCLES, word};
use crate::error::{Error, Result, did_you_mean};
use crate::fields::{Fields, choice, int, moment, name, named, text, unit, unit_from_zero};
use crate::out::{Out, Record};
use crate::tree::Node;
use berth_model::{ClaimSpec, Lifecycle, Name, Offering, PoolSpec, Span, Time};

pub(crate) const POOL: &[&str] = &["name", "min", "max", "labels", "offerings", "claims"];

pub(crate) const OFFERING: &[&str] = &[
    "type",
    "gpus",
    "model",
    "gpu_memory",
    "cpu",
    "memory",
    "zone",
    "lifecycle",
    "price",
    "boot",
    "interruptions",
    "unavailable_until",
];

pub(crate) const CLAIM: &[&str] =
    &["name", "pool", "offering", "zone", "lifecycle", "for", "since"];

pub(crate) fn read_pool(node: &Node, now: Time) -> Result<PoolSpec> {
    let fields = Fields::of(node, &titled(node, "pool"), POOL)?;
    let offering = |node| read_offering(node, now);
    Ok(PoolSpec {
        name: fields.demand("name", name)?,
        min: fields.read("min", int)?.unwrap_or(0),
        max: fields.demand("max", int)?,
        offerings: fields.list("offerings")?.iter().map(offering).collect::<Result<_>>()?,
        labels: fields.read("labels", |node| named(node, name))?.unwrap_or_default(),
    })
}

/// The claims below a pool's entry.
pub(crate) fn claims_of(node: &Node) -> Result<&[Node]> {
    Fields::of(node, &titled(node, "pool"), POOL)?.list("claims")
}

fn read_offering(node: &Node, now: Time) -> Result<Offering> {
    let fields = Fields::of(node, "an offering", OFFERING)?;
    let gpus = fields.demand("gpus", int)?;
    let model = fields.demand("model", name)?;
    Ok(Offering {
        instance: fields.demand("type", name)?,
        gpus,
        memory_per_gpu: read_memory(&fields, "gpu_memory", &model, node)?,
        model,
        cpu: fields.read("cpu", unit_from_zero)?,
        memory: fields.read("memory", unit_from_zero)?,
        zone: fields.read("zone", name)?.unwrap_or_default(),
        lifecycle: lifecycle(&fields)?.unwrap_or_default(),
        price: fields.demand("price", unit)?,
        boot: fields.read("boot", unit_from_zero)?.unwrap_or(Span::ZERO),
        interruptions: fields.read("interruptions", int)?.unwrap_or(0),
        unavailable_until: fields.read("unavailable_until", |node| moment(node, now))?,
    })
}

fn lifecycle(fields: &Fields<'_>) -> Result<Option<Lifecycle>> {
    fields.read("lifecycle", |node| choice(node, &LIFECYCLES))
}

/// A claim, below its pool or with the pool's name.
pub(crate) fn read_claim(
    node: &Node,
    pools: &[PoolSpec],
    below: Option<&PoolSpec>,
    jobs: &JobNames,
    now: Time,
) -> Result<ClaimSpec> {
    let fields = Fields::of(node, &titled(node, "claim"), CLAIM)?;
    let pool = match below {
        Some(pool) => pool,
        None => {
            let node = fields.need("pool")?;
            find_pool(node, pools).map_err(|e| e.within(&fields.what))?
        }
    };
    let instance: Name = fields.demand("offering", name)?;
    let (zone, lifecycle) = (fields.read("zone", name)?, lifecycle(&fields)?);
    let offering = pool.offerings.iter().find(|offering| {
        offering.instance == instance
            && zone.as_ref().is_none_or(|zone| *zone == offering.zone)
            && lifecycle.is_none_or(|lifecycle| lifecycle == offering.lifecycle)
    });
    let known = pool.offerings.iter().any(|offering| offering.instance == instance);
    // An offering may have left the pool while a machine of it was being bought, and then the
    // claim names its zone and lifecycle itself.
    if offering.is_none() && (zone.is_none() || lifecycle.is_none()) {
        let message = match known {
            true => format!("pool {} offers {instance}, but not there or not so", pool.name),
            false => format!(
                "pool {} has no offering `{instance}`{}",
                pool.name,
                did_you_mean(&instance, pool.offerings.iter().map(|o| o.instance.as_str()))
            ),
        };
        return Err(Error::new(fields.need("offering")?.at, message).within(&fields.what));
    }
    Ok(ClaimSpec {
        name: fields.demand("name", name)?,
        pool: pool.name.clone(),
        zone: zone.or(offering.map(|o| o.zone.clone())).unwrap_or_default(),
        lifecycle: lifecycle.or(offering.map(|o| o.lifecycle)).unwrap_or_default(),
        instance,
        for_job: fields.read("for", |node| jobs.find(node))?,
        since: fields.read("since", |node| moment(node, now))?.unwrap_or(now),
    })
}

fn find_pool<'a>(node: &Node, pools: &'a [PoolSpec]) -> Result<&'a PoolSpec> {
    let found = text(node, "the name of a pool")?;
    pools.iter().find(|pool| pool.name.as_str() == found).ok_or_else(|| {
        let hint = did_you_mean(found, pools.iter().map(|pool| pool.name.as_str()));
        Error::new(node.at, format!("there is no pool `{found}`{hint}"))
    })
}

/// Claims keep their order. Where writing them below their pools would change it, they are
/// written beside the pools, and the second part is not empty.
pub(crate) fn write(
    pools: &[PoolSpec],
    claims: &[ClaimSpec],
    jobs: &JobNames,
    now: Time,
) -> (Out, Vec<Out>) {
    let grouped: Vec<&ClaimSpec> = pools
        .iter()
        .flat_map(|pool| claims.iter().filter(move |claim| claim.pool == pool.name))
        .collect();
    let nested = grouped.len() == claims.len()
        && grouped.iter().zip(claims).all(|(a, b)| std::ptr::eq(*a, b));
    let written = Out::list(pools, |pool| {
        let mut out = write_pool(pool);
        if nested {
            let below: Vec<Out> = claims
                .iter()
                .filter(|claim| claim.pool == pool.name)
                .map(|claim| write_claim(claim, Some(pool), jobs, now))
                .collect();
            out.put_if(!below.is_empty(), "claims", || Out::List(below));
        }
        out.done()
    });
    let beside = match nested {
        true => Vec::new(),
        false => claims.iter().map(|claim| write_claim(claim, None, jobs, now)).collect(),
    };
    (written, beside)
}

fn write_pool(pool: &PoolSpec) -> Record {
    let PoolSpec { name, min, max, offerings, labels } = pool;
    let mut out = Record::default();
    out.put("name", Out::text(name));
    out.put("min", Out::raw(min));
    out.put("max", Out::raw(max));
    out.labels("labels", labels);
    out.list("offerings", offerings, write_offering);
    out
}

fn write_offering(offering: &Offering) -> Out {
    let Offering {
        instance,
        gpus,
        model,
        memory_per_gpu,
        cpu,
        memory,
        zone,
        lifecycle,
        price,
        boot,
        interruptions,
        unavailable_until,
    } = offering;
    let mut out = Record::default();
    out.put("type", Out::text(instance));
    out.put("gpus", Out::raw(gpus));
    out.put("model", Out::text(model));
    out.put_if(memory_of(model) != Some(*memory_per_gpu), "gpu_memory", || {
        Out::raw(memory_per_gpu)
    });
    out.maybe("cpu", *cpu, Out::raw);
    out.maybe("memory", *memory, Out::raw);
    out.name("zone", zone);
    out.put("lifecycle", Out::raw(word(&LIFECYCLES, *lifecycle)));
    out.put("price", Out::raw(price));
    out.put("boot", Out::raw(boot));
    out.put_if(*interruptions != 0, "interruptions", || Out::raw(interruptions));
    out.maybe("unavailable_until", *unavailable_until, Out::time);
    out.done()
}

fn write_claim(claim: &ClaimSpec, below: Option<&PoolSpec>, jobs: &JobNames, now: Time) -> Out {
    let ClaimSpec { name, pool, instance, zone, lifecycle, for_job, since } = claim;
    let mut out = Record::default();
    out.put("name", Out::text(name));
    out.put_if(below.is_none(), "pool", || Out::text(pool));
    out.put("offering", Out::text(instance));
    // The first offering of that type is what a claim without these two means.
    let implied = below
        .and_then(|pool| pool.offerings.iter().find(|offering| offering.instance == *instance))
        .is_some_and(|offering| offering.zone == *zone && offering.lifecycle == *lifecycle);
    if !implied {
        out.put("zone", Out::text(zone));
        out.put("lifecycle", Out::raw(word(&LIFECYCLES, *lifecycle)));
    }
    out.maybe("for", *for_job, |job| jobs.write(job));
    out.put_if(*since != now, "since", || Out::time(*since));
    out.done()
}
