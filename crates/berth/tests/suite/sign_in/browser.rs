//! As much of a browser as signing in takes: cookies with their paths, and redirects.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// How long an answer may take. It is not a measure of speed.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub struct Seen {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
    /// Where it came from, after all redirects.
    pub url: String,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub fn cookies(&self) -> Vec<&str> {
        let all = self.headers.iter().filter(|(key, _)| key == "set-cookie");
        all.map(|(_, value)| value.as_str()).collect()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub fn code(&self) -> Option<String> {
        let body: serde_json::Value = serde_json::from_str(&self.body).ok()?;
        Some(body["code"].as_str()?.to_owned())
    }
}

/// One browser of somebody. It has the cookies of every server of this machine apart.
#[derive(Default)]
pub struct Browser {
    /// By host, name and path.
    cookies: BTreeMap<(String, String, String), String>,
    /// The key that the portal keeps, and that its scripts send.
    pub key: Option<String>,
}

impl Browser {
    /// One request, and no redirect followed.
    pub fn send(&mut self, method: &str, url: &str, headers: &[(&str, &str)], body: &str) -> Seen {
        let rest = url.strip_prefix("http://").expect("an address");
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        // What stands after `#` is for the page.
        let path = path.split('#').next().unwrap_or_default();
        let path = if path.is_empty() { "/" } else { path };
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n");
        let cookies = self.cookies_for(host, path);
        if !cookies.is_empty() {
            head.push_str(&format!("cookie: {cookies}\r\n"));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
        let mut socket = TcpStream::connect(host).expect("a server listens");
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket takes timeouts");
        socket.write_all(head.as_bytes()).expect("the server reads");
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).expect("the answer comes whole");
        let seen = parsed(&answer, url);
        for cookie in seen.cookies() {
            self.keep(host, cookie);
        }
        seen
    }

    /// Goes to a page, and wherever it leads.
    pub fn go(&mut self, url: &str) -> Seen {
        let seen = self.send("GET", url, &[("accept", "text/html,*/*;q=0.8")], "");
        self.follow(seen)
    }

    /// Sends a form, and goes wherever that leads.
    pub fn submit(&mut self, url: &str, form: &str) -> Seen {
        let kind = [("content-type", "application/x-www-form-urlencoded")];
        let seen = self.send("POST", url, &kind, form);
        self.follow(seen)
    }

    fn follow(&mut self, mut seen: Seen) -> Seen {
        for _ in 0..10 {
            let Some(to) = seen.header("location").map(str::to_owned) else { return seen };
            let host_end = seen.url[7..].find('/').map_or(seen.url.len(), |at| at + 7);
            let to =
                if to.starts_with('/') { format!("{}{to}", &seen.url[..host_end]) } else { to };
            let (to, fragment) = to.split_once('#').unwrap_or((&to, ""));
            if let Some(key) = fragment.strip_prefix("session-key=") {
                self.key = Some(key.to_owned());
            }
            seen = self.send("GET", to, &[("accept", "text/html,*/*;q=0.8")], "");
        }
        panic!("it leads round in circles: {seen:?}");
    }

    /// As the scripts of the portal ask the API.
    pub fn api(&mut self, method: &str, url: &str, body: &serde_json::Value) -> Seen {
        let key = self.key.clone();
        let mut headers =
            vec![("content-type", "application/json"), ("sec-fetch-site", "same-origin")];
        if let Some(key) = &key {
            headers.push(("x-berth-session-key", key));
        }
        let body = if method == "GET" { String::new() } else { body.to_string() };
        self.send(method, url, &headers, &body)
    }

    /// Signs in with a token, as the portal does.
    pub fn sign_in(&mut self, url: &str, token: &str) -> Seen {
        let body = serde_json::json!({ "token": token });
        let seen = self.api("POST", &format!("{url}/v1/session"), &body);
        if seen.status == 200 {
            self.key = seen.json()["key"].as_str().map(str::to_owned);
        }
        seen
    }

    pub fn cookie(&self, name: &str) -> Option<&str> {
        self.cookies.iter().find(|((_, key, _), _)| key == name).map(|(_, value)| value.as_str())
    }

    pub fn set_cookie(&mut self, url: &str, name: &str, value: &str) {
        self.keep(url.trim_start_matches("http://"), &format!("{name}={value}; Path=/"));
    }

    fn cookies_for(&self, host: &str, path: &str) -> String {
        let sent =
            self.cookies.iter().filter(|((of, _, below), _)| of == host && path.starts_with(below));
        let sent: Vec<String> =
            sent.map(|((_, name, _), value)| format!("{name}={value}")).collect();
        sent.join("; ")
    }

    fn keep(&mut self, host: &str, cookie: &str) {
        let mut parts = cookie.split(';').map(str::trim);
        let (name, value) = parts.next().and_then(|pair| pair.split_once('=')).expect("a cookie");
        let attributes: Vec<String> = parts.map(str::to_ascii_lowercase).collect();
        let path = attributes.iter().find_map(|one| one.strip_prefix("path=")).unwrap_or("/");
        // Paths have letters of both sizes.
        let path = cookie.to_ascii_lowercase().find("path=").map_or(path, |at| {
            let rest = &cookie[at + 5..];
            &rest[..rest.find(';').unwrap_or(rest.len())]
        });
        let key = (host.to_owned(), name.to_owned(), path.to_owned());
        let is_over = attributes.iter().any(|one| one == "max-age=0" || one.contains(" 1970 "));
        match is_over || value.is_empty() {
            true => self.cookies.remove(&key),
            false => self.cookies.insert(key, value.to_owned()),
        };
    }
}

fn parsed(answer: &[u8], url: &str) -> Seen {
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a whole head");
    let head = String::from_utf8_lossy(&answer[..end]);
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let is_chunked =
        headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
    let body = &answer[end + 4..];
    let body = if is_chunked { unchunked(body) } else { body.to_vec() };
    let body = String::from_utf8_lossy(&body).into_owned();
    Seen { status: status.expect("a status"), headers, body, url: url.to_owned() }
}

fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|bytes| bytes == b"\r\n") {
        let size = std::str::from_utf8(&rest[..end]).expect("a size");
        let size = usize::from_str_radix(size.trim(), 16).expect("a size");
        if size == 0 {
            break;
        }
        body.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + 4 + size..];
    }
    body
}
