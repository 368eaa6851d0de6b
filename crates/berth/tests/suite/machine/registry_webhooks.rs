//! Webhooks of the model registry: rights, messages and signatures.

use super::http::Request;
use super::people::People;
use super::server::{Server, until};
use super::tracking::{python, refused, root, text};
use base64::prelude::{BASE64_STANDARD, Engine};
use ring::hmac;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

const SECRET: &str = "a secret of the receiver";

/// A received message: its headers and its body.
type Message = (BTreeMap<String, String>, String);

/// A receiver of messages on this machine.
struct Receiver {
    url: String,
    messages: Arc<Mutex<Vec<Message>>>,
}

impl Receiver {
    fn start() -> Receiver {
        let socket = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let url = format!("http://127.0.0.1:{}/hook", socket.local_addr().unwrap().port());
        let messages = Arc::<Mutex<Vec<Message>>>::default();
        let kept = messages.clone();
        std::thread::spawn(move || {
            for stream in socket.incoming() {
                let Ok(mut stream) = stream else { return };
                let mut reader = BufReader::new(stream.try_clone().expect("a socket has two ends"));
                let mut headers = BTreeMap::new();
                let mut line = String::new();
                while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                    if let Some((name, value)) = line.split_once(':') {
                        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
                    }
                    line.clear();
                }
                let length = headers.get("content-length").and_then(|text| text.parse().ok());
                let mut body = vec![0; length.unwrap_or(0)];
                let _ = reader.read_exact(&mut body);
                kept.lock().unwrap().push((headers, String::from_utf8(body).expect("text")));
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
            }
        });
        Receiver { url, messages }
    }

    /// The received messages, as JSON.
    fn bodies(&self) -> Vec<Value> {
        let all = self.messages.lock().unwrap();
        all.iter().map(|(_, body)| serde_json::from_str(body).expect("JSON")).collect()
    }

    fn names(&self) -> Vec<String> {
        let name = |body: &Value| format!("{}.{}", text(&body["entity"]), text(&body["action"]));
        let mut names: Vec<String> = self.bodies().iter().map(name).collect();
        names.sort();
        names
    }
}

fn is_signed((headers, body): &Message, secret: &str) -> bool {
    let of = |name: &str| headers.get(name).cloned().unwrap_or_default();
    let signed = format!("{}.{}.{body}", of("x-mlflow-delivery-id"), of("x-mlflow-timestamp"));
    let signature = of("x-mlflow-signature");
    let tag = signature.strip_prefix("v1,").and_then(|tag| BASE64_STANDARD.decode(tag).ok());
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    tag.is_some_and(|tag| hmac::verify(&key, signed.as_bytes(), &tag).is_ok())
}

/// What the code that MLflow's own server signs with says of the received messages.
fn by_mlflow(receiver: &Receiver, secret: &str) -> String {
    let messages = receiver.messages.lock().unwrap();
    let messages =
        messages.iter().map(|(headers, body)| json!({ "headers": headers, "body": body }));
    let mut check = Command::new(python())
        .arg(root().join("tools/mlflow/webhook_signature.py"))
        .arg(secret)
        .env("MLFLOW_DISABLE_TELEMETRY", "true")
        .env("GIT_PYTHON_REFRESH", "quiet")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python runs");
    let input = Value::from_iter(messages).to_string();
    check.stdin.take().expect("it is piped").write_all(input.as_bytes()).expect("it reads");
    let said = check.wait_with_output().expect("it ends");
    assert!(said.status.success(), "its own message is above");
    String::from_utf8(said.stdout).expect("text")
}

fn event(entity: &str, action: &str) -> Value {
    json!({ "entity": entity, "action": action })
}

fn wish(url: &str) -> Value {
    json!({
        "name": "to the deployer",
        "url": url,
        "secret": SECRET,
        "events": [
            event("REGISTERED_MODEL", "CREATED"),
            event("MODEL_VERSION", "CREATED"),
            event("MODEL_VERSION_TAG", "SET"),
            event("MODEL_VERSION_ALIAS", "CREATED"),
            event("MODEL_VERSION_ALIAS", "DELETED"),
        ],
    })
}

