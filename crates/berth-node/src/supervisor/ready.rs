//! Whether a service serves yet. The supervisor asks without waiting for the answer: it has one
//! thread, and a process that has unshared its PID namespace cannot make another.

use crate::task::Ready;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Asks again and again, until the answer is yes.
pub(super) struct Readiness {
    check: Ready,
    port: u16,
    pause: Duration,
    state: State,
}

enum State {
    Pauses { until: Instant },
    Asks(Probe),
}

/// One question, under way.
struct Probe {
    stream: TcpStream,
    is_v6: bool,
    /// What is still to be sent.
    request: Vec<u8>,
    answer: Vec<u8>,
    until: Instant,
}

/// How far a question is.
enum Progress {
    Waits,
    Yes,
    No,
}

impl Readiness {
    pub fn new(check: Ready, port: u16) -> Readiness {
        let state = State::Pauses { until: Instant::now() };
        Readiness { check, port, pause: PAUSE_MIN, state }
    }

    /// When it has to be looked at although nothing has happened.
    pub fn due(&self) -> Instant {
        match &self.state {
            State::Pauses { until } => *until,
            State::Asks(probe) => probe.until,
        }
    }

    /// What it waits for.
    pub fn waits_for(&self) -> Option<(&TcpStream, PollFlags)> {
        match &self.state {
            State::Pauses { .. } => None,
            State::Asks(probe) if probe.request.is_empty() => Some((&probe.stream, PollFlags::IN)),
            State::Asks(probe) => Some((&probe.stream, PollFlags::OUT)),
        }
    }

    /// Goes on as far as it can; whether the service is ready.
    pub fn advance(&mut self) -> bool {
        let now = Instant::now();
        let progress = match &mut self.state {
            State::Pauses { until } if now < *until => return false,
            State::Pauses { .. } => {
                self.begin(false);
                return self.step();
            }
            State::Asks(probe) if now >= probe.until => Progress::No,
            State::Asks(_) => return self.step(),
        };
        self.conclude(progress)
    }

    fn begin(&mut self, is_v6: bool) {
        self.state = match Probe::open(&self.check, self.port, is_v6) {
            Ok(probe) => State::Asks(probe),
            Err(_) => State::Pauses { until: Instant::now() + self.pause },
        };
    }

    fn step(&mut self) -> bool {
        let State::Asks(probe) = &mut self.state else { return false };
        let progress = probe.advance(&self.check).unwrap_or(Progress::No);
        self.conclude(progress)
    }

    fn conclude(&mut self, progress: Progress) -> bool {
        match progress {
            Progress::Yes => return true,
            Progress::Waits => return false,
            Progress::No => {}
        }
        // A service may listen on one of the two only.
        if let State::Asks(Probe { is_v6: false, answer, .. }) = &self.state
            && answer.is_empty()
        {
            self.begin(true);
            return self.step();
        }
        self.state = State::Pauses { until: Instant::now() + self.pause };
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        false
    }
}

impl Probe {
    fn open(check: &Ready, port: u16, is_v6: bool) -> io::Result<Probe> {
        let (family, address) = match is_v6 {
            false => (AddressFamily::INET, SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
            true => (AddressFamily::INET6, SocketAddr::from((Ipv6Addr::LOCALHOST, port))),
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::STREAM, flags, None)?;
        match connect(&socket, &address) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        let request = match check {
            Ready::Connect => Vec::new(),
            Ready::Http { path } => {
                let slash = if path.starts_with('/') { "" } else { "/" };
                let head = format!("GET {slash}{path} HTTP/1.1\r\nHost: localhost:{port}\r\n");
                format!("{head}Connection: close\r\n\r\n").into_bytes()
            }
        };
        let until = Instant::now() + PROBE_TIMEOUT;
        let stream = TcpStream::from(socket);
        Ok(Probe { stream, is_v6, request, answer: Vec::new(), until })
    }

    fn advance(&mut self, check: &Ready) -> io::Result<Progress> {
        if let Some(error) = self.stream.take_error()? {
            return Err(error);
        }
        if *check == Ready::Connect {
            return Ok(match self.stream.peer_addr() {
                Ok(_) => Progress::Yes,
                Err(_) => Progress::Waits,
            });
        }
        while !self.request.is_empty() {
            match self.stream.write(&self.request) {
                Ok(sent) => drop(self.request.drain(..sent)),
                Err(error) if waits(&error) => return Ok(Progress::Waits),
                Err(error) => return Err(error),
            }
        }
        let mut buffer = [0; 64];
        while self.answer.len() < STATUS {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Ok(Progress::No),
                Ok(read) => self.answer.extend(&buffer[..read]),
                Err(error) if waits(&error) => return Ok(Progress::Waits),
                Err(error) => return Err(error),
            }
        }
        Ok(if is_success(&self.answer) { Progress::Yes } else { Progress::No })
    }
}

fn waits(error: &io::Error) -> bool {
    // A connection that is not there yet says so in its own way.
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected)
}

/// The length of `HTTP/1.1 200`.
const STATUS: usize = 12;

fn is_success(head: &[u8]) -> bool {
    head.starts_with(b"HTTP/1.") && matches!(head[9], b'2' | b'3')
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, Timespec, poll};
    use std::net::TcpListener;

    /// Whether the next question is answered with yes.
    fn check(ready: &Ready, port: u16) -> bool {
        let mut readiness = Readiness::new(ready.clone(), port);
        loop {
            if readiness.advance() {
                return true;
            }
            let Some((socket, flags)) = readiness.waits_for() else { return false };
            let wait = Timespec { tv_sec: 5, tv_nsec: 0 };
            poll(&mut [PollFd::new(socket, flags)], Some(&wait)).unwrap();
        }
    }

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
    fn a_service_that_listens_on_ipv6_alone_is_found() {
        let Ok(listener) = TcpListener::bind("[::1]:0") else { return };
        assert!(check(&Ready::Connect, listener.local_addr().unwrap().port()));
    }

    #[test]
    fn nobody_listening_is_not_ready() {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        assert!(!check(&Ready::Connect, port));
    }
}
