//! The audit log against whoever owns the database, and what it tells of refused requests.

use super::http::{Answer, Request};
use super::server::{Server, until};
use serde_json::{Value, json};
use sqlx::any::install_default_drivers;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, raw_sql};
use std::collections::BTreeSet;
use std::path::Path;

/// Does something to the database behind the server's back.
pub fn sql(server: &Server, sql: &str) {
    let url = format!("sqlite://{}", server.home.path().join("berth.db").display());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        install_default_drivers();
        let mut connection = AnyConnection::connect(&url).await.unwrap();
        let sql = AssertSqlSafe(format!("PRAGMA busy_timeout = 60000; {sql}"));
        raw_sql(sql).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    });
}

fn ask(server: &Server, method: &str, path: &str, token: Option<&str>, body: &Value) -> Answer {
    Request::new(method, path).token(token).json(body).send(&server.url)
}

/// A user without any role, and their token.
fn add_user(server: &Server, name: &str) -> String {
    let admin = server.token();
    let made = ask(server, "POST", "/v1/users", Some(&admin), &json!({ "name": name }));
    assert_eq!(made.status, 201, "{made:?}");
    let wish = json!({ "name": "laptop", "user": name, "scope": "all" });
    let made = ask(server, "POST", "/v1/tokens", Some(&admin), &wish).json();
    made["secret"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
}

/// What `berth audit verify` says, and whether it ends well.
fn verify(server: &Server) -> (bool, Value) {
    let output = server.berth(&["audit", "verify", "-o", "json"]);
    let verified = serde_json::from_slice(&output.stdout);
    (output.status.success(), verified.unwrap_or_else(|error| panic!("{error}: {output:?}")))
}

/// All rows of the audit log, oldest first.
fn rows(server: &Server) -> Vec<Value> {
    let list = server.get("/v1/audit?limit=1000");
    let mut rows = list["rows"].as_array().unwrap().clone();
    rows.reverse();
    rows
}

fn of_kind(server: &Server, what: &str) -> Vec<Value> {
    rows(server).into_iter().filter(|row| row["what"] == what).collect()
}

#[test]
fn a_role_that_was_changed_in_the_database_is_found_and_noted_for_good() {
    let mut server = Server::start(&[]);
    let token = add_user(&server, "eve");
    let (ok, verified) = verify(&server);
    assert!(ok && verified["keyed_from"] == 1 && verified["rights"] == json!([]), "{verified}");
    sql(&server, "UPDATE users SET role = 'admin' WHERE name = 'eve'");
    // While the server runs, and also when eve has used what she took.
    assert_eq!(ask(&server, "GET", "/v1/audit", Some(&token), &json!({})).status, 200);
    let (ok, verified) = verify(&server);
    assert!(!ok && verified["whole"] == false, "{verified}");
    assert_eq!(verified["rights"], json!(["user eve: it was changed"]));
    // The server looks by itself at its start, and writes down what it finds.
    server.stop();
    server.start_again();
    until("it is noted", || !of_kind(&server, "rights_changed_outside").is_empty());
    assert_eq!(of_kind(&server, "rights_changed_outside")[0]["target"], "user eve");
    assert!(server.get("/healthz")["parts"]["audit"].is_string());
    // When it is put back the log is whole again, and still tells.
    sql(&server, "UPDATE users SET role = NULL WHERE name = 'eve'");
    let (ok, verified) = verify(&server);
    assert!(ok && verified["warnings"][0].as_str().unwrap().contains("user eve"), "{verified}");
}

#[test]
fn rights_from_before_there_were_keys_are_sealed_and_a_log_that_was_cut_off_is_found() {
    let mut server = Server::start(&[]);
    add_user(&server, "eve");
    // As an old database: rights, and nothing signed that vouches for them.
    server.stop();
    let none = "0".repeat(64);
    sql(
        &server,
        &format!("DELETE FROM audit; UPDATE log SET audit_seq = 0, audit_hash = '{none}'"),
    );
    std::fs::remove_file(server.home.path().join("audit.end")).unwrap();
    std::fs::remove_file(server.home.path().join("audit.key")).unwrap();
    server.start_again();
    let (ok, verified) = verify(&server);
    assert!(ok && verified["keyed_from"] == 1, "{verified}");
    assert_eq!(of_kind(&server, "seal_audit").len(), 1);
    let old = verified["key"].as_str().unwrap().to_owned();

    // Another key signs; what the old one has signed stays good, also after a start.
    let rotated = server.json(&["audit", "rotate-key"]);
    assert_eq!(rotated["old"], json!(old));
    add_user(&server, "kim");
    server.stop();
    server.start_again();
    let (ok, verified) = verify(&server);
    assert!(ok && verified["key"] == rotated["new"], "{verified}");
    assert_eq!(of_kind(&server, "rotate_audit_key").len(), 1);
    let keys: BTreeSet<String> =
        rows(&server).iter().map(|row| row["key"].as_str().unwrap().to_owned()).collect();
    assert_eq!(keys.len(), 2);

    // The head goes back with the rows, so that the database alone looks whole.
    let last = rows(&server).len();
    server.stop();
    sql(
        &server,
        &format!(
            "DELETE FROM audit WHERE seq > {0}; UPDATE log SET audit_seq = {0}, \
             audit_hash = (SELECT hash FROM audit WHERE seq = {0})",
            last - 2
        ),
    );
    server.start_again();
    let found = of_kind(&server, "audit_cut_off");
    assert_eq!(found.len(), 1, "{found:?}");
    // What the rows that are gone vouched for is not vouched for any more.
    let (ok, verified) = verify(&server);
    assert!(!ok && verified["rights"].to_string().contains("user kim"), "{verified}");
    assert!(verified["warnings"].to_string().contains("audit_cut_off"), "{verified}");
    assert!(server.log().contains("rows were cut off"), "{}", server.log());
}

/// Blanks the row that vouches for all rights, so that the server seals them anew with what was changed
/// meanwhile; and puts it back as soon as the server has written a row.
#[test]
fn rights_that_were_changed_are_not_sealed_where_the_seal_was_hidden() {
    let mut server = Server::start(&[]);
    add_user(&server, "eve");
    server.stop();
    sql(
        &server,
        "UPDATE users SET role = 'admin' WHERE name = 'eve'; \
         CREATE TABLE hidden AS SELECT seq, \"key\" FROM audit WHERE what = 'seal_audit'; \
         UPDATE audit SET \"key\" = '' WHERE what = 'seal_audit'; \
         CREATE TRIGGER put_back AFTER INSERT ON audit BEGIN \
           UPDATE audit SET \"key\" = (SELECT \"key\" FROM hidden) \
           WHERE seq = (SELECT seq FROM hidden); \
         END",
    );
    server.start_again();
    assert_eq!(of_kind(&server, "seal_audit").len(), 1);
    assert_eq!(of_kind(&server, "seal_refused").len(), 1);
    let (ok, verified) = verify(&server);
    assert!(!ok, "{verified}");
    assert_eq!(verified["rights"], json!(["user eve: it was changed"]));
    assert!(verified["warnings"].to_string().contains("seal_refused"), "{verified}");
}

#[test]
fn a_row_far_past_the_end_does_not_silence_the_export() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    let server = Server::start(&["--audit-export", &file.display().to_string()]);
    add_user(&server, "eve");
    let last = rows(&server).len() as u64;
    until("all rows are in the file", || exported(&file).last() == Some(&last));
    sql(
        &server,
        "INSERT INTO audit SELECT 4611686018427387904, at, who, token, \"from\", method, what, \
         target, outcome, detail, prev, hash, \"key\", seals FROM audit WHERE seq = 1",
    );
    let part = || server.get("/healthz")["parts"]["audit_export"].clone();
    until("it is said", || part().as_str().is_some_and(|words| !words.is_empty()));
    add_user(&server, "kim");
    until("what the server writes still comes", || exported(&file).len() as u64 >= last + 2);
    let seqs = exported(&file);
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    assert!(server.log().contains("row 4611686018427387904"), "{}", server.log());
}

