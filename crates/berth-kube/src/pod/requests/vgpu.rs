//! Shares of GPUs as manifests for Volcano ask for them: by resources of containers. They are not
//! counted as resources, since no node has to have them: what a node does not have its kubelet does
//! not look at.
//!
//! As in Volcano a container has all of a GPU's memory where it does not say how much, whatever it
//! says of cores.

use super::count::count_of;
use super::{Error, GpuRequest};
use crate::InvalidField;
use crate::object::{Container, PodSpec};
use crate::quantity::Quantity;
use berth_model::{Bytes, Milli};

/// How many GPUs a container has a part of. A node has this where Volcano's own device plugin runs.
pub const NUMBER: &str = "volcano.sh/vgpu-number";
/// MiB of each of them.
const MEMORY: &str = "volcano.sh/vgpu-memory";
/// The same in percent.
const PERCENTAGE: &str = "volcano.sh/vgpu-memory-percentage";
/// Percent of the time of each.
const CORES: &str = "volcano.sh/vgpu-cores";

/// A part of each of so many GPUs: that much memory if any is named, and that share at least.
#[derive(Debug, Clone, Copy)]
struct Part {
    count: u32,
    bytes: i64,
    milli: i64,
}

pub(crate) fn is_vgpu(resource: &str) -> bool {
    [NUMBER, MEMORY, PERCENTAGE, CORES].contains(&resource)
}

/// What the containers of a pod have a part of together, if they ask for any in this way.
pub fn vgpus(spec: &PodSpec) -> Result<Option<GpuRequest>, Error> {
    // As with other amounts: what runs together adds up, and the largest of what runs before.
    let (mut running, mut starting) = (None, None);
    for container in &spec.containers {
        running = together(running, Part::of(container)?, Part::add)?;
    }
    for init in &spec.init_containers {
        let part = Part::of(init)?;
        match init.is_sidecar() {
            true => running = together(running, part, Part::add)?,
            false => starting = together(starting, part, Part::raise)?,
        }
    }
    Ok(together(running, starting, Part::raise)?.map(Part::gpus))
}

fn together(
    one: Option<Part>,
    other: Option<Part>,
    join: fn(Part, Part) -> Part,
) -> Result<Option<Part>, InvalidField> {
    let (Some(one), Some(other)) = (one, other) else { return Ok(one.or(other)) };
    if one.count != other.count {
        let what = format!(
            "another container of the pod asks for {}, and all have parts of the same GPUs; ask \
             for as many in each",
            other.count
        );
        return Err(InvalidField::new(NUMBER, one.count.to_string(), what));
    }
    if (one.bytes == 0) != (other.bytes == 0) {
        let some = one.bytes.max(other.bytes) >> 20;
        let what = "another container of the pod does not say this; say it of each that asks for a \
                    GPU, or of none";
        return Err(InvalidField::new(MEMORY, some.to_string(), what));
    }
    let joined = join(one, other);
    if joined.milli > 1_000 {
        let what = "so much of one GPU is asked for by the containers of this pod together; ask \
                    for no more than 100, or make pods of them";
        return Err(InvalidField::new(PERCENTAGE, (joined.milli / 10).to_string(), what));
    }
    Ok(Some(joined))
}

impl Part {
    fn of(container: &Container) -> Result<Option<Part>, Error> {
        let memory = number(container, MEMORY, 0..=1 << 30, "write a whole number of MiB")?;
        let memory = memory.filter(|mib| *mib > 0);
        let percent = "write a whole number of percent from 1 to 100";
        let percentage = number(container, PERCENTAGE, 1..=100, percent)?;
        let cores = number(container, CORES, 0..=100, percent)?;
        let count = match (read(container, NUMBER)?, memory) {
            (Some((_, amount)), _) => count_of(NUMBER, amount)?,
            (None, Some(_)) => 1,
            (None, None) => match percentage.map(|n| (PERCENTAGE, n)).or(cores.map(|n| (CORES, n)))
            {
                Some((key, value)) => {
                    let what = format!("say with {NUMBER} of how many GPUs as well");
                    return Err(InvalidField::new(key, value.to_string(), what).into());
                }
                None => 0,
            },
        };
        let percentage = if memory.is_some() { 0 } else { percentage.unwrap_or(100) };
        let milli = percentage.max(cores.unwrap_or(0)) * 10;
        let bytes = memory.map_or(0, |mib| Bytes::mib(mib).0);
        Ok((count > 0).then_some(Part { count, bytes, milli }))
    }

    fn add(self, other: Part) -> Part {
        let (bytes, milli) = (self.bytes + other.bytes, self.milli + other.milli);
        Part { bytes, milli, ..self }
    }

    fn raise(self, other: Part) -> Part {
        let (bytes, milli) = (self.bytes.max(other.bytes), self.milli.max(other.milli));
        Part { bytes, milli, ..self }
    }

    fn gpus(self) -> GpuRequest {
        let Part { count, bytes, milli } = self;
        match bytes {
            0 => GpuRequest::Fraction { milli: Milli(milli), count },
            bytes => GpuRequest::Memory { bytes: Bytes(bytes), least: Milli(milli), count },
        }
    }
}

/// The limit, as Volcano reads it. Kubernetes wants a request of such a resource to be the same.
fn read<'a>(
    container: &'a Container,
    resource: &str,
) -> Result<Option<(&'a str, Quantity)>, Error> {
    let written = &container.resources;
    let raw = written.limits.get(resource).or_else(|| written.requests.get(resource));
    let Some(raw) = raw.map(|raw| raw.as_str()) else { return Ok(None) };
    let amount = raw.parse().map_err(|source| Error::quantity(resource, source))?;
    Ok(Some((raw, amount)))
}

fn number(
    container: &Container,
    resource: &str,
    of: std::ops::RangeInclusive<i64>,
    what: &str,
) -> Result<Option<i64>, Error> {
    let Some((raw, amount)) = read(container, resource)? else { return Ok(None) };
    let number = amount.exactly().filter(|number| of.contains(number));
    Ok(Some(number.ok_or_else(|| InvalidField::new(resource, raw, what))?))
}
