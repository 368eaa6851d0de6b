//! Connections that nobody needs a token for: they keep nobody else from being answered.

use super::http::Request;
use super::people::People;
use super::server::{BERTH, certificate_and_key, until};
use berth_testbed::Server;
use std::io::{BufRead, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use tempfile::TempDir;

/// `berth` with a line of shell before it.
fn program(folder: &TempDir, before: &str) -> PathBuf {
    let path = folder.path().join("berth");
    std::fs::write(&path, format!("#!/bin/sh\n{before}\nexec {BERTH} \"$@\"\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn connect(server: &Server) -> TcpStream {
    let address = server.url.split_once("://").unwrap().1;
    TcpStream::connect(address).expect("the server listens")
}

/// Requests whose heads never end.
fn half_sent(server: &Server, count: usize) -> Vec<TcpStream> {
    let open = || {
        let mut socket = connect(server);
        // One that was displaced already does not take it.
        let _ = socket.write_all(b"GET /v1/jobs HTTP/1.1\r\nhost: x\r\nx-slow: ");
        socket
    };
    (0..count).map(|_| open()).collect()
}

fn is_done(server: &Server, job: &str) -> bool {
    server.job(job)["state"] == "done"
}

#[test]
fn half_sent_requests_stop_neither_the_server_nor_its_loop_nor_a_stream() {
    let folder = tempfile::tempdir().unwrap();
    let few_files = program(&folder, "ulimit -n 256");
    let server = Server::start(&few_files, &["--gpus", "1xL4"]);
    let token = server.token();
    let (status, mut events) =
        Request::new("GET", "/v1/events").token(Some(&token)).stream(&server.url);
    assert_eq!(status, 200);
    // More than there are descriptors.
    let attack = half_sent(&server, 400);
    for name in ["one", "two"] {
        server.run_ok(&["run", "-d", "--name", name, "-g", "1", "--", "true"]);
    }
    until("both jobs have run", || is_done(&server, "one") && is_done(&server, "two"));
    assert_eq!(Request::new("GET", "/readyz").send(&server.url).status, 200);
    let mut line = String::new();
    while !(line.contains("\"name\":\"two\"") && line.contains("\"done\"")) {
        line.clear();
        assert_ne!(events.read_line(&mut line).expect("the stream lives on"), 0);
    }
    let metrics = Request::new("GET", "/metrics").token(Some(&token));
    let mut socket = metrics.stream(&server.url).1;
    let mut displaced = String::new();
    while !displaced.starts_with("berth_connections_displaced_total") {
        displaced.clear();
        assert_ne!(socket.read_line(&mut displaced).unwrap(), 0, "there is such a figure");
    }
    assert!(!displaced.trim_end().ends_with(" 0"), "{displaced}");
    drop(attack);
}

#[test]
fn connections_beyond_the_limit_are_told_so_and_others_go_on() {
    let people = People::start_with(&["--gpus", "1xL4", "--max-connections", "16"]);
    let server = &people.server;
    // A quarter is left for other machines, and three users have a third of the rest.
    let tokens = [&people.admin, &people.kim, &people.lea].into_iter().cycle();
    let mut streams: Vec<_> = tokens
        .take(12)
        .map(|token| Request::new("GET", "/v1/events").token(Some(token)).stream(&server.url))
        .collect();
    assert!(streams.iter().all(|(status, _)| *status == 200));
    let mut refused = String::new();
    connect(server).read_to_string(&mut refused).unwrap();
    assert!(refused.starts_with("HTTP/1.1 429 ") && refused.contains("BRT0017"), "{refused}");
    streams.pop();
    // The server learns a moment later that it is gone.
    until("there is room again", || {
        let mut socket = connect(server);
        let asked = b"GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        let mut answer = String::new();
        socket.write_all(asked).is_ok()
            && socket.read_to_string(&mut answer).is_ok()
            && answer.starts_with("HTTP/1.1 200 ")
    });
}

#[test]
fn one_user_cannot_take_the_connections_of_the_others() {
    let people = People::start_with(&["--gpus", "1xL4", "--max-connections", "16"]);
    let stream = |token: &str| {
        Request::new("GET", "/v1/events").token(Some(token)).stream(&people.server.url)
    };
    let (status, mut first) = stream(&people.lea);
    assert_eq!(status, 200);
    let greedy: Vec<_> = (0..30).map(|_| stream(&people.kim)).collect();
    assert!(greedy.iter().all(|(status, _)| *status == 200));
    people.job(&people.lea, "team: vision\nname: one\nhold: true\nrun: 'true'\n");
    let mut line = String::new();
    while !line.contains("\"name\":\"one\"") {
        line.clear();
        assert_ne!(first.read_line(&mut line).expect("the stream lives on"), 0);
    }
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).expect("a short one");
    [&[0, 0, length, kind, flags, 0, 0, 0, stream], payload].concat()
}

#[test]
fn clients_that_leave_no_room_for_an_answer_keep_nobody_out() {
    let server = Server::start(BERTH.as_ref(), &["--gpus", "1xL4", "--max-connections", "16"]);
    // Indexed: GET, http; by name: the path.
    let head = [&[0x82, 0x86, 0x04, 8][..], b"/healthz", &[0x01, 1, b'x']].concat();
    let asked = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]),
        frame(1, 5, 1, &head),
    ]
    .concat();
    let pin = || {
        let mut socket = connect(&server);
        socket.write_all(&asked).unwrap();
        let mut frame = [0; 9];
        while frame[3] != 1 {
            socket.read_exact(&mut frame).expect("the head of the answer comes");
            socket.read_exact(&mut vec![0; usize::from(frame[2])]).unwrap();
        }
        socket
    };
    let pinned: Vec<TcpStream> = (0..40).map(|_| pin()).collect();
    assert_eq!(Request::new("GET", "/readyz").send(&server.url).status, 200);
    server.run_ok(&["run", "--name", "one", "--", "true"]);
    drop(pinned);
}

