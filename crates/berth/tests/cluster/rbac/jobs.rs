//! What Berth does for jobs of its own.

use super::setup::Scene;
use super::steps::{STEP, Step, own};
use crate::support::bound_claim;
use berth_testbed::Server;
use serde_json::Value;
use std::io::Write;
use std::process::Stdio;

pub const STEPS: &[Step] = &[
    Step {
        when: "jobs",
        rights: &[
            "create namespaces",
            "patch namespaces",
            "create serviceaccounts",
            "patch serviceaccounts",
            "create resourcequotas",
            "patch resourcequotas",
            "create networkpolicies.networking.k8s.io",
            "patch networkpolicies.networking.k8s.io",
            "create roles.rbac.authorization.k8s.io",
            "patch roles.rbac.authorization.k8s.io",
            "create rolebindings.rbac.authorization.k8s.io",
            "patch rolebindings.rbac.authorization.k8s.io",
        ],
        // Every team has a namespace here, and every queue is a team.
        act: |scene, _, name, _| scene.cluster.apply(&own("Queue", &team(name), "{}")),
        is_done: |scene, _, name, _| {
            let namespace = format!("berth-{}", team(name));
            let last = ["rolebinding", "berth-members", "--namespace", &namespace];
            scene.cluster.find(&last).is_some()
        },
        ..STEP
    },
    Step {
        when: "jobs",
        rights: &[
            "create pods",
            "get pods",
            "get pods/log",
            "list services",
            "create services",
            "delete services",
            "create secrets",
        ],
        act: |scene, berth, name, _| {
            let mut set = berth.command(&["secret", "set", "key"]);
            let mut set = set.stdin(Stdio::piped()).spawn().expect("berth runs");
            set.stdin.take().expect("it is piped").write_all(b"value\n").expect("it reads");
            assert!(set.wait().expect("it ends").success());
            let text = format!(
                "name: {name}\nnodes: 2\ngpus: 1\nlaunch: ranks\nsecrets: {{KEY: key}}\nrun: sleep 1\n"
            );
            submit(scene, berth, &text);
        },
        is_done: |scene, berth, name, _| {
            // Its pods end as soon as they are told to, and everything of it goes.
            for pod in pods_of(scene, name) {
                let ends = "testbed.berth.dev/runs=10ms";
                let words = ["pod", "-n", "berth-default", &pod, ends];
                let _ = scene.cluster.objects().try_annotate(&words);
            }
            let is_over = berth.job(name)["state"] == "done";
            is_over && left(scene, "services").is_empty() && left(scene, "secrets").is_empty()
        },
        ..STEP
    },
    Step {
        when: "jobs",
        rights: &["get namespaces"],
        // Nothing but the label of its namespace says that the team is that of the job.
        act: |scene, _, name, _| {
            let (team, namespace) = (team(name), format!("home-{name}"));
            scene.cluster.apply(&own("Queue", &team, "{}"));
            scene.cluster.create_namespace(&namespace);
            let label = format!("berth.dev/team={team}");
            scene.cluster.label(&["namespace", &namespace, &label]);
            let job = own("Job", name, &format!("{{team: {team}, gpus: 1, run: sleep 1}}"));
            let within = format!("metadata: {{namespace: {namespace}, name");
            scene.cluster.apply(&job.replace("metadata: {name", &within));
        },
        is_done: |scene, _, name, _| {
            let namespace = format!("home-{name}");
            let job = scene.cluster.get(&["jobs.berth.dev", name, "-n", &namespace]);
            let conditions = job["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().any(|one| one["type"] == "Accepted" && one["status"] == "True")
        },
        ..STEP
    },
    Step {
        when: "jobs",
        rights: &["get pods/exec", "create pods/exec"],
        act: |_, berth, name, _| {
            berth.run_ok(&["run", "-d", "-g", "1", "--name", name, "--", "sleep", "600"]);
        },
        is_done: |_, berth, name, _| {
            let typed = berth.berth(&["shell", name, "--", "true"]).status.success();
            typed && ended(berth, name)
        },
        ..STEP
    },
    Step {
        when: "jobs",
        rights: &["get persistentvolumes"],
        // A claim that has its volume: whether that can be used everywhere the volume says.
        act: |scene, berth, name, _| {
            bound_claim(&scene.cluster, "berth-default", name);
            let text =
                format!("name: {name}\ngpus: 1\nvolumes: {{/data: {name}}}\nrun: sleep 600\n");
            submit(scene, berth, &text);
        },
        is_done: |scene, berth, name, _| !pods_of(scene, name).is_empty() && ended(berth, name),
        ..STEP
    },
];

fn submit(scene: &Scene, berth: &Server, text: &str) {
    let file = scene.cluster.folder().join("job.yaml");
    std::fs::write(&file, text).expect("the folder can be written");
    berth.run_ok(&["run", "-d", "-f", &file.display().to_string()]);
}

/// Ends a job that would go on for ever.
fn ended(berth: &Server, name: &str) -> bool {
    berth.berth(&["stop", "--now", name]).status.success()
}

/// A team of its own for each try.
fn team(name: &str) -> String {
    let short: String = format!("of-{name}").chars().take(40).collect();
    short.trim_end_matches('-').to_owned()
}

fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().into_iter().flatten();
    items.filter_map(|item| item["metadata"]["name"].as_str().map(str::to_owned)).collect()
}

/// The pods of a job of that name.
fn pods_of(scene: &Scene, name: &str) -> Vec<String> {
    let pods = names(&scene.cluster.get(&["pods", "-n", "berth-default"]));
    pods.into_iter().filter(|pod| pod.starts_with(name)).collect()
}

/// What is left of a kind of jobs that have ended.
fn left(scene: &Scene, kind: &str) -> Vec<String> {
    names(&scene.cluster.get(&[kind, "-n", "berth-default", "-l", "berth.dev/job"]))
}
