//! An independent judge: what Kubernetes requires of places, worked out from the objects alone.

use super::api::{Api, PodObject};
use super::world::{Key, Rule};
use std::collections::BTreeMap;

/// Pods that are placed, and where.
pub type Placed<'a> = Vec<(&'a PodObject, usize)>;

fn place(api: &Api, node: usize, key: Key) -> Option<String> {
    let spec = api.world.nodes.get(node).filter(|_| api.nodes.contains(&node))?;
    Some(match key {
        Key::Host => format!("n{node}"),
        Key::Zone => spec.zone.to_string(),
    })
}

fn is_same_place(api: &Api, a: usize, b: usize, key: Key) -> bool {
    place(api, a, key).is_some_and(|here| place(api, b, key) == Some(here))
}

/// What is taken of a node beyond what it has.
pub fn over_capacity(api: &Api, placed: &Placed<'_>) -> Option<String> {
    for node in &api.nodes {
        let there = || placed.iter().filter(|(_, at)| at == node).map(|(pod, _)| &pod.spec);
        let gpus: u32 = there().map(|spec| spec.gpus).sum();
        if gpus > api.world.nodes[*node].gpus {
            return Some(format!(
                "n{node} has {} GPUs, and {gpus} are taken",
                api.world.nodes[*node].gpus
            ));
        }
        let mut ports = BTreeMap::new();
        for port in there().filter_map(|spec| spec.port) {
            *ports.entry(port).or_insert(0) += 1;
        }
        if let Some((port, _)) = ports.iter().find(|(_, count)| **count > 1) {
            return Some(format!("the port {port} of n{node} is taken twice"));
        }
    }
    None
}

/// A rule of the pod, or of another one about it, that does not hold where it is.
pub fn repelled(api: &Api, pod: &PodObject, node: usize, placed: &Placed<'_>) -> Option<String> {
    for (other, at) in placed.iter().filter(|(other, _)| other.uid != pod.uid) {
        for (owner, about) in [(pod, *other), (*other, pod)] {
            if let Some(Rule::Away(app, key)) = owner.spec.rule
                && about.app == app
                && is_same_place(api, node, *at, key)
            {
                let (a, b) = (&owner.uid, &about.uid);
                return Some(format!("{a} must be away from {b}, by {key:?}"));
            }
        }
    }
    None
}

/// What it requires of others that is not there: affinity and spreads.
pub fn unmet(api: &Api, pod: &PodObject, node: usize, placed: &Placed<'_>) -> Option<String> {
    let others = || placed.iter().filter(|(other, _)| other.uid != pod.uid);
    match pod.spec.rule? {
        Rule::Away(..) => None,
        Rule::Near(app, key) => {
            let mut all = others().filter(|(other, _)| other.app == app).peekable();
            let is_first = all.peek().is_none() && pod.app == app;
            let near = is_first || all.any(|(_, at)| is_same_place(api, node, *at, key));
            (!near).then(|| format!("{} must be near {app}, by {key:?}", pod.uid))
        }
        Rule::Spread(key) => {
            let mut counts: BTreeMap<String, i64> = BTreeMap::new();
            for node in &api.nodes {
                counts.entry(place(api, *node, key)?).or_default();
            }
            let meant = pod.spec.app;
            for (_, at) in others().filter(|(other, _)| other.app == meant && !other.leaves) {
                if let Some(count) = place(api, *at, key).and_then(|at| counts.get_mut(&at)) {
                    *count += 1;
                }
            }
            let least = counts.values().min().copied().unwrap_or(0);
            let here = counts.get(&place(api, node, key)?).copied()?;
            let here = here + i64::from(pod.app == meant);
            (here - least > 1).then(|| format!("{} sticks out, by {key:?}", pod.uid))
        }
    }
}

/// A node for each of these pods, if there are such beside those that are placed.
pub fn find_places(api: &Api, pods: &[&PodObject], placed: &Placed<'_>) -> Option<Vec<usize>> {
    let Some((first, rest)) = pods.split_first() else { return Some(Vec::new()) };
    for node in &api.nodes {
        let mut with: Placed<'_> = placed.clone();
        with.push((first, *node));
        let fits = over_capacity(api, &with).is_none()
            && repelled(api, first, *node, placed).is_none()
            && unmet(api, first, *node, placed).is_none();
        if !fits {
            continue;
        }
        if let Some(mut found) = find_places(api, rest, &with) {
            found.insert(0, *node);
            return Some(found);
        }
    }
    None
}
