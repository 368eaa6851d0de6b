//! Teams as namespaces: what their pods may use, whom they may talk with, and who may look at them.

use super::sight::{BERTH, MANAGED};
use super::{Settings, namespace};
use crate::engine::Handle;
use berth_kube::Api;
use berth_model::{Amount, Quota};
use berth_store::Store;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// The service account of pods. It has no rights, and its token is in no pod.
pub const ACCOUNT: &str = "berth-jobs";
/// The label of a namespace that says whose it is.
const TEAM: &str = "berth.dev/team";
/// Where a pod finds out in which namespace it is.
const OWN_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
/// How often limits and members are looked at.
const EVERY: Duration = Duration::from_secs(5);

pub struct Teams {
    api: Api,
    store: Store,
    engine: Handle,
    settings: Settings,
    /// Where Berth itself runs, if that is in the cluster.
    own: Option<String>,
    /// What was written for each namespace, and for which team.
    written: tokio::sync::Mutex<BTreeMap<String, (String, Vec<Object>)>>,
}

/// An object, and where it goes.
type Object = (String, Value);

impl Teams {
    pub fn new(api: Api, store: Store, engine: Handle, settings: Settings) -> Arc<Teams> {
        let own = std::fs::read_to_string(OWN_NAMESPACE).ok();
        let own = own.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
        let written = tokio::sync::Mutex::default();
        Arc::new(Teams { api, store, engine, settings, own, written })
    }

    /// Makes the namespace of a team with all that belongs to it, unless it was made before.
    pub async fn ensure(&self, team: &str, namespace: &str) -> berth_kube::Result<()> {
        let mut written = self.written.lock().await;
        if written.contains_key(namespace) {
            return Ok(());
        }
        let limits = self.limits();
        let objects = self.objects(team, namespace, limits.get(team)).await;
        self.write(&objects, &[]).await?;
        written.insert(namespace.to_owned(), (team.to_owned(), objects));
        Ok(())
    }

    /// A namespace that was made is not there any more.
    pub async fn forget(&self, namespace: &str) {
        self.written.lock().await.remove(namespace);
    }

    /// Keeps namespaces as their teams are.
    pub async fn keep(self: Arc<Teams>) {
        loop {
            if let Err(error) = self.round().await {
                tracing::warn!(%error, "the namespace of a team is not as it should be");
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    async fn round(&self) -> berth_kube::Result<()> {
        let limits = self.limits();
        let mut written = self.written.lock().await;
        let mut wanted: BTreeMap<String, String> = written
            .iter()
            .map(|(namespace, (team, _))| (namespace.clone(), team.clone()))
            .collect();
        if self.settings.teams {
            let all = limits.keys().map(|team| (namespace(&self.settings, team), team.clone()));
            wanted.extend(all);
        }
        for (namespace, team) in wanted {
            let objects = self.objects(&team, &namespace, limits.get(&team)).await;
            let before = written.get(&namespace).map_or(&[][..], |(_, objects)| objects);
            self.write(&objects, before).await?;
            written.insert(namespace, (team, objects));
        }
        Ok(())
    }

    /// What each team may have at the most. Whoever has teams below it has no jobs of its own.
    fn limits(&self) -> BTreeMap<String, Quota> {
        let queues = self.engine.core().state.queue_snapshots();
        let parents: BTreeSet<_> =
            queues.iter().filter_map(|queue| queue.spec.parent.clone()).collect();
        let leaves = queues.into_iter().filter(|queue| !parents.contains(&queue.spec.name));
        leaves.map(|queue| (queue.spec.name.to_string(), queue.spec.limit)).collect()
    }

    /// Writes those that are new or different, in their order.
    async fn write(&self, objects: &[Object], before: &[Object]) -> berth_kube::Result<()> {
        for object in objects.iter().filter(|object| !before.contains(object)) {
            self.api.apply(&object.0, &object.1).await?;
        }
        Ok(())
    }

    async fn objects(&self, team: &str, namespace: &str, limit: Option<&Quota>) -> Vec<Object> {
        let members = self.store.members_of(team).await.unwrap_or_default();
        let members: Vec<String> = members.into_iter().map(|member| member.user).collect();
        let core = |kind: &str, name: &str| format!("/api/v1/namespaces/{namespace}/{kind}/{name}");
        let api = |group: &str, kind: &str, name: &str| {
            format!("/apis/{group}/v1/namespaces/{namespace}/{kind}/{name}")
        };
        let rbac = "rbac.authorization.k8s.io";
        vec![
            (format!("/api/v1/namespaces/{namespace}"), own_namespace(team, namespace)),
            (core("serviceaccounts", ACCOUNT), account(namespace)),
            (core("resourcequotas", BERTH), quota(namespace, limit)),
            (
                api("networking.k8s.io", "networkpolicies", BERTH),
                policy(namespace, self.own.as_deref()),
            ),
            (api(rbac, "roles", MEMBERS), role(namespace)),
            (api(rbac, "rolebindings", MEMBERS), binding(team, namespace, &members)),
        ]
    }
}

const MEMBERS: &str = "berth-members";

fn object(api: &str, kind: &str, namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": api,
        "kind": kind,
        "metadata": { "name": name, "namespace": namespace, "labels": { MANAGED: BERTH } },
    })
}

/// `baseline` keeps pods away from the machine they run on and lets them be root inside, which most
/// images for training are.
fn own_namespace(team: &str, name: &str) -> Value {
    let team = team.trim_end_matches(['-', '_', '.']);
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": { "name": name, "labels": {
            MANAGED: BERTH,
            TEAM: team,
            "pod-security.kubernetes.io/enforce": "baseline",
        } },
    })
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

/// Pods of a team talk with each other and with the world; nobody else talks to them but Berth.
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
fn binding(team: &str, namespace: &str, members: &[String]) -> Value {
    let group = "rbac.authorization.k8s.io";
    let subject = |kind: &str, name: &str| json!({ "apiGroup": group, "kind": kind, "name": name });
    let mut subjects = vec![subject("Group", &format!("berth:{team}"))];
    subjects.extend(members.iter().map(|user| subject("User", user)));
    let mut binding = object("rbac.authorization.k8s.io/v1", "RoleBinding", namespace, MEMBERS);
    binding["roleRef"] = json!({ "apiGroup": group, "kind": "Role", "name": MEMBERS });
    binding["subjects"] = json!(subjects);
    binding
}
