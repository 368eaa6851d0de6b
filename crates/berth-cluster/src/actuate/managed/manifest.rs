//! Manifests of the objects of a lease: its pod, the Secret beside it, and the Service of its job.

use super::fetch;
use super::launch::{self, literal};
use super::track::Track;
use crate::options::{Fetch, NodeData, PodSettings};
use crate::state::pod_orders::CreatePod;
use crate::tenancy::ACCOUNT;
use crate::view::LEASE;
use crate::view::managed::{ATTEMPT, BERTH, JOB, MANAGED, SECRET, TASK};
use crate::view::managed_names::{CONTAINER, host, of_job};
use berth_kube::object::Meta;
use berth_kube::pod::gpu_sharing;
use berth_model::JobKind;
use berth_model::run::{Command, Launch, ReadyCheck, RunSpec};
use berth_model::{DataRef, JobId, Name, Span};
use berth_node::{Gpus, TaskSpec, environment, shell_command};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A folder of the container that is Berth's.
const HOME: &str = "/berth";
const RESUME: &str = "/berth/resume";
/// The code that its job was submitted with.
const CODE: &str = "/berth/code";
/// The volume in which the container that fetches data leaves it, a folder for each version.
const DATA: &str = "data";
/// What its setup has made.
const SETUP: &str = "/berth/setup";
const SETUP_VARIABLE: &str = "BERTH_SETUP_DIR";
/// Stands for the value of a secret, which no variable could have.
const SEALED: &str = "\0";
/// The period of the readiness probe, in seconds.
const PROBE_SECS: i64 = 2;

/// The task as it would be on a machine.
pub fn task(create: &CreatePod, settings: &PodSettings) -> TaskSpec {
    let start = &create.start;
    let run = start.run.of_element(start.lease.job.element);
    let words = match &run.command {
        Command::Shell(text) => shell_command(text),
        Command::Program(words) => words.clone(),
    };
    let directory = directory(&run).unwrap_or_else(|| PathBuf::from("/"));
    let mut task = TaskSpec::new(start.lease, &[], directory);
    task.command = words;
    task.name = Name::new(&start.name);
    (task.team, task.queue) = (Name::new(&start.team), Name::new(&start.team));
    task.env = run.env.0.clone();
    task.env.extend(run.secrets.keys().map(|name| (name.clone(), SEALED.to_owned())));
    task.launch = match run.launch {
        Launch::Once => berth_node::Launch::Once,
        Launch::Ranks => berth_node::Launch::Ranks { count: run.ranks },
        Launch::Torchrun => berth_node::Launch::Torchrun { count: run.ranks },
    };
    if let Some(setup) = &run.setup {
        task.setup = Some(setup.clone());
        task.env.insert(SETUP_VARIABLE.to_owned(), SETUP.to_owned());
    }
    let gpus = u32::try_from(start.slices.len()).unwrap_or(u32::MAX);
    let indices = (0..gpus).collect();
    task.gpus = match &create.gpus {
        // Which ones they are the node decides; the container counts its own from zero.
        None => Gpus::Declared { indices },
        Some(gpus) => Gpus::Real { indices, uuids: gpus.split(',').map(str::to_owned).collect() },
    };
    (task.cpu, task.memory) = (start.cpu, start.memory);
    (task.grace, task.ends_at, task.port) = (run.grace, start.ends_at, start.port);
    let service = of_job(&start.name, start.lease.job);
    let suffix = format!("{service}.{}.svc", create.container.namespace);
    let tasks = start.tasks.max(1);
    if tasks > 1 {
        task.gang.hosts = (0..tasks).map(|task| format!("{}.{suffix}", host(task))).collect();
        task.gang.master_addr = task.gang.hosts[0].clone();
    }
    task.gang.node_rank = start.lease.task;
    if settings.checkpoints.is_some() {
        let saved = saved(&run);
        let resumed = start.resume_from.map(|_| PathBuf::from(RESUME));
        task.resume_from = resumed.or((start.lease.attempt > 0).then(|| saved.clone()));
        task.checkpoint = Some(saved);
    }
    task
}

/// Where the command starts, where that is not where its image says.
fn directory(run: &RunSpec) -> Option<PathBuf> {
    let code = run.code.as_ref().map(|_| PathBuf::from(CODE));
    let Some(named) = &run.workdir else { return code };
    Some(code.unwrap_or_default().join(named))
}

