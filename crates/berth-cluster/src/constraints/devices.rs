//! What GPU resources stand for: a whole GPU, a MIG instance or a share, which may differ from node
//! to node. Nodes carry what they offer as labels, and pods select nodes by them, so that a pod is
//! never bound where the device plugin would have to refuse it.

use crate::view::NodeView;
use berth_kube::pod::requests::{GpuRequest, GpuSharing, GpuUnit, GpuVendor, SharingStrategy};
use berth_model::{Division, GpuAsk, Health, Name, NodeSpec, Share, Slice};
use std::collections::BTreeMap;

/// One way in which a node hands out GPUs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Offer {
    /// What one `nvidia.com/gpu` is there.
    Gpu(GpuUnit),
    /// One `nvidia.com/gpu.shared`.
    Shared(GpuSharing),
    Mig(Name),
    Amd,
}

impl Offer {
    /// All that a node hands out.
    pub fn of(node: &NodeView) -> Vec<Offer> {
        let gpus = &node.spec.gpus;
        if gpus.is_empty() {
            return Vec::new();
        }
        // GPUs that can be claimed are no resources of a device plugin.
        if !node.claimable.is_empty() {
            return Vec::new();
        }
        if node.object.status.allocatable.get("amd.com/gpu").is_some() {
            return vec![Offer::Amd];
        }
        let is_whole = |division| matches!(division, None | Some(Division::Whole));
        let mut offers = Vec::new();
        match &node.devices.gpu {
            GpuUnit::Whole => {
                let mut profiles: Vec<&Name> =
                    gpus.iter().flat_map(|gpu| gpu.mig.iter().flatten()).map(profile).collect();
                profiles.sort();
                profiles.dedup();
                offers.extend(profiles.into_iter().cloned().map(Offer::Mig));
                if gpus.iter().any(|gpu| gpu.mig.is_none() && is_whole(gpu.division)) {
                    offers.push(Offer::Gpu(GpuUnit::Whole));
                }
            }
            other => offers.push(Offer::Gpu(other.clone())),
        }
        offers.extend(node.devices.shared.map(Offer::Shared));
        offers
    }

    /// The label of nodes that have it.
    pub fn label(&self) -> Name {
        let shares = |sharing: &GpuSharing| match sharing.strategy {
            SharingStrategy::TimeSlice => format!("time slices of {}", sharing.replicas),
            SharingStrategy::Mps => format!("MPS shares of {}", sharing.replicas),
        };
        match self {
            Offer::Gpu(GpuUnit::Whole) => Name::new("nvidia.com/gpu"),
            Offer::Gpu(GpuUnit::Replica(sharing)) => {
                Name::from(format!("nvidia.com/gpu as {}", shares(sharing)))
            }
            Offer::Gpu(GpuUnit::Instance(profile)) => {
                Name::from(format!("nvidia.com/gpu as MIG {profile}"))
            }
            Offer::Shared(sharing) => {
                Name::from(format!("nvidia.com/gpu.shared as {}", shares(sharing)))
            }
            Offer::Mig(profile) => Name::from(format!("nvidia.com/mig-{profile}")),
            Offer::Amd => Name::new("amd.com/gpu"),
        }
    }

    /// One of it, as the scheduler knows it. Jobs of our own get nothing of AMD's.
    pub fn piece(&self) -> Option<GpuAsk> {
        Some(match self {
            Offer::Gpu(GpuUnit::Whole) => GpuAsk::Whole { count: 1 },
            Offer::Gpu(GpuUnit::Instance(profile)) | Offer::Mig(profile) => {
                GpuAsk::Mig { profile: profile.clone(), count: 1 }
            }
            Offer::Gpu(GpuUnit::Replica(sharing)) | Offer::Shared(sharing) => sharing.ask(1),
            Offer::Amd => return None,
        })
    }

    /// What a pod asks of the scheduler if it is given this; nothing where it asks for another.
    pub fn ask(&self, gpus: &GpuRequest) -> Option<GpuAsk> {
        let on = |gpu: GpuUnit, shared| {
            gpus.ask(&berth_kube::pod::requests::DevicePluginResources { gpu, shared })
        };
        match (gpus, self) {
            (GpuRequest::Whole { vendor: GpuVendor::Nvidia, .. }, Offer::Gpu(unit)) => {
                on(unit.clone(), None)
            }
            (GpuRequest::Whole { vendor: GpuVendor::Amd, .. }, Offer::Amd)
            | (
                GpuRequest::Fraction { .. } | GpuRequest::Memory { .. },
                Offer::Gpu(GpuUnit::Whole),
            ) => on(GpuUnit::Whole, None),
            (GpuRequest::Shared { .. }, Offer::Shared(sharing)) => {
                on(GpuUnit::Whole, Some(*sharing))
            }
            (GpuRequest::Mig { profile, .. }, Offer::Mig(offered)) if profile == offered => {
                on(GpuUnit::Whole, None)
            }
            _ => None,
        }
    }

