//! Tracked runs of jobs in pods.

use super::jobs::{run, state};
use super::kubelet::Machine;
use super::signals::scene;
use super::support::berth_with;
use berth_testbed::kube::ADMIN;
use serde_json::Value;

const SCRIPT: &str = r#"
import json, os, urllib.request
url = os.environ["MLFLOW_TRACKING_URI"] + "/api/2.0/mlflow/runs/log-metric"
run = os.environ["MLFLOW_RUN_ID"]
point = {"run_id": run, "key": "loss", "value": 0.5, "timestamp": 1, "step": 1}
token = "Bearer " + os.environ["MLFLOW_TRACKING_TOKEN"]
head = {"Authorization": token, "Content-Type": "application/json"}
urllib.request.urlopen(urllib.request.Request(url, json.dumps(point).encode(), head))
"#;

#[test]
fn the_script_of_a_pod_logs_to_the_run_of_its_job() {
    let cluster = scene();
    let mut berth = berth_with(&cluster, &["--image", "none"]);
    let (config, url) = (cluster.kubeconfig(ADMIN).display().to_string(), berth.url.clone());
    berth.stop();
    // The pods need the address of the server, which is known after its start.
    let known = ["--kubeconfig", &*config, "--image", "none", "--fetch-url", &*url];
    berth.start_again_with(&known);
    let mut machine = Machine::new(&cluster, "a");
    let job = run(&berth, &["--name", "logs", "--", "python3", "-c", SCRIPT]);
    machine.until("it is done", || state(&berth, &job) == "done");
    let id = berth.job(&job)["run"].as_str().expect("it has a run").to_owned();
    let path = format!("/api/2.0/mlflow/runs/get?run_id={id}");
    let of = |run: &Value, kind: &str, key: &str| {
        let all = run["data"][kind].as_array().cloned().unwrap_or_default();
        all.iter().find(|one| one["key"] == key).map(|one| one["value"].clone())
    };
    machine.until("its run has ended", || {
        let run = berth.get(&path)["run"].clone();
        run["info"]["status"] == "FINISHED" && of(&run, "tags", "berth.end").is_some()
    });
    let run = berth.get(&path)["run"].clone();
    assert_eq!(of(&run, "metrics", "loss"), Some(0.5.into()), "{run}");
    assert_eq!(of(&run, "tags", "berth.job"), Some(job.into()), "{run}");
    assert_eq!(of(&run, "tags", "berth.image"), Some("none".into()), "{run}");
}