fn saved(run: &RunSpec) -> PathBuf {
    Path::new(HOME).join(run.checkpoint.path.as_deref().unwrap_or("checkpoints"))
}

/// The pod of a lease. It gets the code and the data of its job by `fetch`, where the job has any.
pub fn pod(
    create: &CreatePod,
    settings: &PodSettings,
    fetch: Option<&Fetch>,
    scheduler: &str,
) -> Value {
    let start = &create.start;
    let (lease, run) = (start.lease, &start.run);
    let task = task(create, settings);
    let at = create.pod();
    let mut annotations = json!({
        LEASE: lease.to_string(),
        "berth.dev/name": start.name,
        "berth.dev/team": start.team,
    });
    if let Some(secret) = &create.secret {
        annotations[SECRET] = json!(secret);
    }
    if let Some(gpus) = &create.gpus {
        // By it a later server knows who uses a GPU that is held.
        annotations[gpu_sharing::GPUS] = json!(gpus);
    }
    let gpus = task.gpus.indices().len();
    let (mut volumes, mut mounts) = volumes(create, settings, gpus > 0);
    let track = Track::of(create, &settings.fetch).filter(|_| create.secret.is_some());
    if let Some((volume, mount)) = track.as_ref().and_then(|track| track.volume(create)) {
        volumes.push(volume);
        mounts.push(mount);
    }
    let fetches = fetch.filter(|_| run.is_fetched()).map(|fetch| {
        volumes.extend(fetch::volume(create, fetch));
        let code = run.code.as_ref().map(|code| (code, Path::new(CODE)));
        let fetched = data(create, settings);
        let fetched = fetched.map(|(at, _, data)| (data, Path::new(fetch::FETCHED).join(at)));
        let mut mounts = vec![own_mount()];
        if run.versions().next().is_some() {
            mounts.push(json!({ "name": DATA, "mountPath": fetch::FETCHED }));
        }
        let node_data = settings.node_data.as_ref().filter(|_| run.versions().next().is_some());
        fetch::container(create, code, fetched.collect(), (fetch, node_data), mounts)
    });
    let mut spec = json!({
        "schedulerName": scheduler,
        "nodeName": start.node,
        "restartPolicy": "Never",
        "serviceAccountName": ACCOUNT,
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "hostname": host(lease.task),
        "subdomain": of_job(&start.name, lease.job),
        "terminationGracePeriodSeconds": seconds(run.grace).max(1),
        "securityContext": { "seccompProfile": { "type": "RuntimeDefault" } },
        "containers": [container(create, &task, track.as_ref(), mounts)],
        "volumes": volumes,
    });
    if let Some(container) = fetches {
        spec["initContainers"] = json!([container]);
    }
    if gpus > 0 {
        spec["tolerations"] = tolerations();
    }
    if !create.container.pull_secrets.is_empty() {
        let names = create.container.pull_secrets.iter().map(|name| json!({ "name": name }));
        spec["imagePullSecrets"] = names.collect();
    }
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": at.name,
            "namespace": at.namespace,
            "labels": {
                MANAGED: BERTH,
                JOB: lease.job.to_string(),
                TASK: lease.task.to_string(),
                ATTEMPT: lease.attempt.to_string(),
            },
            "annotations": annotations,
        },
        "spec": spec,
    })
}

/// Nodes with GPUs are often kept for pods that ask for one.
pub fn tolerations() -> Value {
    json!([{ "key": "nvidia.com/gpu", "operator": "Exists" }])
}

