//! A cluster with the chart on it, whose API server writes down what Berth asks.

use crate::chart::{ACCOUNT, NAMESPACE, install, kubeconfig};
use crate::pod_groups::kinds::define;
use crate::resource_claims as claims;
use crate::support::{node, until};
use crate::volumes::class;
use berth_testbed::Server;
use berth_testbed::kube::{Cluster, Kwok, Part};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Where the replica that leads says where it is.
pub const SLICE: &str = "berth-leader-ipv4";

/// A cluster with the chart on it, whose API server writes down what Berth asks.
pub struct Scene {
    pub cluster: Cluster,
    pub account: PathBuf,
    /// What of that can be off is on, by the words that the table of rights has for it.
    on: Vec<&'static str>,
    folder: TempDir,
}

const POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users:
  - system:serviceaccount:berth:berth
  - system:serviceaccount:berth-reservations:berth-reservation
- {level: None}
";

/// Everything of others that is read.
const KINDS: &[&str] = &[
    "jobset.x-k8s.io/v1alpha2 JobSet jobsets",
    "leaderworkerset.x-k8s.io/v1 LeaderWorkerSet leaderworkersets",
    "kubeflow.org/v1 PyTorchJob pytorchjobs",
    "kubeflow.org/v1 TFJob tfjobs",
    "kubeflow.org/v1 MPIJob mpijobs",
    "kubeflow.org/v1 XGBoostJob xgboostjobs",
    "kubeflow.org/v1 PaddleJob paddlejobs",
    "kubeflow.org/v1 JAXJob jaxjobs",
    "trainer.kubeflow.org/v1alpha1 TrainJob trainjobs",
    "ray.io/v1 RayCluster rayclusters",
    "ray.io/v1 RayJob rayjobs",
    "ray.io/v1 RayService rayservices",
    "scheduling.run.ai/v2alpha2 PodGroup podgroups",
    "scheduling.run.ai/v2 Queue queues!",
    "kai.scheduler/v1alpha1 Topology topologies!",
    "scheduling.volcano.sh/v1beta1 PodGroup podgroups",
    "scheduling.volcano.sh/v1beta1 Queue queues!",
    "topology.volcano.sh/v1alpha1 HyperNode hypernodes!",
    "kueue.x-k8s.io/v1beta2 ClusterQueue clusterqueues!",
    "kueue.x-k8s.io/v1beta2 LocalQueue localqueues",
    "kueue.x-k8s.io/v1beta2 Cohort cohorts!",
    "kueue.x-k8s.io/v1beta2 ResourceFlavor resourceflavors!",
    "kueue.x-k8s.io/v1beta2 WorkloadPriorityClass workloadpriorityclasses!",
    "kueue.x-k8s.io/v1beta2 Topology topologies!",
];

/// Whoever opens a terminal in a pod gets one here.
const ANSWERS: &str = "apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterExec
metadata: {name: execs}
spec: {execs: [{local: {}}]}
";

/// Everybody Berth can stand in for.
pub const PEERS: [&str; 3] = ["kai", "kueue", "volcano"];

/// The queue that suspended jobs wait in.
const QUEUES: &str = "apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: any}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: all}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: any, resources: [{name: nvidia.com/gpu, nominalQuota: 1}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: line, namespace: default}
spec: {clusterQueue: all}
";

impl Scene {
    /// With so much on of what can be off.
    pub fn new(on: &[&'static str]) -> Scene {
        let on = on.to_vec();
        let folder = TempDir::with_prefix("berth-audit-").expect("a temporary folder");
        let (policy, log) = (folder.path().join("policy.yaml"), folder.path().join("audit.log"));
        let answers = folder.path().join("kwok.yaml");
        std::fs::write(&policy, POLICY).expect("the folder can be written");
        std::fs::write(&answers, ANSWERS).expect("the folder can be written");
        let cluster = Cluster::builder()
            .controller_manager()
            .kwok(Kwok::all_nodes())
            .flag(Part::Kwok, &format!("--config={}", answers.display()))
            .flag(Part::ApiServer, "--runtime-config=scheduling.k8s.io/v1alpha2=true")
            .flag(Part::ApiServer, "--feature-gates=GenericWorkload=true")
            .flag(Part::ApiServer, &format!("--audit-policy-file={}", policy.display()))
            .flag(Part::ApiServer, &format!("--audit-log-path={}", log.display()))
            .start();
        add_nodes(&cluster);
        cluster.apply(
            "apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000
",
        );
        define(&cluster, KINDS);
        cluster.apply(QUEUES);
        let peers: Vec<&str> = PEERS.into_iter().filter(|peer| on.contains(peer)).collect();
        let stands_in = format!("scheduler.standIn={{{}}}", peers.join(","));
        let jobs = format!("jobs.enabled={}", on.contains(&"jobs"));
        let mut sets = vec!["database.existingSecret=books", &jobs];
        // A list without members would be one with an empty name.
        sets.extend((!peers.is_empty()).then_some(&*stands_in));
        install(&cluster, &sets);
        let account = kubeconfig(&cluster);
        Scene { cluster, account, on, folder }
    }

    pub fn is_on(&self, what: &str) -> bool {
        what.is_empty() || self.on.contains(&what)
    }

    /// The flags that go with what is on.
    pub fn flags(&self) -> Vec<&'static str> {
        let peers = PEERS.into_iter().filter(|peer| self.is_on(peer));
        let peers = peers.flat_map(|peer| ["--stand-in", peer]);
        let jobs: &[&str] =
            if self.is_on("jobs") { &["--teams", "--image", "none"] } else { &["--no-jobs"] };
        peers.chain(jobs.iter().copied()).collect()
    }

