//! Messages go where they may, and a target that does not answer delays nobody else.

use super::http::Request;
use super::server::{Server, until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Somebody who gets messages.
struct Listener {
    port: u16,
    /// Requests that have come.
    requests: Arc<AtomicUsize>,
    /// Connections that are kept without an answer.
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Listener {
    /// Answers every request so; nothing: never.
    fn start(answer: Option<String>) -> Listener {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let (requests, open) = (Arc::<AtomicUsize>::default(), Arc::<Mutex<Vec<_>>>::default());
        let (count, kept) = (requests.clone(), open.clone());
        std::thread::spawn(move || {
            for stream in socket.incoming() {
                let Ok(mut stream) = stream else { return };
                read_request(&stream);
                match &answer {
                    Some(answer) => drop(stream.write_all(answer.as_bytes())),
                    None => kept.lock().unwrap().push(stream),
                }
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        Listener { port, requests, open }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook", self.port)
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    /// Whether whoever sent the first request has stopped to wait for an answer.
    fn was_given_up(&self) -> bool {
        let mut open = self.open.lock().unwrap();
        let stream = open.first_mut().expect("a request has come");
        stream.set_nonblocking(true).unwrap();
        !matches!(stream.read(&mut [0]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
    }
}

fn read_request(stream: &TcpStream) {
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        let header = line.to_ascii_lowercase();
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        line.clear();
    }
    let _ = reader.read_exact(&mut vec![0; length]);
}

const TAKEN: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

fn post(server: &Server, path: &str, kind: &str, body: String) -> Value {
    let token = server.token();
    let answer = Request::new("POST", path).token(Some(&token)).body(kind, body).send(&server.url);
    answer.json()
}

/// Gives targets of messages their addresses.
fn name_targets(server: &Server, targets: &[(&str, String)]) -> Value {
    let documents: Vec<String> = targets
        .iter()
        .map(|(name, url)| format!("kind: notify\nname: 'webhook:{name}'\nurl: {url}\n"))
        .collect();
    let body = json!({ "documents": documents.join("---\n") }).to_string();
    post(server, "/v1/apply", "application/json", body)
}

fn run_and_notify(server: &Server, targets: &[&str]) -> Value {
    let file = format!("name: told\nrun: 'true'\nnotify: [{}]\n", targets.join(", "));
    post(server, "/v1/jobs", "application/yaml", file)
}

/// How many tries ended so.
fn tries(server: &Server, outcome: &str) -> u64 {
    let token = server.token();
    let text = Request::new("GET", "/metrics").token(Some(&token)).send(&server.url).body;
    let name = format!("berth_notices_total{{outcome=\"{outcome}\"}} ");
    let value = text.lines().find_map(|line| line.strip_prefix(&name).map(str::to_owned));
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name}: {text}"))
}

#[test]
fn silent_targets_delay_nobody_and_no_redirect_is_followed() {
    let server = Server::start(&["--notify-allow", "127.0.0.1/32"]);
    let silent: Vec<Listener> = (0..8).map(|_| Listener::start(None)).collect();
    let inner = Listener::start(Some(TAKEN.to_owned()));
    let moved = format!(
        "HTTP/1.1 307 Temporary Redirect\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n",
        inner.url()
    );
    let (hop, good) = (Listener::start(Some(moved)), Listener::start(Some(TAKEN.to_owned())));
    let names: Vec<String> = (0..8).map(|n| format!("silent{n}")).collect();
    let mut targets: Vec<(&str, String)> =
        names.iter().zip(&silent).map(|(name, to)| (name.as_str(), to.url())).collect();
    targets.extend([("hop", hop.url()), ("good", good.url())]);
    let applied = name_targets(&server, &targets);
    assert_eq!(applied["applied"], true, "{applied}");
    let all: Vec<String> = targets.iter().map(|(name, _)| format!("'webhook:{name}'")).collect();
    let made = run_and_notify(&server, &all.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(made["name"], "told", "{made}");
    until("all targets are asked", || {
        good.requests() > 0 && silent.iter().all(|one| one.requests() > 0)
    });
    // None of them was waited for: all are still being asked.
    assert!(silent.iter().all(|one| !one.was_given_up()));
    until("the redirect has come back", || tries(&server, "failed") > 0);
    assert_eq!((hop.requests() > 0, inner.requests()), (true, 0));
    assert_eq!(tries(&server, "sent"), 1);
}

#[test]
fn a_target_that_is_not_public_is_refused_unless_the_operator_allows_its_network() {
    let server = Server::start(&["--notify-allow", "127.0.0.2/32"]);
    for url in [
        "https://127.0.0.1/x",
        "https://localhost/x",
        "https://[::ffff:10.0.0.1]/",
        "https://169.254.169.254/",
        "https://0x7f.1/",
    ] {
        let problem = run_and_notify(&server, &[&format!("'{url}'")]);
        assert_eq!(problem["code"], "BRT0002", "{url}: {problem}");
        assert!(problem["next"].as_str().unwrap().contains("--notify-allow"), "{problem}");
        let problem = name_targets(&server, &[("x", url.to_owned())]);
        assert_eq!(problem["code"], "BRT0021", "{url}: {problem}");
    }
    let many: Vec<String> = (0..17).map(|n| format!("'webhook:w{n}'")).collect();
    let problem = run_and_notify(&server, &many.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(problem["code"], "BRT0002", "{problem}");
    let made = run_and_notify(&server, &["'https://127.0.0.2:9/x'"]);
    assert_eq!(made["name"], "told", "{made}");
    until("it is tried", || tries(&server, "failed") > 0);
    assert_eq!(tries(&server, "refused"), 0);
}

/// A name may lead elsewhere than when it was set, and so may a target from before there was a check.
#[test]
fn where_a_message_goes_is_looked_at_when_it_is_sent() {
    let mut server = Server::start(&["--notify-allow", "127.0.0.1/32"]);
    let inner = Listener::start(Some(TAKEN.to_owned()));
    let applied = name_targets(&server, &[("inner", inner.url())]);
    assert_eq!(applied["applied"], true, "{applied}");
    server.stop();
    // The same home, and nothing is allowed any more.
    server.start_again_with(&[]);
    let made = run_and_notify(&server, &["'webhook:inner'"]);
    assert_eq!(made["name"], "told", "{made}");
    until("it is refused", || tries(&server, "refused") > 0);
    assert_eq!(inner.requests(), 0);
}
