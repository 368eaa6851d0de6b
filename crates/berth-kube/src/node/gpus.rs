//! The GPUs of a node, from the resources of the device plugin and the labels of GPU feature
//! discovery.

use super::{Error, mig, product};
use crate::object::{Labels, Text};
use crate::pod::requests::{
    DevicePluginResources, GpuSharing, GpuUnit, SharingStrategy, mig_profile, profile_name,
};
use crate::quantity::{self, Quantity};
use berth_model::{Bytes, Division, GpuSpec, Health, MigSlot, Name, catalog};
use std::collections::BTreeMap;

const GPU: &str = "nvidia.com/gpu";
const SHARED: &str = "nvidia.com/gpu.shared";
const AMD: &str = "amd.com/gpu";
const COUNT: &str = "nvidia.com/gpu.count";
const MEMORY: &str = "nvidia.com/gpu.memory";
const PRODUCT: &str = "nvidia.com/gpu.product";
const REPLICAS: &str = "nvidia.com/gpu.replicas";
const STRATEGY: &str = "nvidia.com/gpu.sharing-strategy";

/// More devices, or replicas of them, than any machine has.
const MAX_DEVICES: u32 = 65_536;

type Amounts = BTreeMap<Text, Quantity>;

/// Takes the GPU resources out of the amounts.
pub(super) fn of(
    labels: &Labels,
    amounts: &mut Amounts,
) -> Result<(Vec<GpuSpec>, DevicePluginResources), Error> {
    let amd = take(amounts, AMD)?;
    let found = Found {
        gpus: take(amounts, GPU)?,
        shared: take(amounts, SHARED)?,
        instances: take_instances(amounts)?,
    };
    if amd == 0 {
        return nvidia(labels, &found);
    }
    if found.gpus > 0 || found.shared > 0 || !found.instances.is_empty() {
        return Err(Error::TwoMakers);
    }
    Ok((vec![amd_gpu(labels); amd as usize], DevicePluginResources::default()))
}

/// What the device plugin says there is.
struct Found {
    gpus: u32,
    shared: u32,
    instances: Vec<(Name, u32)>,
}

fn nvidia(labels: &Labels, found: &Found) -> Result<(Vec<GpuSpec>, DevicePluginResources), Error> {
    let product = labels.get(PRODUCT).map_or("", |product| &**product);
    let (unshared, is_shared) = match product.strip_suffix("-SHARED") {
        Some(unshared) => (unshared, true),
        None => (product, false),
    };
    if let Some((base, profile)) = unshared.split_once("-MIG-") {
        if is_shared || found.shared > 0 {
            return Err(Error::SharedInstance { product: product.to_owned() });
        }
        return alike_instances(base, &profile_name(profile), found.gpus);
    }
    let memory = label(labels, MEMORY, "MiB")?.map(|mib: u32| Bytes::mib(i64::from(mib)));
    let gpu = gpu(unshared, memory);
    let sharing = sharing(labels)?;
    let mut devices = DevicePluginResources::default();
    let mut gpus = Vec::new();
    let mut add = |count: u32, division: Option<Division>| {
        let all = std::iter::repeat_n(GpuSpec { division, ..gpu.clone() }, count as usize);
        gpus.extend(all);
    };
    // Without labels, replicas cannot be counted back to GPUs.
    if is_shared {
        let sharing = sharing.ok_or_else(|| replicas_missing(labels))?;
        add(gpus_behind(GPU, found.gpus, sharing)?, Some(division(sharing)));
        devices.gpu = GpuUnit::Replica(sharing);
    } else {
        // Where all are whole, nothing else could be meant.
        let is_plain = found.shared == 0 && found.instances.is_empty();
        add(found.gpus, (!is_plain).then_some(Division::Whole));
    }
    if found.shared > 0 {
        let sharing = sharing.ok_or_else(|| replicas_missing(labels))?;
        add(gpus_behind(SHARED, found.shared, sharing)?, Some(division(sharing)));
        devices.shared = Some(sharing);
    }
    if !found.instances.is_empty() {
        let partitioned = label(labels, COUNT, "a number of GPUs")?
            .and_then(|all: u32| all.checked_sub(u32::try_from(gpus.len()).ok()?))
            .filter(|left| *left > 0);
        let layouts =
            mig::lay_out(&gpu.model, &found.instances, partitioned.map(|left| left as usize))?;
        gpus.extend(layouts.into_iter().map(|slots| partitioned_gpu(&gpu, slots)));
    }
    Ok((gpus, devices))
}

fn partitioned_gpu(gpu: &GpuSpec, slots: Vec<MigSlot>) -> GpuSpec {
    GpuSpec { mig: Some(slots), division: Some(Division::Mig), ..gpu.clone() }
}

const fn division(sharing: GpuSharing) -> Division {
    let shares = sharing.replicas;
    match sharing.strategy {
        SharingStrategy::TimeSlice => Division::TimeSlice { shares },
        SharingStrategy::Mps => Division::Mps { shares },
    }
}

