//! Figures of GPUs that exporters tell, up to what people see of a job.

mod agent;

use super::gpus::{H100, add_node};
use super::jobs::{IMAGE, finish, name, run, state, until_runs};
use super::support::{berth_with, cluster, until};
use berth_testbed::Server;
use berth_testbed::kube::Cluster;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

/// The commands of the page, which the tests run.
const PAGE: &str = include_str!("../../../../docs/figures.md");

/// The commands of the page's part about Kubernetes, as words.
fn commands() -> Vec<Vec<&'static str>> {
    let part = PAGE.split("## On Kubernetes").nth(1).expect("a part about Kubernetes");
    let block = part.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next());
    let lines = block.expect("a block of commands").lines();
    lines
        .filter_map(|line| Some(line.strip_prefix("berth ")?.split_whitespace().collect()))
        .collect()
}

/// A program on this machine that plays the exporter of a node.
struct Exporter {
    port: u16,
    says: Arc<Mutex<Says>>,
}

/// What it answers; nothing where it hangs.
type Says = Option<Vec<u8>>;

impl Exporter {
    fn start() -> Exporter {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let says: Arc<Mutex<Says>> = Arc::default();
        let answer = says.clone();
        std::thread::spawn(move || {
            let mut held = Vec::new();
            for stream in listener.incoming().map_while(Result::ok) {
                let says = answer.lock().unwrap_or_else(PoisonError::into_inner).clone();
                match says {
                    Some(body) => serve(stream, &body),
                    None => held.push(stream),
                }
            }
        });
        Exporter { port, says }
    }

    fn say(&self, says: Says) {
        *self.says.lock().unwrap_or_else(PoisonError::into_inner) = says;
    }

    /// As its DaemonSet would have made it, where the kubelet says that it runs.
    fn put(&self, cluster: &Cluster, name: &str, node: &str) {
        put(cluster, "dcgm-exporter", name, node, self.port);
    }
}

/// The namespace that exporters are in.
const NAMESPACE: &str = "gpus";

/// A pod of a DaemonSet, of which the kubelet says that it runs on this machine.
fn put(cluster: &Cluster, label: &str, name: &str, node: &str, port: u16) {
    cluster.create_namespace(NAMESPACE);
    cluster.apply(&format!(
        "apiVersion: v1
kind: Pod
metadata:
  name: {name}
  namespace: {NAMESPACE}
  labels: {{app.kubernetes.io/name: {label}}}
  annotations: {{testbed.berth.dev/runs: 1h}}
spec:
  nodeName: {node}
  containers:
  - {{name: exporter, image: none, ports: [{{name: metrics, containerPort: {port}}}]}}
"
    ));
    until("the exporter runs", || {
        cluster.get(&["pod", name, "-n", NAMESPACE])["status"]["phase"] == "Running"
    });
    let there = r#"{"status": {"podIP": "127.0.0.1",
        "podIPs": [{"$patch": "replace"}, {"ip": "127.0.0.1"}]}}"#;
    cluster.patch(&["pod", "-n", NAMESPACE, name, "--subresource=status", "-p", there]);
}

fn serve(mut stream: TcpStream, body: &[u8]) {
    let mut asked = Vec::new();
    let mut bytes = [0; 1_024];
    while !asked.ends_with(b"\r\n\r\n") {
        match stream.read(&mut bytes) {
            Ok(count @ 1..) => asked.extend_from_slice(&bytes[..count]),
            _ => return,
        }
    }
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
}

/// What one GPU tells: busy, and drawing 500 W since the test began.
fn gpu(index: u32, seconds: u32, pod: Option<(&str, &str)>) -> String {
    let pod = pod.map_or_else(String::new, |(namespace, pod)| {
        format!(",container=\"main\",namespace=\"{namespace}\",pod=\"{pod}\"")
    });
    let labels = format!(
        "gpu=\"{index}\",UUID=\"GPU-{index}\",device=\"nvidia{index}\",\
         modelName=\"NVIDIA H100 80GB HBM3\",Hostname=\"a\"{pod}"
    );
    let busy = if pod.is_empty() { "0.000000" } else { "0.800000" };
    let energy = 7_000_000 + u64::from(seconds) * 500_000;
    [
        ("DCGM_FI_DEV_GPU_UTIL", "97".to_owned()),
        ("DCGM_FI_DEV_FB_USED", "71424".to_owned()),
        ("DCGM_FI_DEV_POWER_USAGE", "500.000000".to_owned()),
        ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", energy.to_string()),
        ("DCGM_FI_DEV_SM_CLOCK", "990".to_owned()),
        ("DCGM_FI_PROF_SM_ACTIVE", busy.to_owned()),
        ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", busy.to_owned()),
    ]
    .map(|(name, value)| format!("# TYPE {name} gauge\n{name}{{{labels}}} {value}\n"))
    .concat()
}

