//! How a helper gets its order and says how it went: over a socket that is its standard input.
//! Orders may hold secrets, so they are in no argument, no variable and no file.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::Duration;

/// Nothing that a helper does on the way takes longer, unless a file system hangs.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The side of whoever gives the order.
pub(crate) struct Channel(UnixStream);

impl Channel {
    /// The channel, and what the helper gets as its standard input.
    pub fn open() -> io::Result<(Channel, Stdio)> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_read_timeout(Some(TIMEOUT))?;
        ours.set_write_timeout(Some(TIMEOUT))?;
        Ok((Channel(ours), Stdio::from(OwnedFd::from(theirs))))
    }

    /// Sends the order and waits for the answer; nothing where the helper closes without one.
    pub fn ask<A: DeserializeOwned>(mut self, order: &impl Serialize) -> io::Result<Option<A>> {
        let sent = serde_json::to_vec(order).map_err(io::Error::other)?;
        self.0.write_all(&sent)?;
        self.0.shutdown(Shutdown::Write)?;
        let mut answer = Vec::new();
        self.0.read_to_end(&mut answer)?;
        if answer.is_empty() {
            return Ok(None);
        }
        serde_json::from_slice(&answer).map(Some).map_err(io::Error::other)
    }
}

/// The side of the helper. It is closed when the helper becomes another program.
pub(crate) struct Answer(UnixStream);

impl Answer {
    pub fn send(mut self, answer: &impl Serialize) -> io::Result<()> {
        self.0.write_all(&serde_json::to_vec(answer).map_err(io::Error::other)?)
    }
}

/// Reads the order. Standard input is empty afterwards.
pub(crate) fn receive<T: DeserializeOwned>() -> io::Result<(T, Answer)> {
    let mut socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut bytes = Vec::new();
    socket.read_to_end(&mut bytes)?;
    rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
    let order = serde_json::from_slice(&bytes).map_err(io::Error::other)?;
    Ok((order, Answer(socket)))
}
