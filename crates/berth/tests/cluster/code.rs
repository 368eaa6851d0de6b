//! The files of a folder that go along with a job, where it runs as a pod.

use super::jobs::{name, pods, run, state, variable};
use super::kubelet::Machine;
use super::signals::scene;
use super::support::{berth_with, until};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use berth_testbed::Server;
use berth_testbed::kube::{ADMIN, Cluster};
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Output;

const NAMESPACE: &str = "berth-default";

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A server whose pods find it: they have to know its address, which it has when it has started.
fn berth(cluster: &Cluster) -> Server {
    let mut berth = berth_with(cluster, &["--image", "none"]);
    write(berth.work.path(), "train.sh", "echo first");
    let refused = berth.berth(&["run", "-d", "--code", ".", "--", "bash", "train.sh"]);
    assert!(!refused.status.success());
    assert!(said(&refused).contains("--fetch-image IMAGE"), "{}", said(&refused));
    berth.stop();
    let (config, url) = (cluster.kubeconfig(ADMIN).display().to_string(), berth.url.clone());
    let image = ["--image", "none", "--fetch-image", "registry.example/berth:1"];
    berth.start_again_with(&[&["--kubeconfig", &config, "--fetch-url", &url], &image[..]].concat());
    berth
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The only pod of a job, as soon as it is there.
fn pod_of(cluster: &Cluster, job: &str) -> Value {
    until("there is a pod", || pods(cluster, job).len() == 1);
    pods(cluster, job).remove(0)
}

/// The token in the Secret of a pod, as soon as it is there.
fn token_of(cluster: &Cluster, pod: &Value) -> String {
    let token = &pod["spec"]["initContainers"][0]["env"][1];
    assert_eq!(token["name"], "BERTH_TOKEN");
    let from = &token["valueFrom"]["secretKeyRef"];
    assert_eq!(from["key"], "berth.fetch-token");
    let secret = ["secret", "-n", NAMESPACE, from["name"].as_str().expect("a Secret")];
    until("the Secret has come", || cluster.find(&secret).is_some());
    let secret = cluster.get(&secret);
    assert_eq!(secret["metadata"]["ownerReferences"][0]["uid"], pod["metadata"]["uid"]);
    let token = secret["data"]["berth.fetch-token"].as_str().expect("a token");
    let token = String::from_utf8(STANDARD.decode(token).expect("base64")).expect("a text");
    assert!(token.starts_with("brj_") && !pod.to_string().contains(&token), "{pod}");
    token
}

/// What is in a folder: each path with its content or where it leads, and whether it can be run.
fn tree(folder: &Path) -> Vec<(String, String, bool)> {
    fn walk(root: &Path, folder: &Path, all: &mut Vec<(String, String, bool)>) {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let facts = path.symlink_metadata().unwrap();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            if facts.is_dir() {
                walk(root, &path, all);
            } else if facts.is_symlink() {
                all.push((name, fs::read_link(&path).unwrap().display().to_string(), false));
            } else {
                let text = fs::read_to_string(&path).unwrap();
                all.push((name, text, facts.permissions().mode() & 0o100 != 0));
            }
        }
    }
    let mut all = Vec::new();
    walk(folder, folder, &mut all);
    all.sort();
    all
}

#[test]
fn a_pod_runs_the_files_of_its_submission_though_they_change_and_the_server_is_away() {
    let cluster = scene();
    let mut berth = berth(&cluster);
    let mut machine = Machine::new(&cluster, "a");
    let (folder, out) = (berth.work.path().to_owned(), tempfile::tempdir().unwrap());
    for (path, text) in [
        ("train.sh", "cp -R . \"$OUT/found\" && echo \"$PWD\" >\"$OUT/where\""),
        ("conf/a", "alpha"),
        ("tool", "#!/bin/sh"),
        ("data/big", "left out"),
        (".gitignore", "data\n"),
    ] {
        write(&folder, path, text);
    }
    fs::set_permissions(folder.join("tool"), Permissions::from_mode(0o755)).unwrap();
    symlink("conf/a", folder.join("link")).unwrap();
    let mut expect = tree(&folder);
    expect.retain(|(path, ..)| path != "data/big");
    let variable_out = format!("OUT={}", out.path().display());
    let submit = |name: &str, more: &[&str]| {
        let start = ["--name", name, "-e", &variable_out, "--code", "."];
        let args = [&start[..], more, &["--", "bash", "train.sh"]].concat();
        run(&berth, &args)
    };
    let job = submit("held", &["--hold"]);
    write(&folder, "train.sh", "echo second");
    write(&folder, "conf/a", "beta");
    let other = submit("other", &["--hold"]);
    berth.run_ok(&["resume", &job]);

    let pod = pod_of(&cluster, &job);
    let (spec, init) = (&pod["spec"], &pod["spec"]["initContainers"][0]);
    assert_eq!(init["image"], "registry.example/berth:1");
    assert_eq!(init["env"][0], json!({ "name": "BERTH_URL", "value": berth.url }));
    assert_eq!(init["securityContext"]["readOnlyRootFilesystem"], true);
    assert_eq!(spec["containers"][0]["workingDir"], "/berth/code");
    assert_eq!(variable(&pod, "BERTH_TOKEN"), Value::Null, "it is not for the command");
    let own = init["args"][2].as_str().expect("a snapshot").to_owned();

    // Who has the token gets these files and nothing else.
    let token = token_of(&cluster, &pod);
    let with = |args: &[&str]| {
        let mut command = berth.command(args);
        command.env("BERTH_URL", &berth.url).env("BERTH_TOKEN", &token).output().unwrap()
    };
    let to = out.path().join("by-hand").display().to_string();
    let fetched = with(&["fetch-code", "default", &own, &to]);
    assert!(fetched.status.success() && said(&fetched).is_empty(), "{fetched:?}");
    assert_eq!(tree(Path::new(&to)), expect);
    for args in [&["ps"][..], &["run", "-d", "--", "true"], &["code", &job]] {
        let refused = with(args);
        assert!(!refused.status.success(), "{args:?}");
        assert!(
            said(&refused).contains("fetches the job's code and data and does nothing else"),
            "{args:?}"
        );
    }
    let file = berth.run_ok(&["describe", &other, "-o", "json"]);
    let at = file.rfind("sha256:").expect("the file names its snapshot");
    let another = &file[at..at + own.len()];
    assert_ne!(another, own);
    let to = out.path().join("another").display().to_string();
    let refused = with(&["fetch-code", "default", another, &to]);
    assert_eq!(refused.status.code(), Some(125));
    let line = said(&refused);
    assert_eq!(line.lines().count(), 1, "{line}");
    assert!(line.starts_with("cannot fetch the code: ") && line.contains("and no other"), "{line}");

    berth.kill();
    let log = machine.log(&pod);
    let tries_again = || fs::read_to_string(&log).is_ok_and(|said| said.contains("trying again"));
    machine.until("it tries again", tries_again);
    berth.start_again();
    machine.until("it is done", || state(&berth, &job) == "done");
    assert_eq!(tree(&out.path().join("found")), expect);
    let place = fs::read_to_string(out.path().join("where")).unwrap();
    assert!(place.trim().ends_with("/berth/code"), "{place}");
    let mut late = berth.command(&["fetch-code", "default", &own, &to]);
    let late = late.env("BERTH_URL", &berth.url).env("BERTH_TOKEN", &token).output().unwrap();
    assert_eq!(late.status.code(), Some(125));
    assert!(said(&late).contains("the job does not run any more"), "{}", said(&late));
}

