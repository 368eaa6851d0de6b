//! The pods that tell figures of the GPUs of their nodes, as they come and go.

use crate::observe::{Tasks, WATCH_BUFFER};
use crate::options::{FigureSources, PodSettings};
use crate::tenancy::is_for_teams;
use berth_kube::object::{PodAddress, Text};
use berth_kube::{Api, Change, WatchUpdate, percent_encode, watch_objects_protobuf};
use berth_model::Time;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

const PODS_PATH: &str = "/api/v1/pods";
/// What exporters call their port, and which one it is where they do not.
const PORT_NAME: &str = "metrics";
const USUAL_PORT: u16 = 9_400;

/// An exporter that can be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exporter {
    pub node: String,
    /// `namespace/name` of its pod.
    pub pod: String,
    pub address: SocketAddr,
}

/// Which pods are exporters, and which of their ports is asked.
#[derive(Debug, Clone)]
pub struct Rules {
    sources: FigureSources,
    settings: PodSettings,
    /// The namespace that Berth itself is in.
    own: String,
}

/// By the selector that found it, its namespace and its name.
type Key = (usize, Text, Text);

/// The exporters there are.
#[derive(Debug, Default)]
pub struct Exporters(Mutex<BTreeMap<Key, (Time, Exporter)>>);

impl Rules {
    pub fn new(sources: FigureSources, settings: PodSettings, own: &str) -> Rules {
        Rules { sources, settings, own: own.to_owned() }
    }

    /// Where a pod is asked; nothing for one that cannot be, or is not to be: whoever may make pods
    /// in the namespace of a team could otherwise make figures up.
    fn exporter(&self, pod: &PodAddress) -> Option<Exporter> {
        let PodAddress { metadata, spec, status } = pod;
        let namespace = &*metadata.namespace;
        let is_trusted = match &self.sources.namespaces[..] {
            [] => namespace == self.own || !is_for_teams(&self.settings, namespace),
            named => named.iter().any(|name| name == namespace),
        };
        let runs = &*status.phase == "Running" && metadata.deletion_timestamp.is_none();
        if !is_trusted || !runs || spec.node_name.is_empty() {
            return None;
        }
        let address: IpAddr = status.pod_ip.parse().ok()?;
        let port = self.sources.port.or_else(|| pod.port(PORT_NAME)).unwrap_or(USUAL_PORT);
        Some(Exporter {
            node: spec.node_name.to_string(),
            pod: format!("{namespace}/{}", metadata.name),
            address: SocketAddr::new(address, port),
        })
    }
}

impl Exporters {
    fn all(&self) -> MutexGuard<'_, BTreeMap<Key, (Time, Exporter)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One for each node: of the selector that was named first, and of those the oldest.
    pub fn by_node(&self) -> BTreeMap<String, Exporter> {
        let all = self.all();
        let mut found: Vec<_> = all.iter().collect();
        found.sort_by_key(|((rank, namespace, name), (made, _))| (*rank, *made, namespace, name));
        let mut by_node = BTreeMap::new();
        for (_, (_, exporter)) in found {
            by_node.entry(exporter.node.clone()).or_insert_with(|| exporter.clone());
        }
        by_node
    }

    fn take(&self, rank: usize, rules: &Rules, seen: WatchUpdate<PodAddress>) {
        let mut all = self.all();
        let key =
            |pod: &PodAddress| (rank, pod.metadata.namespace.clone(), pod.metadata.name.clone());
        let put = |all: &mut BTreeMap<Key, (Time, Exporter)>, pod: &PodAddress| {
            let made = pod.metadata.creation_timestamp.unwrap_or(Time(0));
            match rules.exporter(pod) {
                Some(exporter) => drop(all.insert(key(pod), (made, exporter))),
                None => drop(all.remove(&key(pod))),
            }
        };
        match seen {
            WatchUpdate::Snapshot(pods) => {
                all.retain(|(of, ..), _| *of != rank);
                pods.iter().for_each(|pod| put(&mut all, pod));
            }
            WatchUpdate::Changes(changes) => {
                for change in changes {
                    match change {
                        Change::Applied(pod) => put(&mut all, &pod),
                        Change::Deleted(pod) => drop(all.remove(&key(&pod))),
                    }
                }
            }
        }
    }