/// What Prometheus would be told.
fn metrics(berth: &Server) -> String {
    let mut stream = TcpStream::connect(berth.url.trim_start_matches("http://")).unwrap();
    let token = berth.token();
    let asked = format!("GET /metrics HTTP/1.0\r\nAuthorization: Bearer {token}\r\n\r\n");
    let mut answer = String::new();
    stream.write_all(asked.as_bytes()).and_then(|()| stream.read_to_string(&mut answer)).unwrap();
    answer
}

fn line<'a>(gpu: &'a Value, figure: &str) -> &'a Value {
    let lines = gpu["figures"].as_array().expect("lines");
    lines.iter().find(|line| line["figure"] == figure).unwrap_or(&Value::Null)
}

/// How often a figure of the job's first GPU was measured.
fn measured(answer: &Value, figure: &str) -> usize {
    let gpus = &answer["tasks"][0]["gpus"];
    if gpus[0].is_null() {
        return 0;
    }
    line(&gpus[0], figure)["values"].as_array().map_or(0, Vec::len)
}

#[test]
fn a_job_has_the_figures_of_the_gpus_that_the_exporter_says_its_pod_has() {
    let cluster = cluster();
    let count = format!("{H100}, nvidia.com/gpu.count: '8'");
    add_node(&cluster, "a", &count, "nvidia.com/gpu: 8");
    let exporter = Exporter::start();
    let berth = berth_with(&cluster, &[IMAGE, &["--figures-every", "1s"]].concat());
    let [submit, show] = &commands()[..] else { panic!("two commands") };
    berth.run_ok(submit);
    let job = berth.job("train")["id"].as_str().expect("an id").to_owned();
    let pods = until_runs(&cluster, &job, 1);
    let pod = name(&pods[0]).to_owned();
    let path = format!("/v1/jobs/{job}/figures?step=1s");
    let read = || berth.get(&path);
    until("it says that nobody measures", || read()["notes"].to_string().contains("no exporter"));

    // The kubelet gave the pod the fourth and the sixth GPU, whatever was counted for it.
    let owner = Some(("berth-default", pod.as_str()));
    let all = |seconds| {
        let of = |index| gpu(index, seconds, owner.filter(|_| [3, 5].contains(&index)));
        (0..8).map(of).collect::<String>().into_bytes()
    };
    exporter.say(Some(all(0)));
    exporter.put(&cluster, "dcgm-exporter-x7", "a");
    until("it is measured", || measured(&read(), "sm_active") >= 2);
    exporter.say(Some(all(60)));
    until("it is measured on", || {
        let energy = &read()["tasks"][0]["gpus"][0]["summary"]["energy_joules"];
        energy.as_i64() == Some(30_000)
    });
    let found = read();
    let gpus = found["tasks"][0]["gpus"].as_array().expect("GPUs");
    let numbers: Vec<&Value> = gpus.iter().map(|gpu| &gpu["gpu"]).collect();
    assert_eq!(numbers, [3, 5], "{found}");
    assert_eq!(gpus[0]["uuid"], "GPU-3", "{found}");
    assert_eq!((&gpus[0]["milli"], &gpus[0]["node"]), (&1_000.into(), &"a".into()));
    assert_eq!(line(&gpus[1], "sm_active")["mean"], 800, "{found}");
    assert_eq!(line(&gpus[1], "gpu_memory")["max"], 71_424, "{found}");
    // At half of the clock that this model can have, which the exporter does not say.
    assert_eq!(found["summary"]["mfu"], 400, "{found}");
    assert_eq!(
        (&found["summary"]["idle_ms"], &found["summary"]["energy_joules"]),
        (&0.into(), &60_000.into())
    );

    let shown = berth.run_ok(show);
    assert!(shown.contains("gpu 3 H100-80GB") && shown.contains("gpu 5 "), "{shown}");
    assert!(shown.contains("sm active") && shown.contains("MFU about 40.0 %"), "{shown}");
    let node = berth.get("/v1/nodes/a/figures");
    assert_eq!(node["gpus"].as_array().map(Vec::len), Some(8), "{node}");
    assert_eq!(line(&node["gpus"][0], "sm_active")["max"], 0, "{node}");

    let metrics = metrics(&berth);
    let labels = |gpu: &str| {
        let of = format!("DCGM_FI_PROF_SM_ACTIVE{{gpu=\"{gpu}\",UUID=\"GPU-{gpu}\"");
        metrics.lines().find(|line| line.starts_with(&of)).unwrap_or_default().to_owned()
    };
    assert!(labels("3").contains(&format!("job=\"{job}\",team=\"default\"")), "{metrics}");
    assert!(labels("3").ends_with(" 0.8"), "{}", labels("3"));
    assert!(labels("0").contains("modelName=\"NVIDIA H100") && !labels("0").contains("job="));
    assert!(metrics.contains("berth_exporters{state=\"up\"} 1"), "{metrics}");
    assert!(!metrics.contains("berth_job_memory_bytes{"), "nobody measures it");

    finish(&cluster, &pod);
    until("it is done", || state(&berth, &job) == "done");
    let after = read();
    assert_eq!(after["tasks"][0]["gpus"].as_array().map(Vec::len), Some(2), "{after}");
    assert_eq!(after["summary"]["mfu"], 400, "what is over is still told: {after}");
}

