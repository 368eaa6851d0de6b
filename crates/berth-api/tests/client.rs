//! The client against a server that says what it is told to.

use berth_api::client::{Error, Options};
use berth_api::wire::{EventKind, EventQuery, JobQuery, LogQuery, SubmitQuery};
use berth_api::{Client, Code, Problem};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

enum Reply {
    /// Status, media type and body.
    Say(u16, &'static str, String),
    /// The request is read, and no answer comes.
    HangUp,
}

/// A server with one reply for each request, which remembers what it was asked.
struct Server {
    client: Client,
    asked: Arc<Mutex<Vec<String>>>,
}

async fn server(replies: impl IntoIterator<Item = Reply>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let mut replies: VecDeque<Reply> = replies.into_iter().collect();
    let notes = asked.clone();
    tokio::spawn(async move {
        while let Some(reply) = replies.pop_front() {
            let (mut stream, _) = listener.accept().await.unwrap();
            let request = request(&mut stream).await;
            notes.lock().unwrap().push(request);
            if let Reply::Say(status, media, body) = reply {
                let head = format!(
                    "HTTP/1.1 {status} x\r\ncontent-type: {media}\r\nconnection: close\r\n\
                     content-length: {}\r\n\r\n",
                    body.len()
                );
                stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
            }
        }
    });
    let mut options = Options::new(url).token("secret-token");
    options.patience = Duration::from_secs(20);
    Server { client: Client::new(options).unwrap(), asked }
}

/// Head and body of one request.
async fn request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0u8; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| {
                    line.to_lowercase().strip_prefix("content-length: ").map(str::to_owned)
                })
                .map_or(0, |length| length.trim().parse().unwrap());
            if body.len() >= length {
                return text;
            }
        }
        let read = stream.read(&mut buffer).await.unwrap();
        assert!(read > 0, "the request was cut off");
        bytes.extend_from_slice(&buffer[..read]);
    }
}

fn json(body: &str) -> Reply {
    Reply::Say(200, "application/json", body.to_owned())
}

fn problem(code: Code, detail: &str) -> Reply {
    let problem = Problem::new(code, detail);
    let body = serde_json::to_string(&problem).unwrap();
    Reply::Say(problem.status, berth_api::problem::MEDIA_TYPE, body)
}

const SUBMITTED: &str =
    r#"{"id":"17","name":"a","schedule":null,"elements":1,"warnings":[],"repeated":false}"#;
const NO_JOBS: &str = r#"{"jobs":[],"next":null,"counts":{"pending":3}}"#;

fn header<'a>(request: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = request.lines().take_while(|line| !line.is_empty());
    lines.find_map(|line| {
        let (key, value) = line.split_once(": ")?;
        key.eq_ignore_ascii_case(name).then_some(value)
    })
}

#[tokio::test]
async fn a_request_carries_the_token_and_what_the_query_says() {
    let server = server([json(NO_JOBS)]).await;
    let query = JobQuery { team: Some("a b".into()), limit: Some(5), ..JobQuery::default() };
    let list = server.client.jobs(&query).await.unwrap();
    assert_eq!(list.counts.values().sum::<u64>(), 3);
    let asked = server.asked.lock().unwrap().clone();
    assert!(asked[0].starts_with("GET /v1/jobs?limit=5&team=a+b HTTP/1.1\r\n"), "{}", asked[0]);
    assert_eq!(header(&asked[0], "authorization"), Some("Bearer secret-token"));
}

#[tokio::test]
async fn names_are_put_into_paths_whatever_they_hold() {
    let server = server([problem(Code::NoSuchJob, "no")]).await;
    server.client.why("../x/y?z").await.unwrap_err();
    let asked = server.asked.lock().unwrap().clone();
    assert!(asked[0].starts_with("GET /v1/jobs/..%2Fx%2Fy%3Fz/why HTTP/1.1\r\n"), "{}", asked[0]);
}

#[tokio::test]
async fn a_problem_comes_back_as_the_server_wrote_it() {
    let server = server([problem(Code::Forbidden, "job 17 belongs to nlp")]).await;
    let error = server.client.stop_job("17", &Default::default()).await.unwrap_err();
    let problem = error.problem().unwrap();
    assert_eq!(problem.known_code(), Some(Code::Forbidden));
    assert_eq!(error.to_string(), "job 17 belongs to nlp (BRT0006)");
    assert!(!error.is_unreachable());
}

#[tokio::test]
async fn a_submission_whose_answer_was_lost_is_sent_again_under_the_same_key() {
    let server = server([Reply::HangUp, json(SUBMITTED)]).await;
    let done = server.client.submit("run: x", &SubmitQuery::default()).await.unwrap();
    assert_eq!(done.id.unwrap().to_string(), "17");
    let asked = server.asked.lock().unwrap().clone();
    let keys: Vec<_> = asked.iter().map(|r| header(r, "idempotency-key").unwrap()).collect();
    assert_eq!(keys.len(), 2);
    assert_eq!(keys[0], keys[1]);
    assert_eq!(keys[0].len(), 32);
    assert!(asked[1].ends_with("\r\n\r\nrun: x"));
}

