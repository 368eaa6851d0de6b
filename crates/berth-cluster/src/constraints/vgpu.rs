//! Parts of GPUs that are asked for as Volcano's resources: which nodes are for such pods, and how
//! large a part is that is given both in memory and in cores.

use crate::constraints::devices::Offer;
use crate::view::{Asks, NodePredicate, NodeView};
use berth_kube::object::PodSpec;
use berth_kube::pod::requests::{GpuRequest, GpuUnit, VGPU_NUMBER, vgpus};
use berth_model::{Bytes, GpuAsk, Milli, Name};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What such a pod asks of nodes beside their GPUs; nothing for other pods.
pub fn rules(spec: &PodSpec) -> Vec<NodePredicate> {
    let Ok(Some(gpus)) = vgpus(spec) else { return Vec::new() };
    // That plugin refuses pods on which the scheduler of Volcano has not written what they get, and
    // the kubelet then ends them.
    let plain = rule("GPUs that are not handed out by Volcano's device plugin".into(), |node| {
        !node.object.status.allocatable.contains(VGPU_NUMBER)
    });
    let large = match gpus {
        GpuRequest::Memory { bytes, least, .. } if least.0 > 0 => {
            Some(rule(format!("GPUs of {bytes} or more"), move |node| {
                node.spec.gpus.iter().all(|gpu| gpu.memory >= bytes)
            }))
        }
        _ => None,
    };
    [plain].into_iter().chain(large).collect()
}

fn rule(name: String, allows: impl Fn(&NodeView) -> bool + Send + Sync + 'static) -> NodePredicate {
    NodePredicate { name: Name::from(name), allows: Arc::new(allows), asks: Asks::Named }
}

/// How much memory the GPUs have that are shared out in parts, and how many nodes have such.
#[derive(Debug, Default)]
pub struct Cards(BTreeMap<Bytes, usize>);

impl Cards {
    /// A node has changed, has come or is gone. Returns whether there are other sizes than before.
    pub fn update(&mut self, before: Option<&NodeView>, now: Option<&NodeView>) -> bool {
        let sizes = |node: Option<&NodeView>| node.map(sizes).unwrap_or_default();
        let (before, now) = (sizes(before), sizes(now));
        let mut is_other = false;
        for size in now.difference(&before) {
            let nodes = self.0.entry(*size).or_default();
            is_other |= *nodes == 0;
            *nodes += 1;
        }
        for size in before.difference(&now) {
            let Some(nodes) = self.0.get_mut(size) else { continue };
            *nodes -= 1;
            if *nodes == 0 {
                self.0.remove(size);
                is_other = true;
            }
        }
        is_other
    }

    /// The ask for a part by memory that is no smaller than `least`. One by memory alone is exact
    /// and does where no GPU is so large that `least` of it is more. Elsewhere it is a share that
    /// is enough on each GPU that has the memory.
    pub fn ask(&self, bytes: Bytes, least: Milli, count: u32) -> GpuAsk {
        let share = |size: &Bytes| {
            let size = i128::from(size.0.max(1));
            ((i128::from(bytes.0) * 1_000 + size - 1) / size) as i64
        };
        let enough = || self.0.range(bytes..).map(|(size, _)| share(size));
        match (enough().min(), enough().max()) {
            (Some(smallest), Some(largest)) if smallest < least.0 => {
                GpuAsk::Fraction { milli: Milli(largest.max(least.0)), count }
            }
            _ => GpuAsk::Memory { bytes, count },
        }
    }
}

fn sizes(node: &NodeView) -> BTreeSet<Bytes> {
    if !Offer::of(node).contains(&Offer::Gpu(GpuUnit::Whole)) {
        return BTreeSet::new();
    }
    let whole = node.spec.gpus.iter().filter(|gpu| gpu.mig.is_none());
    whole.map(|gpu| gpu.memory).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compat::Compat;
    use crate::observe::reader::Reader;

    fn node(name: &str, mib: u32, more: &str) -> NodeView {
        let object = serde_json::from_str(&format!(
            r#"{{"metadata": {{"name": "{name}", "labels": {{"nvidia.com/gpu.memory": "{mib}"}}}},
                 "status": {{"allocatable": {{"nvidia.com/gpu": 2{more}}}}}}}"#
        ));
        Reader::new(&[], &Compat::default(), "there").node(&object.unwrap())
    }

    fn spec(limits: &str) -> PodSpec {
        let limits = format!(r#"{{"containers": [{{"resources": {{"limits": {limits}}}}}]}}"#);
        serde_json::from_str(&limits).unwrap()
    }

    #[test]
    fn a_part_in_memory_and_cores_is_the_larger_of_both_on_every_gpu() {
        let mut cards = Cards::default();
        let ask = |cards: &Cards, gib, least| cards.ask(Bytes::gib(gib), Milli(least), 1);
        let memory = |gib| GpuAsk::Memory { bytes: Bytes::gib(gib), count: 1 };
        let fraction = |milli| GpuAsk::Fraction { milli: Milli(milli), count: 1 };
        assert_eq!(ask(&cards, 8, 500), memory(8), "there is nothing to compare with");
        let (small, large) = (node("small", 16 * 1024, ""), node("large", 80 * 1024, ""));
        assert!(cards.update(None, Some(&large)));
        assert!(!cards.update(None, Some(&node("like", 80 * 1024, ""))), "it is as large");
        assert_eq!(ask(&cards, 8, 500), fraction(500));
        assert_eq!(ask(&cards, 60, 500), memory(60));
        assert!(cards.update(None, Some(&small)));
        assert_eq!(ask(&cards, 12, 500), fraction(750), "on the small one that is the memory");
        assert_eq!(ask(&cards, 60, 500), memory(60), "it has no place on the small one");
        assert_eq!(ask(&cards, 90, 500), memory(90), "it has no place at all, and says so");
        assert!(cards.update(Some(&small), None));
        assert_eq!(ask(&cards, 12, 500), fraction(500));
    }

    #[test]
    fn a_pod_keeps_off_nodes_with_volcanos_device_plugin_and_off_gpus_that_are_too_small() {
        let allows = |limits: &str, node: &NodeView| {
            rules(&spec(limits)).iter().all(|rule| (rule.allows)(node))
        };
        let plain = node("plain", 16 * 1024, "");
        let handed_out = node("theirs", 16 * 1024, r#", "volcano.sh/vgpu-number": 20"#);
        let one = r#"{"volcano.sh/vgpu-number": 1}"#;
        assert!(allows(one, &plain) && !allows(one, &handed_out));
        assert!(rules(&spec(r#"{"nvidia.com/gpu": 1}"#)).is_empty());
        let large = r#"{"volcano.sh/vgpu-memory": 20480, "volcano.sh/vgpu-cores": 50}"#;
        assert!(!allows(large, &plain) && allows(large, &node("large", 80 * 1024, "")));
    }
}