fn container(
    create: &CreatePod,
    task: &TaskSpec,
    track: Option<&Track>,
    mounts: Vec<Value>,
) -> Value {
    let start = &create.start;
    let run = &start.run;
    // Always there: a quota refuses pods that do not say what they need.
    let cpu = format!("{}m", start.cpu.map_or(0, |cpu| cpu.0));
    let mut requests = json!({ "cpu": cpu, "memory": start.memory.map_or(0, |m| m.0).to_string() });
    let mut limits = json!({});
    if let Some(memory) = start.memory {
        limits["memory"] = json!(memory.0.to_string());
    }
    for (resource, count) in &create.devices {
        limits[resource] = json!(count.to_string());
        requests[resource] = json!(count.to_string());
    }
    let ports = start.port.into_iter().chain(run.ports.iter().copied());
    let ports: Vec<Value> = ports.map(|port| json!({ "containerPort": port })).collect();
    let command: Vec<String> = launch::command(task).iter().map(|word| literal(word)).collect();
    let mut env = env(create, task);
    env.extend(track.map(|track| track.env(create)).unwrap_or_default());
    let mut container = json!({
        "name": CONTAINER,
        "image": create.container.image,
        "command": command,
        "env": env,
        "resources": { "requests": requests, "limits": limits },
        "ports": ports,
        "volumeMounts": mounts,
        "securityContext": { "allowPrivilegeEscalation": false },
    });
    if let Some(directory) = directory(run) {
        container["workingDir"] = json!(directory);
    }
    if let (Some(port), JobKind::Job | JobKind::Service, Some(ready)) =
        (start.port, run.kind, &run.ready)
    {
        let look = match &ready.check {
            ReadyCheck::Http(path) => json!({ "httpGet": { "path": path, "port": port } }),
            ReadyCheck::Tcp => json!({ "tcpSocket": { "port": port } }),
        };
        let mut probe = look;
        probe["periodSeconds"] = json!(PROBE_SECS);
        container["readinessProbe"] = probe.clone();
        if let Some(within) = ready.within {
            probe["failureThreshold"] = json!((seconds(within) / PROBE_SECS).max(1));
            container["startupProbe"] = probe;
        }
    }
    container
}

fn env(create: &CreatePod, task: &TaskSpec) -> Vec<Value> {
    let secret = create.secret.as_deref();
    let mut all = environment(task, Path::new(HOME), Path::new(HOME), 0);
    // A container that asks for no device is given its GPU by this.
    all.extend(create.gpus.clone().map(|gpus| (berth_kube::object::GPU_VARIABLE.to_owned(), gpus)));
    let one = |(name, value): (String, String)| match value.as_str() {
        SEALED => json!({
            "name": name,
            "valueFrom": { "secretKeyRef": { "name": secret, "key": name } },
        }),
        value => json!({ "name": name, "value": literal(value) }),
    };
    // The container's own folder is not known here.
    all.into_iter().filter(|(name, _)| name != "SLURM_SUBMIT_DIR").map(one).collect()
}

/// Berth's own folder in a container.
fn own_mount() -> Value {
    json!({ "name": BERTH, "mountPath": HOME })
}

fn volumes(create: &CreatePod, settings: &PodSettings, gpus: bool) -> (Vec<Value>, Vec<Value>) {
    let run = &create.start.run;
    let mut volumes = vec![json!({ "name": BERTH, "emptyDir": {} })];
    let mut mounts = vec![own_mount()];
    if gpus {
        // Processes that share GPUs hand each other tensors there, and 64 MB are not enough.
        volumes.push(json!({ "name": "shm", "emptyDir": { "medium": "Memory" } }));
        mounts.push(json!({ "name": "shm", "mountPath": "/dev/shm" }));
    }
    let mut of_claim: BTreeMap<&str, String> = BTreeMap::new();
    let volume = |claim: &str, volumes: &mut Vec<Value>| {
        let name = format!("claim-{}", volumes.len());
        let claim_of = json!({ "claimName": claim });
        volumes.push(json!({ "name": name, "persistentVolumeClaim": claim_of }));
        name
    };
    for (at, claim) in claims(run) {
        let name = match of_claim.get(claim) {
            Some(name) => name.clone(),
            None => volume(claim, &mut volumes),
        };
        of_claim.insert(claim, name.clone());
        mounts.push(json!({ "name": name, "mountPath": at }));
    }
    if run.versions().next().is_some() {
        volumes.push(match &settings.node_data {
            None => json!({ "name": DATA, "emptyDir": {} }),
            Some(NodeData { path, .. }) => {
                let folder = json!({ "path": path, "type": "DirectoryOrCreate" });
                json!({ "name": DATA, "hostPath": folder })
            }
        });
    }
    for (folder, at, _) in data(create, settings) {
        let mount = json!({ "name": DATA, "mountPath": at, "subPath": folder, "readOnly": true });
        mounts.push(mount);
    }
    if let Some(claim) = settings.checkpoints.as_deref() {
        let name = match of_claim.get(claim) {
            Some(name) => name.clone(),
            None => volume(claim, &mut volumes),
        };
        let kept = |job: JobId| format!("berth/{job}");
        mounts.push(json!({
            "name": name,
            "mountPath": saved(run),
            "subPath": kept(create.start.lease.job),
        }));
        if let Some(setup) = &run.setup {
            let kept = setup_of(create, setup);
            mounts.push(json!({ "name": name, "mountPath": SETUP, "subPath": kept }));
        }
        if let Some(other) = create.start.resume_from {
            let from = kept(other);
            mounts.push(json!({ "name": name, "mountPath": RESUME, "subPath": from }));
        }
    }
    (volumes, mounts)
}

