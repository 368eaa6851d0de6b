//! A fake server with fixed answers, which records the requests.

use super::*;
use crate::model::{Experiment, Owner, Place};
use crate::sink::{NewRun, Sink};
use crate::source::Source;
use berth_api::client::Options;
use futures_util::TryStreamExt;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[test]
fn a_text_in_a_filter_is_in_the_quotes_that_it_does_not_have() {
    assert_eq!(quoted("a").as_deref(), Some("'a'"));
    assert_eq!(quoted("it's").as_deref(), Some("\"it's\""));
    assert_eq!(quoted("it's \"a\""), None);
}

/// A request: its line, and its body.
async fn asked(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let lines = head.lines().map(str::to_ascii_lowercase);
            let length = lines
                .filter_map(|line| line.strip_prefix("content-length: ").map(str::to_owned))
                .next();
            let length: usize = length.and_then(|length| length.parse().ok()).unwrap_or(0);
            if body.len() >= length {
                return Some((head.lines().next()?.to_owned(), body.to_owned()));
            }
        }
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await.ok()? {
            0 => return None,
            read => bytes.extend_from_slice(&piece[..read]),
        }
    }
}

type Asked = Arc<Mutex<Vec<(String, String)>>>;

/// Returns these answers in order: a status and a body.
async fn serving(answers: Vec<(u16, String)>) -> (Server, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Asked::default();
    let noted = seen.clone();
    tokio::spawn(async move {
        for (status, body) in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            if let Some(request) = asked(&mut stream).await {
                noted.lock().unwrap().push(request);
            }
            let head = format!(
                "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
        }
    });
    let client = Client::new(Options::new(format!("http://{address}"))).unwrap();
    (Server::new(client, None), seen)
}

fn experiment() -> Experiment {
    Experiment {
        id: "1".to_owned(),
        name: "digits".to_owned(),
        deleted: false,
        created: None,
        tags: Vec::new(),
        location: String::new(),
    }
}

fn busy() -> (u16, String) {
    let body = json!({ "error_code": "REQUEST_LIMIT_EXCEEDED", "message": "slower" });
    (429, body.to_string())
}

#[tokio::test]
async fn a_busy_server_is_asked_again_and_pages_follow_each_other() {
    let page = |id: &str, next: &str| {
        let run = json!({ "info": { "run_id": id, "status": "FINISHED" } });
        (200, json!({ "runs": [run], "next_page_token": next }).to_string())
    };
    // A search at MLflow's server does not say which models a run reads.
    let whole = |id: &str| {
        let inputs = json!({ "model_inputs": [{ "model_id": format!("m-{id}") }] });
        let run = json!({ "info": { "run_id": id }, "inputs": inputs });
        (200, json!({ "run": run }).to_string())
    };
    let no_teams = (404, json!({ "error_code": "RESOURCE_DOES_NOT_EXIST" }).to_string());
    let first = vec![busy(), (502, "no".to_owned()), page("a", "more"), no_teams, whole("a")];
    let answers = [first, vec![page("b", ""), whole("b")]].concat();
    let (server, seen) = serving(answers).await;
    let of = experiment();
    let runs = server.runs(&of).try_concat().await.unwrap();
    let ids: Vec<&str> = runs.iter().map(|run| run.id.as_str()).collect();
    assert_eq!(ids, ["a", "b"]);
    let reads: Vec<&str> = runs.iter().flat_map(|run| &run.reads).map(String::as_str).collect();
    assert_eq!(reads, ["m-a", "m-b"]);
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 7);
    assert!(seen[5].1.contains("\"page_token\":\"more\""), "{:?}", seen[5]);
}

#[tokio::test]
async fn a_run_whose_answer_was_lost_is_looked_for_before_it_is_made_again() {
    let run = json!({ "info": { "run_id": "new", "artifact_uri": "mlflow-artifacts:/nlp/1/new" } });
    let answers = vec![busy(), (200, json!({ "runs": [run.clone()] }).to_string())];
    // Reads the created entity again for its id.
    let answers = [answers, vec![(200, json!({ "runs": [run] }).to_string())]].concat();
    let (server, seen) = serving(answers).await;
    let new = NewRun { id: "old", name: "first", user: "kim", start: Some(5), tags: Vec::new() };
    let made = server.create_run(&experiment(), new).await.unwrap();
    assert_eq!(made.id, "new");
    let seen = seen.lock().unwrap();
    let made = seen.iter().filter(|(line, _)| line.contains("runs/create"));
    assert_eq!(made.count(), 1);
    assert!(seen[1].1.contains("tags.`berth.import.run` = 'old'"), "{:?}", seen[1]);
}

#[tokio::test]
async fn a_refusal_is_not_tried_again_and_is_told_from_others() {
    let body = |code: &str| json!({ "error_code": code, "message": "no" }).to_string();
    let answers = vec![
        (400, body("INVALID_PARAMETER_VALUE")),
        (403, body("PERMISSION_DENIED")),
        (404, body("RESOURCE_DOES_NOT_EXIST")),
    ];
    let (server, seen) = serving(answers).await;
    let ask = async || {
        let nothing = json!({});
        let asked = server.ask((Method::Post, "runs/log-batch"), &nothing).await;
        asked.expect_err("it is refused")
    };
    assert!(ask().await.is_refusal());
    let denied = ask().await;
    assert!(!denied.is_of_one_thing() && !denied.passes(), "{denied:?}");
    assert!(ask().await.is_absent());
    assert_eq!(seen.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn files_are_listed_through_all_folders_and_read_as_they_come() {
    let listed = |files: Value| (200, json!({ "files": files }).to_string());
    let answers = vec![
        listed(json!([{ "path": "model", "is_dir": true }, { "path": "a.txt", "file_size": "3" }])),
        listed(json!([{ "path": "b.bin", "is_dir": false, "file_size": 5 }])),
        (200, "hello".to_owned()),
    ];
    let (server, seen) = serving(answers).await;
    let uri = "mlflow-artifacts:/nlp/1/r/artifacts".to_owned();
    let place = Place { uri, owner: Owner::Run("r".to_owned()) };
    let mut found = server.files(&place).await.unwrap();
    found.sort();
    let found: Vec<(&str, u64)> = found.iter().map(|one| (one.path.as_str(), one.bytes)).collect();
    assert_eq!(found, [("a.txt", 3), ("model/b.bin", 5)]);
    let content = server.open(&place, "model/b.bin").await.unwrap();
    assert_eq!(content.bytes, Some(5));
    let bytes: Vec<Vec<u8>> = content.pieces.try_collect().await.unwrap();
    assert_eq!(bytes.concat(), b"hello");
    let last = seen.lock().unwrap()[2].0.clone();
    assert!(last.contains("/mlflow-artifacts/artifacts/nlp/1/r/artifacts/model/b.bin"), "{last}");
}