/// All GPUs partitioned into instances of one profile, which the plugin hands out as GPUs. The
/// labels then speak of one instance, so that the catalogue has to know the GPU.
fn alike_instances(
    base: &str,
    profile: &Name,
    count: u32,
) -> Result<(Vec<GpuSpec>, DevicePluginResources), Error> {
    // The memory that is measured belongs to an instance, and tells nothing about the model.
    let gpu = gpu(base, None);
    let layouts = mig::lay_out(&gpu.model, &[(profile.clone(), count)], None)?;
    let gpus = layouts.into_iter().map(|slots| partitioned_gpu(&gpu, slots));
    let devices = DevicePluginResources { gpu: GpuUnit::Instance(profile.clone()), shared: None };
    Ok((gpus.collect(), devices))
}

fn gpu(product: &str, memory: Option<Bytes>) -> GpuSpec {
    let model = if product.is_empty() { Name::new("gpu") } else { product::model(product, memory) };
    let known = catalog(&model).map(|info| info.memory);
    let memory = memory.or(known).unwrap_or_default();
    GpuSpec { model, memory, health: Health::Ok, mig: None, division: None }
}

/// The labels of AMD's node labeller.
fn amd_gpu(labels: &Labels) -> GpuSpec {
    let first = |keys: [&str; 2]| keys.into_iter().find_map(|key| labels.get(key));
    let product = first(["amd.com/gpu.product-name", "beta.amd.com/gpu.product-name"]);
    let vram = first(["amd.com/gpu.vram", "beta.amd.com/gpu.vram"]);
    // Written as `192G`, and meant in GiB.
    let gib = vram
        .and_then(|vram| vram.trim_end_matches(|c: char| !c.is_ascii_digit()).parse::<u16>().ok());
    gpu(product.map_or("AMD", |product| &**product), gib.map(|gib| Bytes::gib(gib.into())))
}

fn sharing(labels: &Labels) -> Result<Option<GpuSharing>, Error> {
    let replicas = label(labels, REPLICAS, "how many share a GPU")?;
    let strategy = match labels.get(STRATEGY).map(|strategy| &**strategy) {
        // Older releases have no such label and know time slicing only.
        None if replicas.is_some_and(|replicas| replicas > 1) => SharingStrategy::TimeSlice,
        None | Some("none") => return Ok(None),
        Some("time-slicing") => SharingStrategy::TimeSlice,
        Some("mps") => SharingStrategy::Mps,
        Some(other) => {
            let value = other.to_owned();
            return Err(Error::Label {
                key: STRATEGY,
                value,
                expected: "none, time-slicing or mps",
            });
        }
    };
    let replicas =
        replicas.filter(|replicas| *replicas > 0).ok_or_else(|| replicas_missing(labels))?;
    Ok(Some(GpuSharing { strategy, replicas }))
}

fn replicas_missing(labels: &Labels) -> Error {
    let value = labels.get(REPLICAS).map_or(String::new(), |value| value.to_string());
    Error::Label { key: REPLICAS, value, expected: "how many share a GPU, with sharing-strategy" }
}

/// A GPU that has failed takes its replicas with it, so that what is left still divides.
fn gpus_behind(resource: &'static str, count: u32, sharing: GpuSharing) -> Result<u32, Error> {
    if count.is_multiple_of(sharing.replicas) {
        return Ok(count / sharing.replicas);
    }
    Err(Error::Replicas { resource, count, replicas: sharing.replicas })
}

fn label(labels: &Labels, key: &'static str, expected: &'static str) -> Result<Option<u32>, Error> {
    let Some(value) = labels.get(key) else {
        return Ok(None);
    };
    let number = value.parse();
    number.map(Some).map_err(|_| Error::Label { key, value: value.to_string(), expected })
}

fn take(amounts: &mut Amounts, resource: &str) -> Result<u32, Error> {
    let amount = amounts.remove(resource).unwrap_or_default();
    let count = super::whole(resource, amount, Quantity::whole)?;
    u32::try_from(count).ok().filter(|count| *count <= MAX_DEVICES).ok_or_else(|| {
        let text = count.to_string();
        let source = quantity::Error::TooLarge { text, instead: i64::from(MAX_DEVICES) };
        Error::Quantity { resource: resource.to_owned(), source }
    })
}

fn take_instances(amounts: &mut Amounts) -> Result<Vec<(Name, u32)>, Error> {
    let named: Vec<(Text, Name)> = amounts
        .keys()
        .filter_map(|resource| Some((resource.clone(), mig_profile(resource)?)))
        .collect();
    let mut instances = Vec::new();
    for (resource, profile) in named {
        let count = take(amounts, &resource)?;
        if count > 0 {
            instances.push((profile, count));
        }
    }
    Ok(instances)
}
