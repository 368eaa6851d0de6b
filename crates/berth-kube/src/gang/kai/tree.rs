//! The subgroups of a PodGroup of KAI's, which may have one another. Pods are in those that have none.

use super::super::draft::Draft;
use super::super::pod_group::{KaiPodGroup, KaiSubGroup};
use super::super::{ParentGroup, Subgroup};
use super::{SUBGROUP, topology};
use berth_model::Name;

const ALL: &str = "say the number of the subgroups there are, or nothing: all of them are needed";

pub struct Tree<'a> {
    object: &'a KaiPodGroup,
}

impl<'a> Tree<'a> {
    pub fn new(object: &'a KaiPodGroup) -> Tree<'a> {
        Tree { object }
    }

    fn all(&self) -> impl Iterator<Item = &'a KaiSubGroup> {
        self.object.spec.sub_groups.iter()
    }

    fn named(&self, name: &str) -> Option<&'a KaiSubGroup> {
        self.all().find(|one| *one.name == *name)
    }

    /// How many groups are directly below one; below none: at the top.
    fn below(&self, parent: Option<&str>) -> usize {
        self.all().filter(|one| parent_of(one) == parent).count()
    }

    /// Those that pods are in.
    fn leaves(&self) -> impl Iterator<Item = &'a KaiSubGroup> {
        self.all().filter(|one| self.below(Some(&one.name)) == 0)
    }

    /// The groups above one, the outermost first; nothing where they lead nowhere.
    fn above(&self, group: &'a KaiSubGroup) -> Option<Vec<&'a KaiSubGroup>> {
        let mut above = Vec::new();
        let mut next = parent_of(group);
        while let Some(parent) = next {
            let parent =
                self.named(parent).filter(|_| above.len() < self.object.spec.sub_groups.len())?;
            above.push(parent);
            next = parent_of(parent);
        }
        above.reverse();
        Some(above)
    }

    fn at(&self, field: &str) -> String {
        format!("PodGroup {}: {field}", self.object.metadata.name)
    }

    /// Reports subgroup settings that contradict each other.
    pub fn check(&self, draft: &mut Draft) {
        let spec = &self.object.spec;
        if let Some(count) = spec.min_sub_group.filter(|count| !is(*count, self.below(None))) {
            draft.invalid(&self.at("minSubGroup"), &count.to_string(), ALL);
        }
        for group in self.all() {
            let field = |field: &str| self.at(&format!("subGroups {}: {field}", group.name));
            if self.above(group).is_none() {
                let what = "name a subgroup that there is, and none that is below this one";
                draft.invalid(&field("parent"), parent_of(group).unwrap_or_default(), what);
            }
            let below = self.below(Some(&group.name));
            if let Some(count) = group.min_sub_group.filter(|count| !is(*count, below)) {
                draft.invalid(&field("minSubGroup"), &count.to_string(), ALL);
            }
            if let Some(count) = group.min_member.filter(|_| below > 0) {
                let what = "say it of the subgroups below this one: pods are in these";
                draft.invalid(&field("minMember"), &count.to_string(), what);
            }
        }
    }

    /// The part of the gang that a pod says it is in.
    pub fn part(&self, name: &str, draft: &mut Draft) -> Option<Subgroup> {
        let Some(part) = self.named(name) else {
            let what = format!("PodGroup {} has no such subgroup", self.object.metadata.name);
            draft.invalid(SUBGROUP, name, &what);
            return None;
        };
        if self.below(Some(name)) > 0 {
            let what = "this one has subgroups of its own; name one of these";
            draft.invalid(SUBGROUP, name, what);
        }
        let above = self.above(part).unwrap_or_default().into_iter().filter_map(|group| {
            let topology = topology(group.topology_constraint.as_ref()?);
            Some(ParentGroup { name: Name::new(&group.name), topology })
        });
        let above = above.collect();
        let min = match least(part) {
            0 => Some(1),
            least => draft.number(&self.at("subGroups.minMember"), Some(least)),
        };
        let topology = part.topology_constraint.as_ref().map(topology);
        Some(Subgroup { topology, above, ..Subgroup::new(name, min) })
    }

    /// How many pods of each part there have to be.
    pub fn needed(&self) -> Vec<(Name, i64)> {
        let needed = self.leaves().map(|part| (Name::new(&part.name), least(part)));
        needed.filter(|(_, least)| *least != 0).collect()
    }
}

fn parent_of(group: &KaiSubGroup) -> Option<&str> {
    group.parent.as_deref().filter(|parent| !parent.is_empty())
}

/// Without a number none of its pods is needed.
fn least(part: &KaiSubGroup) -> i64 {
    part.min_member.unwrap_or(0)
}

fn is(count: i64, groups: usize) -> bool {
    usize::try_from(count) == Ok(groups)
}
