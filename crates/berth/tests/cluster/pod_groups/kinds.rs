//! Kinds of other projects, defined by us as far as Berth reads them: any field is taken.

use super::super::support::until;
use berth_testbed::kube::Cluster;

/// Defines kinds, each written as `GROUP/VERSION KIND PLURAL`, and waits until they are served.
/// One whose plural ends in `!` belongs to no namespace.
pub fn define(cluster: &Cluster, kinds: &[&str]) {
    let mut served = Vec::new();
    for line in kinds {
        let words: Vec<&str> = line.split(' ').collect();
        let [api, kind, plural] = words[..] else { panic!("{line} is no kind") };
        let (group, version) = api.split_once('/').expect("a group and a version");
        let scope = if plural.ends_with('!') { "Cluster" } else { "Namespaced" };
        let plural = plural.trim_end_matches('!');
        let singular = kind.to_lowercase();
        // Names below k8s.io have to say who approved of them.
        cluster.apply(&format!(
            "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: {plural}.{group}
  annotations: {{api-approved.kubernetes.io: 'unapproved, for tests'}}
spec:
  group: {group}
  scope: {scope}
  names: {{kind: {kind}, plural: {plural}, singular: {singular}}}
  versions:
  - name: {version}
    served: true
    storage: true
    schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
"
        ));
        served.push(format!("{plural}.{version}.{group}"));
    }
    for kind in served {
        until("the kind is served", || cluster.find(&[&kind, "-A"]).is_some());
    }
}

/// Who the API server says an object is, by `GROUP/VERSION/KIND` and its name.
pub fn uid_of(cluster: &Cluster, kind: &str, name: &str) -> String {
    let words: Vec<&str> = kind.split('/').collect();
    let [group, version, kind] = words[..] else { panic!("{kind} is no kind") };
    let object = cluster.get(&[&format!("{kind}.{version}.{group}"), name]);
    object["metadata"]["uid"].as_str().expect("every object has one").to_owned()
}
