//! Where the pods of a job could not have their volumes attached.
//!
//! Pods of one gang are placed together, so what they attach to a node counts together. Where a node
//! has not room for the volumes of all that could come to it, it is left to so many of their groups
//! as it has room for, and the others get other nodes: however the core places them, no limit is
//! passed.

use super::context::{PlacementContext, PodGroup};
use super::infeasible::NodeFault;
use crate::view::NodeView;
use berth_kube::object::{Attachable, Text};
use berth_kube::pod::node_constraint;
use berth_kube::pod::requests::{GpuRequest, GpuUnit};
use berth_model::Name;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The nodes that are not for each group.
pub struct AttachBarriers {
    pub groups: Vec<BTreeMap<Name, NodeFault>>,
    /// Nodes were divided among the groups by what is free there now.
    pub is_divided: bool,
}

/// What a group has attached of one driver.
type Volumes<'v> = BTreeSet<&'v Attachable>;

pub fn bars(context: &PlacementContext<'_>, groups: &[PodGroup<'_>]) -> AttachBarriers {
    let (attached, capacities) = (&context.volumes.attached, &context.volumes.capacities);
    let counts =
        |what: &Attachable| attached.is_limited(&what.driver) || capacities.is_needed(&what.driver);
    let wanted: Vec<BTreeSet<Attachable>> = groups
        .iter()
        .map(|group| {
            let constraints = group.views.iter().filter_map(|view| view.constraints.as_deref());
            constraints
                .flat_map(|constraints| context.volumes.attachables(constraints))
                .filter(counts)
                .collect()
        })
        .collect();
    let mut bars =
        AttachBarriers { groups: vec![BTreeMap::new(); groups.len()], is_divided: false };
    let drivers: BTreeSet<&Text> = wanted.iter().flatten().map(|what| &what.driver).collect();
    for driver in drivers {
        let of = |wanted: &'_ BTreeSet<Attachable>| -> Vec<Attachable> {
            wanted.iter().filter(|what| what.driver == *driver).cloned().collect()
        };
        let of: Vec<Vec<Attachable>> = wanted.iter().map(of).collect();
        if capacities.is_needed(driver) {
            let lacks = |node: &&NodeView| !attached.has_driver(&node.spec.name, driver);
            for node in context.nodes.views().filter(lacks) {
                for (at, _) in of.iter().enumerate().filter(|(_, wanted)| !wanted.is_empty()) {
                    let bar = NodeFault::MissingDriver { driver: driver.clone() };
                    bars.groups[at].insert(node.spec.name.clone(), bar);
                }
            }
        }
        if attached.is_limited(driver) {
            context.limits(driver, groups, &of, &mut bars);
        }
    }
    bars
}

impl PlacementContext<'_> {
    /// Bars the nodes that cannot attach what groups want of a driver.
    fn limits(
        &self,
        driver: &Text,
        groups: &[PodGroup<'_>],
        wanted: &[Vec<Attachable>],
        bars: &mut AttachBarriers,
    ) {
        let attached = &self.volumes.attached;
        let all: Vec<Volumes<'_>> = wanted.iter().map(|wanted| wanted.iter().collect()).collect();
        let (demand, smallest) = (Demand::of(&all), smallest(groups, wanted));
        let mut tight: Vec<(Room, &NodeView)> = Vec::new();
        for node in self.nodes.views() {
            let name = &node.spec.name;
            let Some(room) = attached.room(name, driver) else { continue };
            // A node that hands out parts of GPUs has room for more pods than it has GPUs.
            let smallest = smallest.filter(|_| node.devices.gpu == GpuUnit::Whole);
            let pods = |gpus: usize| smallest.map_or(usize::MAX, |one| gpus / one);
            let most = pods(node.spec.gpus.len());
            if most > 0 && demand.worst(most) > room {
                let now = pods((self.free)(name) as usize);
                tight.push((Room { room, most, now }, node));
            }
        }
        // Where most have room now the pods will be, and among equals by name.
        tight.sort_by_key(|(room, _)| Reverse(room.now));
        let mut covered = vec![Covered::default(); groups.len()];
        for (room, node) in tight {
            let name = &node.spec.name;
            let new = all.iter().enumerate().map(|(at, wanted)| {
                let comes = !wanted.is_empty() && may_be(&groups[at], node);
                let new = wanted.iter().filter(|what| comes && !attached.has(name, what));
                new.copied().collect()
            });
            let new: Vec<Volumes<'_>> = new.collect();
            let Some(barred) = room.barred_groups(&new, &mut covered) else { continue };
            bars.is_divided |= groups.len() > 1;
            for at in barred {
                let bar = NodeFault::AttachLimit { driver: driver.clone() };
                bars.groups[at].insert(name.clone(), bar);
            }
        }
    }
}