#[test]
fn refused_requests_are_recorded_within_a_limit_and_of_the_rest_the_number() {
    let mut server = Server::start(&[]);
    let token = add_user(&server, "eve");
    let stranger = "brt_0123456789abcdef_hush";
    for n in 0..150 {
        let mut request = Request::new("GET", "/v1/jobs");
        match n % 3 {
            0 => request.token = Some(stranger),
            // Another way to ask is refused and recorded as any.
            1 => request.headers.push(("authorization", "Basic a2ltOmh1c2g=".to_owned())),
            _ => {}
        }
        assert_eq!(request.send(&server.url).status, 401);
    }
    let wish = json!({ "name": "mallory", "role": "admin" });
    assert_eq!(ask(&server, "POST", "/v1/users", Some(&token), &wish).status, 403);
    let path = "/v1/teams/nobody/members/eve";
    assert_eq!(ask(&server, "DELETE", path, Some(&token), &json!({})).status / 100, 4);
    // Reading what is not there is no attempt at anything.
    assert_eq!(ask(&server, "GET", "/v1/jobs/9", Some(&token), &json!({})).status, 404);
    server.stop();
    server.start_again();
    let rows = rows(&server);
    let refused = |row: &&Value| row["outcome"].as_str().unwrap().starts_with("refused BRT");
    let (strangers, known): (Vec<&Value>, Vec<&Value>) =
        rows.iter().filter(refused).partition(|row| row["who"] == "");
    let whats: Vec<&str> = known.iter().map(|row| row["what"].as_str().unwrap()).collect();
    assert_eq!(whats, ["create_user", "delete_member"], "{known:?}");
    assert_eq!(
        (&known[0]["who"], &known[0]["outcome"]),
        (&json!("eve"), &json!("refused BRT0006"))
    );
    let told: u64 = of_kind(&server, "refusals_suppressed")
        .iter()
        .map(|row| {
            let detail: Value = serde_json::from_str(row["detail"].as_str().unwrap()).unwrap();
            detail["count"].as_u64().unwrap()
        })
        .sum();
    assert_eq!(strangers.len() as u64 + told, 150);
    assert!(strangers.len() < 60, "{}", strangers.len());
    let text = serde_json::to_string(&rows).unwrap();
    assert!(text.contains("0123456789abcdef") && !text.contains("hush"));
    let shown = server.json(&["audit", "list", "--refused", "--who", "eve"]);
    assert_eq!(shown["rows"].as_array().unwrap().len(), 2, "{shown}");
    let target = known[1]["target"].as_str().unwrap();
    let shown = server.json(&["audit", "list", "--target", target, "--who", "eve"]);
    let targets: Vec<&Value> =
        shown["rows"].as_array().unwrap().iter().map(|row| &row["target"]).collect();
    assert_eq!(targets, [target], "{shown}");
    assert!(verify(&server).0);
}

