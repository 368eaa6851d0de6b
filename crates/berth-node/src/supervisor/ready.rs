//! Whether a service serves yet.

use crate::task::Ready;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::thread::sleep;
use std::time::Duration;

const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Asks until the answer is yes. It ends with the process.
pub(super) fn wait(ready: &Ready, port: u16) {
    let mut pause = PAUSE_MIN;
    while !check(ready, port) {
        sleep(pause);
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

fn check(ready: &Ready, port: u16) -> bool {
    let Ok(mut stream) = connect(port) else { return false };
    match ready {
        Ready::Connect => true,
        Ready::Http { path } => get(&mut stream, path, port).unwrap_or(false),
    }
}

fn connect(port: u16) -> io::Result<TcpStream> {
    let v4 = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, port));
    TcpStream::connect_timeout(&v4, PROBE_TIMEOUT)
        .or_else(|_| TcpStream::connect_timeout(&v6, PROBE_TIMEOUT))
}

fn get(stream: &mut TcpStream, path: &str, port: u16) -> io::Result<bool> {
    stream.set_read_timeout(Some(PROBE_TIMEOUT))?;
    stream.set_write_timeout(Some(PROBE_TIMEOUT))?;
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut head = [0; 12];
    stream.read_exact(&mut head)?;
    Ok(is_success(&head))
}

/// Of an answer that begins `HTTP/1.1 200`.
fn is_success(head: &[u8; 12]) -> bool {
    head.starts_with(b"HTTP/1.") && matches!(head[9], b'2' | b'3')
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn answer(text: &'static str, ready: &Ready) -> bool {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // To its end: closing over unread bytes would throw the answer away.
            let mut request = Vec::new();
            let mut byte = [0];
            while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() > 0 {
                request.push(byte[0]);
            }
            let _ = stream.write_all(text.as_bytes());
        });
        let found = check(ready, port);
        server.join().unwrap();
        found
    }

    #[test]
    fn a_service_is_ready_when_it_answers_well() {
        let http = Ready::Http { path: "/health".to_owned() };
        assert!(answer("HTTP/1.1 200 OK\r\n\r\n", &http));
        assert!(answer("HTTP/1.0 302 Found\r\n\r\n", &http));
        assert!(!answer("HTTP/1.1 503 Busy\r\n\r\n", &http));
        assert!(!answer("", &http));
        assert!(answer("", &Ready::Connect));
    }

    #[test]
    fn nobody_listening_is_not_ready() {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        assert!(!check(&Ready::Connect, port));
    }
}
