//! The webhook that gives pods with GPUs their scheduler, asked by the real API server.

use super::chart::{certificate_file, install, kubeconfig, upgrade};
use super::support::{add_nodes, node_of, own_cluster, until};
use berth_testbed::Server;
use berth_testbed::kube::Cluster;
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
    let pod = cluster.get(&["pod", name]);
    pod["spec"]["schedulerName"].as_str().unwrap_or_default().to_owned()
}

/// Services lead nowhere on this cluster, so the API server is told the address.
pub fn lead_to(cluster: &Cluster, url: &str) {
    let patch = format!(
        r#"[{{"op":"remove","path":"/webhooks/0/clientConfig/service"}},
            {{"op":"add","path":"/webhooks/0/clientConfig/url","value":{url:?}}}]"#
    );
    let of = ["mutatingwebhookconfiguration", "berth", "--type=json", "--patch", &patch];
    cluster.patch(&of);
}

/// Where a server answers the API server, as it says itself.
pub fn webhook_of(berth: &Server) -> String {
    let url = || {
        let said = berth.printed();
        let line = said.lines().find_map(|line| line.trim().strip_prefix("webhook"));
        line.map(|url| url.trim().to_owned())
    };
    until("it says where", || url().is_some());
    url().expect("it was there just now")
}

#[test]
fn pods_that_ask_for_gpus_get_our_scheduler_in_namespaces_that_are_labelled() {
    let cluster = own_cluster();
    add_nodes(&cluster, &["a"]);
    install(&cluster, &["webhook.enabled=true"]);
    let (cert, key) = (
        certificate_file(&cluster, "tls.crt").display().to_string(),
        certificate_file(&cluster, "tls.key").display().to_string(),
    );
    let program = Path::new(env!("CARGO_BIN_EXE_berth"));
    let listen = ["--webhook-listen", "127.0.0.1:0", "--webhook-cert", &cert];
    let more = ["--webhook-key", &key, "--adopt-scheduler", "volcano", "--stand-in", "kai"];
    let mut berth =
        Server::start_on(program, &kubeconfig(&cluster), &[&listen[..], &more[..]].concat());
    until("it says whose pods it takes", || {
        berth.printed().contains("schedulerName: berth or kai-scheduler")
    });
    let url = webhook_of(&berth);
    lead_to(&cluster, &url);

    assert_eq!(made(&cluster, "unlabelled", "", "nvidia.com/gpu"), "default-scheduler");
    cluster.label(&["namespace", "default", "berth.dev/managed=true"]);
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

    // A pod of KAI keeps its scheduler where Berth stands in for it, and learns its GPU all the same.
    cluster.apply(
        "apiVersion: v1
kind: Pod
metadata: {name: fraction, annotations: {gpu-fraction: '0.5'}}
spec:
  schedulerName: kai-scheduler
  containers: [{name: main, image: none}]
",
    );
    let pod = cluster.get(&["pod", "fraction"]);
    assert_eq!(pod["spec"]["schedulerName"], "kai-scheduler");
    let variable = &pod["spec"]["containers"][0]["env"][0];
    assert_eq!(variable["name"], "NVIDIA_VISIBLE_DEVICES", "{pod}");

    // With another name there is another certificate, of an authority that is new as well. The API
    // server trusts no other from then on, and the server goes on with the files as they are.
    // Helm would not take back what somebody else has written.
    cluster.delete(&["mutatingwebhookconfiguration", "berth"]);
    upgrade(&cluster, &["webhook.enabled=true", "tls.extraNames={berth.example}"]);
    lead_to(&cluster, &url);
    let mut tries = 0;
    until("the old certificate is trusted no more", || {
        tries += 1;
        made(&cluster, &format!("old-{tries}"), "", "nvidia.com/gpu") == "default-scheduler"
    });
    certificate_file(&cluster, "tls.crt");
    certificate_file(&cluster, "tls.key");
    until("the new one is shown", || {
        tries += 1;
        made(&cluster, &format!("new-{tries}"), "", "nvidia.com/gpu") == "berth"
    });

    berth.kill();
    let without = made(&cluster, "without", "", "nvidia.com/gpu");
    assert_eq!(without, "default-scheduler", "pods are made without Berth, too");
}
