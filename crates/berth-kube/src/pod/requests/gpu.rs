//! The GPUs of a pod.

use super::count::count_of;
use super::{
    Bytes, Error, GpuAsk, GpuRequest, GpuVendor, InvalidField, Milli, Name, ResourceSums, vgpu,
};
use crate::object::{Labels, Pod, Text};
use berth_model::Share;
use std::collections::BTreeMap;

const GPU: &str = "nvidia.com/gpu";
const SHARED: &str = "nvidia.com/gpu.shared";
const INSTANCE: &str = "nvidia.com/mig-";

/// What the GPU resources of a node stand for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct DevicePluginResources {
    /// One `nvidia.com/gpu`.
    pub gpu: GpuUnit,
    /// One `nvidia.com/gpu.shared`, where there are any.
    pub shared: Option<GpuSharing>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum GpuUnit {
    #[default]
    Whole,
    Replica(GpuSharing),
    /// A MIG instance of this profile, where all of a node are alike.
    Instance(Name),
}

/// How GPUs are handed out in replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GpuSharing {
    pub strategy: SharingStrategy,
    pub replicas: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SharingStrategy {
    TimeSlice,
    Mps,
}

impl GpuRequest {
    /// The ask to the scheduler, which for some resources depends on the node; `None` where the
    /// node has nothing of the kind.
    pub fn ask(&self, on: &DevicePluginResources) -> Option<GpuAsk> {
        Some(match self {
            GpuRequest::None => GpuAsk::None,
            GpuRequest::Whole { vendor: GpuVendor::Amd, count } => GpuAsk::Whole { count: *count },
            GpuRequest::Whole { vendor: GpuVendor::Nvidia, count } => match &on.gpu {
                GpuUnit::Whole => GpuAsk::Whole { count: *count },
                GpuUnit::Replica(sharing) => sharing.ask(*count),
                GpuUnit::Instance(profile) => {
                    GpuAsk::Mig { profile: profile.clone(), count: *count }
                }
            },
            GpuRequest::Shared { count } => on.shared?.ask(*count),
            GpuRequest::Mig { profile, count } => {
                GpuAsk::Mig { profile: profile.clone(), count: *count }
            }
            GpuRequest::Fraction { milli, count } => {
                GpuAsk::Fraction { milli: *milli, count: *count }
            }
            // Which of its two shares is the larger one depends on the GPUs there are.
            GpuRequest::Memory { bytes, count, .. } => {
                GpuAsk::Memory { bytes: *bytes, count: *count }
            }
        })
    }

    /// Takes the GPU resources out of the sums and reads the marks of shares.
    pub(super) fn of(pod: &Pod, sums: &mut ResourceSums) -> Result<GpuRequest, Error> {
        let mut found: Option<(String, GpuRequest)> = share(&pod.metadata.annotations)?;
        if let Some(gpus) = vgpu::vgpus(&pod.spec)? {
            let second = vgpu::NUMBER.to_owned();
            if let Some((first, _)) = found {
                return Err(Error::MixedGpus { first, second });
            }
            found = Some((second, gpus));
        }
        for (resource, amount) in take(sums) {
            let second = kind(&resource, count_of(&resource, amount)?).unwrap_or_default();
            if let Some((first, _)) = found {
                return Err(Error::MixedGpus { first, second: resource.to_string() });
            }
            found = Some((resource.to_string(), second));
        }
        Ok(found.map_or(GpuRequest::None, |(_, gpus)| gpus))
    }

    /// Takes the GPU resources out of the sums, of however many kinds they are.
    pub(super) fn all(sums: &mut ResourceSums) -> Vec<GpuRequest> {
        let counted = take(sums).into_iter().filter_map(|(resource, amount)| {
            let count = amount.whole().ok().and_then(|count| u32::try_from(count).ok());
            kind(&resource, count.unwrap_or(u32::MAX))
        });
        counted.collect()
    }
}

impl DevicePluginResources {
    /// The resource by which a pod asks for such a piece of a GPU here. Nothing for fractions, which
    /// no device plugin knows.
    pub fn resource(&self, share: &Share) -> Option<String> {
        Some(match (share, &self.gpu) {
            (Share::Fraction(_), _) => return None,
            (Share::Mig(slot), GpuUnit::Whole | GpuUnit::Replica(_)) => mig_resource(&slot.profile),
            (Share::Mps(_) | Share::TimeSlice(_), _) if self.shared.is_some() => SHARED.to_owned(),
            _ => GPU.to_owned(),
        })
    }
}

