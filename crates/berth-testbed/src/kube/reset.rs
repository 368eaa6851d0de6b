//! A cluster made as it was when it was started, for the next test. This takes a fraction of the
//! CPU time that a start takes.

use super::Cluster;
use super::discovery::Resource;
use super::objects::{Objects, Refusal};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// What is not gone by then keeps a cluster from being used again.
const LIMIT: Duration = Duration::from_secs(30);

const PAUSE: Duration = Duration::from_millis(25);

/// Namespaces that only the control plane writes to.
const SYSTEM: [&str; 2] = ["kube-system", "kube-public"];

/// The namespaces that every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// What the control plane makes in a namespace that stays.
const OWN: [(&str, &str); 5] = [
    ("serviceaccounts", "default"),
    ("configmaps", "kube-root-ca.crt"),
    ("services", "kubernetes"),
    ("endpoints", "kubernetes"),
    ("endpointslices", "kubernetes"),
];

/// Whoever makes or holds other objects goes first, and whatever holds others together goes last.
const FIRST: [&str; 9] = [
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
    "cronjobs",
    "deployments",
    "statefulsets",
    "daemonsets",
    "replicasets",
    "jobs",
    "replicationcontrollers",
];
const LAST: [&str; 4] = ["persistentvolumes", "nodes", "namespaces", "customresourcedefinitions"];

/// Why a cluster cannot be used for another test.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("these objects stay: {paths:?}")]
    Leftovers { paths: Vec<String> },
    /// `what` is a kind of which the objects are not listed, or an object that is not deleted.
    #[error("{what}: {refusal}")]
    Refused { what: String, refusal: Refusal },
    #[error("{0}")]
    Discovery(Refusal),
    #[error("{0}")]
    DefaultNamespace(Refusal),
    #[error("the default namespace stays changed")]
    DefaultNamespaceChanged,
}

/// What a cluster had when it was started and no test had used it.
#[derive(Debug)]
pub(super) struct Baseline {
    /// Objects that belong to no namespace, as paths.
    objects: BTreeSet<String>,
    /// The metadata of the namespace that tests may label.
    default_namespace: Value,
}

/// An object that a test has left.
struct Leftover {
    path: String,
    plural: String,
    is_leaving: bool,
    has_finalizers: bool,
}

impl Cluster {
    pub(super) fn baseline(&self) -> Result<Baseline, Error> {
        let objects = self.objects();
        let mut paths = BTreeSet::new();
        for resource in deletable(objects)?.iter().filter(|resource| !resource.is_namespaced) {
            for object in list(objects, resource)? {
                paths.insert(path_of(resource, &object));
            }
        }
        let default = objects.get_path(DEFAULT).map_err(Error::DefaultNamespace)?;
        Ok(Baseline { objects: paths, default_namespace: marks(&default) })
    }

    /// Deletes all that was made since the baseline. An error says what could not be undone: the
    /// cluster is of no use for another test then.
    pub(super) fn reset(&self, baseline: &Baseline) -> Result<(), Error> {
        let objects = self.objects();
        let until = Instant::now() + LIMIT;
        // Full passes are dearer than looking again at the kinds of which something was left.
        let mut again: Option<Vec<Resource>> = None;
        let mut passes = 0;
        loop {
            let is_full = again.is_none();
            let resources = match again.take() {
                Some(resources) => resources,
                None => deletable(objects)?,
            };
            let mut left = Vec::new();
            let mut kinds = Vec::new();
            for resource in resources {
                let found = baseline.leftovers(objects, &resource)?;
                if !found.is_empty() {
                    kinds.push(resource);
                    left.extend(found);
                }
            }
            if left.is_empty() && is_full {
                return restore_default_namespace(objects, baseline);
            }
            if Instant::now() >= until {
                let paths = left.into_iter().map(|one| one.path).collect();
                return Err(Error::Leftovers { paths });
            }
            left.sort_by_key(|one| rank(&one.plural));
            for one in &left {
                remove(objects, one, passes > 1)?;
            }
            passes += 1;
            again = (!kinds.is_empty()).then_some(kinds);
            if !left.is_empty() && passes > 1 {
                sleep(PAUSE);
            }
        }
    }
}

const DEFAULT: &str = "/api/v1/namespaces/default";

