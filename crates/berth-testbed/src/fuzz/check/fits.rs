//! Whether a pod may be put on a node, as kube-scheduler's filters say.

use super::scene::{Node, Pod, Scene};
use super::selector::{matches, node_terms, tolerates};
use serde_json::Value;
use std::collections::BTreeMap;

/// All that must hold. The scene must not have the pod on a node.
///
/// # Errors
///
/// Says what does not.
pub fn fits(scene: &Scene, pod: &Pod, node: &Node) -> Result<(), String> {
    lasting(scene, pod, node)?;
    at_the_time(scene, pod, node)
}

/// What more pods can only break: it has to hold in whichever order pods came.
pub fn lasting(scene: &Scene, pod: &Pod, node: &Node) -> Result<(), String> {
    selects(pod, node)?;
    taints(pod, node)?;
    volumes(scene, pod, node)?;
    room(scene, pod, node)?;
    ports(scene, pod, node)?;
    apart(scene, pod, node)
}

/// What has to hold only when a pod is placed.
pub fn at_the_time(scene: &Scene, pod: &Pod, node: &Node) -> Result<(), String> {
    together(scene, pod, node)?;
    spread(scene, pod, node)
}

/// What depends on other pods but not on what they take.
///
/// # Errors
///
/// Says which rule forbids it.
pub fn rules(scene: &Scene, pod: &Pod, node: &Node) -> Result<(), String> {
    apart(scene, pod, node)?;
    at_the_time(scene, pod, node)
}

fn is_selected(pod: &Pod, node: &Node) -> bool {
    let exact = pod.spec["nodeSelector"].as_object().into_iter().flatten();
    let mut exact =
        exact.map(|(key, value)| node.labels.get(key).map(String::as_str) == value.as_str());
    let required =
        &pod.spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let terms = &required["nodeSelectorTerms"];
    exact.all(|is_so| is_so) && (required.is_null() || node_terms(terms, &node.name, &node.labels))
}

fn selects(pod: &Pod, node: &Node) -> Result<(), String> {
    match is_selected(pod, node) {
        true => Ok(()),
        false => Err("it does not select the node".to_owned()),
    }
}

fn untolerated<'a>(pod: &Pod, node: &'a Node) -> Option<&'a Value> {
    let taints = node.object["spec"]["taints"].as_array().into_iter().flatten();
    let mut keeping = taints.filter(|taint| taint["effect"] != "PreferNoSchedule");
    keeping.find(|taint| {
        let text = |field: &str| taint[field].as_str().unwrap_or_default();
        !tolerates(&pod.spec["tolerations"], text("key"), text("value"), text("effect"))
    })
}

fn taints(pod: &Pod, node: &Node) -> Result<(), String> {
    if let Some(taint) = untolerated(pod, node) {
        return Err(format!("it does not tolerate {taint}"));
    }
    let key = "node.kubernetes.io/unschedulable";
    let is_cordoned = node.object["spec"]["unschedulable"] == true;
    match is_cordoned && !tolerates(&pod.spec["tolerations"], key, "", "NoSchedule") {
        true => Err("the node is cordoned".to_owned()),
        false => Ok(()),
    }
}

