//! Dynamic resource allocation: the devices that drivers offer, what claims were allocated, and
//! what pods with claims may be given.

use crate::view::{Asks, NodePredicate, NodeView, PodView};
use berth_kube::dra::{
    self, Allocation, ClaimError, ClaimRequests, Device, DeviceClass, DeviceId, ResourceClaim,
    ResourceSlice,
};
use berth_kube::object::Text;
use berth_model::{Health, Name};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A claim by namespace and name.
type Key = (Text, Text);

#[derive(Default)]
pub struct Claims {
    slices: BTreeMap<Text, ResourceSlice>,
    classes: BTreeMap<Text, DeviceClass>,
    claims: BTreeMap<Key, ResourceClaim>,
    nodes: BTreeMap<Name, Equipment>,
    /// Where a device is.
    places: BTreeMap<DeviceId, Name>,
    /// The claims that were given something of a node.
    given: BTreeMap<Name, BTreeSet<Key>>,
}

/// The devices of a node.
#[derive(Default)]
struct Equipment {
    slices: BTreeSet<Text>,
    all: Vec<Device>,
    /// Those that are GPUs, in the order in which the core numbers them.
    gpus: Arc<[Device]>,
}

/// Why the claims of a pod cannot be given devices now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceClaimError {
    /// The claim is to be made from this template.
    #[error("the claim {template} is not made yet")]
    NotMade { template: Text },
    #[error("there is no claim {claim} yet")]
    Missing { claim: Text },
    #[error(
        "the claim {claim} is used by another pod, and Berth gives a claim to one; name a \
         template, so that each pod has a claim of its own"
    )]
    Shared { claim: Text },
    #[error(transparent)]
    Unsupported(#[from] ClaimError),
    #[error("its GPU is not there any more")]
    DeviceGone,
}

/// What a pod with claims asks for.
#[derive(Default)]
pub struct ClaimedDevices {
    pub count: u32,
    pub rules: Vec<NodePredicate>,
}

impl Claims {
    /// Takes in a slice. Returns the node whose devices have changed.
    pub fn put_slice(&mut self, slice: ResourceSlice) -> Option<Name> {
        let node = slice.spec.node_name.as_deref().map(Name::new)?;
        let name = slice.metadata.name.clone();
        self.nodes.entry(node.clone()).or_default().slices.insert(name.clone());
        self.slices.insert(name, slice);
        self.read(&node);
        Some(node)
    }

    pub fn remove_slice(&mut self, name: &Text) -> Option<Name> {
        let slice = self.slices.remove(name)?;
        let node = slice.spec.node_name.as_deref().map(Name::new)?;
        self.nodes.get_mut(&node)?.slices.remove(name);
        self.read(&node);
        Some(node)
    }

    pub fn slice_names(&self) -> BTreeSet<Text> {
        self.slices.keys().cloned().collect()
    }

    fn read(&mut self, node: &Name) {
        let Some(equipment) = self.nodes.get_mut(node) else { return };
        let slices = equipment.slices.iter().filter_map(|name| self.slices.get(name));
        equipment.all = dra::node_devices(slices);
        let gpus = equipment.all.iter().filter(|device| dra::gpu_spec(device).is_some());
        equipment.gpus = gpus.cloned().collect();
        self.places.retain(|_, place| place != node);
        self.places.extend(equipment.all.iter().map(|device| (device.id.clone(), node.clone())));
        // Drivers may come after those who were given something of theirs.
        let is_here = |id: &DeviceId| self.places.get(id) == Some(node);
        let given = self.claims.iter().filter(|(_, claim)| claim.given().iter().any(is_here));
        self.given.insert(node.clone(), given.map(|(key, _)| key.clone()).collect());
    }

    pub fn put_class(&mut self, class: DeviceClass) {
        self.classes.insert(class.metadata.name.clone(), class);
    }

    pub fn remove_class(&mut self, name: &Text) {
        self.classes.remove(name);
    }

    pub fn set_classes(&mut self, classes: Vec<DeviceClass>) {
        self.classes.clear();
        classes.into_iter().for_each(|class| self.put_class(class));
    }

    /// Takes in a claim. Returns the nodes of which it is given something, or was.
    pub fn put_claim(&mut self, claim: ResourceClaim) -> BTreeSet<Name> {
        let key = (claim.metadata.namespace.clone(), claim.metadata.name.clone());
        let mut touched = self.remove_claim(&key);
        for id in claim.given() {
            if let Some(node) = self.places.get(id) {
                self.given.entry(node.clone()).or_default().insert(key.clone());
                touched.insert(node.clone());
            }
        }
        self.claims.insert(key, claim);
        touched
    }

    pub fn remove_claim(&mut self, key: &Key) -> BTreeSet<Name> {
        let Some(claim) = self.claims.remove(key) else { return BTreeSet::new() };
        let nodes = claim.given().iter().filter_map(|id| self.places.get(id).cloned());
        let nodes: BTreeSet<Name> = nodes.collect();
        for node in &nodes {
            if let Some(given) = self.given.get_mut(node) {
                given.remove(key);
            }
        }
        nodes
    }