    /// What is meant where no node says otherwise.
    pub fn usual(gpus: &GpuRequest) -> Option<Offer> {
        match gpus {
            GpuRequest::None | GpuRequest::Shared { .. } => None,
            GpuRequest::Whole { vendor: GpuVendor::Amd, .. } => Some(Offer::Amd),
            GpuRequest::Whole { .. } | GpuRequest::Fraction { .. } | GpuRequest::Memory { .. } => {
                Some(Offer::Gpu(GpuUnit::Whole))
            }
            GpuRequest::Mig { profile, .. } => Some(Offer::Mig(profile.clone())),
        }
    }
}

/// The label of nodes that hand out what this asks for, whatever resource it is there. Nothing
/// where no GPU is asked for.
pub fn kind(ask: &GpuAsk) -> Option<Name> {
    Some(match ask {
        GpuAsk::None => return None,
        // Parts that Berth makes itself are made of whole ones.
        GpuAsk::Whole { .. } | GpuAsk::Fraction { .. } | GpuAsk::Memory { .. } => {
            Offer::Gpu(GpuUnit::Whole).label()
        }
        GpuAsk::Mig { profile, .. } => Name::from(format!("MIG {profile}")),
        GpuAsk::TimeSlice { of, .. } => Name::from(format!("time slices of {of}")),
        GpuAsk::Mps { percent, .. } => Name::from(format!("MPS shares of {percent}%")),
    })
}

fn profile(slot: &berth_model::MigSlot) -> &Name {
    &slot.profile
}

/// Devices by resource, as pods that are none of our tasks take them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pieces {
    gpus: i64,
    /// GPUs that are known one by one, by their number in the core.
    held: BTreeMap<u32, i64>,
    shared: i64,
    instances: BTreeMap<Name, i64>,
}

impl Pieces {
    /// Fractions take nothing of their own: a reservation holds their GPU.
    pub fn of(gpus: &[GpuRequest]) -> Pieces {
        let mut pieces = Pieces::default();
        for gpus in gpus {
            match gpus {
                GpuRequest::None | GpuRequest::Fraction { .. } | GpuRequest::Memory { .. } => {}
                GpuRequest::Whole { count, .. } => pieces.gpus += i64::from(*count),
                GpuRequest::Shared { count } => pieces.shared += i64::from(*count),
                GpuRequest::Mig { profile, count } => {
                    *pieces.instances.entry(profile.clone()).or_default() += i64::from(*count);
                }
            }
        }
        pieces
    }

    /// A GPU that a reservation pod holds for a pod that the core does not know.
    pub fn held(gpu: u32) -> Pieces {
        Pieces { held: BTreeMap::from([(gpu, 1)]), ..Pieces::default() }
    }

    pub fn add(&mut self, other: &Pieces, sign: i64) {
        self.gpus += other.gpus * sign;
        for (gpu, count) in &other.held {
            *self.held.entry(*gpu).or_default() += count * sign;
        }
        self.held.retain(|_, count| *count != 0);
        self.shared += other.shared * sign;
        for (profile, count) in &other.instances {
            *self.instances.entry(profile.clone()).or_default() += count * sign;
        }
        self.instances.retain(|_, count| *count != 0);
    }

    /// Takes them off a node. Kubernetes does not say which GPUs they are, only that they are none
    /// of those that Berth's own tasks have.
    pub fn subtract_from(&self, node: &NodeView, spec: &mut NodeSpec, ours: &[Slice]) {
        match &node.devices.gpu {
            GpuUnit::Whole => self.fail(spec, ours),
            GpuUnit::Replica(_) => share_out(spec, self.gpus, ours),
            GpuUnit::Instance(profile) => remove(spec, profile, self.gpus, ours),
        }
        share_out(spec, self.shared, ours);
        for (profile, count) in &self.instances {
            remove(spec, profile, *count, ours);
        }
    }