#[test]
fn a_pod_that_cannot_fetch_its_code_fails_its_job_and_says_why() {
    let cluster = scene();
    let berth = berth(&cluster);
    let mut machine = Machine::new(&cluster, "a");
    let job = run(&berth, &["--hold", "--name", "gone", "--code", ".", "--", "bash", "train.sh"]);
    fs::remove_dir_all(berth.home.path().join("blobs/sha256")).unwrap();
    berth.run_ok(&["resume", &job]);
    let pod = pod_of(&cluster, &job);
    machine.until("it fails", || state(&berth, &job) == "failed");
    let why = berth.run_ok(&["why", &job]);
    let expect = "its container fetch-code ended with exit code 125: cannot fetch the code: \
                  team default has no snapshot of code sha256:";
    assert!(why.replace(['\n', ' '], "").contains(&expect.replace(' ', "")), "{why}");
    machine
        .until("its pod is gone", || cluster.find(&["pod", "-n", NAMESPACE, name(&pod)]).is_none());
}

#[test]
fn a_node_keeps_the_data_of_a_pod_and_the_next_pod_there_fetches_nothing() {
    let cluster = scene();
    let mut berth = berth(&cluster);
    berth.stop();
    let (config, url) = (cluster.kubeconfig(ADMIN).display().to_string(), berth.url.clone());
    let image = ["--image", "none", "--fetch-image", "registry.example/berth:1"];
    let kept = ["--node-data", "/var/lib/berth-data", "--node-data-size", "1GB"];
    let flags = ["--kubeconfig", &config, "--fetch-url", &url];
    berth.start_again_with(&[&flags[..], &image, &kept].concat());
    let mut machine = Machine::new(&cluster, "a");
    let out = tempfile::tempdir().unwrap();
    write(berth.work.path(), "corpus/a.txt", "alpha");
    berth.run_ok(&["data", "push", "corpus", "c4@v1"]);
    let variable_out = format!("OUT={}", out.path().display());
    let submit = |name: &str, more: &[&str]| {
        let data = ["--data", "/data=dvc:c4@v1", "-e", "FILE=/data/a.txt", "-e", &variable_out];
        let copy = format!("cp \"$FILE\" \"$OUT/{name}\"");
        let command = ["--", "bash", "-c", &copy];
        run(&berth, &[&["--name", name][..], &data, more, &command].concat())
    };
    let first = submit("first", &[]);
    let pod = pod_of(&cluster, &first);
    let folder = json!({ "path": "/var/lib/berth-data", "type": "DirectoryOrCreate" });
    let volumes = pod["spec"]["volumes"].as_array().unwrap();
    assert!(volumes.contains(&json!({ "name": "data", "hostPath": folder })), "{volumes:?}");
    machine.until("the first is done", || state(&berth, &first) == "done");
    assert_eq!(fs::read_to_string(out.path().join("first")).unwrap(), "alpha");
    let trees = machine.host("/var/lib/berth-data/trees/default");
    assert_eq!(fs::read_dir(&trees).unwrap().count(), 2, "a version and its mark");

    // The server has no bytes any more, so only the node can give them.
    fs::remove_dir_all(berth.home.path().join("blobs/sha256")).unwrap();
    let second = submit("second", &[]);
    machine.until("the second is done", || state(&berth, &second) == "done");
    assert_eq!(fs::read_to_string(out.path().join("second")).unwrap(), "alpha");

    let held = submit("held", &["--hold"]);
    let why = berth.run_ok(&["why", &held]).split_whitespace().collect::<Vec<_>>().join(" ");
    let expect = "among equal places it prefers nodes with its data: a has 5 B of its data";
    assert!(why.contains(expect), "{why}");
}
