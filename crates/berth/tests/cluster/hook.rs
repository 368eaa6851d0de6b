//! The webhook that gives pods with GPUs their scheduler, asked by the real API server.

use super::chart::{certificate_file, install, kubeconfig};
use super::support::{add_nodes, cluster, node_of, until};
use berth_testbed::Server;
use berth_testbed::kube::Cluster;
use std::net::TcpListener;
use std::path::Path;

/// Makes a pod that names a scheduler, or none; the scheduler it then has.
fn made(cluster: &Cluster, name: &str, scheduler: &str, resource: &str) -> String {
    let scheduler = if scheduler.is_empty() {
        String::new()
    } else {
        format!("  schedulerName: {scheduler}\n")
    };
    cluster.apply(&format!(
        "apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
{scheduler}  containers:
  - {{name: main, image: none, resources: {{limits: {{{resource}: 1}}}}}}
"
    ));
    let pod = cluster.json(&["get", "pod", name]);
    pod["spec"]["schedulerName"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn pods_that_ask_for_gpus_get_our_scheduler_in_namespaces_that_are_labelled() {
    let cluster = cluster();
    add_nodes(&cluster, &["a"]);
    install(&cluster, &["webhook.enabled=true"]);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    // Services lead nowhere on this cluster, so the API server is told the address.
    let url = format!("https://127.0.0.1:{port}/mutate");
    let patch = format!(
        r#"[{{"op":"remove","path":"/webhooks/0/clientConfig/service"}},
            {{"op":"add","path":"/webhooks/0/clientConfig/url","value":{url:?}}}]"#
    );
    let of = ["patch", "mutatingwebhookconfiguration", "berth", "--type=json", "--patch", &patch];
    cluster.says(&of);
    let (listen, cert, key) = (
        format!("127.0.0.1:{port}"),
        certificate_file(&cluster, "tls.crt").display().to_string(),
        certificate_file(&cluster, "tls.key").display().to_string(),
    );
    let program = Path::new(env!("CARGO_BIN_EXE_berth"));
    let flags = ["--webhook-listen", &listen, "--webhook-cert", &cert, "--webhook-key", &key];
    let adopts = ["--adopt-scheduler", "kai-scheduler,volcano"];
    let mut berth =
        Server::start_on(program, &kubeconfig(&cluster), &[&flags[..], &adopts[..]].concat());

    assert_eq!(made(&cluster, "unlabelled", "", "nvidia.com/gpu"), "default-scheduler");
    cluster.says(&["label", "namespace", "default", "berth.dev/managed=true"]);
    let mut tries = 0;
    until("the API server knows the label", || {
        tries += 1;
        made(&cluster, &format!("whole-{tries}"), "", "nvidia.com/gpu") == "berth"
    });
    until("it is bound", || node_of(&cluster, &format!("whole-{tries}")).is_some());
    assert_eq!(made(&cluster, "instance", "", "nvidia.com/mig-1g.10gb"), "berth");
    assert_eq!(made(&cluster, "plain", "", "cpu"), "default-scheduler");
    assert_eq!(made(&cluster, "chosen", "another", "nvidia.com/gpu"), "another");
    assert_eq!(made(&cluster, "adopted", "volcano", "nvidia.com/gpu"), "berth");

    berth.kill();
    let without = made(&cluster, "without", "", "nvidia.com/gpu");
    assert_eq!(without, "default-scheduler", "pods are made without Berth, too");
}