#[tokio::test]
async fn two_submissions_have_two_keys() {
    let server = server([json(SUBMITTED), json(SUBMITTED)]).await;
    for _ in 0..2 {
        server.client.submit("run: x", &SubmitQuery::default()).await.unwrap();
    }
    let asked = server.asked.lock().unwrap().clone();
    assert_ne!(header(&asked[0], "idempotency-key"), header(&asked[1], "idempotency-key"));
}

#[tokio::test]
async fn a_read_is_tried_again_while_the_server_starts() {
    let starting = || problem(Code::NotReady, "it reads its log");
    let server = server([starting(), Reply::HangUp, starting(), json(NO_JOBS)]).await;
    server.client.jobs(&JobQuery::default()).await.unwrap();
    assert_eq!(server.asked.lock().unwrap().len(), 4);
}

#[tokio::test]
async fn a_write_without_a_key_is_sent_once() {
    let server = server([Reply::HangUp, json("{}")]).await;
    let error = server.client.pause_job("17").await.unwrap_err();
    assert!(matches!(error, Error::Lost { what: "pause_job", .. }), "{error:?}");
    assert_eq!(server.asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn no_server_is_an_error_of_its_own_that_says_what_to_do() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let mut options = Options::new(url.clone());
    options.patience = Duration::ZERO;
    let error = Client::new(options).unwrap().me().await.unwrap_err();
    assert!(error.is_unreachable());
    assert!(error.to_string().starts_with(&format!("no server answers at {url}; start one")));
}

#[tokio::test]
async fn an_answer_of_something_else_is_told_from_a_problem() {
    let server = server([Reply::Say(404, "text/html", "<h1>Not here</h1>".into())]).await;
    let error = server.client.me().await.unwrap_err();
    assert!(matches!(error, Error::Status { status: 404, .. }), "{error:?}");
}

#[tokio::test]
async fn an_answer_without_content_is_nothing() {
    let server = server([Reply::Say(200, "application/json", String::new())]).await;
    server.client.revoke_token("t1").await.unwrap();
}

#[tokio::test]
async fn logs_come_chunk_by_chunk_until_they_end() {
    let chunk = |position: u64, text: &str, end: bool| {
        format!(
            r#"{{"attempt":0,"task":0,"rank":0,"stream":"output","position":{position},"at":null,"text":{text:?},"dropped":0,"end":{end}}}"#
        )
    };
    let body = format!("{}\n\n{}\n", chunk(0, "one\n", false), chunk(4, "two ü\n", true));
    let server = server([Reply::Say(200, "application/x-ndjson", body)]).await;
    let mut logs = server.client.logs("17", &LogQuery::default()).await.unwrap();
    let mut text = String::new();
    while let Some(chunk) = logs.next().await.unwrap() {
        text.push_str(&chunk.text);
    }
    assert_eq!(text, "one\ntwo ü\n");
}

#[tokio::test]
async fn events_come_one_by_one_and_one_that_was_cut_off_is_no_event() {
    let event = |seq: u64| {
        format!(r#"data: {{"seq":{seq},"at":"2026-11-15T09:00:00Z","kind":"queue","queue":"nlp"}}"#)
    };
    let body = format!(
        ": hello\n\nid: 1\nevent: queue\n{}\n\n\n{}\r\n\r\n{}",
        event(1),
        event(2),
        event(3)
    );
    let server = server([Reply::Say(200, "text/event-stream", body)]).await;
    let mut events = server.client.events(&EventQuery::default()).await.unwrap();
    let mut seqs = Vec::new();
    while let Some(event) = events.next().await.unwrap() {
        assert_eq!(event.kind, EventKind::Queue { queue: "nlp".into() });
        seqs.push(event.seq);
    }
    assert_eq!(seqs, [1, 2]);
}

#[tokio::test]
async fn a_stream_that_may_not_be_read_is_a_problem() {
    let server = server([problem(Code::TokenEnded, "the token was revoked")]).await;
    let error = server.client.events(&EventQuery::default()).await.unwrap_err();
    assert_eq!(error.problem().unwrap().known_code(), Some(Code::TokenEnded));
}

#[test]
fn addresses_and_tokens_that_cannot_be_are_refused() {
    let make = |url: &str, token: &str| Client::new(Options::new(url).token(token));
    assert!(matches!(make("localhost", "t"), Err(Error::BadUrl { .. })));
    assert!(matches!(make("ftp://x", "t"), Err(Error::BadUrl { .. })));
    assert!(matches!(make("http://x", "a\nb"), Err(Error::BadToken)));
    let options = Options::new("http://x").token("hush");
    assert!(!format!("{options:?}").contains("hush"));
    assert!(!format!("{:?}", make("http://x", "hush").unwrap()).contains("hush"));
}
