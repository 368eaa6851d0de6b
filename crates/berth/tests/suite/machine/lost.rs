//! A database that is lost under a running server: it acknowledges nothing more, says why and ends.

use super::server::{Server, until};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

/// The status of an answer; nothing where there is none, because the server has gone.
fn status(server: &Server, method: &str, path: &str, body: &str) -> Option<u16> {
    let address = server.url.trim_start_matches("http://");
    let token = std::fs::read_to_string(token_file(server)).ok()?;
    let mut socket = TcpStream::connect(address).ok()?;
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\n\
         content-type: application/yaml\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        token.trim(),
        body.len()
    );
    socket.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer).ok()?;
    answer.split(' ').nth(1)?.parse().ok()
}

/// The home may have been renamed.
fn token_file(server: &Server) -> std::path::PathBuf {
    let home = server.home.path();
    let found = [home.join("admin.token"), moved(home).join("admin.token")];
    found.into_iter().find(|path| path.exists()).unwrap_or_default()
}

fn moved(home: &Path) -> std::path::PathBuf {
    home.with_extension("moved")
}

const JOB: &str = "name: held\nhold: true\nrun: 'true'\n";

fn submit(server: &Server) -> Option<u16> {
    status(server, "POST", "/v1/jobs", JOB)
}

/// Loses the database of a server that is at work, and of one that has nothing to do.
fn check(says: &str, lose: impl Fn(&Path)) {
    for is_busy in [true, false] {
        let mut server = Server::start(&["--gpus", "1xL4"]);
        assert_eq!(submit(&server), Some(201));
        assert_eq!(status(&server, "GET", "/readyz", ""), Some(200));
        lose(server.home.path());
        if is_busy {
            let answer = submit(&server);
            assert_ne!(answer, Some(201), "a job was acknowledged that nobody will find");
            until("it takes no requests", || status(&server, "GET", "/readyz", "") != Some(200));
        }
        until("the server ends by itself", || !server.is_running());
        assert_eq!(server.exit_code(), Some(1));
        let said = || server.log();
        until("it has said why", || said().contains("restore a backup"));
        assert!(said().contains(says), "{}", said());
        let _ = std::fs::rename(moved(server.home.path()), server.home.path());
    }
}

#[test]
fn a_server_whose_database_is_deleted_acknowledges_nothing_and_ends() {
    check("deleted or moved away", |home| std::fs::remove_file(home.join("berth.db")).unwrap());
}

#[test]
fn a_server_whose_database_is_truncated_ends_and_says_why() {
    check("was cut from", |home| {
        let file = std::fs::File::options().write(true).open(home.join("berth.db")).unwrap();
        file.set_len(0).unwrap();
    });
}

#[test]
fn a_server_whose_write_ahead_log_is_deleted_ends_and_says_why() {
    check("its write-ahead log", |home| {
        std::fs::remove_file(home.join("berth.db-wal")).unwrap();
    });
}

#[test]
fn a_server_whose_home_is_renamed_ends_and_says_why() {
    check("deleted or moved away", |home| std::fs::rename(home, moved(home)).unwrap());
}