/// Whether pods of a group may be on a node by what they say of nodes themselves.
fn may_be(group: &PodGroup<'_>, node: &NodeView) -> bool {
    let view = node_constraint::NodeView::from(&*node.object);
    let mut constraints = group.views.iter().filter_map(|view| view.constraints.as_deref());
    constraints.next().is_none_or(|constraints| constraints.constraint.allows(&view))
}

/// The fewest whole GPUs that a pod with such volumes has; nothing where some pod has none.
fn smallest(groups: &[PodGroup<'_>], wanted: &[Vec<Attachable>]) -> Option<usize> {
    let pods = groups.iter().zip(wanted).filter(|(_, wanted)| !wanted.is_empty());
    let pods = pods.flat_map(|(group, _)| group.views.iter());
    let gpus = pods.map(|view| match &view.asks.gpus {
        GpuRequest::Whole { count, .. } if *count > 0 => Some(*count as usize),
        _ => None,
    });
    gpus.collect::<Option<Vec<usize>>>()?.into_iter().min()
}

/// On how many nodes a group could be: now, and if others left them. Who could be on fewer is the
/// first to be let on the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Covered {
    now: usize,
    ever: usize,
}

/// A node that has not room for the volumes of all.
struct Room {
    /// So many more volumes can be attached.
    room: i64,
    /// So many pods have room there at the most, and so many now.
    most: usize,
    now: usize,
}