    /// Reports GPUs that others use whole as failed, so that the core gives them to no job.
    fn fail(&self, spec: &mut NodeSpec, ours: &[Slice]) {
        let is_ours = |at: usize| ours.iter().any(|slice| slice.gpu as usize == at);
        let is_held = |at: usize| u32::try_from(at).is_ok_and(|at| self.held.contains_key(&at));
        let held = spec.gpus.iter_mut().enumerate().filter(|(at, _)| is_held(*at));
        for (_, gpu) in held.filter(|(at, _)| !is_ours(*at)) {
            gpu.health = Health::Failed;
        }
        let free = spec.gpus.iter_mut().enumerate().rev().filter(|(at, gpu)| {
            let is_whole =
                gpu.mig.is_none() && matches!(gpu.division, None | Some(Division::Whole));
            is_whole && !is_ours(*at) && !is_held(*at)
        });
        for (_, gpu) in free.take(usize::try_from(self.gpus).unwrap_or(0)) {
            gpu.health = Health::Failed;
        }
    }
}

/// Shares that others use are not there for us, on whichever GPUs most are free.
fn share_out(spec: &mut NodeSpec, count: i64, ours: &[Slice]) {
    for _ in 0..count {
        let free = spec.gpus.iter_mut().enumerate().filter_map(|(at, gpu)| {
            let held = ours.iter().filter(|slice| slice.gpu as usize == at).count();
            match &mut gpu.division {
                Some(Division::Mps { shares } | Division::TimeSlice { shares }) => {
                    let left = shares.checked_sub(u32::try_from(held).ok()?)?;
                    (left > 0).then_some((left, shares))
                }
                _ => None,
            }
        });
        let Some((_, shares)) = free.max_by_key(|(left, _)| *left) else { return };
        *shares -= 1;
    }
}