/// The folder of the claim in which jobs of a user find what the same script has made in the same
/// image of the same code.
fn setup_of(create: &CreatePod, setup: &str) -> String {
    let start = &create.start;
    let mut said = [&*start.team, &*start.user, &*create.container.image, setup].join("\0");
    if let Some(code) = &start.run.code {
        said.extend(["\0", &*code.to_string()]);
    }
    let digest = ring::digest::digest(&ring::digest::SHA256, said.as_bytes());
    format!("berth/setups/{}", hex::encode(&digest.as_ref()[..16]))
}

/// The versions of data of a job, each with its folder in the volume and where it is mounted. In a volume
/// of the pod a number will do; on a node other pods find it by its team and hash.
fn data<'a>(
    create: &'a CreatePod,
    settings: &PodSettings,
) -> impl Iterator<Item = (String, &'a String, DataRef)> + use<'a> {
    let (team, is_shared) = (&create.start.team, settings.node_data.is_some());
    let numbered = create.start.run.versions().enumerate();
    numbered.map(move |(number, (at, data))| {
        let shared = data.folder().filter(|_| is_shared);
        let folder = shared.map(|folder| format!("trees/{team}/{folder}"));
        (folder.unwrap_or_else(|| number.to_string()), at, data)
    })
}

/// Where each claim is mounted. Data with a URL is fetched, or its submitter got a warning.
pub fn claims(run: &RunSpec) -> impl Iterator<Item = (&String, &str)> {
    let all = run.volumes.iter().chain(&run.data);
    all.filter(|(_, source)| !source.contains(':')).map(|(at, source)| (at, source.as_str()))
}

/// What a job names as its secrets, by its variables, and what else its pod needs. It is owned by
/// the pod, and goes with it.
pub fn secret(
    create: &CreatePod,
    pod: &Meta,
    name: &str,
    values: &BTreeMap<String, String>,
    more: BTreeMap<String, String>,
) -> Value {
    let job = create.start.lease.job.to_string();
    let owner = json!({ "apiVersion": "v1", "kind": "Pod", "name": *pod.name, "uid": *pod.uid });
    let of =
        |(variable, name): (&String, &String)| Some((variable.clone(), json!(values.get(name)?)));
    let mut data: serde_json::Map<String, Value> =
        create.start.run.secrets.iter().filter_map(of).collect();
    data.extend(more.into_iter().map(|(key, value)| (key, json!(value))));
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "namespace": create.container.namespace,
            "labels": { MANAGED: BERTH, JOB: job },
            "ownerReferences": [owner],
        },
        "immutable": true,
        "stringData": data,
    })
}

/// By it the tasks of a job find each other, and others a job that serves.
pub fn service(create: &CreatePod) -> Option<Value> {
    let start = &create.start;
    if start.tasks <= 1 && start.port.is_none() {
        return None;
    }
    let ports: Vec<Value> =
        start.port.iter().map(|port| json!({ "name": "main", "port": port })).collect();
    let job = start.lease.job.to_string();
    Some(json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": of_job(&start.name, start.lease.job),
            "namespace": create.container.namespace,
            "labels": { MANAGED: BERTH, JOB: job },
        },
        "spec": {
            "clusterIP": "None",
            "selector": { JOB: job },
            // They look for each other before they are ready.
            "publishNotReadyAddresses": true,
            "ports": ports,
        },
    }))
}

fn seconds(span: Span) -> i64 {
    (span.0 + 999) / 1_000
}

#[cfg(test)]
mod tests;