/// The statuses of so many answers over one connection of HTTP/2, of each of which room is left for
/// a single byte.
fn barely_taken(server: &Server, token: &str, path: &str, count: u8) -> (TcpStream, Vec<bool>) {
    let field = |name: &str, value: &str| {
        let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
        [vec![0], text(name), text(value)].concat()
    };
    // Indexed: GET, http.
    let head = [
        vec![0x82, 0x86],
        field(":path", path),
        field(":authority", "x"),
        field("authorization", &format!("Bearer {token}")),
    ]
    .concat();
    let asked = (0..count).flat_map(|nth| frame(1, 5, 1 + 2 * nth, &head));
    let asked: Vec<u8> =
        [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), frame(4, 0, 0, &[0, 4, 0, 0, 0, 1])]
            .concat()
            .into_iter()
            .chain(asked)
            .collect();
    let mut socket = connect(server);
    socket.write_all(&asked).unwrap();
    let mut were_given = Vec::new();
    while were_given.len() < usize::from(count) {
        let mut head = [0; 9];
        socket.read_exact(&mut head).expect("the heads of the answers come");
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut block = vec![0; length];
        socket.read_exact(&mut block).unwrap();
        if head[3] == 1 {
            // Indexed: 200.
            were_given.push(block.first() == Some(&0x88));
        }
    }
    (socket, were_given)
}

#[test]
fn answers_that_a_user_asks_for_and_leaves_take_memory_up_to_a_bound() {
    let people = People::start("1xL4");
    let large = "x".repeat(900_000);
    let file = format!("team: vision\nname: large\nhold: true\nrun: 'true {large}'\n");
    let path = format!("/v1/jobs/{}/file", people.job(&people.kim, &file));
    let connections: Vec<_> =
        (0..8).map(|_| barely_taken(&people.server, &people.kim, &path, 32)).collect();
    let given: usize =
        connections.iter().flat_map(|(_, given)| given).filter(|is_given| **is_given).count();
    assert!((100..150).contains(&given), "{given} of {} answers", 8 * 32);
    let refused = people.get(&people.kim, &path);
    assert_eq!((refused.status, refused.code()), (429, Some("BRT0017".to_owned())));
    // Neither others nor what is small have to wait for that.
    assert_eq!(people.get(&people.admin, &path).status, 200);
    assert_eq!(people.get(&people.kim, "/v1/me").status, 200);
    drop(connections);
    until("there is room again", || people.get(&people.kim, &path).status == 200);
}

