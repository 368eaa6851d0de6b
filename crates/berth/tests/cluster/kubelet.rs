//! A node whose pods run as processes of this machine, and end as a kubelet ends them: asked by a
//! signal, with their grace, and then killed. A container before the others runs Berth's own program,
//! whatever its image.

use super::support::until;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use berth_testbed::kube::Cluster;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub struct Machine<'a> {
    cluster: &'a Cluster,
    node: &'static str,
    folder: TempDir,
    runs: BTreeMap<String, Run>,
}

struct Run {
    process: Child,
    /// It is the container before the others.
    is_first: bool,
    /// When it is killed, once it was asked to end.
    until: Option<Instant>,
    is_over: bool,
}

impl<'a> Machine<'a> {
    pub fn new(cluster: &'a Cluster, node: &'static str) -> Machine<'a> {
        let folder = tempfile::tempdir().unwrap();
        Machine { cluster, node, folder, runs: BTreeMap::new() }
    }

    /// Waits until something is so, and goes on with the pods meanwhile.
    pub fn until(&mut self, what: &str, mut is_so: impl FnMut() -> bool) {
        until(what, || {
            self.look();
            is_so()
        });
    }

    /// The file of what the container before the others of a pod has said.
    pub fn log(&self, pod: &Value) -> PathBuf {
        self.folder.path().join(format!("{}.log", uid(pod)))
    }

    /// A folder of the node.
    pub fn host(&self, path: &str) -> PathBuf {
        self.folder.path().join("host").join(path.trim_start_matches('/'))
    }

    /// The file of what that container leaves for the status of its pod.
    fn last_words(&self, pod: &Value) -> PathBuf {
        self.folder.path().join(format!("{}.last", uid(pod)))
    }

    /// What a claim holds.
    pub fn claim(&self, name: &str) -> PathBuf {
        self.folder.path().join("claims").join(name)
    }

    fn look(&mut self) {
        let on = format!("--field-selector=spec.nodeName={}", self.node);
        let pods = self.cluster.get(&["pods", "--all-namespaces", &on]);
        for pod in pods["items"].as_array().into_iter().flatten() {
            match self.runs.get_mut(uid(pod)) {
                Some(run) if run.is_over => {
                    if leaves(pod) {
                        self.remove(pod);
                    }
                }
                Some(run) => {
                    let Some(status) = run.go_on(pod) else { continue };
                    let goes_on = run.is_first && status.success();
                    run.is_over = !goes_on;
                    match run.is_first {
                        true if goes_on => {
                            self.done_first(pod);
                            self.start(pod, &pod["spec"]["containers"][0], false);
                        }
                        true => self.failed_first(pod, status),
                        false => self.over(pod, status),
                    }
                }
                None if leaves(pod) => self.remove(pod),
                None => match &pod["spec"]["initContainers"][0] {
                    Value::Null => self.start(pod, &pod["spec"]["containers"][0], false),
                    first => self.start(pod, first, true),
                },
            }
        }
    }

    fn start(&mut self, pod: &Value, container: &Value, is_first: bool) {
        let folders = self.folders(pod, container);
        let Some(variables) = self.variables(pod, container) else { return };
        let program = is_first.then(|| env!("CARGO_BIN_EXE_berth").to_owned());
        let words = program.into_iter().chain(strings(&container["command"]));
        let words = words.chain(strings(&container["args"]));
        let words = words.map(|word| {
            // The folder of a version of data comes after its name.
            let named = word.rsplit_once('=').filter(|_| is_first);
            let named = named.and_then(|(name, path)| {
                Some(format!("{name}={}", on_this_machine(&folders, path)?))
            });
            named.or_else(|| on_this_machine(&folders, &word)).unwrap_or(word)
        });
        let mut words: Vec<String> = words.collect();
        if words.iter().any(|word| word == "--cache") {
            words.extend(["--last-words".to_owned(), self.last_words(pod).display().to_string()]);
        }
        let mut words = words.into_iter();
        let mut command = Command::new(words.next().expect("a program"));
        // Nobody else is in a container, and a signal to all there is reaches nobody else.
        command.args(words).process_group(0).stdin(Stdio::null()).stdout(Stdio::null());
        let directory = container["workingDir"].as_str();
        let directory = directory.and_then(|path| on_this_machine(&folders, path));
        command.current_dir(directory.map_or(self.folder.path().to_owned(), PathBuf::from));
        for (name, value) in variables {
            let value = on_this_machine(&folders, &value).unwrap_or(value);
            command.env(name, value);
        }
        if is_first {
            command.stderr(std::fs::File::create(self.log(pod)).unwrap());
        }
        let process = command.spawn().expect("its command is there");
        let run = Run { process, is_first, until: None, is_over: false };
        self.runs.insert(uid(pod).to_owned(), run);
        let first = json!([{
            "name": container["name"], "image": "none", "imageID": "", "ready": false,
            "restartCount": 0, "state": { "running": {} },
        }]);
        match is_first {
            true => self.say(pod, &json!({ "phase": "Pending", "initContainerStatuses": first })),
            false => self.say(pod, &json!({ "phase": "Running" })),
        }
    }

    /// Nothing while a Secret is missing that one of them is in.
    fn variables(&self, pod: &Value, container: &Value) -> Option<Vec<(String, String)>> {
        let (namespace, _) = at(pod);
        let one = |variable: &Value| {
            let name = variable["name"].as_str().unwrap().to_owned();
            let from = &variable["valueFrom"]["secretKeyRef"];
            let Some(secret) = from["name"].as_str() else {
                return Some((name, plain(variable["value"].as_str().unwrap_or_default())));
            };
            let secret = self.cluster.find(&["secret", "-n", namespace, secret])?;
            let value = secret["data"][from["key"].as_str().unwrap()].as_str()?;
            let value = STANDARD.decode(value).expect("a Secret has base64");
            Some((name, String::from_utf8(value).expect("a text")))
        };
        container["env"].as_array().into_iter().flatten().map(one).collect()
    }

    /// Where the volumes of a container are: each path in it, longest first, and the folder here.
    fn folders(&self, pod: &Value, container: &Value) -> Vec<(String, PathBuf)> {
        let volumes = pod["spec"]["volumes"].as_array().cloned().unwrap_or_default();
        let mounts = container["volumeMounts"].as_array();
        let folder = |mount: &Value| {
            let volume = volumes.iter().find(|volume| volume["name"] == mount["name"]).unwrap();
            let claim = volume["persistentVolumeClaim"]["claimName"].as_str();
            let folder = match (claim, volume["hostPath"]["path"].as_str()) {
                (Some(claim), _) => self.claim(claim),
                (None, Some(path)) => self.host(path),
                (None, None) => {
                    self.folder.path().join(uid(pod)).join(mount["name"].as_str().unwrap())
                }
            };
            let folder = folder.join(mount["subPath"].as_str().unwrap_or_default());
            std::fs::create_dir_all(&folder).unwrap();
            (mount["mountPath"].as_str().unwrap().to_owned(), folder)
        };
        let mut folders: Vec<_> = mounts.into_iter().flatten().map(folder).collect();
        folders.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        folders
    }

    /// Says how a pod has ended.
    fn over(&self, pod: &Value, status: ExitStatus) {
        let code = status.code().or_else(|| Some(128 + status.signal()?));
        let ended = json!({ "terminated": { "exitCode": code } });
        let container = json!({
            "name": pod["spec"]["containers"][0]["name"], "image": "none", "imageID": "",
            "ready": false, "restartCount": 0, "state": ended,
        });
        let phase = if status.success() { "Succeeded" } else { "Failed" };
        self.say(pod, &json!({ "phase": phase, "containerStatuses": [container] }));
    }

    /// The container before the others has done its work.
    fn done_first(&self, pod: &Value) {
        let said = std::fs::read_to_string(self.last_words(pod)).unwrap_or_default();
        let ended = json!({ "exitCode": 0, "reason": "Completed", "message": said });
        let first = json!([{
            "name": pod["spec"]["initContainers"][0]["name"], "image": "none", "imageID": "",
            "ready": true, "restartCount": 0, "state": { "terminated": ended },
        }]);
        self.say(pod, &json!({ "phase": "Pending", "initContainerStatuses": first }));
    }

    fn failed_first(&self, pod: &Value, status: ExitStatus) {
        let container = |name: &Value, state: Value| {
            json!([{
                "name": name, "image": "none", "imageID": "", "ready": false, "restartCount": 0,
                "state": state,
            }])
        };
        let code = status.code().or_else(|| Some(128 + status.signal()?));
        let said = std::fs::read_to_string(self.log(pod)).unwrap();
        let ended = json!({ "exitCode": code, "reason": "Error", "message": said });
        let first = &pod["spec"]["initContainers"][0]["name"];
        let waits = json!({ "waiting": { "reason": "PodInitializing" } });
        self.say(
            pod,
            &json!({
                "phase": "Failed",
                "initContainerStatuses": container(first, json!({ "terminated": ended })),
                "containerStatuses": container(&pod["spec"]["containers"][0]["name"], waits),
            }),
        );
    }

    fn say(&self, pod: &Value, status: &Value) {
        let (namespace, name) = at(pod);
        let patch = json!({ "status": status }).to_string();
        let what = ["pod", name, "--namespace", namespace, "--subresource=status"];
        self.cluster.patch(&[&what[..], &["--patch", &patch]].concat());
    }

    fn remove(&self, pod: &Value) {
        let (namespace, name) = at(pod);
        let what = ["pod", name, "--namespace", namespace, "--ignore-not-found"];
        self.cluster
            .delete(&[&what[..], &["--grace-period=0", "--force", "--wait=false"]].concat());
    }
}

