//! GPUs that are shared by fractions. A reservation pod holds each of them for as long as a lease
//! has a part of it; pods that share a GPU start once the reservation pod reports which GPU it was
//! given.

use super::orders::{ApiOrder, Bind, GpuSlot};
use super::pod_orders::CreatePod;
use crate::view::PodView;
use berth_engine::Core;
use berth_kube::pod::gpu_sharing::GpuReservation;
use berth_model::PodRef;
use berth_model::{JobId, LeaseId, Name, Share, Slice};
use std::collections::{BTreeMap, BTreeSet};

/// How a lease begins.
pub enum Begin {
    /// A pod of others is given its node.
    Bind(Box<Bind>),
    /// A pod of a job of our own is made on its node.
    CreatePod(Box<CreatePod>),
}

impl Begin {
    pub fn lease(&self) -> LeaseId {
        match self {
            Begin::Bind(bind) => bind.lease,
            Begin::CreatePod(create) => create.start.lease,
        }
    }

    /// The same, with the GPUs that its containers learn of.
    fn with_gpus(mut self, gpus: String) -> Begin {
        match &mut self {
            Begin::Bind(bind) => bind.gpus = Some(gpus),
            Begin::CreatePod(create) => create.gpus = Some(gpus),
        }
        self
    }

    /// Where Berth reports why it does not begin.
    fn who(&self) -> Waiter {
        match self {
            Begin::Bind(bind) => Waiter::Pod(bind.pod.clone()),
            Begin::CreatePod(create) => Waiter::Job(create.start.lease.job),
        }
    }
}

/// Who waits for a GPU to be held. A job of our own has no pod until then.
pub enum Waiter {
    Pod(PodRef),
    Job(JobId),
}

/// What follows when a pod that holds a GPU was seen.
pub enum HolderFollowUp {
    Begin(Begin),
    Release(PodRef),
}

#[derive(Default)]
pub struct SharedGpus {
    slots: BTreeMap<GpuSlot, SharedGpu>,
    leases: BTreeMap<LeaseId, Vec<GpuSlot>>,
    /// What begins as soon as its GPUs are known.
    waiting: BTreeMap<LeaseId, Begin>,
    /// Pods whose annotation names a GPU, by the GPU's UUID, also pods that are no tasks. Its
    /// reservation stays until they are gone.
    users: BTreeMap<String, BTreeSet<String>>,
    /// It is known who has a part of what.
    is_known: bool,
}

/// A GPU with what is known of the pod that holds it.
#[derive(Default)]
struct SharedGpu {
    holders: BTreeSet<LeaseId>,
    pod: Option<Holder>,
    /// How often the pod had to be made again.
    tries: u32,
}

struct Holder {
    at: PodRef,
    uuid: Option<String>,
    /// It was asked to end.
    is_leaving: bool,
}

impl Holder {
    /// The reservation pod to delete, unless it is being deleted or a pod still uses the GPU.
    fn release(&mut self, users: &BTreeMap<String, BTreeSet<String>>) -> Option<PodRef> {
        let is_in_use = self.uuid.as_ref().is_some_and(|uuid| users.contains_key(uuid));
        if is_in_use || self.is_leaving {
            return None;
        }
        self.is_leaving = true;
        Some(self.at.clone())
    }
}

fn is_in_use(users: &BTreeMap<String, BTreeSet<String>>, held: &GpuReservation) -> bool {
    held.uuid.as_ref().is_some_and(|uuid| users.contains_key(uuid))
}

/// The GPUs of which a lease is to have a fraction.
pub fn slots(core: &Core, lease: LeaseId) -> Vec<GpuSlot> {
    let live = core.jobs.get(&lease.job).and_then(|job| job.leases.get(&lease));
    // Nearly none has, and this is asked for every pod.
    let Some(live) = live.filter(|live| live.row.slices.contains("fraction")) else {
        return Vec::new();
    };
    let slices: Vec<Slice> = serde_json::from_str(&live.row.slices).unwrap_or_default();
    let shares = slices.iter().filter(|slice| matches!(slice.share, Share::Fraction(_)));
    shares.map(|slice| GpuSlot { node: Name::new(&live.row.node), gpu: slice.gpu }).collect()
}