    pub fn claim_keys(&self) -> BTreeSet<Key> {
        self.claims.keys().cloned().collect()
    }

    /// Gives a node the GPUs that can be claimed there. Where a device plugin hands out GPUs they
    /// would be the same ones, so that only those count.
    pub fn equip(&self, node: &mut NodeView) {
        if !node.claimable.is_empty() {
            node.spec.gpus.clear();
        }
        node.claimable = Arc::default();
        let Some(equipment) = self.nodes.get(&node.spec.name) else { return };
        if !node.spec.gpus.is_empty() {
            return;
        }
        node.claimable = equipment.gpus.clone();
        node.spec.gpus = node.claimable.iter().filter_map(dra::gpu_spec).collect();
    }

    /// Which GPUs of a node others were given, in whole or in part.
    pub fn taken(&self, node: &Name, is_ours: impl Fn(&str) -> bool) -> BTreeSet<usize> {
        let (Some(equipment), Some(keys)) = (self.nodes.get(node), self.given.get(node)) else {
            return BTreeSet::new();
        };
        let claims = keys.iter().filter_map(|key| self.claims.get(key));
        let others = claims.filter(|claim| !claim.users().any(&is_ours));
        let given: BTreeSet<&DeviceId> = others.flat_map(ResourceClaim::given).collect();
        let given: Vec<&Device> =
            equipment.all.iter().filter(|device| given.contains(&device.id)).collect();
        let excludes = |gpu: &Device| {
            given.iter().any(|other| {
                let in_common = other.counters.intersection(&gpu.counters).next().is_some();
                other.id == gpu.id || (in_common && other.id.pool == gpu.id.pool)
            })
        };
        let gpus = equipment.gpus.iter().enumerate();
        gpus.filter(|(_, gpu)| excludes(gpu)).map(|(at, _)| at).collect()
    }

    /// What the claims of a pod ask for. Nothing for a pod without claims.
    pub fn wanted(&self, pod: &PodView) -> Result<Option<ClaimedDevices>, DeviceClaimError> {
        if pod.claims.is_empty() {
            return Ok(None);
        }
        let mut wanted = ClaimedDevices::default();
        for (_, asked) in self.asked(pod)? {
            wanted.count += asked.count();
            wanted.rules.push(rule(asked));
        }
        Ok(Some(wanted))
    }

    fn asked(
        &self,
        pod: &PodView,
    ) -> Result<Vec<(&ResourceClaim, ClaimRequests)>, DeviceClaimError> {
        let claims = pod.claims.iter().map(|used| {
            let Some(name) = used.name.clone() else {
                return Err(DeviceClaimError::NotMade { template: used.source.clone() });
            };
            let key = (Text::from(pod.at.namespace.as_str()), name.clone());
            let Some(claim) = self.claims.get(&key) else {
                return Err(DeviceClaimError::Missing { claim: name });
            };
            if claim.users().any(|uid| uid != pod.at.uid) {
                return Err(DeviceClaimError::Shared { claim: name });
            }
            Ok((claim, claim.asked(&self.classes)?))
        });
        claims.collect()
    }

    /// What to write on the claims of a pod that was given these GPUs.
    pub fn allocations(
        &self,
        pod: &PodView,
        node: &Name,
        gpus: &[u32],
    ) -> Result<Vec<Allocation>, DeviceClaimError> {
        let there = self.nodes.get(node).ok_or(DeviceClaimError::DeviceGone)?;
        let mut gpus = gpus.iter();
        let mut allocations = Vec::new();
        for (claim, asked) in self.asked(pod)? {
            let requests = asked.requests.iter();
            let each = requests.flat_map(|one| (0..one.count).map(|_| one.name.clone()));
            let devices = each.map(|request| {
                let device = gpus.next().and_then(|at| there.gpus.get(*at as usize));
                let device = device.ok_or(DeviceClaimError::DeviceGone)?;
                Ok((request, device.id.clone()))
            });
            allocations.push(Allocation {
                namespace: claim.metadata.namespace.to_string(),
                name: claim.metadata.name.to_string(),
                uid: claim.metadata.uid.to_string(),
                node: node.to_string(),
                devices: devices.collect::<Result<_, DeviceClaimError>>()?,
                config: asked.config,
            });
        }
        Ok(allocations)
    }
}

/// Nodes all of whose GPUs are such as a claim asks for: the core may choose among them freely.
fn rule(asked: ClaimRequests) -> NodePredicate {
    let texts: Vec<&str> = asked.selectors.iter().map(dra::DeviceSelector::text).collect();
    let name = Name::from(format!("GPUs to claim where {}", texts.join(" && ")));
    let selectors = asked.selectors;
    let allows = move |node: &NodeView| {
        let healthy = node.claimable.iter().zip(&node.spec.gpus);
        let mut gpus = healthy.filter(|(_, gpu)| gpu.health == Health::Ok).peekable();
        gpus.peek().is_some()
            && gpus.all(|(gpu, _)| selectors.iter().all(|selector| selector.matches(gpu)))
    };
    NodePredicate { name, allows: Arc::new(allows), asks: Asks::Named }
}
