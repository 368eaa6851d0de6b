//! Claims on volumes, the volumes, and how they come about; and the labels of namespaces.

use super::{LabelSelector, Labels, List, Map, Meta, NodeSelector, Raw, Text};
use serde::Deserialize;

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CsiSource {
    pub driver: Text,
    pub volume_handle: Text,
}

/// A volume of a kind that Kubernetes had a driver for itself: each kind has one of these names.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct InTree {
    #[serde(alias = "pdName", alias = "diskURI")]
    #[serde(rename = "volumeID")]
    pub id: Text,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Namespace {
    pub metadata: Meta,
}

/// A PersistentVolumeClaim.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct PersistentVolumeClaim {
    pub metadata: Meta,
    pub spec: ClaimSpec,
    pub status: Phased,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimSpec {
    pub access_modes: List<Text>,
    pub resources: Requests,
    /// Absent: the default class, once there is one; empty: none.
    pub storage_class_name: Option<Text>,
    pub volume_mode: Text,
    /// Empty until it is bound, unless the author of the claim named a volume.
    pub volume_name: Text,
    pub selector: Option<LabelSelector>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Requests {
    pub requests: Map<Raw>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Phased {
    pub phase: Text,
}

/// A PersistentVolume.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct PersistentVolume {
    pub metadata: Meta,
    pub spec: VolumeSpec,
    pub status: Phased,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeSpec {
    pub access_modes: List<Text>,
    pub capacity: Map<Raw>,
    pub storage_class_name: Text,
    pub volume_mode: Text,
    /// Whose it is.
    pub claim_ref: Option<ClaimRef>,
    pub node_affinity: Option<VolumeAffinity>,
    /// What it is, where a CSI driver attaches it.
    pub csi: Option<CsiSource>,
    /// Kinds that Kubernetes had drivers for itself. CSI drivers attach these today.
    pub aws_elastic_block_store: Option<InTree>,
    pub gce_persistent_disk: Option<InTree>,
    pub azure_disk: Option<InTree>,
    pub cinder: Option<InTree>,
    pub portworx_volume: Option<InTree>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct ClaimRef {
    pub namespace: Text,
    pub name: Text,
    pub uid: Text,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct VolumeAffinity {
    pub required: Option<NodeSelector>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StorageClass {
    pub metadata: Meta,
    pub provisioner: Text,
    pub volume_binding_mode: Text,
    pub allowed_topologies: List<TopologyTerm>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopologyTerm {
    pub match_label_expressions: List<TopologyLabel>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct TopologyLabel {
    pub key: Text,
    pub values: List<Text>,
}

impl TopologyTerm {
    /// Whether a node with these labels is in such a place.
    pub fn holds(&self, labels: &Labels) -> bool {
        self.match_label_expressions
            .iter()
            .all(|label| labels.get(&label.key).is_some_and(|value| label.values.contains(value)))
    }
}
