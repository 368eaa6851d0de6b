//! Artifacts over the routes of MLflow's client: rights, folders, parts, and what must leave nothing.

use super::http::{Answer, Request};
use super::people::People;
use super::server::until;
use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;

const ROOT: &str = "/api/2.0/mlflow-artifacts/artifacts";
const RUN: &str = "vision/1/0a1b/artifacts";

impl People {
    fn artifact(&self, token: &str, method: &str, path: &str, body: &str) -> Answer {
        let request = Request::new(method, format!("{ROOT}/{path}")).token(Some(token));
        request.body("application/octet-stream", body).send(&self.server.url)
    }

    fn listed(&self, token: &str, path: &str) -> Value {
        let answer = self.get(token, &format!("{ROOT}?path={path}"));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    fn objects(&self) -> usize {
        let place = self.server.home.path().join("blobs/sha256");
        let folders = std::fs::read_dir(place).into_iter().flatten().flatten();
        folders.map(|folder| std::fs::read_dir(folder.path()).unwrap().count()).sum()
    }

    fn parts(&self) -> usize {
        std::fs::read_dir(self.server.home.path().join("blobs/new")).unwrap().count()
    }

    /// The head of an answer and its body, for a request of one's own making.
    fn raw(&self, request: &str) -> String {
        let mut socket = TcpStream::connect(self.server.url.trim_start_matches("http://")).unwrap();
        socket.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        let _ = socket.read_to_string(&mut answer);
        answer
    }
}

fn refused(answer: &Answer, status: u16, code: &str) {
    let found = answer.json();
    assert_eq!((answer.status, found["error_code"].as_str()), (status, Some(code)), "{answer:?}");
    assert!(found["message"].as_str().is_some_and(|message| !message.is_empty()), "{answer:?}");
}

#[test]
fn artifacts_are_kept_listed_given_out_and_deleted_for_their_team_alone() {
    let people = People::start("1xL4");
    let mia = people.join("mia", "audio", "researcher");
    let viv = people.join("viv", "vision", "viewer");
    for (path, body) in
        [("model/MLmodel", "flavors"), ("model/weights.bin", "0123456789"), ("log.txt", "")]
    {
        let kept = people.artifact(&people.kim, "PUT", &format!("{RUN}/{path}"), body);
        assert_eq!((kept.status, &*kept.body), (200, "{}"), "{kept:?}");
    }
    let files = json!({ "files": [
        { "path": "log.txt", "is_dir": false, "file_size": 0 },
        { "path": "model", "is_dir": true },
    ] });
    assert_eq!(people.listed(&viv, RUN), files);
    let model = people.listed(&viv, &format!("{RUN}/model"));
    assert_eq!(
        model["files"][1],
        json!({ "path": "weights.bin", "is_dir": false, "file_size": 10 })
    );
    assert_eq!(people.listed(&viv, &format!("{RUN}/none")), json!({}));
    let weights = format!("{RUN}/model/weights.bin");
    assert_eq!(people.artifact(&viv, "GET", &weights, "").body, "0123456789");
    let ranged = Request::new("GET", format!("{ROOT}/{weights}")).token(Some(&viv));
    let mut ranged = ranged;
    ranged.headers.push(("range", "bytes=2-4".to_owned()));
    let part = ranged.send(&people.server.url);
    assert_eq!((part.status, &*part.body), (206, "234"));

    // What is another team's is not there, and what is there may still be closed.
    for (method, path) in [("GET", &*weights), ("PUT", &*weights), ("DELETE", &*weights)] {
        refused(&people.artifact(&mia, method, path, "x"), 404, "RESOURCE_DOES_NOT_EXIST");
    }
    refused(&people.get(&mia, &format!("{ROOT}?path={RUN}")), 404, "RESOURCE_DOES_NOT_EXIST");
    let unknown = people.artifact(&mia, "GET", "nobody/1/x", "");
    refused(&unknown, 404, "RESOURCE_DOES_NOT_EXIST");
    refused(&people.artifact(&viv, "PUT", &weights, "x"), 403, "PERMISSION_DENIED");
    refused(&people.artifact("brt_0_0", "GET", &weights, ""), 401, "UNAUTHENTICATED");

    assert_eq!(people.artifact(&people.kim, "DELETE", &format!("{RUN}/model"), "").status, 200);
    assert_eq!(people.listed(&viv, RUN)["files"].as_array().map(Vec::len), Some(1));
    refused(&people.artifact(&viv, "GET", &weights, ""), 404, "RESOURCE_DOES_NOT_EXIST");
    let audit = people.get(&people.admin, "/v1/audit?limit=100&refused=false").body;
    assert!(audit.contains("artifact_put") && audit.contains("artifact_delete"), "{audit}");
}

#[test]
fn a_token_is_also_good_as_a_password_and_an_answer_says_what_kind_of_file_it_is() {
    let people = People::start("1xL4");
    people.artifact(&people.kim, "PUT", &format!("{RUN}/plot.png"), "png");
    let basic = BASE64_STANDARD.encode(format!("kim:{}", people.kim));
    let ask = |method: &str, path: &str, header: &str| {
        people.raw(&format!(
            "{method} {ROOT}/{RUN}/{path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{header}\r\n\r\n"
        ))
    };
    let answer = ask("GET", "plot.png", &format!("authorization: Basic {basic}")).to_lowercase();
    for field in [
        "200 ok",
        "content-type: image/png",
        "content-disposition: attachment; filename=plot.png",
        "x-content-type-options: nosniff",
        "accept-ranges: bytes",
    ] {
        assert!(answer.contains(field), "{field}: {answer}");
    }
    let head = ask("HEAD", "plot.png", &format!("x-berth-token: {}", people.kim)).to_lowercase();
    assert!(head.contains("content-length: 3") && !head.contains("\r\n\r\npng"), "{head}");
    assert!(ask("GET", "plot.png", "authorization: Basic !!").contains("401"));
    let other = people.raw(&format!(
        "GET /v1/jobs HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Basic {basic}\r\n\r\n"
    ));
    assert!(other.contains("401"), "the routes of Berth's own take no passwords: {other}");
}

#[test]
fn a_path_that_leads_elsewhere_is_refused_in_mlflows_words() {
    let people = People::start("1xL4");
    for path in [
        "vision/%2e%2e/audio/x",
        "vision/1/%252e%252e/x",
        "vision/1//x",
        "vision/a%23b",
        "vision/a%5cb",
    ] {
        for method in ["GET", "PUT", "DELETE"] {
            let answer = people.artifact(&people.admin, method, path, "x");
            refused(&answer, 400, "INVALID_PARAMETER_VALUE");
            let message = answer.json()["message"].as_str().unwrap().to_owned();
            assert!(message.starts_with("Invalid path"), "{message}");
        }
    }
    let listed = people.get(&people.admin, &format!("{ROOT}?path=vision/../audio"));
    refused(&listed, 400, "INVALID_PARAMETER_VALUE");
    people.artifact(&people.kim, "PUT", &format!("{RUN}/a"), "x");
    let below = people.artifact(&people.kim, "PUT", &format!("{RUN}/a/b"), "x");
    refused(&below, 400, "INVALID_PARAMETER_VALUE");
    refused(&people.artifact(&people.kim, "PUT", RUN, "x"), 400, "INVALID_PARAMETER_VALUE");
    assert_eq!(people.objects(), 1);
    let presigned =
        people.get(&people.kim, &format!("/api/2.0/mlflow-artifacts/presigned/{RUN}/a"));
    refused(&presigned, 501, "NOT_IMPLEMENTED");
}

#[test]
fn an_upload_that_is_cut_off_leaves_nothing() {
    let people = People::start("1xL4");
    let mut socket = TcpStream::connect(people.server.url.trim_start_matches("http://")).unwrap();
    let head = format!(
        "PUT {ROOT}/{RUN}/large HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-length: 5000000\r\n\r\n",
        people.kim
    );
    socket.write_all(head.as_bytes()).unwrap();
    socket.write_all(&vec![7; 3_000_000]).unwrap();
    until("a part of it is on its way", || people.parts() == 1);
    drop(socket);
    until("nothing of it is left", || people.parts() == 0);
    assert_eq!(people.objects(), 0);
    assert_eq!(people.listed(&people.kim, RUN), json!({}));
}

#[test]
fn what_no_disk_or_quota_has_room_for_is_refused_before_it_is_written() {
    let people = People::start_with(&["--gpus", "1xL4", "--team-quota", "10B"]);
    let put = |name: &str, body: &str| {
        people.artifact(&people.kim, "PUT", &format!("{RUN}/{name}"), body)
    };
    assert_eq!(put("a", "12345678").status, 200);
    refused(&put("b", "123"), 413, "RESOURCE_LIMIT_EXCEEDED");
    assert_eq!(put("a", "1234567890").status, 200, "what is replaced makes room");
    refused(&put("b", "1"), 413, "RESOURCE_LIMIT_EXCEEDED");
    people.admin("PUT", "/v1/storage/vision", &json!({ "quota": 20 }));
    assert_eq!(put("b", "123").status, 200);
    let kept = people.get(&people.kim, "/v1/storage").json()["items"][0].clone();
    assert_eq!((kept["bytes"].as_u64(), kept["quota"].as_u64()), (Some(13), Some(20)), "{kept}");
    let metrics = people.get(&people.admin, "/metrics").body;
    assert!(metrics.contains("berth_blob_uploads_refused_total 2"), "{metrics}");

    let mut people = people;
    people.server.stop();
    people.server.start_again_with(&["--gpus", "1xL4", "--blobs-reserve", "1000000TB"]);
    let full = people.artifact(&people.kim, "PUT", &format!("{RUN}/c"), "x");
    refused(&full, 507, "RESOURCE_LIMIT_EXCEEDED");
    assert_eq!(people.parts(), 0);
}

#[test]
fn what_nothing_names_any_more_is_removed_and_what_something_names_stays() {
    let people = People::start_with(&["--gpus", "1xL4", "--keep-unnamed", "0s"]);
    for (name, body) in [("a", "same"), ("b", "same"), ("c", "other")] {
        people.artifact(&people.kim, "PUT", &format!("{RUN}/{name}"), body);
    }
    assert_eq!(people.objects(), 2, "the same bytes are kept once");
    for name in ["a", "c"] {
        people.artifact(&people.kim, "DELETE", &format!("{RUN}/{name}"), "");
    }
    until("the object without a name is gone", || people.objects() == 1);
    assert_eq!(people.artifact(&people.kim, "GET", &format!("{RUN}/b"), "").body, "same");
}

#[test]
fn a_large_artifact_comes_in_parts_that_are_put_together_or_given_up() {
    let people = People::start("1xL4");
    let post = |what: &str, body: Value| {
        let path = format!("/api/2.0/mlflow-artifacts/mpu/{what}/{RUN}/model");
        people.ask(&people.kim, "POST", &path, &body)
    };
    let made = post("create", json!({ "path": "/tmp/weights.bin", "num_parts": 3 })).json();
    let id = made["upload_id"].as_str().expect("an id").to_owned();
    let mut parts = Vec::new();
    for (credential, body) in
        made["credentials"].as_array().unwrap().iter().zip(["one ", "two ", "three"])
    {
        let url = credential["url"].as_str().unwrap();
        let path = url.strip_prefix(&people.server.url).expect("our own address");
        let secret = credential["headers"]["x-berth-upload"].as_str().unwrap();
        let send = |secret: &str| {
            people.raw(&format!(
                "PUT {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-berth-upload: {secret}\r\n\
                 content-length: {}\r\n\r\n{body}",
                body.len()
            ))
        };
        assert!(send("wrong").starts_with("HTTP/1.1 404"));
        let answer = send(secret);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let tag = answer.lines().find_map(|line| line.strip_prefix("etag: ")).expect("a tag");
        parts.push(json!({ "part_number": credential["part_number"], "etag": tag, "url": url }));
    }
    let complete = |parts: &[Value]| {
        post("complete", json!({ "path": "/tmp/weights.bin", "upload_id": id, "parts": parts }))
    };
    refused(&complete(&parts[..2]), 400, "INVALID_PARAMETER_VALUE");
    assert_eq!(complete(&parts).status, 200);
    let whole = people.artifact(&people.kim, "GET", &format!("{RUN}/model/weights.bin"), "");
    assert_eq!(whole.body, "one two three");
    refused(&complete(&parts), 404, "RESOURCE_DOES_NOT_EXIST");
    let made = post("create", json!({ "path": "b", "num_parts": "1" })).json();
    let abort = json!({ "path": "b", "upload_id": made["upload_id"] });
    assert_eq!(post("abort", abort).status, 200);
    assert_eq!(people.parts(), 0);
}
