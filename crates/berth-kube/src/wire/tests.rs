use super::read::{Unreadable, object};
use super::{Binary, Count, Field, Form, Kind, decode, event, frame, is_binary};
use crate::object::{Pod, PodSpec, Source};
use crate::{Api, Change, Seen, follow_in_binary};
use proptest::prelude::*;
use std::io::Write;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// Seven bits at a time.
fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

fn number(field: u32, value: i64) -> Vec<u8> {
    [varint(u64::from(field) << 3), varint(value.cast_unsigned())].concat()
}

fn bytes(field: u32, value: impl AsRef<[u8]>) -> Vec<u8> {
    let value = value.as_ref();
    [&varint(u64::from(field) << 3 | 2), &varint(value.len() as u64), value].concat()
}

fn entry(field: u32, key: &str, value: impl AsRef<[u8]>) -> Vec<u8> {
    bytes(field, [bytes(1, key), bytes(2, value)].concat())
}

/// With what the API server wraps around it.
fn wrapped(object: &[u8]) -> Vec<u8> {
    let kind = bytes(1, [bytes(1, "v1"), bytes(2, "Pod")].concat());
    [b"k8s\0".to_vec(), kind, bytes(2, object), bytes(3, ""), bytes(4, "")].concat()
}

fn spec(fields: &[Vec<u8>]) -> Result<PodSpec, Unreadable> {
    let pod = wrapped(&bytes(2, fields.concat()));
    decode::<Pod>(Pod::KINDS.one, &pod).map(|pod| pod.spec)
}

#[test]
fn an_object_reads_in_binary_as_it_does_in_json() {
    let toleration = |key: &str, seconds: Option<i64>| {
        let seconds = seconds.map(|seconds| number(5, seconds)).unwrap_or_default();
        bytes(22, [bytes(1, key), bytes(2, "Exists"), bytes(3, ""), seconds].concat())
    };
    let volume =
        |name: &str, source: Vec<u8>| bytes(1, [bytes(1, name), bytes(2, source)].concat());
    let claim = bytes(10, [bytes(1, "imagenet"), number(2, 0)].concat());
    let meta = [
        bytes(1, "trainer"),
        // What JSON leaves out because it is empty.
        bytes(2, ""),
        bytes(3, "vision"),
        bytes(8, [number(1, 1_763_200_800), number(2, 0)].concat()),
        // A moment that was never set.
        bytes(9, ""),
        entry(11, "team", "vision"),
        entry(11, "app", ""),
        bytes(14, "one"),
        bytes(14, "two"),
        // Who wrote which field, which nobody reads.
        bytes(17, [0xff; 40]),
    ];
    let spec = [
        volume("data", claim),
        volume("scratch", bytes(29, "")),
        toleration("gpu", Some(-1)),
        bytes(10, "n1"),
        number(25, -7),
        entry(32, "cpu", bytes(1, "100m")),
        volume("plain", Vec::new()),
        // Items of a list may stand apart.
        toleration("spot", None),
        number(11, 1),
        bytes(18, bytes(1, "")),
    ];
    let pod = [bytes(1, meta.concat()), bytes(2, spec.concat()), bytes(3, bytes(1, "Running"))];
    let json = r#"{
        "metadata": {"name": "trainer", "namespace": "vision", "finalizers": ["one", "two"],
            "creationTimestamp": "2025-11-15T10:00:00Z", "labels": {"app": "", "team": "vision"}},
        "spec": {"nodeName": "n1", "priority": -7, "hostNetwork": true, "overhead": {"cpu": "100m"},
            "affinity": {"nodeAffinity": {}},
            "tolerations": [{"key": "gpu", "operator": "Exists", "tolerationSeconds": -1},
                {"key": "spot", "operator": "Exists"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "imagenet"}},
                {"name": "scratch", "ephemeral": {}}, {"name": "plain"}]},
        "status": {"phase": "Running"}}"#;
    let binary = wrapped(&pod.concat());
    assert!(is_binary(&binary) && !is_binary(json.as_bytes()));
    let read: Pod = decode(Pod::KINDS.one, &binary).unwrap();
    assert_eq!(read, serde_json::from_str::<Pod>(json).unwrap());
    assert_eq!(read.spec.volumes[0].source, Source::Claim("imagenet".into()));
}

#[test]
fn a_field_nobody_knows_makes_a_spec_unreadable_and_elsewhere_is_passed_over() {
    assert!(spec(&[bytes(10, "n1")]).is_ok());
    assert_eq!(spec(&[bytes(10, "n1"), number(99, 1)]), Err(Unreadable::Field(99)));
    // A volume of a kind that is new.
    assert_eq!(spec(&[bytes(1, bytes(2, bytes(77, "x")))]), Err(Unreadable::Field(77)));
    let pod = wrapped(&[bytes(2, ""), bytes(99, "x")].concat());
    assert!(decode::<Pod>(Pod::KINDS.one, &pod).is_ok());
}

#[test]
fn what_is_cut_or_of_another_kind_is_said_to_be_so() {
    let whole = wrapped(&bytes(2, bytes(10, "n1")));
    assert_eq!(decode::<Pod>(Pod::KINDS.one, &whole[..whole.len() - 8]), Err(Unreadable::Cut));
    assert_eq!(decode::<Pod>(Pod::KINDS.one, b"{}"), Err(Unreadable::Magic));
    assert_eq!(spec(&[number(10, 1)]), Err(Unreadable::Kind));
    assert_eq!(spec(&[bytes(10, [0xff])]), Err(Unreadable::Text));
    assert_eq!(spec(&[vec![0x53]]), Err(Unreadable::Wire), "groups are of another age");
}

