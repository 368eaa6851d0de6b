//! Syslog as RFC 5424 has it: over a socket of the machine, UDP, or TCP with a length before each
//! message (RFC 6587).

use super::place::Socket;
use berth_api::wire::AuditRow;
use std::io;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, UdpSocket, UnixDatagram};
use tokio::time::timeout;

const TIMEOUT: Duration = Duration::from_secs(10);
/// Facility 13, log audit.
const FACILITY: u8 = 13;
const NOTICE: u8 = 5;
const WARNING: u8 = 4;
/// A datagram that is longer may be cut or refused on its way.
const MOST_BYTES: usize = 8_000;

pub struct SyslogSink {
    socket: Socket,
    /// The name of this machine.
    host: String,
    open: Option<Open>,
}

enum Open {
    Unix(UnixDatagram),
    Udp(UdpSocket),
    Tcp(TcpStream),
}

impl SyslogSink {
    pub fn new(socket: &Socket, host: &str) -> SyslogSink {
        let host: String = host.chars().filter(char::is_ascii_graphic).take(255).collect();
        let host = if host.is_empty() { "-".to_owned() } else { host };
        SyslogSink { socket: socket.clone(), host, open: None }
    }

    /// How many rows were handed over, and why no more.
    pub async fn take(&mut self, rows: &[AuditRow]) -> (usize, io::Result<()>) {
        for (taken, row) in rows.iter().enumerate() {
            if let Err(error) = self.send(row).await {
                // A connection that failed once is not trusted again.
                self.open = None;
                return (taken, Err(error));
            }
        }
        (rows.len(), Ok(()))
    }

    async fn send(&mut self, row: &AuditRow) -> io::Result<()> {
        let message = message(row, &self.host);
        if let Some(Open::Tcp(stream)) = &self.open
            && has_closed(stream)
        {
            self.open = None;
        }
        if self.open.is_none() {
            self.open = Some(in_time(connect(&self.socket)).await?);
        }
        match self.open.as_mut().expect("opened just now") {
            Open::Unix(socket) => in_time(socket.send(message.as_bytes())).await.map(drop),
            Open::Udp(socket) => in_time(socket.send(message.as_bytes())).await.map(drop),
            Open::Tcp(stream) => {
                let framed = format!("{} {message}", message.len());
                in_time(stream.write_all(framed.as_bytes())).await
            }
        }
    }
}

async fn in_time<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, "it did not answer in time");
    timeout(TIMEOUT, work).await.map_err(late)?
}

async fn connect(socket: &Socket) -> io::Result<Open> {
    Ok(match socket {
        Socket::Unix(path) => {
            let socket = UnixDatagram::unbound()?;
            socket.connect(path)?;
            Open::Unix(socket)
        }
        Socket::Udp(to) => {
            let mut last = io::Error::other("the name has no address");
            for address in tokio::net::lookup_host(to).await? {
                let local = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
                let socket = UdpSocket::bind(local).await?;
                match socket.connect(address).await {
                    Ok(()) => return Ok(Open::Udp(socket)),
                    Err(error) => last = error,
                }
            }
            return Err(last);
        }
        Socket::Tcp(to) => Open::Tcp(TcpStream::connect(to).await?),
    })
}

/// Whether the other end is gone: it never says anything, so anything but silence is an end.
fn has_closed(stream: &TcpStream) -> bool {
    let mut byte = [0];
    !matches!(stream.try_read(&mut byte), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

/// One row as one message. What would make it too long is left out, and the message says so.
fn message(row: &AuditRow, host: &str) -> String {
    let severity = if row.outcome == "ok" { NOTICE } else { WARNING };
    let head = format!(
        "<{}>1 {} {host} berth {} audit - ",
        FACILITY * 8 + severity,
        row.at,
        std::process::id()
    );
    let json = |row: &AuditRow| serde_json::to_string(row).expect("rows are plain data");
    let whole = json(row);
    if head.len() + whole.len() <= MOST_BYTES {
        return head + &whole;
    }
    let cut: String = row.target.chars().take(200).collect();
    let detail = r#"{"shortened":true}"#.to_owned();
    head + &json(&AuditRow { target: cut, detail, seals: String::new(), ..row.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::Time;

    fn row(detail: &str) -> AuditRow {
        AuditRow {
            seq: 7,
            at: Time(1_731_663_007_250).into(),
            who: "ada".into(),
            token: None,
            from: "127.0.0.1".into(),
            method: "POST".into(),
            what: "create_user".into(),
            target: "user kim".into(),
            outcome: "ok".into(),
            detail: detail.into(),
            prev: "aa".into(),
            hash: "bb".into(),
            key: "k1".into(),
            seals: String::new(),
        }
    }

    #[test]
    fn a_message_has_the_head_of_rfc_5424_and_the_row_as_json() {
        let text = message(&row("{}"), "box");
        let (head, json) = text.split_once(" audit - ").unwrap();
        assert_eq!(
            head,
            format!("<109>1 2024-11-15T09:30:07.250Z box berth {}", std::process::id())
        );
        let back: AuditRow = serde_json::from_str(json).unwrap();
        assert_eq!(back, row("{}"));
        let refused = AuditRow { outcome: "refused BRT0006".into(), ..row("{}") };
        assert!(message(&refused, "box").starts_with("<108>1 "));
    }

    #[test]
    fn a_row_that_is_too_long_is_shortened_and_says_so() {
        let long = message(&row(&"x".repeat(100_000)), "box");
        assert!(long.len() <= MOST_BYTES && long.contains("shortened"));
    }

    #[tokio::test]
    async fn rows_arrive_over_every_kind_of_socket_and_a_server_that_is_away_is_tried_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut sink = SyslogSink::new(&Socket::Unix(path.clone()), "box");
        let (taken, result) = sink.take(&[row("{}")]).await;
        assert!(taken == 0 && result.is_err());
        let server = UnixDatagram::bind(&path).unwrap();
        let (taken, result) = sink.take(&[row("{}"), row("{}")]).await;
        assert!(taken == 2 && result.is_ok());
        let mut buffer = [0; 9_000];
        let length = server.recv(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..length], message(&row("{}"), "box").as_bytes());

        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let to = server.local_addr().unwrap().to_string();
        let mut sink = SyslogSink::new(&Socket::Udp(to), "box");
        assert!(sink.take(&[row("{}")]).await.1.is_ok());
        assert!(server.recv(&mut buffer).await.unwrap() > 0);

        let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = server.local_addr().unwrap().to_string();
        let mut sink = SyslogSink::new(&Socket::Tcp(to), "box");
        assert!(sink.take(&[row("{}")]).await.1.is_ok());
        let (mut stream, _) = server.accept().await.unwrap();
        let expected = message(&row("{}"), "box");
        let expected = format!("{} {expected}", expected.len());
        let mut read = vec![0; expected.len()];
        tokio::io::AsyncReadExt::read_exact(&mut stream, &mut read).await.unwrap();
        assert_eq!(read, expected.as_bytes());
    }
}
