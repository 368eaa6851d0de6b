//! Requests as they go over the wire: also those that no client of ours would send.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// How long an answer may take. It is not a measure of speed.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub struct Request<'a> {
    pub method: String,
    pub path: String,
    pub token: Option<&'a str>,
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
}

impl<'a> Request<'a> {
    pub fn new(method: impl ToString, path: impl Into<String>) -> Request<'a> {
        let (method, path) = (method.to_string(), path.into());
        Request { method, path, token: None, headers: Vec::new(), body: String::new() }
    }

    pub fn token(self, token: Option<&'a str>) -> Request<'a> {
        Request { token, ..self }
    }

    pub fn body(mut self, kind: &str, body: impl Into<String>) -> Request<'a> {
        self.headers.push(("content-type", kind.to_owned()));
        Request { body: body.into(), ..self }
    }

    pub fn json(self, body: &serde_json::Value) -> Request<'a> {
        self.body("application/json", body.to_string())
    }

    /// Sends it, and reads the answer as far as it has a known length.
    pub fn send(self, url: &str) -> Answer {
        let (status, length, mut reader) = self.open(url);
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body).expect("the body comes whole");
        Answer { status, body: String::from_utf8(body).expect("text") }
    }

    /// Sends it, and gives back what goes on for as long as the server likes.
    pub fn stream(self, url: &str) -> (u16, BufReader<TcpStream>) {
        let (status, _, reader) = self.open(url);
        (status, reader)
    }

    fn open(self, url: &str) -> (u16, Option<usize>, BufReader<TcpStream>) {
        let address = url.trim_start_matches("http://");
        let mut socket = TcpStream::connect(address).expect("the server listens");
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket takes timeouts");
        let mut head = format!("{} {} HTTP/1.1\r\nhost: {address}\r\n", self.method, self.path);
        if let Some(token) = self.token {
            head.push_str(&format!("authorization: Bearer {token}\r\n"));
        }
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("content-length: {}\r\n\r\n", self.body.len()));
        socket.write_all(head.as_bytes()).expect("the server reads");
        // One that refuses a request may not wait for all of it.
        let _ = socket.write_all(self.body.as_bytes());
        let mut reader = BufReader::new(socket);
        let (status, length) = head_of(&mut reader);
        (status, length, reader)
    }
}

fn head_of(reader: &mut impl BufRead) -> (u16, Option<usize>) {
    let mut line = String::new();
    reader.read_line(&mut line).expect("the server answers");
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.unwrap_or_else(|| panic!("`{line}` is no answer"));
    let mut length = None;
    loop {
        line.clear();
        reader.read_line(&mut line).expect("the head comes whole");
        let field = line.trim_end().to_ascii_lowercase();
        if field.is_empty() {
            return (status, length);
        }
        if let Some(value) = field.strip_prefix("content-length:") {
            length = value.trim().parse().ok();
        }
    }
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body)
            .unwrap_or_else(|error| panic!("{}: {error}\n{}", self.status, self.body))
    }

    /// The stable code of a problem; nothing where it is none.
    pub fn code(&self) -> Option<String> {
        let body: serde_json::Value = serde_json::from_str(&self.body).ok()?;
        Some(body["code"].as_str()?.to_owned())
    }

    pub fn is_good(&self) -> bool {
        (200..300).contains(&self.status) || self.status == 101
    }
}
