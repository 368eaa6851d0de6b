//! The Helm chart on a real API server. Its image is not there, so that no pod of it runs; what it
//! installs is what Berth then runs with.

use super::support::{own_cluster, until};
use berth_testbed::kube::Cluster;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

pub const NAMESPACE: &str = "berth";
pub const ACCOUNT: &str = "system:serviceaccount:berth:berth";
const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/helm/berth");
const DATABASE: &str = "database.url=postgres://berth@db/berth";

/// Runs helm, with the chart after the first words.
fn helm(cluster: &Cluster, words: &[&str], sets: &[&str]) -> Output {
    let mut args = words.to_vec();
    args.extend([CHART, "--namespace", NAMESPACE]);
    args.extend(sets.iter().flat_map(|set| ["--set", *set]));
    cluster.helm(&args)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What helm prints, if it ends well.
fn helm_ok(cluster: &Cluster, words: &[&str], sets: &[&str]) -> String {
    let output = helm(cluster, words, sets);
    assert!(output.status.success(), "helm {words:?} {sets:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// Installs the chart in a namespace in which pods are held to the strictest rules.
pub fn install(cluster: &Cluster, sets: &[&str]) {
    cluster.create_namespace(NAMESPACE);
    let strict = "pod-security.kubernetes.io/enforce=restricted";
    cluster.label(&["namespace", NAMESPACE, strict]);
    helm_ok(cluster, &["install", "berth"], sets);
}

/// Changes what was installed.
pub fn upgrade(cluster: &Cluster, sets: &[&str]) {
    helm_ok(cluster, &["upgrade", "berth"], sets);
}

/// What the chart makes for pods that hold GPUs, alone.
pub fn install_reservations(cluster: &Cluster) {
    let part = ["template", "berth", "--show-only", "templates/reservations.yaml"];
    cluster.apply(&helm_ok(cluster, &part, &[]));
}

/// A kubeconfig of Berth's own account.
pub fn kubeconfig(cluster: &Cluster) -> PathBuf {
    kubeconfig_of(cluster, NAMESPACE, "berth")
}

/// A kubeconfig of an account that the chart has made, with a token as its pod would have one.
pub fn kubeconfig_of(cluster: &Cluster, namespace: &str, account: &str) -> PathBuf {
    let token = cluster.kubectl_stdout(&[
        "create",
        "token",
        account,
        "--namespace",
        namespace,
        "--duration=2h",
    ]);
    let file = cluster.folder().join(format!("{account}.account.yaml"));
    let config = format!(
        "apiVersion: v1
kind: Config
current-context: own
contexts: [{{name: own, context: {{cluster: own, user: own, namespace: {namespace}}}}}]
clusters: [{{name: own, cluster: {{server: {:?}, certificate-authority: {:?}}}}}]
users: [{{name: own, user: {{token: {:?}}}}}]
",
        cluster.url(),
        cluster.ca(),
        token.trim()
    );
    std::fs::write(&file, config).expect("the folder can be written");
    file
}

/// A file of the certificate that the chart has made.
pub fn certificate_file(cluster: &Cluster, key: &str) -> PathBuf {
    let template = format!("--output=go-template={{{{index .data {key:?} | base64decode}}}}");
    let text = cluster.kubectl_stdout(&["get", "secret", "berth-tls", "-n", NAMESPACE, &template]);
    let file = cluster.folder().join(key);
    std::fs::write(&file, text).expect("the folder can be written");
    file
}

/// Runs Berth with the arguments of the chart's container, and folders here for those of the pod.
fn runs_as_the_chart_says(cluster: &Cluster, while_it_runs: impl FnOnce()) {
    let home = TempDir::with_prefix("berth-home-").expect("a temporary folder");
    let here = cluster.folder().display().to_string();
    certificate_file(cluster, "tls.crt");
    certificate_file(cluster, "tls.key");
    std::fs::write(cluster.folder().join("secrets.key"), [7; 32]).expect("it can be written");
    std::fs::write(cluster.folder().join("prices.yaml"), "H100: 2.5\n").expect("it can be written");
    std::fs::write(cluster.folder().join("map.yaml"), "queues: {old: new}\n")
        .expect("it can be written");
    let deployment = get(cluster, "deployment", "berth");
    let args = deployment["spec"]["template"]["spec"]["containers"][0]["args"].clone();
    let args = args.as_array().expect("a list").iter().map(|arg| {
        let mut arg = arg.as_str().expect("a text").to_owned();
        for (there, here) in [
            ("/var/lib/berth", &*home.path().display().to_string()),
            ("/etc/berth/tls", &here),
            ("/etc/berth/sealing", &here),
            ("/etc/berth/audit", &here),
            ("/etc/berth/settings", &here),
            ("0.0.0.0:7117", "127.0.0.1:0"),
            ("0.0.0.0:7118", "127.0.0.1:0"),
            ("$(POD_NAME)", "pod"),
            ("$(POD_IP)", "10.1.2.3"),
        ] {
            arg = arg.replace(there, here);
        }
        arg
    });
    let mut child = Command::new(env!("CARGO_BIN_EXE_berth"))
        .args(args)
        .arg("--kubeconfig")
        .arg(kubeconfig(cluster))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("berth starts");
    // Kept to its end: who prints to nobody is told so.
    let mut said = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let first = said.next();
    while_it_runs();
    child.kill().expect("it runs");
    child.wait().expect("it ended");
    // The next one has another home, and would wait for the Lease to run out.
    cluster.delete(&["lease", "berth", "--namespace", NAMESPACE]);
    let first = first.expect("it says something").expect("it is text");
    assert!(first.starts_with("Berth is ready at https://127.0.0.1:"), "{first}");
}

fn get(cluster: &Cluster, kind: &str, name: &str) -> Value {
    cluster.get(&[kind, name, "--namespace", NAMESPACE])
}

#[test]
fn the_chart_installs_and_upgrades_and_keeps_what_must_not_be_lost() {
    let cluster = own_cluster();
    helm_ok(&cluster, &["lint", "--strict"], &[]);
    helm_ok(&cluster, &["lint", "--strict"], &[DATABASE, "webhook.enabled=true"]);

    install(&cluster, &["prices.H100=2", "scheduler.map.queues.old=new"]);
    let deployment = get(&cluster, "deployment", "berth");
    assert_eq!(deployment["spec"]["replicas"], 1);
    assert_eq!(deployment["spec"]["strategy"]["type"], "Recreate");
    assert_eq!(get(&cluster, "pvc", "berth-home")["spec"]["accessModes"][0], "ReadWriteOnce");
    assert_eq!(get(&cluster, "configmap", "berth-settings")["data"]["prices.yaml"], "H100: 2\n");
    let certificate = get(&cluster, "secret", "berth-tls")["data"].clone();
    // The controllers would be refused a pod that breaks the strict rules of the namespace.
    until("there is a pod", || {
        let pods = cluster.get(&["pods", "--namespace", NAMESPACE]);
        pods["items"].as_array().is_some_and(|pods| !pods.is_empty())
    });

    runs_as_the_chart_says(&cluster, || {});

    // Who may change what is in a namespace submits Jobs there, and changes no quotas.
    cluster.kubectl_stdout(&[
        "create",
        "clusterrolebinding",
        "kim",
        "--clusterrole=edit",
        "--user=kim",
    ]);
    let may = |verb: &str, kind: &str| cluster.may("kim", verb, kind, Some("default"));
    until("the roles are put together", || may("create", "jobs.berth.dev"));
    until("the roles are put together", || may("list", "queues.berth.dev"));
    assert!(!may("create", "queues.berth.dev") && !may("patch", "budgets.berth.dev"));

    let all = [
        DATABASE,
        "webhook.enabled=true",
        "networkPolicy.enabled=true",
        "scheduler.standIn={kai,kueue,volcano}",
        "jobs.image=train:1",
        "jobs.checkpoints=shared",
        "jobs.codeClaim=snapshots",
        "jobs.nodeData.path=/var/lib/berth-data",
        "jobs.nodeData.size=2TB",
        "jobs.namespaces.nlp=research",
        "jobs.teams=true",
        "figures.every=1m",
        "figures.selectors={app=a,app in (b\\,c)}",
        "figures.namespaces={gpus}",
        "figures.port=9999",
        "nodeAgent.enabled=true",
    ];
    upgrade(&cluster, &all);
    let deployment = get(&cluster, "deployment", "berth");
    assert_eq!(deployment["spec"]["replicas"], 2);
    assert_eq!(get(&cluster, "pdb", "berth")["spec"]["maxUnavailable"], 1);
    assert_eq!(get(&cluster, "secret", "berth-tls")["data"], certificate, "it was made anew");
    let hook = get(&cluster, "mutatingwebhookconfiguration", "berth")["webhooks"][0].clone();
    assert_eq!(hook["clientConfig"]["caBundle"], certificate["ca.crt"]);
    assert_eq!(hook["failurePolicy"], "Ignore");
    let policy = get(&cluster, "networkpolicy", "berth")["spec"].to_string();
    assert!(policy.contains("app.kubernetes.io/managed-by"), "pods of jobs get in: {policy}");
    let args = deployment["spec"]["template"]["spec"]["containers"][0]["args"].to_string();
    assert!(args.contains("\"--figures-selector=app in (b,c)\""), "{args}");
    // Pods fetch the code of their jobs by the same image, from the Service.
    let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
    let image = image.as_str().expect("an image");
    assert!(args.contains(&format!("\"--fetch-image={image}\"")), "{args}");
    assert!(
        args.contains("\"--node-data=/var/lib/berth-data\",\"--node-data-size=2TB\""),
        "{args}"
    );
    assert!(args.contains("\"--fetch-url=https://berth.berth.svc:7117\""), "{args}");
    let mounts = &deployment["spec"]["template"]["spec"]["containers"][0]["volumeMounts"];
    let claim = mounts.as_array().expect("a list").iter().filter(|one| one["name"] == "code");
    let places: Vec<_> = claim.map(|one| one["mountPath"].as_str().expect("a path")).collect();
    assert_eq!(places, ["/var/lib/berth/code", "/var/lib/berth/blobs"]);
    // The server finds the agent by its label and the name of its port.
    let agent = get(&cluster, "daemonset", "berth-node-agent")["spec"]["template"].clone();
    assert_eq!(agent["metadata"]["labels"]["app.kubernetes.io/name"], "berth-node-agent");
    assert_eq!(agent["spec"]["containers"][0]["ports"][0]["name"], "metrics");
    let sealing = get(&cluster, "secret", "berth-sealing")["data"]["secrets.key"].clone();
    assert_eq!(sealing.as_str().map(str::len), Some(44), "32 bytes in base64");
    let signing = get(&cluster, "secret", "berth-audit")["data"]["audit.key"].clone();
    assert_eq!(signing.as_str().map(str::len), Some(96), "an id and 64 digits in base64");
    upgrade(&cluster, &all);
    assert_eq!(get(&cluster, "secret", "berth-sealing")["data"]["secrets.key"], sealing);
    assert_eq!(get(&cluster, "secret", "berth-audit")["data"]["audit.key"], signing);
    // A tool that only renders makes another key, and cannot put it in the place of this one.
    let rendered = helm_ok(&cluster, &["template", "berth"], &all);
    let other = rendered.split("---\n").find(|one| one.contains("secrets.key:"));
    let file = cluster.folder().join("rendered.yaml");
    std::fs::write(&file, other.expect("a Secret")).expect("the folder can be written");
    let applied = cluster.kubectl(&["apply", "--filename", &file.display().to_string()]);
    let refused = text(&applied.stderr);
    assert!(!applied.status.success() && refused.contains("immutable"), "{refused}");

    runs_as_the_chart_says(&cluster, || {
        until("the Service leads to it", || {
            let slice = cluster.find(&["endpointslice", "berth-leader-ipv4", "-n", NAMESPACE]);
            slice.unwrap_or_default()["endpoints"][0]["addresses"][0] == "10.1.2.3"
        });
    });

    let output = cluster.helm(&["uninstall", "berth", "--namespace", NAMESPACE]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    get(&cluster, "secret", "berth-sealing");
    let gone = cluster.kubectl(&["get", "deployment,clusterrole", "berth", "-n", NAMESPACE]);
    assert!(!gone.status.success(), "{}", text(&gone.stdout));
}

#[test]
fn values_that_make_no_sense_are_refused_with_what_to_do() {
    let cluster = Cluster::builder().start();
    let refused = |sets: &[&str], why: &str| {
        let output = helm(&cluster, &["template", "berth"], sets);
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains(why), "{sets:?}: {said}");
    };
    refused(&["replicas=2"], "Give database.url or database.existingSecret");
    refused(&["serviceAccount.create=false"], "serviceAccount.name is needed");
    refused(&["metrics.serviceMonitor.enabled=true"], "berth token create");
    refused(&["webhook.enabled=true", "tls.existingSecret=x"], "webhook.caBundle is needed");
    refused(&["scheduler.names={default-scheduler}"], "/scheduler/names/0");
    refused(&["database.url=mysql://db"], "/database/url");
    refused(&["databse.url=postgres://db"], "databse");
    refused(&["webhook.failurePolicy=Retry"], "/webhook/failurePolicy");
    refused(&["figures.every=often"], "/figures/every");
    // What of the values a pod sees only when it starts begins another one.
    let settings = |set: &str| {
        let rendered = helm_ok(&cluster, &["template", "berth"], &[set]);
        let line = rendered.lines().find(|line| line.contains("berth.dev/settings"));
        line.expect("an annotation").to_owned()
    };
    assert_ne!(settings("tls.extraNames={a}"), settings("tls.extraNames={b}"));
    let monitor =
        ["metrics.serviceMonitor.enabled=true", "metrics.serviceMonitor.tokenSecret.name=t"];
    let rendered = helm_ok(&cluster, &["template", "berth"], &monitor);
    assert!(rendered.contains("kind: ServiceMonitor"), "{rendered}");
}
