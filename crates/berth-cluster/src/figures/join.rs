//! Whose the GPUs of a reading are.

use super::reading::{Part, PodName, Reading};
use berth_figures::Figure;
use berth_model::LeaseId;
use berth_service::figures;
use std::collections::{BTreeMap, BTreeSet};

/// What a lease had of the GPUs of its node.
#[derive(Debug, Default)]
struct Had<'a> {
    gpus: BTreeSet<u32>,
    parts: Vec<&'a Part>,
}

/// The values for each lease: which GPUs it has, and what its MIG instances do.
pub fn of_leases(
    node: &str,
    reading: &Reading,
    leases: &BTreeMap<PodName, Vec<(LeaseId, String)>>,
) -> BTreeMap<LeaseId, BTreeMap<Figure, i64>> {
    // An exporter tells of its own node and of no other, whatever pods it names.
    let of = |pods: &BTreeSet<PodName>| -> BTreeSet<LeaseId> {
        let named = pods.iter().filter_map(|pod| leases.get(pod)).flatten();
        named.filter(|(_, at)| at == node).map(|(lease, _)| *lease).collect()
    };
    let mut had: BTreeMap<LeaseId, Had<'_>> = BTreeMap::new();
    for (index, gpu) in &reading.gpus {
        for lease in of(&gpu.pods) {
            had.entry(lease).or_default().gpus.insert(*index);
        }
    }
    for part in reading.parts.values() {
        for lease in of(&part.pods) {
            had.entry(lease).or_default().parts.push(part);
        }
    }
    had.into_iter().map(|(lease, had)| (lease, had.values())).collect()
}

impl Had<'_> {
    fn values(self) -> BTreeMap<Figure, i64> {
        let mut values = of_parts(&self.parts);
        values.insert(Figure::Gpus, figures::bits(self.gpus));
        values
    }
}

/// Of all instances of a task: memory in all, the rest in the mean.
fn of_parts(parts: &[&Part]) -> BTreeMap<Figure, i64> {
    let mut all: BTreeMap<Figure, (i64, i64)> = BTreeMap::new();
    for (figure, value) in parts.iter().flat_map(|part| &part.values) {
        let (sum, count) = all.entry(*figure).or_default();
        (*sum, *count) = (*sum + value, *count + 1);
    }
    let one = |(figure, (sum, count)): (Figure, (i64, i64))| match figure {
        Figure::GpuMemory => (figure, sum),
        _ => (figure, sum / count),
    };
    all.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::reading::Gpu;
    use berth_model::JobId;

    fn pod(name: &str) -> PodName {
        PodName { namespace: "ml".to_owned(), name: name.to_owned() }
    }

    fn lease(job: u64) -> LeaseId {
        LeaseId { job: JobId::new(job), task: 0, attempt: 0 }
    }

    #[test]
    fn a_lease_has_the_gpus_of_its_pod_on_its_own_node_alone() {
        let gpu =
            |pods: &[&str]| Gpu { pods: pods.iter().copied().map(pod).collect(), ..Gpu::default() };
        let gpus = [(0, gpu(&["other"])), (3, gpu(&["two"])), (5, gpu(&["two", "holder"]))];
        let reading = Reading { gpus: gpus.into(), ..Reading::default() };
        let at = |job, node: &str| (lease(job), node.to_owned());
        let leases = BTreeMap::from([
            (pod("two"), vec![at(2, "a")]),
            // Of what a pod of ours holds, several have a part.
            (pod("holder"), vec![at(7, "a"), at(8, "a")]),
            (pod("other"), vec![at(9, "b")]),
        ]);
        let found = of_leases("a", &reading, &leases);
        let gpus = |job| figures::numbers(found[&lease(job)][&Figure::Gpus]).collect::<Vec<_>>();
        assert_eq!((gpus(2), gpus(7), gpus(8)), (vec![3, 5], vec![5], vec![5]));
        assert_eq!(found.len(), 3, "what another node has is not told here");
    }

    #[test]
    fn a_lease_with_instances_has_what_they_do_among_its_figures() {
        let part = |sm, mib| Part {
            values: [(Figure::SmActive, sm), (Figure::GpuMemory, mib)].into(),
            pods: [pod("two")].into(),
        };
        let gpu = Gpu { pods: [pod("two")].into(), ..Gpu::default() };
        let reading = Reading {
            gpus: [(1, gpu)].into(),
            parts: [((1, 7), part(100, 500)), ((1, 8), part(300, 700))].into(),
        };
        let leases = BTreeMap::from([(pod("two"), vec![(lease(2), "a".to_owned())])]);
        let found = of_leases("a", &reading, &leases);
        let expect = [
            (Figure::SmActive, 200),
            (Figure::GpuMemory, 1_200),
            (Figure::Gpus, figures::bits([1])),
        ];
        assert_eq!(found[&lease(2)], expect.into());
    }
}