#[test]
fn handshakes_that_never_end_keep_nobody_from_an_encrypted_server() {
    let folder = tempfile::tempdir().unwrap();
    let Some((certificate, key)) = certificate_and_key(folder.path()) else { return };
    let few_files = program(&folder, "ulimit -n 256");
    let tls = ["--gpus", "1xL4", "--tls-cert", &certificate, "--tls-key", &key];
    let server = Server::start(&few_files, &tls);
    let attack: Vec<TcpStream> = (0..400).map(|_| connect(&server)).collect();
    server.run_ok(&["run", "--name", "one", "--", "true"]);
    let jobs = server.json(&["ps", "--all"]);
    assert_eq!(jobs["jobs"][0]["state"], "done", "{jobs}");
    drop(attack);
}

#[test]
fn jobs_have_the_limit_of_open_files_that_the_server_was_started_with() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&program(&folder, "ulimit -Sn 300"), &["--gpus", "1xL4"]);
    server.run_ok(&["run", "--name", "asks", "--", "bash", "-c", "ulimit -Sn"]);
    assert_eq!(server.run_ok(&["logs", "asks"]).trim(), "300");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.process())).unwrap();
    let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let words: Vec<&str> = files.split_whitespace().collect();
    assert_eq!(words[3], words[4], "the server itself has all it may have: {files}");
}

#[test]
fn the_log_tells_requests_by_route_and_number_and_never_what_is_secret() {
    let folder = tempfile::tempdir().unwrap();
    let talks = program(&folder, "export BERTH_LOG=berth_server=debug NO_COLOR=1");
    let server = Server::start(&talks, &["--gpus", "1xL4"]);
    let token = server.token();
    let asked = Request::new("GET", "/v1/jobs?text=hush-hush").token(Some(&token));
    assert_eq!(asked.send(&server.url).status, 200);
    let missing = Request::new("GET", "/v1/jobs/no-such-job").token(Some(&token));
    let answer = missing.send(&server.url);
    let number = answer.json()["instance"].as_str().expect("its number").to_owned();
    let line = |wanted: &[&str]| {
        server.log().lines().any(|line| wanted.iter().all(|word| line.contains(word)))
    };
    until("the refusal is logged with its number", || {
        line(&[&number, "/v1/jobs/{job}", "GET", "404"])
    });
    until("the list is logged", || line(&["route=\"/v1/jobs\"", "200"]));
    let log = server.log();
    let secret = token.rsplit(['.', '_']).next().unwrap();
    assert!(!log.contains(secret) && !log.contains("hush-hush"), "{log}");
}

#[test]
fn searches_that_nobody_waits_for_any_more_neither_pile_up_nor_keep_others_waiting() {
    let people = People::start("1xL4");
    let lines = "head -c 24000000 /dev/zero | tr '\\0' a | fold -w 60000";
    let job = people.job(&people.kim, &format!("team: vision\nrun: |\n  {lines}\n"));
    people.until_is(&job, "done");
    let address = people.server.url.split_once("://").unwrap().1.to_owned();
    let search = format!("/v1/jobs/{job}/logs/search?text=(a?)%7B200%7Da%7B200%7Db&regex=true");
    for token in [&people.kim, &people.lea, &people.admin] {
        for _ in 0..8 {
            let mut socket = TcpStream::connect(&address).unwrap();
            let head = format!(
                "GET {search} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n"
            );
            socket.write_all(head.as_bytes()).unwrap();
            // Gone before there is an answer.
        }
    }
    for _ in 0..5 {
        assert_eq!(people.get(&people.lea, "/v1/jobs").status, 200);
    }
    // A search that somebody waits for comes to its end, in as many answers as it takes.
    let mut cursor = String::new();
    loop {
        let answer = people.get(&people.kim, &format!("{search}{cursor}"));
        if answer.status == 429 {
            // Those of hers that are not noticed to be gone come before.
            continue;
        }
        let found = answer.json();
        assert_eq!(found["total"], 0, "{found}");
        match found["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break assert_eq!(found["complete"], true, "{found}"),
        }
    }
}
