//! The program that was built for these tests, as a server.

use berth_testbed::Account;
use std::ops::{Deref, DerefMut};
use std::path::Path;

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
