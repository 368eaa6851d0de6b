//! Whether a program answers.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// One question may take so long; then the next one is asked.
const ANSWER: Duration = Duration::from_secs(5);

pub(super) fn is_open(port: u16) -> bool {
    connect(port).is_some()
}

/// Whether the page is there, asked without encryption.
pub(super) fn answers(port: u16, page: &str) -> bool {
    let Some(mut stream) = connect(port) else { return false };
    let request = format!("GET {page} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n");
    let mut answer = [0; 12];
    let asked = stream.write_all(request.as_bytes());
    asked.and_then(|()| stream.read_exact(&mut answer)).is_ok() && answer.ends_with(b" 200")
}

fn connect(port: u16) -> Option<TcpStream> {
    let stream = TcpStream::connect_timeout(&SocketAddr::from(([127, 0, 0, 1], port)), ANSWER);
    let stream = stream.ok()?;
    stream.set_read_timeout(Some(ANSWER)).ok()?;
    stream.set_write_timeout(Some(ANSWER)).ok()?;
    Some(stream)
}