impl SharedGpus {
    /// A lease has a part of these GPUs. Orders reservation pods for those that have none yet.
    pub fn hold(&mut self, lease: LeaseId, slots: Vec<GpuSlot>) -> Vec<ApiOrder> {
        let mut orders = Vec::new();
        for slot in &slots {
            let shared = self.slots.entry(slot.clone()).or_default();
            if shared.holders.is_empty() && shared.pod.is_none() {
                orders.push(ApiOrder::Reserve { slot: slot.clone(), tries: 0 });
            }
            shared.holders.insert(lease);
        }
        self.leases.insert(lease, slots);
        orders
    }

    /// Returns what shares GPUs if they are known, and otherwise keeps it until they are.
    pub fn begin(&mut self, begin: Begin) -> Option<Begin> {
        let Some(gpus) = self.gpus_of(begin.lease()) else {
            self.waiting.insert(begin.lease(), begin);
            return None;
        };
        Some(begin.with_gpus(gpus))
    }

    fn gpus_of(&self, lease: LeaseId) -> Option<String> {
        let slots = self.leases.get(&lease)?;
        let uuids: Option<Vec<&str>> = slots
            .iter()
            .map(|slot| {
                let pod = self.slots.get(slot)?.pod.as_ref().filter(|pod| !pod.is_leaving)?;
                pod.uuid.as_deref()
            })
            .collect();
        uuids.map(|uuids| uuids.join(","))
    }

    /// A lease is over, or will never begin. Returns the reservation pods that no lease needs now.
    pub fn release(&mut self, lease: LeaseId) -> Vec<PodRef> {
        self.waiting.remove(&lease);
        let mut free = Vec::new();
        for slot in self.leases.remove(&lease).unwrap_or_default() {
            let Some(shared) = self.slots.get_mut(&slot) else { continue };
            shared.holders.remove(&lease);
            if !shared.holders.is_empty() {
                continue;
            }
            match &mut shared.pod {
                Some(pod) => free.extend(pod.release(&self.users)),
                None => drop(self.slots.remove(&slot)),
            }
        }
        free
    }

    /// The pods that hold these.
    pub fn holding(&self, slots: &[GpuSlot]) -> Vec<PodRef> {
        let pods = slots.iter().filter_map(|slot| self.slots.get(slot)?.pod.as_ref());
        pods.map(|pod| pod.at.clone()).collect()
    }

    /// The pods that hold what a lease has parts of.
    pub fn holding_for(&self, lease: LeaseId) -> Vec<PodRef> {
        self.leases.get(&lease).map(|slots| self.holding(slots)).unwrap_or_default()
    }

    /// A pod was seen whose annotation names GPUs.
    pub fn observe_user(&mut self, pod: &PodView) {
        for uuid in pod.shares.iter().flat_map(|all| all.split(',')) {
            self.users.entry(uuid.to_owned()).or_default().insert(pod.at.uid.clone());
        }
    }

    /// A pod does not run any more. Returns the pods that held GPUs for it alone.
    pub fn lose_gpu_user(&mut self, pod: &PodView) -> Vec<PodRef> {
        let Some(all) = &pod.shares else { return Vec::new() };
        for uuid in all.split(',') {
            if let Some(users) = self.users.get_mut(uuid) {
                users.remove(&pod.at.uid);
            }
        }
        self.users.retain(|_, users| !users.is_empty());
        if self.is_known { self.idle() } else { Vec::new() }
    }

    /// A lease is not to begin any more.
    pub fn forget(&mut self, lease: LeaseId) {
        self.waiting.remove(&lease);
    }

    /// The reservation pods that no lease needs. Called once all leases are known.
    pub fn idle(&mut self) -> Vec<PodRef> {
        self.is_known = true;
        let idle = self.slots.values_mut().filter(|shared| shared.holders.is_empty());
        let pods = idle.filter_map(|shared| shared.pod.as_mut());
        pods.filter_map(|pod| pod.release(&self.users)).collect()
    }

