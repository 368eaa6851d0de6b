use super::*;
use crate::client::protobuf::encode::{bytes, number, wrapped};
use crate::object::Pod;
use std::io::Write;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const BINARY: &str = "application/vnd.kubernetes.protobuf";
const JSON: &str = "application/json";

#[test]
fn a_line_is_taken_apart_whichever_way_it_is_written() {
    for line in [
        r#"{"type":"ADDED","object":{"kind":"Pod","a":{}}}"#,
        r#"{ "object": {"kind":"Pod","a":{}}, "type": "ADDED" }"#,
    ] {
        let (kind, object) = parts("/pods", line.as_bytes()).unwrap();
        assert_eq!((kind, object), ("ADDED", br#"{"kind":"Pod","a":{}}"#.as_slice()));
    }
    assert!(parts("/pods", b"nonsense").is_err());
}

fn pod(name: &str, version: &str) -> Vec<u8> {
    bytes(1, [bytes(1, name), bytes(6, version)].concat())
}

fn page(version: &str, more: &str, pods: &[Vec<u8>]) -> Vec<u8> {
    let meta = bytes(1, [bytes(2, version), bytes(3, more)].concat());
    let pods = pods.iter().flat_map(|pod| bytes(2, pod));
    wrapped(&meta.into_iter().chain(pods).collect::<Vec<u8>>())
}

fn told(kind: &str, object: &[u8]) -> Vec<u8> {
    let event = [bytes(1, kind), bytes(2, bytes(1, wrapped(object)))].concat();
    [&u32::try_from(event.len()).unwrap().to_be_bytes(), event.as_slice()].concat()
}

/// An API server that gives these answers, one after the other, and keeps what it was asked.
async fn serve(
    listener: TcpListener,
    answers: Vec<(&'static str, Vec<u8>)>,
    asked: Arc<Mutex<Vec<String>>>,
) {
    for (kind, body) in answers {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") && stream.read_buf(&mut request).await.unwrap() > 0 {}
        let request = String::from_utf8(request).unwrap().to_lowercase();
        let query = request.split_whitespace().nth(1).and_then(|path| path.split_once('?'));
        let wants = if request.contains(&format!("accept: {BINARY}")) { "binary" } else { "json" };
        let query = query.map_or("", |(_, query)| query).split('&');
        let telling = ["continue=", "resourceversion="];
        let query = query.filter(|part| telling.iter().any(|key| part.starts_with(key)));
        let words: Vec<&str> = query.chain([wants]).collect();
        asked.lock().unwrap().push(words.join(" "));
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\
             connection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(&[head.as_bytes(), &body].concat()).await.unwrap();
    }
}

/// Names, with a minus where they are gone.
fn names(seen: Option<WatchUpdate<Pod>>) -> (bool, Vec<String>) {
    match seen.expect("it is followed for as long as somebody listens") {
        WatchUpdate::Snapshot(all) => {
            (true, all.iter().map(|pod| pod.metadata.name.to_string()).collect())
        }
        WatchUpdate::Changes(changes) => {
            let names = changes.iter().map(|change| match change {
                Change::Applied(pod) => pod.metadata.name.to_string(),
                Change::Deleted(pod) => format!("-{}", pod.metadata.name),
            });
            (false, names.collect())
        }
    }
}

#[tokio::test]
async fn in_binary_nothing_is_missed_and_what_cannot_be_read_so_is_asked_for_in_json() {
    let gone = [bytes(3, "too old"), bytes(4, "Expired"), number(6, 410)].concat();
    let odd = [pod("e", "22"), bytes(2, bytes(99, "up"))].concat();
    let list = r#"{"metadata": {"resourceVersion": "30"}, "items": [
        {"metadata": {"name": "e"}, "spec": {"quantumAffinity": "up"}},
        {"metadata": {"name": ["left", "out"]}}]}"#;
    let line = r#"{"type":"DELETED","object":{"metadata":{"name":"e","resourceVersion":"31"}}}"#;
    let answers = vec![
        (BINARY, page("7", "more", &[pod("a", "1")])),
        (BINARY, page("7", "", &[pod("b", "2"), pod("c", "3")])),
        (
            "application/vnd.kubernetes.protobuf;stream=watch",
            [
                told("MODIFIED", &pod("a", "8")),
                told("DELETED", &pod("b", "9")),
                told("BOOKMARK", &pod("", "12")),
            ]
            .concat(),
        ),
        (BINARY, told("ERROR", &gone)),
        (BINARY, page("20", "", &[pod("d", "19")])),
        (BINARY, [told("ADDED", &pod("e", "21")), told("MODIFIED", &odd)].concat()),
        (JSON, list.as_bytes().to_vec()),
        (JSON, [line.as_bytes(), b"\n"].concat()),
    ];
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(
        file,
        "{{apiVersion: v1, kind: Config, current-context: a,
          clusters: [{{name: a, cluster: {{server: 'http://{}'}}}}],
          users: [{{name: a, user: {{}}}}],
          contexts: [{{name: a, context: {{cluster: a, user: a}}}}]}}",
        listener.local_addr().unwrap()
    )
    .unwrap();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let serving = tokio::spawn(serve(listener, answers, asked.clone()));
    let api = Api::connect(Some(file.path()), None).await.unwrap();
    let metrics = api.metrics().clone();
    let (tell, mut seen) = mpsc::channel(1);
    let path = "/api/v1/pods".to_owned();
    let following = tokio::spawn(watch_objects_protobuf::<Pod>(api, path, String::new(), tell));

    let all = |names: &[&str]| (true, names.iter().map(ToString::to_string).collect::<Vec<_>>());
    let changes = |names: &[&str]| (false, all(names).1);
    assert_eq!(names(seen.recv().await), all(&["a", "b", "c"]));
    assert_eq!(names(seen.recv().await), changes(&["a", "-b"]));
    assert_eq!(names(seen.recv().await), all(&["d"]));
    // What could be read before the odd one is not lost.
    assert_eq!(names(seen.recv().await), changes(&["e"]));
    let Some(WatchUpdate::Snapshot(listed)) = seen.recv().await else { panic!("a list in JSON") };
    assert_eq!(listed[0].spec.unknown, ["quantumAffinity".into()], "with its name");
    assert_eq!(names(seen.recv().await), changes(&["-e"]));
    serving.await.unwrap();
    following.abort();
    let asked = asked.lock().unwrap().join(", ");
    let expected = [
        "binary",
        "continue=more binary",
        "resourceversion=7 binary",
        "resourceversion=12 binary",
        "binary",
        "resourceversion=20 binary",
        "json",
        "resourceversion=30 json",
    ];
    assert_eq!(asked, expected.join(", "));
    let watched = metrics.watched()["pods"];
    assert_eq!((watched.lists, watched.watches, watched.in_binary), (3, 4, 5));
}
