//! The program that was built for these tests, as a server.

use berth_testbed::Account;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::process::Command;

pub use berth_testbed::until;

pub const BERTH: &str = env!("CARGO_BIN_EXE_berth");

pub struct Server(berth_testbed::Server);

impl Server {
    pub fn start(args: &[&str]) -> Server {
        Server(berth_testbed::Server::start(Path::new(BERTH), args))
    }

    /// As another account of this machine.
    pub fn start_as(account: Account, args: &[&str]) -> Server {
        Server(berth_testbed::Server::start_as(account, Path::new(BERTH), args))
    }
}

impl Deref for Server {
    type Target = berth_testbed::Server;
    fn deref(&self) -> &berth_testbed::Server {
        &self.0
    }
}

impl DerefMut for Server {
    fn deref_mut(&mut self) -> &mut berth_testbed::Server {
        &mut self.0
    }
}

/// A certificate for this machine and its key, as files; nothing where no program makes them.
pub fn certificate_and_key(folder: &Path) -> Option<(String, String)> {
    let file = |name: &str| folder.join(name).display().to_string();
    let (certificate, key) = (file("cert.pem"), file("key.pem"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE", "-days", "2"])
        .args(["-out", &certificate, "-keyout", &key])
        .output();
    if made.is_ok_and(|made| made.status.success()) {
        return Some((certificate, key));
    }
    eprintln!("not tried: openssl makes no certificate here");
    None
}