    /// Follows the pods that may be exporters, until the tasks are dropped.
    pub fn follow(self: &Arc<Exporters>, api: &Api, rules: &Arc<Rules>, tasks: &mut Tasks) {
        for (rank, selector) in rules.sources.selectors.iter().enumerate() {
            let (tell, mut updates) = mpsc::channel(WATCH_BUFFER);
            let query = format!("labelSelector={}", percent_encode(selector));
            let path = PODS_PATH.to_owned();
            tasks.spawn(watch_objects_protobuf::<PodAddress>(api.clone(), path, query, tell));
            let (exporters, rules) = (self.clone(), rules.clone());
            tasks.spawn(async move {
                while let Some(seen) = updates.recv().await {
                    exporters.take(rank, &rules, seen);
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn rules(sources: FigureSources) -> Rules {
        let settings = PodSettings { namespace_prefix: "berth-".into(), ..PodSettings::default() };
        Rules::new(sources, settings, "berth-system")
    }

    fn pod(namespace: &str, name: &str, status: &Value) -> PodAddress {
        let pod = json!({
            "metadata": {"namespace": namespace, "name": name,
                         "creationTimestamp": format!("2026-11-15T10:00:{:02}Z", name.len())},
            "spec": {"nodeName": "a", "containers": [{}]},
            "status": status,
        });
        serde_json::from_value(pod).unwrap()
    }

    fn running(namespace: &str, name: &str) -> PodAddress {
        pod(namespace, name, &json!({"phase": "Running", "podIP": "10.0.0.7"}))
    }

    /// `node pod address` of the exporters that are asked.
    fn asked(exporters: &Exporters) -> Vec<String> {
        let all = exporters.by_node().into_values();
        all.map(|one| format!("{} {} {}", one.node, one.pod, one.address)).collect()
    }

    #[test]
    fn an_exporter_is_asked_while_it_runs() {
        let (exporters, rules) = (Exporters::default(), rules(FigureSources::default()));
        let put = |pod| exporters.take(0, &rules, WatchUpdate::Changes(vec![pod]));
        put(Change::Applied(pod("gpus", "x", &json!({"phase": "Pending"}))));
        assert!(asked(&exporters).is_empty());
        put(Change::Applied(running("gpus", "x")));
        assert_eq!(asked(&exporters), ["a gpus/x 10.0.0.7:9400"]);
        let mut leaving = running("gpus", "x");
        leaving.metadata.deletion_timestamp = Some(Time(1));
        put(Change::Applied(leaving));
        assert!(asked(&exporters).is_empty());
        put(Change::Applied(running("gpus", "x")));
        put(Change::Deleted(running("gpus", "x")));
        assert!(asked(&exporters).is_empty());
    }

    #[test]
    fn of_several_on_a_node_one_is_asked_and_it_stays_the_same() {
        let (exporters, rules) = (Exporters::default(), rules(FigureSources::default()));
        let list = |rank, pods| exporters.take(rank, &rules, WatchUpdate::Snapshot(pods));
        list(1, vec![running("gpus", "a")]);
        assert_eq!(asked(&exporters), ["a gpus/a 10.0.0.7:9400"]);
        list(0, vec![running("gpus", "newer"), running("gpus", "old")]);
        assert_eq!(asked(&exporters), ["a gpus/old 10.0.0.7:9400"]);
        list(0, vec![]);
        assert_eq!(asked(&exporters), ["a gpus/a 10.0.0.7:9400"]);
    }

    #[test]
    fn pods_in_the_namespaces_of_teams_tell_nothing_unless_somebody_says_so() {
        let seen = |sources: FigureSources, namespace: &str| {
            let found = rules(sources).exporter(&running(namespace, "x"));
            found.map(|exporter| exporter.address.port())
        };
        let usual = FigureSources::default;
        assert_eq!(seen(usual(), "berth-nlp"), None);
        assert_eq!(seen(usual(), "berth-system"), Some(9_400), "it is our own");
        let named = || FigureSources { namespaces: vec!["berth-nlp".into()], ..usual() };
        assert_eq!((seen(named(), "berth-nlp"), seen(named(), "gpus")), (Some(9_400), None));
        let port = FigureSources { port: Some(9_999), ..usual() };
        assert_eq!(seen(port, "gpus"), Some(9_999));
    }
}