impl Room {
    /// The groups that may not use the node, of groups that would attach these new volumes there.
    /// `covered` counts the nodes that each group may use. Nothing where the volumes of all groups
    /// fit, however many pods come.
    fn barred_groups(&self, new: &[Volumes<'_>], covered: &mut [Covered]) -> Option<Vec<usize>> {
        if Demand::of(new).worst(self.most) <= self.room {
            return None;
        }
        let mut order: Vec<usize> = (0..new.len()).filter(|at| !new[*at].is_empty()).collect();
        order.sort_by_key(|at| (covered[*at], *at));
        let (mut taken, mut barred, mut here) = (Volumes::new(), Vec::new(), 0);
        for at in order {
            let more = new[at].difference(&taken).count();
            if (taken.len() + more) as i64 > self.room {
                barred.push(at);
                continue;
            }
            taken.extend(&new[at]);
            here += 1;
            covered[at].now += usize::from(here <= self.now);
            covered[at].ever += 1;
        }
        barred.sort_unstable();
        Some(barred)
    }
}

/// How many volumes groups have in common, and each for itself, the most first.
struct Demand {
    shared: usize,
    own: Vec<usize>,
}

impl Demand {
    fn of(groups: &[Volumes<'_>]) -> Demand {
        let mut users: BTreeMap<&Attachable, usize> = BTreeMap::new();
        for what in groups.iter().flatten() {
            *users.entry(what).or_default() += 1;
        }
        let shared = users.values().filter(|users| **users > 1).count();
        let own = |group: &Volumes<'_>| group.iter().filter(|what| users[**what] == 1).count();
        let mut own: Vec<usize> = groups.iter().map(own).collect();
        own.sort_unstable_by_key(|own| Reverse(*own));
        Demand { shared, own }
    }

    /// How many would be attached if so many came, and those were the worst.
    fn worst(&self, most: usize) -> i64 {
        (self.shared + self.own.iter().take(most).sum::<usize>()) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The groups that a node is not for.
    fn barred(node: &Room, groups: &[Vec<String>], covered: &mut [Covered]) -> Option<Vec<usize>> {
        let volume = |handle: &String| {
            let (driver, handle) = ("d".into(), handle.as_str().into());
            Attachable { driver, handle }
        };
        let groups: Vec<Vec<Attachable>> =
            groups.iter().map(|group| group.iter().map(volume).collect()).collect();
        let groups: Vec<Volumes<'_>> = groups.iter().map(|group| group.iter().collect()).collect();
        node.barred_groups(&groups, covered)
    }

    fn none(groups: usize) -> Vec<Covered> {
        vec![Covered::default(); groups]
    }

    fn of(handles: &[&str]) -> Vec<String> {
        handles.iter().map(|handle| (*handle).to_owned()).collect()
    }

    fn own(n: usize) -> Vec<Vec<String>> {
        (0..n).map(|at| vec![format!("v{at}")]).collect()
    }

    #[test]
    fn a_pod_is_kept_from_a_node_that_cannot_attach_all_of_its_volumes() {
        let node = Room { room: 1, most: 8, now: 8 };
        assert_eq!(barred(&node, &[of(&["a", "b"])], &mut none(1)), Some(vec![0]));
        assert_eq!(barred(&node, &[of(&["a"])], &mut none(1)), None);
        let full = Room { room: 0, ..node };
        assert_eq!(barred(&full, &[of(&[])], &mut none(1)), None, "all of its own are there");
    }

    #[test]
    fn a_gang_is_divided_among_nodes_none_of_which_could_attach_the_volumes_of_all() {
        let (pods, mut covered) = (own(8), none(8));
        let node = Room { room: 4, most: 8, now: 8 };
        assert_eq!(barred(&node, &pods, &mut covered), Some(vec![4, 5, 6, 7]));
        assert_eq!(barred(&node, &pods, &mut covered), Some(vec![0, 1, 2, 3]));
    }

    #[test]
    fn who_is_let_on_a_node_without_room_for_it_now_is_let_on_another_as_well() {
        let (pods, mut covered) = (own(4), none(4));
        let node = Room { room: 2, most: 8, now: 1 };
        assert_eq!(barred(&node, &pods, &mut covered), Some(vec![2, 3]));
        assert_eq!(covered.iter().map(|covered| covered.now).collect::<Vec<_>>(), [1, 0, 0, 0]);
        assert_eq!(barred(&node, &pods, &mut covered), Some(vec![0, 1]));
        assert_eq!(barred(&node, &pods, &mut covered), Some(vec![0, 2]), "two have no room yet");
    }

    #[test]
    fn every_pod_of_a_gang_is_let_on_some_node_also_while_none_has_room() {
        let (pods, mut covered) = (own(8), none(8));
        let full = Room { room: 4, most: 8, now: 0 };
        assert_eq!(barred(&full, &pods, &mut covered), Some(vec![4, 5, 6, 7]));
        assert_eq!(barred(&full, &pods, &mut covered), Some(vec![0, 1, 2, 3]));
    }

    #[test]
    fn no_more_pods_are_counted_than_a_node_has_room_for() {
        let node = Room { room: 8, most: 8, now: 2 };
        assert_eq!(barred(&node, &own(64), &mut none(64)), None, "eight of them at the most");
        let one_less = Room { room: 7, ..node };
        assert_eq!(barred(&one_less, &own(64), &mut none(64)).map(|barred| barred.len()), Some(57));
    }

    #[test]
    fn a_volume_that_pods_of_a_gang_share_counts_once() {
        let shared: Vec<_> = (0..4).map(|at| of(&["data", &format!("scratch{at}")])).collect();
        let node = |room| Room { room, most: 8, now: 8 };
        assert_eq!(barred(&node(5), &shared, &mut none(4)), None);
        assert_eq!(barred(&node(4), &shared, &mut none(4)), Some(vec![3]));
    }
}