    pub fn berth(&self) -> Server {
        let program = Path::new(env!("CARGO_BIN_EXE_berth"));
        // Loopback is no address for others.
        let publish = ["--service", "berth", "--advertise", "10.1.2.3"];
        Server::start_on(program, &self.account, &[&publish[..], &self.flags()].concat())
    }

    /// The roles of a name, as kubectl names them. The chart has others for people.
    fn roles(&self, name: &str) -> Vec<Value> {
        let all = self.cluster.get(&[
            "clusterroles,roles",
            "--all-namespaces",
            "--selector=app.kubernetes.io/name=berth",
        ]);
        let all = all["items"].as_array().cloned().unwrap_or_default();
        all.into_iter().filter(|role| role["metadata"]["name"] == name).collect()
    }

    /// What a role grants, as rights and as what they are of: verb, group and resource.
    fn rules(role: &Value) -> Vec<[String; 3]> {
        let mut all = Vec::new();
        for rule in role["rules"].as_array().into_iter().flatten() {
            for resource in words(&rule["resources"]) {
                for verb in words(&rule["verbs"]) {
                    all.push([verb, words(&rule["apiGroups"])[0].clone(), resource.clone()]);
                }
            }
        }
        all
    }

    /// What the chart grants to Berth.
    pub fn granted(&self) -> BTreeSet<String> {
        self.granted_by("berth")
    }

    /// What the chart's roles of a name grant.
    pub fn granted_by(&self, name: &str) -> BTreeSet<String> {
        let roles = self.roles(name);
        let rules = roles.iter().flat_map(Scene::rules);
        rules.map(|[verb, group, resource]| right(&verb, &group, &resource)).collect()
    }

    /// What Berth has asked for: that which the chart's roles allowed, and that which was forbidden.
    pub fn asked(&self) -> (BTreeSet<String>, BTreeSet<String>) {
        self.asked_by(ACCOUNT, "berth")
    }

    /// All that an account has asked, as the API server wrote it down.
    fn requests_of(&self, account: &str) -> Vec<Value> {
        let log = std::fs::read_to_string(self.folder.path().join("audit.log")).unwrap_or_default();
        // The last line may be on its way.
        let events = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        events.filter(|event| event["user"]["username"] == account).collect()
    }

    /// What Berth has written: each as a right, and the object it was about.
    pub fn writes(&self) -> Vec<(String, String)> {
        let written = self.requests_of(ACCOUNT).into_iter().filter_map(|event| {
            let (verb, group, resource) = what(&event);
            let is_write = ["create", "update", "patch", "delete"].contains(&&*verb);
            is_write.then(|| (right(&verb, &group, &resource), text(&event["objectRef"]["name"])))
        });
        written.collect()
    }

    /// What an account has asked for, and its roles of that name have allowed or not.
    pub fn asked_by(&self, account: &str, role: &str) -> (BTreeSet<String>, BTreeSet<String>) {
        let role = format!("Role \"{role}\"");
        let (mut allowed, mut forbidden) = (BTreeSet::new(), BTreeSet::new());
        for event in self.requests_of(account) {
            let (verb, group, resource) = what(&event);
            let right = right(&verb, &group, &resource);
            let annotations = &event["annotations"];
            // Everybody may ask who he is and what he may do; those rules are not the chart's.
            let reason = text(&annotations["authorization.k8s.io/reason"]);
            let is_ours = reason.contains(&role);
            let code = event["responseStatus"]["code"].as_u64();
            // Rights that are looked for only while a request is carried out.
            let within = match (verb.as_str(), resource.as_str()) {
                // What is applied and not there yet has to be made.
                ("patch", _) if matches!(code, Some(201 | 403)) => Some(("create", &*resource)),
                // A terminal is opened by a GET, and whoever opens one makes something.
                ("get", "pods/exec") => Some(("create", "pods/exec")),
                // Devices are given by a change of the status.
                ("update", "resourceclaims/status") => Some(("update", "resourceclaims/binding")),
                _ => None,
            };
            let within = within.map(|(verb, resource)| self::right(verb, &group, resource));
            match annotations["authorization.k8s.io/decision"].as_str() {
                Some("allow") if is_ours => match within {
                    Some(within) if matches!(code, Some(403 | 422)) => {
                        forbidden.insert(within);
                    }
                    within => {
                        allowed.insert(right);
                        allowed.extend(within);
                    }
                },
                Some("allow") | None => {}
                Some(_) => drop(forbidden.insert(right)),
            }
        }
        (allowed, forbidden)
    }

