//! Owners of which a cluster has very many, most of them without a pod: a Deployment keeps ten of its
//! old ReplicaSets. Of each no more is kept than pods may need, and of those that want no pods nothing.

use berth_kube::{Change, WatchUpdate, gang};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use std::collections::BTreeMap;

/// Who it is, what marks it has, what made it, and how many pods it wants.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Slim {
    metadata: Head,
    spec: Wants,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Head {
    name: String,
    namespace: String,
    uid: String,
    #[serde(deserialize_with = "marks")]
    labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "marks")]
    annotations: BTreeMap<String, String>,
    owner_references: Vec<Box<RawValue>>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Wants {
    replicas: Option<i64>,
    /// Of a StatefulSet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pod_management_policy: Option<String>,
}

/// Keeps the annotations that Berth reads. The others can be large: `kubectl apply` keeps the whole
/// object in one.
fn marks<'de, D>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    let mut all =
        Option::<BTreeMap<String, String>>::deserialize(deserializer)?.unwrap_or_default();
    all.retain(|key, _| gang::is_gang_annotation(key));
    Ok(all)
}

impl Slim {
    fn wants_pods(&self) -> bool {
        self.spec.replicas != Some(0)
    }

    /// As if that were all the API server said.
    fn raw(&self) -> Option<Box<RawValue>> {
        to_raw_value(self).ok()
    }
}

/// The updates without objects that want no pods: those count as deleted.
pub fn raw(seen: WatchUpdate<Slim>) -> WatchUpdate<Box<RawValue>> {
    match seen {
        WatchUpdate::Snapshot(all) => WatchUpdate::Snapshot(
            all.iter().filter(|one| one.wants_pods()).filter_map(Slim::raw).collect(),
        ),
        WatchUpdate::Changes(changes) => {
            let changes = changes.into_iter().filter_map(|change| match change {
                Change::Applied(one) if one.wants_pods() => one.raw().map(Change::Applied),
                Change::Applied(one) | Change::Deleted(one) => one.raw().map(Change::Deleted),
            });
            WatchUpdate::Changes(changes.collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slim(replicas: &str) -> Slim {
        let object = format!(
            r#"{{"metadata": {{"name": "web-7d9f", "namespace": "ml", "uid": "u1", "generation": 3,
                "labels": {{"kai.scheduler/queue": "q", "app": "web"}},
                "annotations": {{"kubectl.kubernetes.io/last-applied-configuration": "long",
                    "scheduling.volcano.sh/group-min-member": "3"}},
                "ownerReferences": [{{"kind":"Deployment","uid":"u0","controller":true}}]}},
              "spec": {{{replicas} "template": {{"spec": {{"containers": [{{"name": "a"}}]}}}}}},
              "status": {{"replicas": 2}}}}"#
        );
        serde_json::from_str(&object).unwrap()
    }

    #[test]
    fn of_a_replica_set_its_marks_its_owner_and_its_count_are_kept_and_nothing_else() {
        let WatchUpdate::Snapshot(all) =
            raw(WatchUpdate::Snapshot(vec![slim(r#""replicas": 2,"#)]))
        else {
            panic!()
        };
        assert_eq!(
            all[0].get(),
            r#"{"metadata":{"name":"web-7d9f","namespace":"ml","uid":"u1","labels":{"kai.scheduler/queue":"q"},"annotations":{"scheduling.volcano.sh/group-min-member":"3"},"ownerReferences":[{"kind":"Deployment","uid":"u0","controller":true}]},"spec":{"replicas":2}}"#
        );
    }

    #[test]
    fn one_that_wants_no_pods_is_as_good_as_gone() {
        let old = || slim(r#""replicas": 0,"#);
        let WatchUpdate::Snapshot(all) = raw(WatchUpdate::Snapshot(vec![old(), slim("")])) else {
            panic!()
        };
        assert_eq!(all.len(), 1, "without a count one pod is wanted");
        let changes =
            vec![Change::Applied(old()), Change::Applied(slim("")), Change::Deleted(old())];
        let WatchUpdate::Changes(changes) = raw(WatchUpdate::Changes(changes)) else { panic!() };
        let is_put: Vec<bool> =
            changes.iter().map(|one| matches!(one, Change::Applied(_))).collect();
        assert_eq!(is_put, [false, true, false]);
    }
}
