//! The objects in the namespace of a team.

use super::{ACCOUNT, Object, TEAM};
use crate::view::managed::{BERTH, MANAGED};
use berth_model::{Amount, Quota};
use serde_json::{Value, json};

/// The longest value of a label.
const LONGEST_LABEL: usize = 63;
const RBAC: &str = "rbac.authorization.k8s.io";
const MEMBERS: &str = "berth-members";

/// All but who may look, in the order in which it is made.
pub fn around_pods(
    team: &str,
    namespace: &str,
    (limit, own): (Option<&Quota>, Option<&str>),
    pod_security: &str,
) -> Vec<Object> {
    let core = |kind: &str, name: &str| format!("/api/v1/namespaces/{namespace}/{kind}/{name}");
    let networking = "networking.k8s.io";
    vec![
        (format!("/api/v1/namespaces/{namespace}"), own_namespace(team, namespace, pod_security)),
        (core("serviceaccounts", ACCOUNT), account(namespace)),
        (core("resourcequotas", BERTH), quota(namespace, limit)),
        (path(networking, namespace, "networkpolicies", BERTH), policy(namespace, own)),
        (path(RBAC, namespace, "roles", MEMBERS), role(namespace)),
    ]
}

fn path(group: &str, namespace: &str, kind: &str, name: &str) -> String {
    format!("/apis/{group}/v1/namespaces/{namespace}/{kind}/{name}")
}

fn object(api: &str, kind: &str, namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": api,
        "kind": kind,
        "metadata": { "name": name, "namespace": namespace, "labels": { MANAGED: BERTH } },
    })
}

pub fn own_namespace(team: &str, name: &str, pod_security: &str) -> Value {
    let mut labels = json!({
        MANAGED: BERTH,
        "pod-security.kubernetes.io/enforce": pod_security,
    });
    // A label that says less than the whole name would be that of another team.
    if is_label(team) {
        labels[TEAM] = json!(team);
    }
    let annotations = json!({ TEAM: team });
    let metadata = json!({ "name": name, "labels": labels, "annotations": annotations });
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata })
}

pub fn is_label(text: &str) -> bool {
    let ends = |c: char| c.is_ascii_alphanumeric();
    let plain = |c: char| ends(c) || "-_.".contains(c);
    let is_plain = text.starts_with(ends) && text.ends_with(ends) && text.chars().all(plain);
    is_plain && text.len() <= LONGEST_LABEL
}

fn account(namespace: &str) -> Value {
    let mut account = object("v1", "ServiceAccount", namespace, ACCOUNT);
    account["automountServiceAccountToken"] = json!(false);
    account
}

/// What is a share of the cluster, or unlimited, only the core can say.
fn quota(namespace: &str, limit: Option<&Quota>) -> Value {
    let mut hard = json!({});
    if let Some(limit) = limit {
        if let Some(Amount::Of(gpus)) = limit.gpu.total {
            hard["requests.nvidia.com/gpu"] = json!(((gpus.0 + 999) / 1_000).to_string());
        }
        if let Some(Amount::Of(cpu)) = limit.cpu {
            hard["requests.cpu"] = json!(format!("{}m", cpu.0));
        }
        if let Some(Amount::Of(memory)) = limit.memory {
            hard["requests.memory"] = json!(memory.0.to_string());
        }
    }
    let mut quota = object("v1", "ResourceQuota", namespace, BERTH);
    quota["spec"] = json!({ "hard": hard });
    quota
}

/// Lets in connections from pods of the same team and from Berth. Pods may connect to anything.
fn policy(namespace: &str, own: Option<&str>) -> Value {
    let mut from = vec![json!({ "podSelector": {} })];
    if let Some(own) = own {
        let labels = json!({ "kubernetes.io/metadata.name": own });
        from.push(json!({ "namespaceSelector": { "matchLabels": labels } }));
    }
    let mut policy = object("networking.k8s.io/v1", "NetworkPolicy", namespace, BERTH);
    policy["spec"] = json!({
        "podSelector": {},
        "policyTypes": ["Ingress"],
        "ingress": [{ "from": from }],
    });
    policy
}

fn role(namespace: &str) -> Value {
    let mut role = object("rbac.authorization.k8s.io/v1", "Role", namespace, MEMBERS);
    role["rules"] = json!([
        { "apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"] },
        { "apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"] },
    ]);
    role
}

/// Members by their names in Berth, and a group for clusters that know their users otherwise.
pub fn binding(team: &str, namespace: &str, members: &[String]) -> Object {
    let subject = |kind: &str, name: &str| json!({ "apiGroup": RBAC, "kind": kind, "name": name });
    let mut subjects = vec![subject("Group", &format!("berth:{team}"))];
    subjects.extend(members.iter().map(|user| subject("User", user)));
    let mut binding = object("rbac.authorization.k8s.io/v1", "RoleBinding", namespace, MEMBERS);
    binding["roleRef"] = json!({ "apiGroup": RBAC, "kind": "Role", "name": MEMBERS });
    binding["subjects"] = json!(subjects);
    (path(RBAC, namespace, "rolebindings", MEMBERS), binding)
}