#[test]
fn the_audit_log_has_no_row_of_a_signed_out_browser_and_one_of_a_bad_token() {
    let mut server = Server::start(&[]);
    for token in [None, Some("brt_0123456789abcdef_hush"), None] {
        assert_eq!(ask(&server, "GET", "/v1/session", token, &json!({})).status, 401);
    }
    server.stop();
    server.start_again();
    assert_eq!(of_kind(&server, "get_session").len(), 1);
}

/// The numbers of the rows in a file, which is JSON lines.
fn exported(path: &Path) -> Vec<u64> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let whole = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    whole.map(|row| row["seq"].as_u64().unwrap()).collect()
}

#[test]
fn the_audit_log_is_exported_as_it_grows_and_nothing_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (file, late) = (at("audit.jsonl"), at("missing/audit.jsonl"));
    let shown = [file.display().to_string(), late.display().to_string()];
    let args = ["--audit-export", &shown[0], "--audit-export", &shown[1]];
    let mut server = Server::start(&args);
    add_user(&server, "eve");
    let all = |server: &Server| rows(server).len() as u64;
    until("all rows are in the file", || exported(&file) == (1..=all(&server)).collect::<Vec<_>>());
    let metrics = || {
        let token = server.token();
        Request::new("GET", "/metrics").token(Some(&token)).send(&server.url).body
    };
    // What cannot be exported is counted and said, and tried again until it can.
    let failures = format!("berth_audit_export_failures_total{{to=\"{}\"}}", shown[1]);
    until("the failure is counted", || {
        let text = metrics();
        let line = text.lines().find(|line| line.starts_with(&failures)).map(str::to_owned);
        line.is_some_and(|line| !line.ends_with(" 0"))
    });
    assert!(server.log().contains("cannot be exported"), "{}", server.log());
    let part = server.get("/healthz")["parts"]["audit_export"].clone();
    assert!(part.as_str().unwrap().contains("cannot be exported"), "{part}");
    std::fs::create_dir(at("missing")).unwrap();
    until("the other file has caught up", || exported(&late) == exported(&file));

    // Whoever rotates the file renames it.
    let old = at("audit.jsonl.1");
    std::fs::rename(&file, &old).unwrap();
    add_user(&server, "kim");
    server.kill();
    server.start_again();
    add_user(&server, "lee");
    let seen = || exported(&old).into_iter().chain(exported(&file)).collect::<BTreeSet<_>>();
    until("no row is missing", || seen() == (1..=all(&server)).collect());
    assert!(exported(&file).first() > exported(&old).first());
}
