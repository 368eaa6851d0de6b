//! Command lines that sign in by a code.

use super::browser::Browser;
use crate::machine::people::People;
use crate::machine::server::until;
use serde_json::{Value, json};
use std::io::Read;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread;

/// A command line of a home of its own, without any token.
fn berth(people: &People, home: &std::path::Path, args: &[&str]) -> std::process::Command {
    let mut command = people.server.command(args);
    command
        .env("HOME", home)
        .env("BERTH_HOME", home.join("nothing"))
        .env("BERTH_URL", &people.server.url)
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY");
    command
}

#[test]
fn a_command_line_signs_in_by_a_code_that_somebody_approves_in_the_portal() {
    let people = People::start("1xL4");
    let url = people.server.url.clone();
    let home = tempfile::tempdir().unwrap();
    let mut login = berth(&people, home.path(), &["login"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut errors = login.stderr.take().unwrap();
    let said = Arc::new(Mutex::new(String::new()));
    let reader = thread::spawn({
        let said = said.clone();
        move || {
            let mut buffer = [0; 512];
            while let Ok(count @ 1..) = errors.read(&mut buffer) {
                said.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..count]));
            }
        }
    });
    let code = || {
        let said = said.lock().unwrap();
        let code = said.split("code=").nth(1)?.get(..9)?.to_owned();
        Some(code)
    };
    until("it shows a code", || code().is_some());
    let code = code().unwrap();
    assert!(said.lock().unwrap().contains(&format!("{url}/device?code={code}")), "{said:?}");

    let mut browser = Browser::default();
    assert_eq!(browser.sign_in(&url, &people.kim).status, 200);
    let device = format!("{url}/v1/session/device/{code}");
    let asks = browser.api("GET", &device, &json!({})).json();
    assert!(!asks["client"].as_str().unwrap().is_empty(), "{asks}");
    assert_eq!(asks["from"], "127.0.0.1");
    let wrong = browser.api("GET", &format!("{url}/v1/session/device/BBBB-BBBB"), &json!({}));
    assert_eq!(wrong.status, 404);
    assert_eq!(browser.api("POST", &device, &json!({ "approve": true })).status, 204);
    assert_eq!(browser.api("POST", &device, &json!({ "approve": true })).status, 404, "once");
    let status = login.wait().unwrap();
    reader.join().unwrap();
    assert!(status.success(), "{said:?}");

    let whoami = berth(&people, home.path(), &["whoami", "-o", "json"]).output().unwrap();
    let me: Value = serde_json::from_slice(&whoami.stdout).unwrap();
    assert_eq!(me["user"], "kim");
    assert!(me["token"]["name"].as_str().unwrap().starts_with("login on "), "{me}");
    assert!(me["token"]["expires"].is_string(), "{me}");
    let out = berth(&people, home.path(), &["logout"]).output().unwrap();
    assert!(out.status.success(), "{out:?}");
    let tokens = people.get(&people.kim, "/v1/tokens").json();
    let made = tokens["items"].as_array().unwrap().iter();
    let mut made = made.filter(|one| one["name"].as_str().unwrap().starts_with("login on "));
    assert!(made.next().expect("the token of the login")["revoked"].is_string(), "{tokens}");
    let text = std::fs::read_to_string(home.path().join(".config/berth/config.toml")).unwrap();
    assert!(!text.contains("brt_"), "{text}");
    let rows = people.get(&people.admin, "/v1/audit?who=kim").body;
    assert!(rows.contains("answer_device") && rows.contains("login on "), "{rows}");
}

#[test]
fn a_token_is_taken_from_standard_input_and_one_that_is_none_is_not_kept() {
    let people = People::start("1xL4");
    let home = tempfile::tempdir().unwrap();
    let login = |token: &str| {
        let mut login = berth(&people, home.path(), &["login", "--token", "-o", "json"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut login.stdin.take().unwrap(), token.as_bytes()).unwrap();
        login.wait_with_output().unwrap()
    };
    assert_eq!(login("brt_0011223344556677_00\n").status.code(), Some(3));
    assert!(!home.path().join(".config/berth/config.toml").exists());
    let done = login(&format!("{}\n", people.lea));
    assert!(done.status.success(), "{done:?}");
    let whoami = berth(&people, home.path(), &["whoami", "-o", "json"]).output().unwrap();
    let me: Value = serde_json::from_slice(&whoami.stdout).unwrap();
    assert_eq!(me["user"], "lea");
}

#[test]
fn a_code_that_is_refused_gives_nothing_and_codes_cannot_be_guessed() {
    let people = People::start("1xL4");
    let url = people.server.url.clone();
    let mut stranger = Browser::default();
    let begun =
        stranger.api("POST", &format!("{url}/v1/session/device"), &json!({ "client": "x" }));
    let begun = begun.json();
    let (secret, code) = (&begun["device_code"], begun["user_code"].as_str().unwrap());
    let poll = |secret: &Value| {
        let body = json!({ "device_code": secret });
        Browser::default().api("POST", &format!("{url}/v1/session/device/token"), &body).json()
    };
    assert_eq!(poll(secret)["state"], "waiting");
    assert_eq!(poll(secret)["state"], "slow_down");
    assert_eq!(poll(&json!("other"))["state"], "expired");
    let mut kim = Browser::default();
    let (_, reads) = people.new_token("kim", "read", None);
    assert_eq!(kim.sign_in(&url, &reads).status, 200);
    let device = format!("{url}/v1/session/device/{code}");
    let more = kim.api("POST", &device, &json!({ "approve": true }));
    assert_eq!(more.status, 403, "whoever may only read makes no token: {more:?}");
    let mut lea = Browser::default();
    assert_eq!(lea.sign_in(&url, &people.lea).status, 200);
    assert_eq!(lea.api("POST", &device, &json!({ "approve": false })).status, 204);
    assert_eq!(poll(secret)["state"], "refused");
    assert_eq!(poll(secret)["state"], "expired");
    let guesses =
        (0..12).map(|_| lea.api("GET", &format!("{url}/v1/session/device/CCCC-CCCC"), &json!({})));
    let last = guesses.last().unwrap();
    assert_eq!((last.status, last.code().as_deref()), (429, Some("BRT0032")));
    assert!(last.header("retry-after").is_some());
}