impl Run {
    /// How it has ended, if it has.
    fn go_on(&mut self, pod: &Value) -> Option<ExitStatus> {
        let ended = self.process.try_wait().unwrap();
        if ended.is_none() && leaves(pod) {
            match self.until {
                None => {
                    let grace = pod["metadata"]["deletionGracePeriodSeconds"].as_u64().unwrap();
                    self.until = Some(Instant::now() + Duration::from_secs(grace));
                    signal("-TERM", &self.process.id().to_string());
                }
                Some(until) if until <= Instant::now() => self.kill_all(),
                Some(_) => {}
            }
        }
        if ended.is_some() {
            // A container ends with its first process.
            self.kill_all();
        }
        ended
    }

    fn kill_all(&self) {
        signal("-KILL", &format!("-{}", self.process.id()));
    }
}

impl Drop for Machine<'_> {
    fn drop(&mut self) {
        for run in self.runs.values_mut().filter(|run| !run.is_over) {
            run.kill_all();
            let _ = run.process.wait();
        }
    }
}

fn signal(which: &str, to: &str) {
    let _ = Command::new("kill").args([which, "--", to]).stderr(Stdio::null()).status();
}

fn uid(pod: &Value) -> &str {
    pod["metadata"]["uid"].as_str().unwrap()
}

/// Its namespace and its name.
fn at(pod: &Value) -> (&str, &str) {
    let of = |key: &str| pod["metadata"][key].as_str().unwrap();
    (of("namespace"), of("name"))
}

fn leaves(pod: &Value) -> bool {
    pod["metadata"]["deletionTimestamp"].is_string()
}

fn strings(words: &Value) -> Vec<String> {
    words.as_array().into_iter().flatten().map(|word| plain(word.as_str().unwrap())).collect()
}

/// Two dollars stand for one.
fn plain(text: &str) -> String {
    text.replace("$$", "$")
}

/// Where a path of the container is here, if it is in a volume.
fn on_this_machine(folders: &[(String, PathBuf)], path: &str) -> Option<String> {
    let path = Path::new(path);
    let here = folders.iter().find_map(|(at, folder)| {
        let within = path.strip_prefix(at).ok()?;
        Some(if within == Path::new("") { folder.clone() } else { folder.join(within) })
    });
    here.map(|here| here.display().to_string())
}
