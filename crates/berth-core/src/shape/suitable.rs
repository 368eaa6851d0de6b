//! Which classes of nodes suit a group, and in which order they are tried.

use crate::cluster::Cluster;
use crate::cluster::class::Class;
use crate::ix::{ClassIx, ModelIx};
use crate::shape::leaf::Leaf;
use berth_model::{GpuAsk, LabelAsk, Lifecycle, MigProfile, Name, Policy, Strategy};

/// Why a class of nodes cannot serve a leaf, whatever is free there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unsuitable {
    Labels,
    Model,
    GpuMemory,
    Gpus,
    Lifecycle,
    Taint,
}

pub(crate) fn unsuitable(
    leaf: &Leaf,
    lifecycle: Option<Lifecycle>,
    cluster: &Cluster,
    class: ClassIx,
) -> Option<Unsuitable> {
    let class = &cluster.classes[class.at()];
    let topology = |key: &Name| leaf.node_labels.contains_key(key);
    let labelled = leaf
        .spec
        .labels
        .need
        .iter()
        .all(|(key, value)| topology(key) || class.key.labels.get(key) == Some(value));
    if !labelled {
        return Some(Unsuitable::Labels);
    }
    if lifecycle.is_some_and(|asked| class.key.lifecycle != asked) {
        return Some(Unsuitable::Lifecycle);
    }
    let asks = leaf.need.ask.count();
    let model_fits = |model: &ModelIx| {
        let listed = leaf.need.models.is_empty() || leaf.need.models.contains(model);
        let profiled = match &leaf.need.ask {
            GpuAsk::Mig { profile, .. } => {
                MigProfile::find(&cluster.models[model.at()], profile).is_some()
            }
            _ => true,
        };
        listed && profiled
    };
    if asks > 0 {
        let of_model = class.key.gpus.iter().filter(|(model, _)| model_fits(model));
        let of_model: Vec<i64> = of_model.map(|(_, memory)| *memory).collect();
        if of_model.is_empty() {
            return Some(Unsuitable::Model);
        }
        let enough = of_model.iter().filter(|memory| **memory >= leaf.need.min_gpu_memory);
        let enough = enough.count() as u32;
        if enough == 0 {
            return Some(Unsuitable::GpuMemory);
        }
        let per_gpu = matches!(leaf.need.ask, GpuAsk::Mig { .. });
        if enough < asks && !per_gpu {
            return Some(Unsuitable::Gpus);
        }
    } else if !leaf.need.models.is_empty()
        && !class.key.gpus.iter().any(|(model, _)| model_fits(model))
    {
        return Some(Unsuitable::Model);
    }
    let tolerated = |taint: &berth_model::Taint| {
        leaf.spec.tolerations.iter().any(|toleration| {
            toleration.key == taint.key
                && toleration.value.as_ref().is_none_or(|value| *value == taint.value)
        })
    };
    if class.repelling_taints().any(|taint| !tolerated(taint)) {
        return Some(Unsuitable::Taint);
    }
    None
}

/// Orders the acceptable classes: preferred labels first, then models as asked for, or, where any
/// will do, the more efficient ones; last all together.
pub(crate) fn tiers(
    leaf: &mut Leaf,
    lifecycle: Option<Lifecycle>,
    cluster: &Cluster,
    policy: &Policy,
    efficiency: &[i64],
    speeds: &[i64],
) {
    let all: Vec<ClassIx> = (0..cluster.classes.len() as u32)
        .map(ClassIx)
        .filter(|class| cluster.classes[class.at()].nodes > 0)
        .filter(|class| unsuitable(leaf, lifecycle, cluster, *class).is_none())
        .collect();
    let rank = |class: &ClassIx| -> (i64, usize, i64) {
        let class = &cluster.classes[class.at()];
        let worth = -worth(&leaf.spec.labels, class, |key| topology_key(cluster, key));
        let listed = class
            .model
            .and_then(|model| leaf.need.models.iter().position(|asked| *asked == model))
            .unwrap_or(usize::MAX);
        // Efficiency in steps, so that a small difference does not outweigh a good fit. GPUs are
        // spared for those who need them where the task needs none.
        let energy = if leaf.need.ask.count() == 0 {
            i64::from(class.gpus)
        } else if policy.energy.0 > 0 && policy.strategy == Strategy::Pack {
            let model =
                class.model.map_or(0, |model| efficiency.get(model.at()).copied().unwrap_or(0));
            -(model / policy.energy.0.max(1))
        } else {
            0
        };
        (worth, listed, energy)
    };
    let mut ranked: Vec<((i64, usize, i64), ClassIx)> =
        all.iter().map(|class| (rank(class), *class)).collect();
    ranked.sort();
    let mut tiers: Vec<Vec<ClassIx>> = Vec::new();
    let mut last = None;
    for (rank, class) in ranked {
        if last != Some(rank) {
            tiers.push(Vec::new());
            last = Some(rank);
        }
        tiers.last_mut().expect("just pushed").push(class);
    }
    if tiers.len() > 1 {
        tiers.push(all.clone());
    }
    let mut fast: Vec<(i64, ClassIx)> = all
        .iter()
        .map(|class| {
            let model = cluster.classes[class.at()].model;
            (-model.map_or(0, |model| speeds.get(model.at()).copied().unwrap_or(0)), *class)
        })
        .collect();
    fast.sort();
    leaf.fast = fast
        .chunk_by(|a, b| a.0 == b.0)
        .map(|tier| tier.iter().map(|(_, class)| *class).collect())
        .collect();
    if leaf.fast.len() > 1 {
        leaf.fast.push(all.clone());
    }
    leaf.tiers = tiers;
    leaf.classes = all;
}

/// How much of what is preferred a class has: all or nothing where nothing is weighed. Labels that
/// differ inside a class are looked at elsewhere.
fn worth(labels: &LabelAsk, class: &Class, elsewhere: impl Fn(&Name) -> bool) -> i64 {
    let mut wishes = labels.prefer.iter().filter(|(key, _)| !elsewhere(key));
    let has = |(key, value): &(&Name, &Name)| class.key.labels.get(*key) == Some(*value);
    if labels.weights.is_empty() {
        return i64::from(wishes.all(|wish| has(&wish)));
    }
    let weight = |key: &Name| i64::from(labels.weights.get(key).copied().unwrap_or(1));
    wishes.filter(has).map(|(key, _)| weight(key)).sum()
}

/// Whether a label is a level of a topology, and so differs between nodes of a class.
fn topology_key(cluster: &Cluster, key: &Name) -> bool {
    cluster.topologies.iter().any(|(_, keys)| keys.contains(key))
}
