//! Giving way as a program sees it: its signal, its grace, and its next start. Nodes that are played
//! run no program, so this one is a machine.

use super::jobs::{run, state};
use super::kubelet::Machine;
use super::preemption::{URGENT, of_job};
use super::support::{add_nodes, berth, berth_with, bound_claim};
use berth_testbed::kube::{Cluster, Part};
use serde_json::{Value, json};
use std::path::Path;

/// The real controllers and a node that nobody plays, nor renews.
pub fn scene() -> Cluster {
    let never = "--node-monitor-grace-period=1h";
    let cluster = Cluster::builder().controller_manager();
    let cluster = cluster.flag(Part::ControllerManager, never).start();
    add_nodes(&cluster, &["a"]);
    cluster.apply(URGENT);
    cluster
}

/// The spec of a pod that fills the node and runs a script in a folder.
fn spec(class: &str, script: &str, work: &Path) -> Value {
    json!({
        "schedulerName": "berth",
        "priorityClassName": class,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 20,
        "containers": [{
            "name": "main",
            "image": "none",
            "command": ["sh", "-c", script],
            "env": [{ "name": "WORK", "value": work }],
            "resources": { "limits": { "nvidia.com/gpu": 8 } },
        }],
    })
}

/// A pod that others give way to.
fn urgent(script: &str, work: &Path) -> String {
    let spec = spec("urgent", script, work);
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "high" }, "spec": spec })
        .to_string()
}

#[test]
fn a_program_that_gives_way_has_its_signal_and_its_grace_and_goes_on_from_what_it_saved() {
    let cluster = scene();
    let berth = berth(&cluster);
    let mut machine = Machine::new(&cluster, "a");
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path();
    // It takes a while to save, which is more than nothing and less than its grace.
    let script = r#"
        if [ -e "$WORK/saved" ]; then cp "$WORK/saved" "$WORK/resumed"; exit 0; fi
        trap 'sleep 1; echo 7 >"$WORK/saved"; exit 143' TERM
        : >"$WORK/runs"
        for _ in $(seq 6000); do sleep 0.1; done"#;
    let low = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": { "name": "low" },
        "spec": { "template": { "spec": spec("", script, work) } },
    });
    cluster.apply(&low.to_string());
    machine.until("the low one runs", || work.join("runs").exists());
    let before = of_job(&berth, "low");

    // It begins only when the other one has saved and ended.
    cluster.apply(&urgent(r#"cp "$WORK/saved" "$WORK/found" && exec sleep 600"#, work));
    machine.until("the high one runs in its place", || work.join("found").exists());
    cluster.delete(&["pod", "high", "--wait=false"]);
    machine.until("the low one is complete", || {
        cluster.get(&["job", "low"])["status"]["succeeded"] == 1
    });
    assert_eq!(std::fs::read_to_string(work.join("resumed")).unwrap(), "7\n");
    machine.until("it is done in the books", || of_job(&berth, "low")[0]["state"] == "done");
    let after = of_job(&berth, "low");
    assert_eq!((after.len(), &after[0]["id"]), (1, &before[0]["id"]), "{after:?}");
    assert_eq!(after[0]["attempts"], 2, "{after:?}");
}

#[test]
fn a_job_of_berths_own_that_gives_way_goes_on_from_its_checkpoint() {
    let cluster = scene();
    cluster.create_namespace("research");
    cluster.annotate(&["namespace", "research", "berth.dev/team=default"]);
    bound_claim(&cluster, "research", "saved");
    let flags = ["--namespace", "default=research", "--checkpoints", "saved", "--image", "none"];
    let berth = berth_with(&cluster, &flags);
    let mut machine = Machine::new(&cluster, "a");
    let script = r#"
        if [ -n "$BERTH_RESUME_FROM" ]; then
            cp "$BERTH_RESUME_FROM/step" "$BERTH_CHECKPOINT_DIR/resumed"
            exit 0
        fi
        trap '[ -e "$BERTH_PREEMPT_FILE" ] && echo 7 >"$BERTH_CHECKPOINT_DIR/step"; exit 143' TERM
        : >"$BERTH_CHECKPOINT_DIR/runs"
        for _ in $(seq 6000); do sleep 0.1; done"#;
    let job = run(&berth, &["-g", "8", "--name", "own", "--", "sh", "-c", script]);
    let saved = machine.claim("saved").join("berth").join(&job);
    machine.until("it runs", || saved.join("runs").exists());

    let folder = tempfile::tempdir().unwrap();
    let work = folder.path();
    cluster.apply(&urgent(r#": >"$WORK/runs"; exec sleep 600"#, work));
    machine.until("the high one runs in its place", || work.join("runs").exists());
    assert_eq!(std::fs::read_to_string(saved.join("step")).unwrap(), "7\n");
    assert_eq!(state(&berth, &job), "pending");
    cluster.delete(&["pod", "high", "--wait=false"]);
    machine.until("it is done", || state(&berth, &job) == "done");
    assert_eq!(std::fs::read_to_string(saved.join("resumed")).unwrap(), "7\n");
}
