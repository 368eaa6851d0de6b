//! Another user of this machine, for programs that refuse to run as root and for tests in which
//! a permission must be missing.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    pub uid: u32,
    pub gid: u32,
}

impl Account {
    /// One without rights, where we have more of them than a test can use. None where we are an
    /// ordinary user: then we are that account ourselves.
    pub fn unprivileged() -> Option<Account> {
        let us = fs::metadata("/proc/self").expect("there is a /proc");
        if us.uid() != 0 {
            return None;
        }
        Some(named("postgres").or_else(|| named("nobody")).expect("there is a user nobody"))
    }

    /// One that nothing else on this machine runs as, so that limits of an account concern it alone.
    /// None where we are an ordinary user.
    pub fn of_its_own() -> Option<Account> {
        let number = 1_900_000_000 + std::process::id();
        Account::unprivileged().map(|_| Account { uid: number, gid: number })
    }

    pub fn run(self, command: &mut Command) -> &mut Command {
        command.uid(self.uid).gid(self.gid)
    }

    pub fn give(self, path: &Path) -> io::Result<()> {
        chown(path, Some(self.uid), Some(self.gid))
    }
}

fn named(name: &str) -> Option<Account> {
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
    let mut fields = line.split(':').skip(2);
    Some(Account { uid: fields.next()?.parse().ok()?, gid: fields.next()?.parse().ok()? })
}