fn volumes(scene: &Scene, pod: &Pod, node: &Node) -> Result<(), String> {
    for claim in pod.claims() {
        match scene.claims.get(&claim) {
            None => return Err(format!("claim {claim} has no volume")),
            Some(terms) if !node_terms(terms, &node.name, &node.labels) => {
                return Err(format!("the volume of {claim} is not there"));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn room(scene: &Scene, pod: &Pod, node: &Node) -> Result<(), String> {
    let others = || scene.on(&node.name).filter(|other| other.key != pod.key);
    let most = node.room.get("pods").copied().unwrap_or(0);
    if (others().count() as i128 + 1) * 1_000 > most {
        return Err("the node has as many pods as it takes".to_owned());
    }
    for (resource, asked) in &pod.asks {
        let used: i128 = others().filter_map(|other| other.asks.get(resource)).sum();
        let has = node.room.get(resource).copied().unwrap_or(0);
        if used + asked > has {
            return Err(format!("{resource}: {used} of {has} used, {asked} asked for"));
        }
    }
    Ok(())
}

/// Port, protocol and address.
fn ports_of(pod: &Pod) -> Vec<(u64, &str, &str)> {
    let containers = pod.spec["containers"].as_array().into_iter().flatten();
    let ports = containers.filter_map(|one| one["ports"].as_array()).flatten();
    let ports = ports.filter_map(|port| {
        let number = port["hostPort"].as_u64().filter(|number| *number > 0)?;
        let protocol = port["protocol"].as_str().unwrap_or("TCP");
        let address = port["hostIP"].as_str().filter(|address| !address.is_empty());
        Some((number, protocol, address.unwrap_or("0.0.0.0")))
    });
    ports.collect()
}

fn ports(scene: &Scene, pod: &Pod, node: &Node) -> Result<(), String> {
    let any = "0.0.0.0";
    for other in scene.on(&node.name).filter(|other| other.key != pod.key) {
        for (number, protocol, address) in ports_of(pod) {
            let is_taken = |&(taken, by, at): &(u64, &str, &str)| {
                (taken, by) == (number, protocol) && (at == address || at == any || address == any)
            };
            if ports_of(other).iter().any(is_taken) {
                return Err(format!("{} has port {number}/{protocol}", other.key));
            }
        }
    }
    Ok(())
}

/// Whether a term that `of` has means `other`.
fn means(scene: &Scene, of: &Pod, term: &Value, other: &Pod) -> bool {
    let named = term["namespaces"].as_array().into_iter().flatten();
    let is_named = named.clone().any(|one| *one == *other.key.namespace);
    let by_label = &term["namespaceSelector"];
    let is_selected =
        scene.namespaces.get(&other.key.namespace).is_some_and(|labels| matches(by_label, labels));
    let is_own =
        by_label.is_null() && named.count() == 0 && of.key.namespace == other.key.namespace;
    (is_named || is_selected || is_own) && matches(&term["labelSelector"], &other.labels)
}

fn domain<'a>(term: &Value, node: &'a Node) -> Option<&'a str> {
    node.labels.get(term["topologyKey"].as_str()?).map(String::as_str)
}

/// Anti-affinity in both directions.
fn apart(scene: &Scene, pod: &Pod, node: &Node) -> Result<(), String> {
    for (other, at) in scene.placed().filter(|(other, _)| other.key != pod.key) {
        let is_near =
            |term: &Value| domain(term, node).is_some_and(|here| domain(term, at) == Some(here));
        let mut own = pod.terms("podAntiAffinity").iter();
        if own.any(|term| is_near(term) && means(scene, pod, term, other)) {
            return Err(format!("it keeps away from {} on {}", other.key, at.name));
        }
        let mut theirs = other.terms("podAntiAffinity").iter();
        if theirs.any(|term| is_near(term) && means(scene, other, term, pod)) {
            return Err(format!("{} on {} keeps it away", other.key, at.name));
        }
    }
    Ok(())
}

fn together(scene: &Scene, pod: &Pod, node: &Node) -> Result<(), String> {
    let terms = pod.terms("podAffinity");
    if terms.is_empty() {
        return Ok(());
    }
    if let Some(term) = terms.iter().find(|term| domain(term, node).is_none()) {
        return Err(format!("the node has no label {}", term["topologyKey"]));
    }
    // Only pods that all terms mean count for any of them.
    let others = scene.placed().filter(|(other, _)| other.key != pod.key);
    let meant = others.filter(|(other, _)| terms.iter().all(|term| means(scene, pod, term, other)));
    let meant: Vec<&Node> = meant.map(|(_, at)| at).collect();
    let has_domain = |term: &Value| meant.iter().any(|at| domain(term, at).is_some());
    if !terms.iter().any(has_domain) && terms.iter().all(|term| means(scene, pod, term, pod)) {
        // The first of a group that wants to be together.
        return Ok(());
    }
    let is_near = |term: &Value| meant.iter().any(|at| domain(term, at) == domain(term, node));
    match terms.iter().all(is_near) {
        true => Ok(()),
        false => Err("no pod that it wants to be beside is there".to_owned()),
    }
}

fn spread(scene: &Scene, pod: &Pod, node: &Node) -> Result<(), String> {
    let spreads = pod.spreads();
    let has_all_keys = |at: &Node| spreads.iter().all(|spread| domain(spread, at).is_some());
    for spread in &spreads {
        let Some(here) = domain(spread, node) else {
            return Err(format!("the node has no label {}", spread["topologyKey"]));
        };
        let counts = |at: &&Node| {
            has_all_keys(at)
                && (spread["nodeAffinityPolicy"] == "Ignore" || is_selected(pod, at))
                && (spread["nodeTaintsPolicy"] != "Honor" || untolerated(pod, at).is_none())
        };
        let mut found: BTreeMap<&str, i64> = BTreeMap::new();
        for at in scene.nodes.values().filter(counts) {
            let counted = scene.on(&at.name).filter(|other| {
                other.key != pod.key
                    && other.key.namespace == pod.key.namespace
                    && !other.is_leaving
                    && matches(&spread["labelSelector"], &other.labels)
            });
            let of_domain = domain(spread, at).unwrap_or_default();
            *found.entry(of_domain).or_default() += counted.count() as i64;
        }
        let enough = spread["minDomains"].as_u64().unwrap_or(1) as usize;
        let least = match found.len() < enough {
            true => 0,
            false => found.values().copied().min().unwrap_or(i64::MAX),
        };
        let own = i64::from(matches(&spread["labelSelector"], &pod.labels));
        let (there, most) = (found.get(here).copied().unwrap_or(0), spread["maxSkew"].as_i64());
        if least != i64::MAX && there + own - least > most.unwrap_or(1) {
            return Err(format!(
                "spread by {}: {here} has {there}, the least is {least}",
                spread["topologyKey"]
            ));
        }
    }
    Ok(())
}
