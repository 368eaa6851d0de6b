//! The usual tools, pointed at a cluster.

use super::{ADMIN, Cluster, programs};
use serde_json::Value;
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
    pub fn says(&self, args: &[&str]) -> String {
        said(args, &self.kubectl(args))
    }

    /// What kubectl prints as JSON.
    ///
    /// # Panics
    ///
    /// If it does not end well.
    pub fn json(&self, args: &[&str]) -> Value {
        let text = self.says(&[args, &["-o", "json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("kubectl {args:?}: {error}"))
    }

    /// Makes the objects of a YAML text, or changes them.
    ///
    /// # Panics
    ///
    /// If one is refused.
    pub fn apply(&self, yaml: &str) -> String {
        let args = ["apply", "--filename=-"];
        let mut kubectl = self.command("kubectl", ADMIN);
        let kubectl = kubectl.args(args).stdin(Stdio::piped());
        let mut child =
            kubectl.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("kubectl runs");
        let mut input = child.stdin.take().expect("it is piped");
        // If it does not read to the end, it says why.
        let _ = input.write_all(yaml.as_bytes());
        drop(input);
        said(&args, &child.wait_with_output().expect("kubectl ends"))
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

    /// Sends a body to a path of the API, and returns whether it was taken.
    pub fn post(&self, path: &str, body: &str) -> bool {
        let mut kubectl = self.command("kubectl", ADMIN);
        let kubectl = kubectl.args(["create", "--raw", path, "--filename=-"]).stdin(Stdio::piped());
        let kubectl = kubectl.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = kubectl.spawn().expect("kubectl runs");
        let mut input = child.stdin.take().expect("it is piped");
        let _ = input.write_all(body.as_bytes());
        drop(input);
        child.wait().expect("kubectl ends").success()
    }

    pub(super) fn succeeds(&self, args: &[&str]) -> bool {
        let asked = [args, &["--request-timeout=10s"]].concat();
        self.kubectl(&asked).status.success()
    }

    /// Whether a part that has a certificate of its own says that it is well. kubectl asks any
    /// server for a page.
    pub(super) fn says_ready(&self, port: u16, page: &str) -> bool {
        let server = format!("--server=https://127.0.0.1:{port}");
        let mut kubectl = self.command("kubectl", ADMIN);
        // Anybody may ask. The administrator's token is for the API server alone, and without any
        // kubectl would ask for a password.
        kubectl.env("KUBECONFIG", "/dev/null").args([&server, "--token=none"]);
        kubectl.args(["--insecure-skip-tls-verify", "--request-timeout=10s", "get", "--raw", page]);
        kubectl.output().expect("kubectl runs").status.success()
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

fn said(args: &[&str], output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "kubectl {args:?} ended with {}\n{out}{err}", output.status);
    out
}