fn remove(spec: &mut NodeSpec, profile: &Name, count: i64, ours: &[Slice]) {
    let mut left = count;
    for (at, gpu) in spec.gpus.iter_mut().enumerate().rev() {
        let Some(slots) = &mut gpu.mig else { continue };
        slots.retain(|slot| {
            let is_ours =
                |slice: &Slice| slice.gpu as usize == at && slice.share == Share::Mig(slot.clone());
            let goes = left > 0 && slot.profile == *profile && !ours.iter().any(is_ours);
            left -= i64::from(goes);
            !goes
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_kube::node;
    use std::sync::Arc;

    fn view(labels: &str, allocatable: &str) -> NodeView {
        let object: berth_kube::object::Node = serde_json::from_str(&format!(
            r#"{{"metadata": {{"name": "n", "labels": {labels}}},
                 "status": {{"allocatable": {allocatable}}}}}"#
        ))
        .unwrap();
        let reading = node::read(&object, &node::TOPOLOGY_KEYS).unwrap();
        NodeView {
            spec: reading.spec,
            devices: reading.devices,
            claimable: Arc::default(),
            object: Arc::new(object),
            is_unreadable: false,
        }
    }

    fn labels(view: &NodeView) -> Vec<String> {
        Offer::of(view).iter().map(|offer| offer.label().to_string()).collect()
    }

    #[test]
    fn a_node_says_what_each_of_its_resources_is() {
        let h100 = r#""nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3""#;
        let plain = view(&format!("{{{h100}}}"), r#"{"nvidia.com/gpu": "8"}"#);
        assert_eq!(labels(&plain), ["nvidia.com/gpu"]);
        assert!(plain.spec.gpus[0].division.is_none(), "nothing else could be meant");
        let mixed = view(
            &format!(r#"{{{h100}, "nvidia.com/gpu.count": "2"}}"#),
            r#"{"nvidia.com/gpu": "1", "nvidia.com/mig-1g.10gb": "7"}"#,
        );
        assert_eq!(labels(&mixed), ["nvidia.com/mig-1g.10gb", "nvidia.com/gpu"]);
        let single = view(
            r#"{"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"}"#,
            r#"{"nvidia.com/gpu": "7"}"#,
        );
        assert_eq!(labels(&single), ["nvidia.com/gpu as MIG 1g.10gb"]);
        let shared = view(
            &format!(
                r#"{{{h100}, "nvidia.com/gpu.replicas": "4",
                   "nvidia.com/gpu.sharing-strategy": "mps"}}"#
            ),
            r#"{"nvidia.com/gpu.shared": "8"}"#,
        );
        assert_eq!(labels(&shared), ["nvidia.com/gpu.shared as MPS shares of 4"]);
        assert_eq!(labels(&view("{}", r#"{"amd.com/gpu": "8"}"#)), ["amd.com/gpu"]);
        assert_eq!(labels(&view("{}", r#"{"cpu": "8"}"#)), [""; 0]);
    }

    #[test]
    fn jobs_of_our_own_find_a_kind_of_gpu_under_whatever_resource_it_has() {
        let slices = GpuSharing { strategy: SharingStrategy::TimeSlice, replicas: 4 };
        let mps = GpuSharing { strategy: SharingStrategy::Mps, replicas: 13 };
        for (offers, says) in [
            (
                [Offer::Mig("1g.10gb".into()), Offer::Gpu(GpuUnit::Instance("1g.10gb".into()))],
                "MIG 1g.10gb",
            ),
            ([Offer::Shared(slices), Offer::Gpu(GpuUnit::Replica(slices))], "time slices of 4"),
            ([Offer::Shared(mps), Offer::Gpu(GpuUnit::Replica(mps))], "MPS shares of 7%"),
        ] {
            for offer in offers {
                assert_eq!(kind(&offer.piece().unwrap()).as_deref(), Some(says), "{offer:?}");
            }
        }
        let half = GpuAsk::Fraction { milli: berth_model::Milli(500), count: 1 };
        assert_eq!(kind(&half), kind(&GpuAsk::Whole { count: 8 }));
        assert_eq!((kind(&GpuAsk::None), Offer::Amd.piece()), (None, None));
    }

    #[test]
    fn a_gpu_that_is_held_for_an_unknown_pod_is_that_one_and_no_other() {
        let node = view("{}", r#"{"nvidia.com/gpu": "3"}"#);
        let failed = |taken: &Pieces, ours: &[Slice]| -> Vec<bool> {
            let mut spec = node.spec.clone();
            taken.subtract_from(&node, &mut spec, ours);
            spec.gpus.iter().map(|gpu| gpu.health == Health::Failed).collect()
        };
        let mut taken = Pieces::held(0);
        assert_eq!(failed(&taken, &[]), [true, false, false]);
        taken.add(&Pieces::of(&[GpuRequest::Whole { vendor: GpuVendor::Nvidia, count: 1 }]), 1);
        assert_eq!(failed(&taken, &[]), [true, false, true]);
        let ours = [Slice { gpu: 0, share: Share::Whole }];
        assert_eq!(failed(&taken, &ours), [false, false, true], "it is in the books by now");
        taken.add(&Pieces::held(0), -1);
        assert_eq!(failed(&taken, &[]), [false, false, true]);
    }

    #[test]
    fn what_others_use_is_not_there_for_us() {
        let mixed = view(
            r#"{"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": "3"}"#,
            r#"{"nvidia.com/gpu": "2", "nvidia.com/mig-1g.10gb": "7"}"#,
        );
        let mut taken = Pieces::of(&[GpuRequest::Mig { profile: "1g.10gb".into(), count: 5 }]);
        taken.add(&Pieces::of(&[GpuRequest::Whole { vendor: GpuVendor::Nvidia, count: 1 }]), 1);
        let ours = [
            Slice { gpu: 1, share: Share::Whole },
            Slice {
                gpu: 2,
                share: Share::Mig(mixed.spec.gpus[2].mig.as_ref().unwrap()[0].clone()),
            },
        ];
        let mut spec = mixed.spec.clone();
        taken.subtract_from(&mixed, &mut spec, &ours);
        let failed: Vec<bool> = spec.gpus.iter().map(|gpu| gpu.health == Health::Failed).collect();
        assert_eq!(failed, [true, false, false]);
        let left = spec.gpus[2].mig.as_ref().unwrap();
        assert_eq!(left.len(), 2);
        assert!(ours[1].share == Share::Mig(left[0].clone()));
    }

    #[test]
    fn shares_that_others_use_are_taken_from_where_most_are_free() {
        let shared = view(
            r#"{"nvidia.com/gpu.product": "NVIDIA-L4-SHARED", "nvidia.com/gpu.replicas": "4"}"#,
            r#"{"nvidia.com/gpu": "8"}"#,
        );
        let taken = Pieces::of(&[GpuRequest::Whole { vendor: GpuVendor::Nvidia, count: 4 }]);
        let ours = vec![Slice { gpu: 1, share: Share::TimeSlice(berth_model::Milli(250)) }; 3];
        let mut spec = shared.spec.clone();
        taken.subtract_from(&shared, &mut spec, &ours);
        let left: Vec<Option<Division>> = spec.gpus.iter().map(|gpu| gpu.division).collect();
        let shares = |shares| Some(Division::TimeSlice { shares });
        assert!(left == [shares(1), shares(3)] || left == [shares(0), shares(4)], "{left:?}");
    }
}