proptest! {
    #[test]
    fn no_bytes_make_reading_panic(bytes: Vec<u8>) {
        let _: Result<Pod, _> = object(Pod::KINDS.one, &bytes);
        let _: Result<Pod, _> = decode(Pod::KINDS.one, &[b"k8s\0", bytes.as_slice()].concat());
        if let Some((first, _)) = frame(&bytes) {
            let _ = event(first);
        }
    }
}

/// Calls it for a form and all forms inside it.
fn each(form: &'static Form, seen: &mut Vec<&'static Form>, look: &mut impl FnMut(&'static Form)) {
    if seen.iter().any(|known| std::ptr::eq(*known, form)) {
        return;
    }
    seen.push(form);
    look(form);
    for Field { kind, .. } in form.fields {
        if let Kind::Object(inner) | Kind::Inline(inner) = kind {
            each(inner, seen, look);
        }
    }
}

#[test]
fn a_form_has_each_number_and_each_name_once_and_few_enough_fields_to_remember_which_came() {
    for kinds in [Pod::KINDS, crate::object::Node::KINDS] {
        each(kinds.list, &mut Vec::new(), &mut |form| {
            assert!(form.fields.len() <= 64);
            for (at, field) in form.fields.iter().enumerate() {
                let before = &form.fields[..at];
                assert!(before.iter().all(|other| other.number < field.number), "{field:?}");
                assert!(before.iter().all(|other| other.name != field.name), "{field:?}");
                assert!(!matches!(field.kind, Kind::Inline(_)) || field.count == Count::One);
            }
        });
    }
}

#[test]
fn no_field_of_a_spec_is_known_here_and_unknown_there() {
    let Kind::Object(form) = Pod::KINDS.one.fields[1].kind else { panic!("a spec") };
    let unread = form.fields.iter().filter(|field| matches!(field.kind, Kind::Unread));
    let written: Vec<Vec<u8>> = unread.map(|field| bytes(field.number, "")).collect();
    assert!(!written.is_empty());
    assert!(spec(&written).unwrap().unknown.is_empty());
}

/// An API server that answers one request on each connection.
async fn serve(listener: TcpListener, asked: Arc<Mutex<Vec<String>>>) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") && stream.read_buf(&mut request).await.unwrap() > 0 {}
        let request = String::from_utf8(request).unwrap().to_lowercase();
        let is_watch = request.lines().next().unwrap().contains("watch=true");
        let is_binary = request.contains("accept: application/vnd.kubernetes.protobuf");
        asked.lock().unwrap().push(format!("{is_watch} {is_binary}"));
        let pod = |name: &str| bytes(1, [bytes(1, name), bytes(6, "8")].concat());
        match (is_watch, is_binary) {
            (false, true) => {
                let meta = bytes(1, [bytes(2, "7"), bytes(3, "")].concat());
                let list = wrapped(&[meta, bytes(2, pod("a"))].concat());
                answer(&mut stream, super::CONTENT_TYPE, &list).await;
            }
            (true, true) => {
                let odd = [pod("b"), bytes(2, bytes(99, "up"))].concat();
                let events = [pod("a"), odd].map(|pod| {
                    let event = bytes(2, bytes(1, wrapped(&pod)));
                    let event = [bytes(1, "MODIFIED"), event].concat();
                    [&(event.len() as u32).to_be_bytes(), event.as_slice()].concat()
                });
                let kind = format!("{};stream=watch", super::CONTENT_TYPE);
                answer(&mut stream, &kind, &events.concat()).await;
            }
            (false, false) => {
                let list = r#"{"metadata": {"resourceVersion": "9"}, "items": [
                    {"metadata": {"name": "b"}, "spec": {"quantumAffinity": "up"}}]}"#;
                answer(&mut stream, "application/json", list.as_bytes()).await;
            }
            (true, false) => {
                let event = r#"{"type":"DELETED","object":{"metadata":
                    {"name":"b","resourceVersion":"10"}}}"#;
                let event = event.replace('\n', "") + "\n";
                answer(&mut stream, "application/json", event.as_bytes()).await;
            }
        }
    }
}

async fn answer(stream: &mut TcpStream, kind: &str, body: &[u8]) {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body].concat()).await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_read_in_binary_is_asked_for_in_json_from_then_on() {
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
    let serving = tokio::spawn(serve(listener, asked.clone()));
    let api = Api::connect(Some(file.path()), None).await.unwrap();
    let (tell, mut told) = mpsc::channel(1);
    let path = "/api/v1/pods".to_owned();
    let following = tokio::spawn(follow_in_binary::<Pod>(api, path, String::new(), tell));

    let Some(Seen::All(all)) = told.recv().await else { panic!("a list in binary") };
    assert_eq!(all.iter().map(|pod| &*pod.metadata.name).collect::<Vec<_>>(), ["a"]);
    // What could be read before it is not lost.
    let Some(Seen::Changes(changes)) = told.recv().await else { panic!("a change in binary") };
    assert!(matches!(changes.as_slice(), [Change::Put(pod)] if &*pod.metadata.name == "a"));
    let Some(Seen::All(all)) = told.recv().await else { panic!("a list in JSON") };
    assert_eq!(all[0].spec.unknown, ["quantumAffinity".into()], "with its name");
    let Some(Seen::Changes(changes)) = told.recv().await else { panic!("a change in JSON") };
    assert!(matches!(changes.as_slice(), [Change::Gone(pod)] if &*pod.metadata.name == "b"));
    let asked = asked.lock().unwrap()[..4].join(", ");
    assert_eq!(asked, "false true, true true, false false, true false");
    following.abort();
    serving.abort();
}