#[test]
fn a_webhook_gets_signed_messages_of_its_events_and_no_others() {
    let people = People::start_with(&["--gpus", "1xL4", "--notify-allow", "127.0.0.1/32"]);
    let receiver = Receiver::start();
    let made = people.tracked(&people.lea, "webhooks", &wish(&receiver.url));
    assert!(!made.to_string().contains(SECRET), "{made}");
    let id = text(&made["webhook"]["webhook_id"]);
    let change = |path: &str, fields: Value| people.tracked(&people.kim, path, &fields);
    change("registered-models/create", json!({ "name": "chat" }));
    change("model-versions/create", json!({ "name": "chat", "source": "s3://models/chat" }));
    change(
        "model-versions/set-tag",
        json!({ "name": "chat", "version": "1", "key": "state", "value": "checked" }),
    );
    let alias = json!({ "name": "chat", "alias": "champion", "version": "1" });
    change("registered-models/alias", alias.clone());
    let path = "/api/2.0/mlflow/registered-models/alias";
    assert_eq!(people.ask(&people.kim, "DELETE", path, &alias).status, 200);
    // The webhook does not subscribe to tags of models, and prompts send no events.
    change("registered-models/set-tag", json!({ "name": "chat", "key": "a", "value": "b" }));
    let is_prompt = json!([{ "key": "mlflow.prompt.is_prompt", "value": "true" }]);
    change("registered-models/create", json!({ "name": "greeting", "tags": is_prompt }));
    until("all messages have come", || receiver.names().len() >= 5);
    assert_eq!(
        receiver.names(),
        [
            "model_version.created",
            "model_version_alias.created",
            "model_version_alias.deleted",
            "model_version_tag.set",
            "registered_model.created",
        ]
    );
    let bodies = receiver.bodies();
    let of = |entity: &str| bodies.iter().find(|body| body["entity"] == entity).expect("it came");
    let tag = json!({ "name": "chat", "version": "1", "key": "state", "value": "checked" });
    assert_eq!(of("model_version_tag")["data"], tag);
    assert_eq!(of("model_version")["data"]["source"], "s3://models/chat");
    for message in receiver.messages.lock().unwrap().iter() {
        assert!(is_signed(message, SECRET), "{message:?}");
        assert!(!is_signed(message, "another"), "{message:?}");
    }

    assert_eq!(by_mlflow(&receiver, SECRET), "5 signatures are those of MLflow\n");

    // A disabled webhook gets no events, but `test` still sends a message and prints the result.
    let hook = format!("/api/2.0/mlflow/webhooks/{id}");
    let off = people.ask(&people.lea, "PATCH", &hook, &json!({ "status": "DISABLED" }));
    assert_eq!((off.status, &off.json()["webhook"]["status"]), (200, &json!("DISABLED")));
    change("registered-models/create", json!({ "name": "other" }));
    let tried = people.ask(&people.lea, "POST", &format!("{hook}/test"), &json!({}));
    assert_eq!(tried.json()["result"], json!({ "success": true, "response_status": 200 }));
    let names = receiver.names();
    assert_eq!(names.iter().filter(|name| *name == "registered_model.created").count(), 2);
    assert!(receiver.bodies().iter().all(|body| body["data"]["name"] != "other"));
    assert_eq!(people.ask(&people.lea, "DELETE", &hook, &json!({})).status, 200);
    refused(&people.get(&people.lea, &hook), 404, "RESOURCE_DOES_NOT_EXIST");
    let audit = people.get(&people.admin, "/v1/audit?limit=100").body;
    assert!(audit.contains("create_webhook") && audit.contains("delete_webhook"), "{audit}");
    assert!(!audit.contains(SECRET) && !audit.contains(&receiver.url), "{audit}");
}

#[test]
fn webhooks_are_added_tested_and_removed_on_the_command_line() {
    let server = Server::start(&["--gpus", "1xL4", "--notify-allow", "127.0.0.1/32"]);
    let receiver = Receiver::start();
    server.run_ok(&["models", "webhook", "add", "deployer", &receiver.url]);
    let listed = server.json(&["models", "webhook", "list"]);
    assert_eq!(listed[0]["events"][0], event("MODEL_VERSION", "CREATED"), "{listed}");
    server.run_ok(&["models", "webhook", "test", "deployer"]);
    assert_eq!(receiver.names(), ["model_version.created"]);
    let signed = receiver.messages.lock().unwrap()[0].0.contains_key("x-mlflow-signature");
    assert!(!signed, "there is no secret");
    server.run_ok(&["models", "webhook", "rm", "deployer"]);
    assert_eq!(server.json(&["models", "webhook", "list"]), json!([]));
    assert!(!server.berth(&["models", "webhook", "rm", "deployer"]).status.success());
}

#[test]
fn only_a_lead_makes_webhooks_and_only_to_addresses_that_messages_may_go_to() {
    let people = People::start("1xL4");
    let url = "https://hooks.example.com/x";
    let made = people.tracked(&people.lea, "webhooks", &wish(url));
    let id = text(&made["webhook"]["webhook_id"]);
    let hook = format!("/api/2.0/mlflow/webhooks/{id}");
    // A researcher may not even list them: a URL can contain a secret.
    refused(&people.track(&people.kim, "webhooks", &wish(url)), 403, "PERMISSION_DENIED");
    for path in ["/api/2.0/mlflow/webhooks", &hook] {
        refused(&people.get(&people.kim, path), 403, "PERMISSION_DENIED");
    }
    // The lead of another team sees only the webhooks of that team.
    let oda = people.join("oda", "audio", "team_lead");
    refused(&people.get(&oda, &hook), 404, "RESOURCE_DOES_NOT_EXIST");
    assert_eq!(people.get(&oda, "/api/2.0/mlflow/webhooks").json(), json!({ "webhooks": [] }));
    let listed = people.get(&people.lea, "/api/2.0/mlflow/webhooks");
    assert_eq!(listed.json()["webhooks"][0]["url"], url);
    assert!(!listed.body.contains(SECRET), "{listed:?}");
    for (change, says) in [
        (json!({ "url": "http://127.0.0.1:9/x" }), "--notify-allow"),
        (json!({ "url": "file:///etc/passwd" }), "https://"),
        (json!({ "events": [event("PROMPT", "CREATED")] }), "registered_model.created"),
        (json!({ "events": [] }), "events"),
    ] {
        let mut fields = wish(url);
        for (name, value) in change.as_object().expect("fields") {
            fields[name] = value.clone();
        }
        let answer = people.track(&people.lea, "webhooks", &fields);
        refused(&answer, 400, "INVALID_PARAMETER_VALUE");
        assert!(text(&answer.json()["message"]).contains(says), "{answer:?}");
    }
    let kept = Request::new("GET", &*hook).token(Some(&people.lea)).send(&people.server.url);
    assert_eq!(kept.json()["webhook"]["events"].as_array().map(Vec::len), Some(5));
}