    /// Takes a right away from Berth. Returns what gives it back.
    pub fn take(&self, taken: &str) -> Value {
        self.take_from("berth", taken)
    }

    /// Takes a right away from the roles of a name. Returns what gives it back.
    pub fn take_from(&self, name: &str, taken: &str) -> Value {
        for role in self.roles(name) {
            let all = Scene::rules(&role);
            let is_left =
                |[verb, group, resource]: &&[String; 3]| right(verb, group, resource) != taken;
            let left: Vec<&[String; 3]> = all.iter().filter(is_left).collect();
            if left.len() < all.len() {
                let rules = left.iter().map(|[verb, group, resource]| {
                    json!({ "apiGroups": [group], "resources": [resource], "verbs": [verb] })
                });
                let mut changed = role.clone();
                changed["rules"] = rules.collect();
                self.put(&changed);
                return role;
            }
        }
        panic!("{taken} is not granted");
    }

    pub fn put(&self, role: &Value) {
        let (kind, name) =
            (role["kind"].as_str().unwrap(), role["metadata"]["name"].as_str().unwrap());
        let patch = json!({ "rules": role["rules"] }).to_string();
        let namespace = role["metadata"]["namespace"].as_str().unwrap_or(NAMESPACE);
        self.cluster.patch(&[kind, name, "-n", namespace, "--type=merge", "-p", &patch]);
    }

    pub fn may(&self, right: &str) -> bool {
        let (verb, what) = right.split_once(' ').unwrap();
        self.cluster.may(ACCOUNT, verb, what, self.is_own(right).then_some(NAMESPACE))
    }

    /// Whether it is granted in the namespace of the release alone.
    fn is_own(&self, right: &str) -> bool {
        right.contains(" leases.") || right.contains(" endpointslices.")
    }

    pub fn clear(&self) {
        let training = "pytorchjobs,tfjobs,mpijobs,xgboostjobs,paddlejobs,jaxjobs";
        let all = format!("jobs,jobsets,rayclusters,rayjobs,trainjobs,{training}");
        self.cluster.delete(&[&all, "--all", "--cascade=background"]);
        self.cluster.delete(&["pods", "--all", "--force", "--grace-period=0"]);
        let own = "jobs.berth.dev,budgets.berth.dev";
        self.cluster.delete(&[own, "--all", "--all-namespaces"]);
    }
}

/// Two nodes of eight GPUs, and one whose GPUs are claimed. kwok says where its nodes are when it
/// makes them ready, and terminals are opened there.
fn add_nodes(cluster: &Cluster) {
    let all = format!(
        "{}---\n{}---\n{}",
        node("a", "{}", "[]"),
        node("b", "{}", "[]"),
        claims::node("claims")
    );
    cluster.apply(&all.replace("Ready, status: 'True'", "Ready, status: 'False'"));
    for name in ["a", "b", "claims"] {
        until("the node has an address", || {
            let node = cluster.get(&["node", name]);
            node["status"]["addresses"].is_array() && node["spec"]["taints"].is_null()
        });
    }
    cluster.apply(claims::CLASS);
    cluster.apply(&claims::slice("claims", "NVIDIA L4", "24Gi", 2));
    let late = "WaitForFirstConsumer";
    cluster.apply(&class("late", "kubernetes.io/no-provisioner", late));
    cluster.apply(&class("made", "example.com/disks", late));
}

fn words(list: &Value) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(|word| word.as_str().map(str::to_owned)).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The verb, the group and the resource of a request.
fn what(event: &Value) -> (String, String, String) {
    let object = &event["objectRef"];
    let mut resource = text(&object["resource"]);
    if let Some(part) = object["subresource"].as_str() {
        resource = format!("{resource}/{part}");
    }
    (text(&event["verb"]), text(&object["apiGroup"]), resource)
}

/// As Berth names a right.
fn right(verb: &str, group: &str, resource: &str) -> String {
    match (group, resource.split_once('/')) {
        ("", _) => format!("{verb} {resource}"),
        (group, Some((kind, part))) => format!("{verb} {kind}.{group}/{part}"),
        (group, None) => format!("{verb} {resource}.{group}"),
    }
}