impl Baseline {
    fn leftovers(&self, objects: &Objects, resource: &Resource) -> Result<Vec<Leftover>, Error> {
        let mut found = Vec::new();
        for object in list(objects, resource)? {
            let metadata = &object["metadata"];
            let name = metadata["name"].as_str().unwrap_or_default();
            let path = path_of(resource, &object);
            let is_kept = match metadata["namespace"].as_str() {
                Some(namespace) => {
                    SYSTEM.contains(&namespace)
                        || NAMESPACES.contains(&namespace)
                            && OWN.contains(&(resource.plural.as_str(), name))
                }
                None => self.objects.contains(&path) || name.starts_with("system:"),
            };
            if !is_kept {
                found.push(Leftover {
                    path,
                    plural: resource.plural.clone(),
                    is_leaving: metadata["deletionTimestamp"].is_string(),
                    has_finalizers: metadata["finalizers"].is_array(),
                });
            }
        }
        Ok(found)
    }
}

/// The kinds that there are now, each once.
fn deletable(objects: &Objects) -> Result<Vec<Resource>, Error> {
    let all = objects.resources().map_err(Error::Discovery)?;
    let mut seen = BTreeSet::new();
    let is_chosen = |resource: &&Resource| {
        // The same events are in two groups, and every version has the same objects.
        let is_twice = resource.group.is_empty() && resource.plural == "events";
        resource.can("list")
            && resource.can("delete")
            && !is_twice
            && seen.insert((resource.group.clone(), resource.plural.clone()))
    };
    Ok(all.iter().filter(is_chosen).cloned().collect::<Vec<Resource>>())
}

/// None where the kind was just deleted.
fn list(objects: &Objects, resource: &Resource) -> Result<Vec<Value>, Error> {
    match objects.list(resource) {
        Ok(list) => Ok(list),
        Err(Refusal::NotFound) => Ok(Vec::new()),
        Err(refusal) => Err(Error::Refused { what: resource.plural.clone(), refusal }),
    }
}

fn path_of(resource: &Resource, object: &Value) -> String {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    format!("{}/{name}", resource.path(object["metadata"]["namespace"].as_str()))
}

fn rank(plural: &str) -> usize {
    let first = FIRST.iter().position(|one| *one == plural);
    let last = LAST.iter().position(|one| *one == plural);
    match (first, last) {
        (Some(at), _) => at,
        (_, Some(at)) => FIRST.len() + 1 + at,
        _ => FIRST.len(),
    }
}

/// Deletes an object. Whoever would take its finalizer off may be gone with the test, so we do.
fn remove(objects: &Objects, one: &Leftover, is_late: bool) -> Result<(), Error> {
    // The API server deletes those itself when their kind is gone.
    if one.plural == "apiservices" {
        return Ok(());
    }
    if one.is_leaving && one.plural == "namespaces" && is_late {
        // Its objects are listed like all others, so the namespace controller need not delete them.
        let name = one.path.rsplit('/').next().unwrap_or_default();
        let empty = json!({ "apiVersion": "v1", "kind": "Namespace",
            "metadata": { "name": name }, "spec": { "finalizers": [] } });
        let _ = objects.put(&format!("{}/finalize", one.path), &empty);
        return Ok(());
    }
    if one.is_leaving && one.has_finalizers && is_late {
        let patch = json!({ "metadata": { "finalizers": null } }).to_string();
        // It may be gone, or have changed; the next pass shows.
        let _ = objects.send_patch(&one.path, "application/merge-patch+json", patch);
        return Ok(());
    }
    if one.is_leaving && one.plural != "pods" {
        return Ok(());
    }
    match objects.delete_path(&one.path, Some(0)) {
        Ok(_) | Err(Refusal::NotFound) => Ok(()),
        // Such as a namespace that is on its way out.
        Err(_) if is_late => Ok(()),
        Err(Refusal::Other { status: 409, .. }) => Ok(()),
        Err(refusal) => Err(Error::Refused { what: one.path.clone(), refusal }),
    }
}

/// Labels and annotations of an object.
fn marks(object: &Value) -> Value {
    let metadata = &object["metadata"];
    json!({ "labels": metadata["labels"], "annotations": metadata["annotations"] })
}

fn restore_default_namespace(objects: &Objects, baseline: &Baseline) -> Result<(), Error> {
    let mut namespace = objects.get_path(DEFAULT).map_err(Error::DefaultNamespace)?;
    if marks(&namespace) != baseline.default_namespace {
        for field in ["labels", "annotations"] {
            namespace["metadata"][field] = baseline.default_namespace[field].clone();
        }
        let now = objects.put(DEFAULT, &namespace).map_err(Error::DefaultNamespace)?;
        if marks(&now) != baseline.default_namespace {
            return Err(Error::DefaultNamespaceChanged);
        }
    }
    Ok(())
}
