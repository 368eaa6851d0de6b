//! Drivers for volumes: on which nodes they are, how many volumes a node can attach, how much
//! storage there is where, and what is attached.

use super::{CsiSource, LabelSelector, List, Meta, PersistentVolume, Raw, StorageClass, Text};
use crate::quantity::Quantity;
use serde::Deserialize;

/// The drivers of a node, under its name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct CsiNode {
    pub metadata: Meta,
    pub spec: CsiNodeSpec,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct CsiNodeSpec {
    pub drivers: List<CsiNodeDriver>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct CsiNodeDriver {
    pub name: Text,
    pub allocatable: Option<Allocatable>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Allocatable {
    /// So many volumes of the driver can be attached; absent: any number.
    pub count: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct CsiDriver {
    pub metadata: Meta,
    pub spec: CsiDriverSpec,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CsiDriverSpec {
    /// It tells how much storage there is where.
    pub storage_capacity: Option<bool>,
    /// Pods with its volumes are for nodes alone that have it.
    pub prevent_pod_scheduling_if_missing: Option<bool>,
}

/// How much storage of a class there is for some nodes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CsiCapacity {
    pub metadata: Meta,
    pub storage_class_name: Text,
    /// Absent: it can be had from no node.
    pub node_topology: Option<LabelSelector>,
    pub capacity: Option<Raw>,
    pub maximum_volume_size: Option<Raw>,
}

impl CsiCapacity {
    /// The largest volume that can be made of it: what the driver says of that, or all there is.
    pub fn largest(&self) -> Option<i64> {
        let written = self.maximum_volume_size.as_ref().or(self.capacity.as_ref())?;
        written.as_str().parse::<Quantity>().ok()?.whole().ok()
    }
}

/// A volume that is attached to a node, or is being attached or detached.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct VolumeAttachment {
    pub metadata: Meta,
    pub spec: AttachmentSpec,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AttachmentSpec {
    pub node_name: Text,
    pub source: AttachmentSource,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AttachmentSource {
    pub persistent_volume_name: Option<Text>,
}

/// What a node attaches: volumes of one driver with one handle are one volume.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attachable {
    pub driver: Text,
    pub handle: Text,
}

/// What Kubernetes had drivers for itself, with the CSI driver that does it today.
const MOVED: [(&str, &str); 5] = [
    ("kubernetes.io/aws-ebs", "ebs.csi.aws.com"),
    ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io"),
    ("kubernetes.io/azure-disk", "disk.csi.azure.com"),
    ("kubernetes.io/cinder", "cinder.csi.openstack.org"),
    ("kubernetes.io/portworx-volume", "pxd.portworx.com"),
];

impl StorageClass {
    /// The CSI driver that attaches volumes of the class.
    pub fn driver(&self) -> &str {
        let moved = MOVED.iter().find(|(before, _)| *before == &*self.provisioner);
        moved.map_or(&self.provisioner, |(_, driver)| driver)
    }
}

impl PersistentVolume {
    /// What a node attaches for it, if it attaches anything.
    pub fn attachable(&self) -> Option<Attachable> {
        let spec = &self.spec;
        if let Some(CsiSource { driver, volume_handle }) = &spec.csi {
            let (driver, handle) = (driver.clone(), volume_handle.clone());
            return Some(Attachable { driver, handle });
        }
        let kinds = [
            &spec.aws_elastic_block_store,
            &spec.gce_persistent_disk,
            &spec.azure_disk,
            &spec.cinder,
            &spec.portworx_volume,
        ];
        let (source, (before, driver)) =
            kinds.into_iter().zip(MOVED).find_map(|(kind, moved)| Some((kind.as_ref()?, moved)))?;
        // EBS volumes may be written with their zone in front of them.
        let handle = match before {
            "kubernetes.io/aws-ebs" => source.id.rsplit('/').next().unwrap_or_default(),
            _ => &source.id,
        };
        Some(Attachable { driver: driver.into(), handle: handle.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn attached(source: serde_json::Value) -> Option<(String, String)> {
        let volume: PersistentVolume = serde_json::from_value(json!({ "spec": source })).unwrap();
        volume.attachable().map(|one| (one.driver.to_string(), one.handle.to_string()))
    }

    #[test]
    fn volumes_are_told_by_driver_and_handle_also_those_of_kinds_from_before_csi() {
        let is = |driver: &str, handle: &str| Some((driver.to_owned(), handle.to_owned()));
        let csi = json!({ "csi": { "driver": "d", "volumeHandle": "h" } });
        assert_eq!(attached(csi), is("d", "h"));
        let ebs = json!({ "awsElasticBlockStore": { "volumeID": "aws://us-east-1a/vol-1" } });
        assert_eq!(attached(ebs), is("ebs.csi.aws.com", "vol-1"));
        let pd = json!({ "gcePersistentDisk": { "pdName": "pd-1" } });
        assert_eq!(attached(pd), is("pd.csi.storage.gke.io", "pd-1"));
        let azure = json!({ "azureDisk": { "diskName": "d", "diskURI": "/subscriptions/d" } });
        assert_eq!(attached(azure), is("disk.csi.azure.com", "/subscriptions/d"));
        assert_eq!(attached(json!({ "nfs": { "server": "s" } })), None);
        let class = |provisioner: &str| {
            let class = json!({ "provisioner": provisioner });
            serde_json::from_value::<StorageClass>(class).unwrap().driver().to_owned()
        };
        assert_eq!(class("kubernetes.io/cinder"), "cinder.csi.openstack.org");
        assert_eq!(class("example.com/disks"), "example.com/disks");
    }

    #[test]
    fn the_largest_volume_counts_where_the_driver_says_how_large_that_is() {
        let largest = |written: serde_json::Value| {
            serde_json::from_value::<CsiCapacity>(written).unwrap().largest()
        };
        assert_eq!(largest(json!({ "capacity": "2Ki" })), Some(2_048));
        assert_eq!(largest(json!({ "capacity": "2Ki", "maximumVolumeSize": "1Ki" })), Some(1_024));
        assert_eq!(largest(json!({})), None);
    }
}
