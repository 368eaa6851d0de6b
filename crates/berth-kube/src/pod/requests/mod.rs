//! What one pod asks for.

use crate::InvalidField;
use crate::object::{Container, Map, Pod, PodSpec, Raw, Resources, Text};
use crate::quantity::{self, Quantity};
use berth_model::{Bytes, Cpu, GpuAsk, Milli, Name};
use std::collections::BTreeMap;

mod count;
mod gpu;
mod gpu_request;
mod in_use;
mod vgpu;

pub(crate) use gpu::profile_name;
pub use gpu::{DevicePluginResources, GpuSharing, GpuUnit, SharingStrategy, mig_profile};
pub use gpu_request::{GpuRequest, GpuVendor};
pub use in_use::ResourcesInUse;
pub(crate) use vgpu::is_vgpu;
pub use vgpu::{NUMBER as VGPU_NUMBER, vgpus};

/// Amounts that a node must have free for a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceRequests {
    pub cpu: Cpu,
    pub memory: Bytes,
    pub gpus: GpuRequest,
    /// Every other resource, such as `ephemeral-storage` in bytes or `rdma/hca` in pieces.
    pub other: BTreeMap<Name, i64>,
}

/// Why it cannot be said what a pod needs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("resource {resource}: {source}")]
    Quantity { resource: String, source: quantity::Error },
    #[error("{resource} is asked for in parts ({amount} thousandths); ask for whole ones")]
    Parts { resource: String, amount: i64 },
    #[error("the pod asks for GPUs as {first} and as {second}; ask for one kind in one pod")]
    MixedGpus { first: String, second: String },
    #[error(transparent)]
    Annotation(#[from] InvalidField),
}

impl ResourceRequests {
    /// As the kubelet counts: the containers with their sidecars, or whatever an init container
    /// needs beside the sidecars started before it if that is more; and the overhead.
    pub fn of(pod: &Pod) -> Result<ResourceRequests, Error> {
        let mut sums = ResourceSums::of(&pod.spec)?;
        let cpu = sums.take("cpu", Quantity::milli)?;
        let memory = sums.take("memory", Quantity::whole)?;
        let gpus = GpuRequest::of(pod, &mut sums)?;
        let mut other = BTreeMap::new();
        for (resource, amount) in &sums.0 {
            let count = amount.whole().map_err(|source| Error::quantity(resource, source))?;
            if count > 0 {
                other.insert(Name::new(resource), count);
            }
        }
        Ok(ResourceRequests { cpu: Cpu(cpu), memory: Bytes(memory), gpus, other })
    }
}

impl Error {
    fn quantity(resource: &str, source: quantity::Error) -> Error {
        Error::Quantity { resource: resource.to_owned(), source }
    }
}

/// Exact amounts by resource. Rounding comes after the sum, as in Kubernetes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ResourceSums(BTreeMap<Text, Quantity>);

impl ResourceSums {
    fn of(spec: &PodSpec) -> Result<ResourceSums, Error> {
        let mut running = ResourceSums::default();
        for container in &spec.containers {
            running.add(&ResourceSums::asked(container)?);
        }
        let mut sidecars = ResourceSums::default();
        let mut starting = ResourceSums::default();
        for init in &spec.init_containers {
            let mut asked = ResourceSums::asked(init)?;
            if init.is_sidecar() {
                running.add(&asked);
                sidecars.add(&asked);
                asked = sidecars.clone();
            } else {
                asked.add(&sidecars);
            }
            starting.raise(&asked);
        }
        running.raise(&starting);
        if let Some(whole) = &spec.resources {
            running.replace(whole)?;
        }
        running.add(&ResourceSums::read(&spec.overhead)?);
        Ok(running)
    }

    /// Requests, and limits where no request is made.
    fn asked(container: &Container) -> Result<ResourceSums, Error> {
        let mut asked = ResourceSums::read(&container.resources.limits)?;
        asked.0.extend(ResourceSums::read(&container.resources.requests)?.0);
        Ok(asked)
    }

    fn read(amounts: &Map<Raw>) -> Result<ResourceSums, Error> {
        let parsed = amounts.iter().map(|(resource, raw)| {
            let amount =
                raw.as_str().parse().map_err(|source| Error::quantity(resource, source))?;
            Ok((resource.into(), amount))
        });
        parsed.collect::<Result<_, Error>>().map(ResourceSums)
    }

    fn add(&mut self, more: &ResourceSums) {
        for (resource, amount) in &more.0 {
            let sum = self.0.entry(resource.clone()).or_default();
            *sum = *sum + *amount;
        }
    }

    fn raise(&mut self, floor: &ResourceSums) {
        for (resource, amount) in &floor.0 {
            let sum = self.0.entry(resource.clone()).or_default();
            *sum = (*sum).max(*amount);
        }
    }

    /// Amounts of the pod as a whole win. A limit alone counts only where no container asks.
    fn replace(&mut self, whole: &Resources) -> Result<(), Error> {
        for (resource, limit) in ResourceSums::read(&whole.limits)?.0 {
            self.0.entry(resource).or_insert(limit);
        }
        self.0.extend(ResourceSums::read(&whole.requests)?.0);
        Ok(())
    }

    fn take(
        &mut self,
        resource: &str,
        unit: fn(Quantity) -> Result<i64, quantity::Error>,
    ) -> Result<i64, Error> {
        let amount = self.0.remove(resource).unwrap_or_default();
        unit(amount).map_err(|source| Error::quantity(resource, source))
    }
}

#[cfg(test)]
mod tests;
