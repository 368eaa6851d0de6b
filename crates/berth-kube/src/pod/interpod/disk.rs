//! Disks that pods of one node cannot always use at once.

use super::PORT_CAPACITY;
use crate::object::{PodSpec, VolumeSource};

/// The disks that a pod names as amounts of things that a node counts, each with how much a node
/// has of it, such that pods that cannot share a disk do not fit together: all of it for a pod that
/// writes, and a little for each that reads.
pub fn disk_amounts(spec: &PodSpec) -> impl Iterator<Item = (String, i64, i64)> {
    let disks = spec.volumes.iter().filter_map(|volume| match &volume.source {
        VolumeSource::Disk(disk) => Some(disk),
        _ => None,
    });
    disks.flat_map(|disk| {
        let amount = if disk.shared { 1 } else { PORT_CAPACITY };
        disk.names.iter().map(move |name| (format!("disk {name}"), amount, PORT_CAPACITY))
    })
}
