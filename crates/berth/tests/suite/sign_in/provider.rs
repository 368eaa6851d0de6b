//! A real provider of identities, in a process of its own.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use super::browser::{Browser, Seen};

/// Gone when this is.
pub struct Provider {
    child: Child,
    pub url: String,
}

impl Provider {
    /// # Panics
    ///
    /// If it does not start. `make oidc-tools` installs it.
    pub fn start() -> Provider {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let script = root.join(".ci/oidc-tools");
        let installed = Command::new(&script).output().expect("the script that installs it");
        let folder = String::from_utf8_lossy(&installed.stdout).trim().to_owned();
        let why = String::from_utf8_lossy(&installed.stderr);
        assert!(installed.status.success(), "the provider is not installed: {why}");
        // Node.js now and then hangs before it runs a line; another process does not.
        for _ in 0..5 {
            if let Some(provider) = Provider::begin(&root, &folder) {
                return provider;
            }
        }
        panic!("the provider does not start");
    }

    fn begin(root: &Path, folder: &str) -> Option<Provider> {
        let mut child = Command::new("node")
            .arg(root.join("tools/oidc/provider.mjs"))
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("Node.js runs");
        let out = child.stdout.take().expect("it prints");
        let (sender, printed) = mpsc::channel();
        std::thread::spawn(move || {
            let (mut out, mut url) = (BufReader::new(out), String::new());
            out.read_line(&mut url).expect("it says where it is");
            let _ = sender.send(url);
            // It ends where nobody reads what else it prints.
            let _ = std::io::copy(&mut out, &mut std::io::sink());
        });
        let url = printed.recv_timeout(Duration::from_secs(60)).unwrap_or_default();
        let url = url.trim().to_owned();
        let provider = Provider { child, url };
        provider.url.starts_with("http://").then_some(provider)
    }

    /// Tells it where Berth is, who there is, or to change its key.
    pub fn tell(&self, what: &str, said: &Value) {
        let url = format!("{}/test/{what}", self.url);
        let seen = Browser::default().send("POST", &url, &[], &said.to_string());
        assert_eq!(seen.status, 204, "{seen:?}");
    }

    /// How often it was asked for a token by now.
    pub fn asked(&self) -> usize {
        let seen = Browser::default().send("GET", &format!("{}/test/asked", self.url), &[], "");
        seen.body.trim().parse().unwrap_or_else(|_| panic!("a number: {seen:?}"))
    }

    /// It answers no more.
    pub fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Where its own page asks for a name, answers with one; what comes of it.
    pub fn sign_in(&self, browser: &mut Browser, asked: &Seen, name: &str) -> Seen {
        assert!(asked.url.contains("/interaction/"), "{asked:?}");
        browser.submit(&asked.url, &format!("login={name}"))
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.stop();
    }
}
