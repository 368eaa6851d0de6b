//! The usual tools, pointed at a cluster, and objects without them.

use super::objects::{Objects, Refusal};
use super::{ADMIN, Cluster, Part, programs};
use crate::http;
use reqwest::Certificate;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

impl Cluster {
    /// Runs kubectl as the administrator.
    pub fn kubectl(&self, args: &[&str]) -> Output {
        self.kubectl_as(ADMIN, args)
    }

    /// Runs kubectl as a user who was declared.
    pub fn kubectl_as(&self, user: &str, args: &[&str]) -> Output {
        self.command("kubectl", user).args(args).output().expect("kubectl runs")
    }

    /// Runs helm as the administrator.
    pub fn helm(&self, args: &[&str]) -> Output {
        self.command("helm", ADMIN).args(args).output().expect("helm runs")
    }

    /// What kubectl prints, if it ends well.
    ///
    /// # Panics
    ///
    /// If it does not.
    pub fn kubectl_stdout(&self, args: &[&str]) -> String {
        checked_stdout(args, &self.kubectl(args))
    }

    /// What `kubectl get` finds, without starting it.
    ///
    /// # Panics
    ///
    /// If there is no such object, or the API server is away.
    pub fn get(&self, words: &[&str]) -> Value {
        self.objects().get(words)
    }

    /// The same; nothing if there is no such object or kind, or nobody to ask.
    pub fn find(&self, words: &[&str]) -> Option<Value> {
        self.try_objects()?.find(words)
    }

    /// Makes a namespace.
    pub fn create_namespace(&self, name: &str) {
        self.apply(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}}}}}"));
    }

    /// Deletes objects as `kubectl delete` does, without starting it.
    pub fn delete(&self, words: &[&str]) {
        self.objects().delete(words);
    }

    /// Changes a part of an object as `kubectl patch` does, without starting it.
    pub fn patch(&self, words: &[&str]) {
        self.objects().patch(words);
    }

    /// Sets labels as `kubectl label --overwrite` does, without starting it.
    pub fn label(&self, words: &[&str]) {
        self.objects().label(words);
    }

    /// Sets annotations as `kubectl annotate --overwrite` does, without starting it.
    pub fn annotate(&self, words: &[&str]) {
        self.objects().annotate(words);
    }

    /// Whether a user may do something, as `kubectl auth can-i` says, without starting it.
    pub fn may(&self, user: &str, verb: &str, what: &str, namespace: Option<&str>) -> bool {
        self.objects().may(user, verb, what, namespace)
    }

    /// Sends a body to a path of the API, and returns whether it was taken.
    pub fn post(&self, path: &str, body: &str) -> bool {
        self.objects().post(path, body)
    }

    /// Makes the objects of a YAML text, or changes them, as `kubectl apply` does. kubectl itself
    /// is started only for those that are there already, because how it merges is its own.
    ///
    /// # Panics
    ///
    /// If one is refused.
    pub fn apply(&self, yaml: &str) {
        for text in yaml.split("\n---").map(|text| text.trim_start_matches("---")) {
            let is_comment = |line: &str| line.is_empty() || line.starts_with('#');
            if text.lines().map(str::trim).all(is_comment) {
                continue;
            }
            let mut object: Value = serde_saphyr::from_str(text)
                .unwrap_or_else(|error| panic!("this is not YAML: {error}\n{text}"));
            let known = object.to_string();
            let annotations = object["metadata"]["annotations"].take();
            object["metadata"]["annotations"] = match annotations {
                Value::Object(_) => annotations,
                _ => Value::Object(serde_json::Map::new()),
            };
            // What kubectl compares with when the object is applied again.
            object["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] =
                known.clone().into();
            match self.objects().create(&object) {
                Ok(()) => {}
                Err(Refusal::AlreadyExists) => self.apply_by_kubectl(&known),
                Err(refusal) => panic!("apply: {refusal:?}\n{text}"),
            }
        }
    }

    fn apply_by_kubectl(&self, object: &str) {
        let args = ["apply", "--filename=-"];
        let mut kubectl = self.command("kubectl", ADMIN);
        let kubectl = kubectl.args(args).stdin(Stdio::piped());
        let mut child =
            kubectl.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("kubectl runs");
        let mut input = child.stdin.take().expect("it is piped");
        // If it does not read to the end, it says why.
        let _ = input.write_all(object.as_bytes());
        drop(input);
        checked_stdout(&args, &child.wait_with_output().expect("kubectl ends"));
    }

    /// The objects of the cluster, also for another thread.
    ///
    /// # Panics
    ///
    /// If the API server was never started.
    pub fn objects(&self) -> &Objects {
        self.try_objects().expect("the API server was started")
    }

    /// Nothing before the API server has made its certificate.
    pub(super) fn try_objects(&self) -> Option<&Objects> {
        if let Some(objects) = self.objects.get() {
            return Some(objects);
        }
        let certificates = Certificate::from_pem_bundle(&fs::read(self.ca()).ok()?).ok()?;
        let client = http::client(self.token(ADMIN)).tls_certs_only(certificates).build().ok()?;
        Some(self.objects.get_or_init(|| Objects::new(client, self.url())))
    }

    /// A tool that acts as this user, and that neither reads nor writes the files of whoever runs
    /// the test.
    pub fn command(&self, tool: &str, user: &str) -> Command {
        self.tool(tool, user).command()
    }

    /// The same, to be used from another thread.
    pub fn tool(&self, tool: &str, user: &str) -> Tool {
        let (program, kubeconfig) = (programs::program(tool), self.kubeconfig(user));
        Tool { program, kubeconfig, home: self.path("home") }
    }

    /// Whether a part that has a certificate of its own says that it is well. Anybody may ask; the
    /// administrator's token is for the API server alone.
    pub(super) fn answers_ready(&self, port: u16, page: &str) -> bool {
        self.page(port, page).is_some()
    }

    /// What the scheduler says about itself for Prometheus; none if it does not answer.
    pub fn scheduler_metrics(&self) -> Option<String> {
        self.page(self.port(Part::Scheduler), "/metrics")
    }

    fn page(&self, port: u16, page: &str) -> Option<String> {
        let client = self.probe.get_or_init(|| {
            let client = http::client("none").tls_danger_accept_invalid_certs(true).build();
            client.expect("a client without files")
        });
        let request = http::Request::get(format!("https://127.0.0.1:{port}{page}"));
        request.send(client).ok().filter(http::Answer::is_success).map(|answer| answer.body)
    }
}

/// A program with a kubeconfig, and a home of its own.
#[derive(Debug, Clone)]
pub struct Tool {
    program: PathBuf,
    kubeconfig: PathBuf,
    home: PathBuf,
}

impl Tool {
    pub fn command(&self) -> Command {
        let Tool { program, kubeconfig, home } = self;
        let mut command = Command::new(program);
        command
            .env("KUBECONFIG", kubeconfig)
            .env("KUBECACHEDIR", home.join("kubectl"))
            .env("KUBERC", "off")
            .env("HELM_CACHE_HOME", home.join("helm-cache"))
            .env("HELM_CONFIG_HOME", home.join("helm-config"))
            .env("HELM_DATA_HOME", home.join("helm-data"))
            .env("HOME", home)
            .stdin(Stdio::null());
        command
    }
}

fn checked_stdout(args: &[&str], output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "kubectl {args:?} ended with {}\n{out}{err}", output.status);
    out
}