    /// Those that have a part of the GPU that a reservation pod holds.
    pub fn holders(&self, pod: &PodView) -> Vec<LeaseId> {
        let shared = slot_of(pod).and_then(|slot| self.slots.get(&slot));
        shared.map(|shared| shared.holders.iter().copied().collect()).unwrap_or_default()
    }

    /// Whether a lease has a part of the GPU that a reservation pod holds.
    pub fn is_used(&self, pod: &PodView) -> bool {
        let shared = slot_of(pod).and_then(|slot| self.slots.get(&slot));
        shared.is_some_and(|shared| {
            let is_this = shared.pod.as_ref().is_some_and(|known| known.at.uid == pod.at.uid);
            is_this && !shared.holders.is_empty()
        })
    }

    /// A pod that holds a GPU was seen.
    pub fn observe_holder(&mut self, pod: &PodView) -> Vec<HolderFollowUp> {
        let (Some(slot), Some(held)) = (slot_of(pod), &pod.holds) else { return Vec::new() };
        let shared = self.slots.entry(slot.clone()).or_default();
        let was_leaving =
            shared.pod.as_ref().is_some_and(|known| known.at.uid == pod.at.uid && known.is_leaving);
        let is_over = pod.phase.is_over();
        if is_over && !was_leaving {
            shared.tries += 1;
        }
        // Those who wanted it have gone in the meantime.
        let is_idle = self.is_known && shared.holders.is_empty() && !is_in_use(&self.users, held);
        let is_leaving = was_leaving || pod.is_leaving || is_over || is_idle;
        let uuid = held.uuid.clone();
        shared.pod = Some(Holder { at: pod.at.clone(), uuid, is_leaving });
        if (is_over || is_idle) && !was_leaving && !pod.is_leaving {
            // Where the kubelet would not have it, another one is made when it is gone.
            return vec![HolderFollowUp::Release(pod.at.clone())];
        }
        self.ready(&slot)
    }

    fn ready(&mut self, slot: &GpuSlot) -> Vec<HolderFollowUp> {
        let Some(shared) = self.slots.get(slot) else { return Vec::new() };
        let leases: Vec<LeaseId> = shared.holders.iter().copied().collect();
        let waiting: Vec<Begin> =
            leases.into_iter().filter_map(|lease| self.waiting.remove(&lease)).collect();
        waiting
            .into_iter()
            .filter_map(|begin| self.begin(begin))
            .map(HolderFollowUp::Begin)
            .collect()
    }

    /// A reservation pod is gone. Orders another one where a lease still has a part of the GPU.
    pub fn gone(&mut self, pod: &PodView) -> Vec<ApiOrder> {
        let Some(slot) = slot_of(pod) else { return Vec::new() };
        let Some(shared) = self.slots.get_mut(&slot) else { return Vec::new() };
        if shared.pod.as_ref().is_some_and(|known| known.at.uid != pod.at.uid) {
            return Vec::new();
        }
        shared.pod = None;
        if shared.holders.is_empty() {
            self.slots.remove(&slot);
            return Vec::new();
        }
        vec![ApiOrder::Reserve { slot, tries: shared.tries }]
    }

    /// Tries once more to hold a GPU.
    pub fn again(&mut self, slot: &GpuSlot) -> Vec<ApiOrder> {
        let shared = self.slots.get_mut(slot).filter(|shared| !shared.holders.is_empty());
        let Some(shared) = shared.filter(|shared| shared.pod.is_none()) else { return Vec::new() };
        shared.tries += 1;
        vec![ApiOrder::Reserve { slot: slot.clone(), tries: shared.tries }]
    }

    /// Who waits for a GPU to be held.
    pub fn waiting_for(&self, slot: &GpuSlot) -> Vec<Waiter> {
        let holders = self.slots.get(slot).map(|shared| &shared.holders);
        let waiting = holders.into_iter().flatten().filter_map(|lease| self.waiting.get(lease));
        waiting.map(Begin::who).collect()
    }
}

fn slot_of(pod: &PodView) -> Option<GpuSlot> {
    Some(GpuSlot { node: pod.node.clone()?, gpu: pod.holds.as_ref()?.gpu })
}