#[test]
fn an_exporter_that_fails_costs_its_own_figures_alone_and_is_told_of_once() {
    let cluster = cluster();
    for node in ["a", "b"] {
        add_node(&cluster, node, H100, "nvidia.com/gpu: 1");
    }
    let (well, ill) = (Exporter::start(), Exporter::start());
    // It hangs.
    well.put(&cluster, "well", "a");
    ill.put(&cluster, "ill", "b");
    let berth = berth_with(&cluster, &[IMAGE, &["--figures-every", "1s"]].concat());
    // Each has a node for itself.
    let jobs = ["one", "other"].map(|job| {
        let job = run(&berth, &["-g", "1", "--name", job, "--", "true"]);
        let pod = until_runs(&cluster, &job, 1).remove(0);
        (job, pod)
    });
    let on = |node: &str| {
        let found = jobs.iter().find(|(_, pod)| pod["spec"]["nodeName"] == node);
        found.map(|(job, pod)| (job.as_str(), name(pod))).expect("both are used")
    };
    let ((fine, pod), (blind, blind_pod)) = (on("a"), on("b"));
    well.say(Some(gpu(0, 0, Some(("berth-default", pod))).into_bytes()));
    let read = |job: &str| berth.get(&format!("/v1/jobs/{job}/figures"));
    let goes_on = || {
        let before = measured(&read(fine), "power");
        until("the other is measured on", || measured(&read(fine), "power") >= before + 2);
    };
    goes_on();
    let notes = || read(blind)["notes"].to_string();
    until("it is told that it hangs", || {
        notes().contains("gpus/ill") && notes().contains("did not answer")
    });
    for (says, why) in [
        (b"<html>hello</html>".to_vec(), "tells nothing of GPUs"),
        (vec![b'x'; 5 << 20], "is larger than"),
    ] {
        ill.say(Some(says));
        until(why, || notes().contains(why));
    }
    goes_on();
    assert_eq!(berth.log().matches("gpus/ill").count(), 1, "{}", berth.log());
    assert!(metrics(&berth).contains("berth_exporters{state=\"down\"} 1"));
    assert_eq!(state(&berth, blind), "running");

    ill.say(Some(gpu(0, 0, Some(("berth-default", blind_pod))).into_bytes()));
    until("it is measured at last", || measured(&read(blind), "power") >= 1);
    assert!(berth.log().contains("tell figures of GPUs again"), "{}", berth.log());
}