impl GpuSharing {
    /// So many replicas.
    pub fn ask(self, count: u32) -> GpuAsk {
        match self.strategy {
            SharingStrategy::TimeSlice => GpuAsk::TimeSlice { of: self.replicas, count },
            // A node hands out no more than there are, however small they have to be called.
            SharingStrategy::Mps => {
                GpuAsk::Mps { percent: (100 / self.replicas.max(1)).max(1), count }
            }
        }
    }
}

/// Takes out the resources that are GPUs.
fn take(sums: &mut ResourceSums) -> Vec<(Text, super::Quantity)> {
    // They are read from each container by itself.
    sums.0.retain(|resource, _| !vgpu::is_vgpu(resource));
    let (gpus, others) = std::mem::take(&mut sums.0)
        .into_iter()
        .partition::<BTreeMap<_, _>, _>(|(resource, _)| kind(resource, 1).is_some());
    sums.0 = others;
    gpus.into_iter().filter(|(_, amount)| !amount.is_zero()).collect()
}

/// What that many of a resource are, if it is one of GPUs.
fn kind(resource: &str, count: u32) -> Option<GpuRequest> {
    Some(match resource {
        GPU => GpuRequest::Whole { vendor: GpuVendor::Nvidia, count },
        "amd.com/gpu" => GpuRequest::Whole { vendor: GpuVendor::Amd, count },
        SHARED => GpuRequest::Shared { count },
        _ => GpuRequest::Mig { profile: mig_profile(resource)?, count },
    })
}

/// The profile of a resource such as `nvidia.com/mig-1g.10gb.me`. A resource name has no plus
/// sign, so that the device plugin writes a dot for it.
pub fn mig_profile(resource: &str) -> Option<Name> {
    resource.strip_prefix(INSTANCE).map(profile_name)
}

/// The resource of a profile.
fn mig_resource(profile: &str) -> String {
    format!("{INSTANCE}{}", profile.replace('+', "."))
}

/// The same without the resource around it, as labels have it.
pub(crate) fn profile_name(written: &str) -> Name {
    match written.split_once("gb.") {
        Some((size, attributes)) => Name::from(format!("{size}gb+{attributes}")),
        None => Name::new(written),
    }
}

/// A share of a GPU by KAI's annotations.
fn share(annotations: &Labels) -> Result<Option<(String, GpuRequest)>, InvalidField> {
    const FRACTION: &str = "gpu-fraction";
    const MEMORY: &str = "gpu-memory";
    const DEVICES: &str = "gpu-fraction-num-devices";
    let get = |key: &str| annotations.get(key).map(|value| value.trim());
    let count = || match get(DEVICES) {
        None => Ok(1),
        Some(value) => value.parse().ok().filter(|count| *count > 0).ok_or_else(|| {
            InvalidField::new(DEVICES, value, "write how many GPUs to take a share of, 1 or more")
        }),
    };
    let gpus = match (get(FRACTION), get(MEMORY)) {
        (None, None) => match get(DEVICES) {
            None => return Ok(None),
            Some(value) => {
                return Err(InvalidField::new(
                    DEVICES,
                    value,
                    "say gpu-fraction or gpu-memory as well",
                ));
            }
        },
        (Some(value), Some(_)) => {
            return Err(InvalidField::new(FRACTION, value, "say either this or gpu-memory"));
        }
        (Some(value), None) => {
            let milli = value.parse::<Milli>().ok();
            let milli = milli.filter(|milli| (1..1_000).contains(&milli.0)).ok_or_else(|| {
                InvalidField::new(
                    FRACTION,
                    value,
                    "write a number between 0.001 and 0.999, such as 0.5",
                )
            })?;
            (FRACTION, GpuRequest::Fraction { milli, count: count()? })
        }
        (None, Some(value)) => {
            let mib = value.parse::<i64>().ok().filter(|mib| (1..1 << 30).contains(mib));
            let mib = mib.ok_or_else(|| {
                InvalidField::new(MEMORY, value, "write a whole number of MiB, such as 4096")
            })?;
            (
                MEMORY,
                GpuRequest::Memory { bytes: Bytes::mib(mib), least: Milli(0), count: count()? },
            )
        }
    };
    Ok(Some((gpus.0.to_owned(), gpus.1)))
}
