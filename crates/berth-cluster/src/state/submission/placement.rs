//! Topology constraints of a gang: of all its pods, of a part, and of groups of parts.

use berth_kube::gang::ParentGroup;
use berth_model::{Bytes, Cpu, GpuAsk, GroupSpec, LabelAsk, Name, TopologyAsk};
use std::collections::BTreeMap;

/// A group of tasks, and the groups of parts it is in.
pub type Within = (Vec<ParentGroup>, GroupSpec);

/// Groups where the gang as a whole has to be. Several that have to be together are one group of
/// groups; a single one is the gang.
pub fn placed(mut groups: Vec<Within>, together: Option<&TopologyAsk>) -> Vec<GroupSpec> {
    let Some(together) = together else {
        groups.iter_mut().for_each(|(_, group)| in_blocks(group));
        return nested(groups, 0);
    };
    // Blocks are of like pods, so each kind is divided by itself.
    let (whole, blocks) = (TopologyAsk { segment: None, ..together.clone() }, &together.segment);
    for (_, group) in &mut groups {
        if blocks.is_some() && group.topology.is_none() {
            let within = together.within.clone();
            let segment = blocks.clone();
            group.topology = Some(TopologyAsk { within, segment, ..TopologyAsk::default() });
        }
    }
    if let [(above, only)] = &mut groups[..]
        && above.is_empty()
    {
        let own = only.topology.get_or_insert_default();
        own.within = own.within.take().or(whole.within);
        own.required = own.required.take().or(whole.required);
        own.preferred = own.preferred.take().or(whole.preferred);
        in_blocks(only);
        return nested(groups, 0);
    }
    groups.iter_mut().for_each(|(_, group)| in_blocks(group));
    let groups = nested(groups, 0);
    if whole.required.is_none() && whole.preferred.is_none() {
        return groups;
    }
    vec![all_of("all", groups, whole)]
}

/// Groups that are so deep in others, in the order they have: tasks are numbered by it.
fn nested(groups: Vec<Within>, depth: usize) -> Vec<GroupSpec> {
    let mut found = Vec::new();
    let mut rest = groups.into_iter().peekable();
    while let Some((above, group)) = rest.next() {
        let Some(around) = above.get(depth).cloned() else {
            found.push(group);
            continue;
        };
        let mut together = vec![(above, group)];
        while let Some(next) = rest.next_if(|(above, _)| above.get(depth) == Some(&around)) {
            together.push(next);
        }
        found.push(all_of(&around.name, nested(together, depth + 1), around.topology));
    }
    found
}

/// Groups all of which are needed, in one place.
fn all_of(name: &str, groups: Vec<GroupSpec>, topology: TopologyAsk) -> GroupSpec {
    GroupSpec {
        name: Name::new(name),
        count: 0,
        min: groups.len() as u32,
        groups,
        gpus: GpuAsk::None,
        models: Vec::new(),
        min_gpu_memory: None,
        cpu: Cpu::ZERO,
        memory: Bytes::ZERO,
        topology: Some(topology),
        spread: None,
        labels: LabelAsk::default(),
        tolerations: Vec::new(),
        near: Vec::new(),
        counted: BTreeMap::new(),
        nodes: None,
    }
}

/// Fewer pods than a block has are one block, and what has to run is whole blocks.
fn in_blocks(group: &mut GroupSpec) {
    let Some(topology) = &mut group.topology else { return };
    let Some(block) = topology.segment.clone().filter(|block| block.size > 0) else { return };
    if group.count < block.size {
        topology.segment = None;
        topology.required.get_or_insert(block.within);
    } else {
        group.min = group.min.next_multiple_of(block.size).min(group.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::submission::{Alike, group};
    use berth_model::Segment;
    use std::cmp::Reverse;

    fn of(count: u32, min: u32) -> Within {
        let like = Alike {
            above: Reverse(Vec::new()),
            may_be_anywhere: true,
            part: None,
            cpu: Cpu::ZERO,
            memory: Bytes::ZERO,
            gpus: GpuAsk::None,
            counted: BTreeMap::new(),
            labels: LabelAsk::default(),
            topology: None,
            constraints: None,
        };
        (Vec::new(), group("g", count, min, like))
    }

    fn in_zone(blocks_of: Option<u32>) -> TopologyAsk {
        let segment = blocks_of.map(|size| Segment { size, within: Name::new("rack") });
        let required = Some(Name::new("zone"));
        TopologyAsk { within: None, required, preferred: None, segment }
    }

    #[test]
    fn several_kinds_that_have_to_be_together_are_one_group_of_groups() {
        let [all] = &placed(vec![of(1, 1), of(2, 2)], Some(&in_zone(None)))[..] else {
            panic!("they are together")
        };
        assert_eq!((all.groups.len(), all.min), (2, 2));
        assert_eq!(all.topology, Some(in_zone(None)));
        let [only] = &placed(vec![of(2, 2)], Some(&in_zone(None)))[..] else { panic!("one") };
        assert!(only.is_leaf());
        assert_eq!(only.topology, Some(in_zone(None)));
    }

    #[test]
    fn blocks_are_whole_and_what_is_less_than_one_stays_in_one_place() {
        let [all] = &placed(vec![of(4, 3), of(1, 1)], Some(&in_zone(Some(2))))[..] else {
            panic!("they are together")
        };
        assert_eq!(all.topology, Some(in_zone(None)));
        let [four, one] = &all.groups[..] else { panic!("there are two kinds") };
        assert_eq!(four.min, 4, "three would be one block and a half");
        let (four, one) = (four.topology.clone().unwrap(), one.topology.clone().unwrap());
        assert_eq!(four.segment.map(|block| block.size), Some(2));
        assert_eq!((one.segment, one.required), (None, Some(Name::new("rack"))));
    }

    #[test]
    fn parts_that_have_to_be_together_are_groups_of_groups_in_the_order_of_their_tasks() {
        let level =
            |name: &str| TopologyAsk { required: Some(Name::new(name)), ..TopologyAsk::default() };
        let above =
            |name: &str, at: &str| ParentGroup { name: Name::new(name), topology: level(at) };
        let within = |above: &[ParentGroup], count: u32| (above.to_vec(), of(count, count).1);
        let (ab, a) = (above("ab", "spine"), above("a", "rack"));
        let groups = vec![
            within(&[], 1),
            within(&[ab.clone(), a], 2),
            within(std::slice::from_ref(&ab), 3),
            within(&[above("c", "rack")], 4),
        ];
        fn line(group: &GroupSpec) -> String {
            if group.is_leaf() {
                return group.count.to_string();
            }
            let required = group.topology.as_ref().and_then(|ask| ask.required.as_deref());
            let below: Vec<String> = group.groups.iter().map(line).collect();
            format!("{}@{}({})", group.name, required.unwrap_or_default(), below.join(" "))
        }
        let [all] = &placed(groups, Some(&level("zone")))[..] else { panic!("they are together") };
        assert_eq!(line(all), "all@zone(1 ab@spine(a@rack(2) 3) c@rack(4))");
        // A single part in another group has to be where that is, and where the gang is.
        let one = placed(vec![within(&[ab], 2)], Some(&level("zone")));
        assert_eq!(line(&one[0]), "all@zone(ab@spine(2))");
    }
}
