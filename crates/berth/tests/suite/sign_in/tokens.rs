//! Tokens that are made by tokens and by browsers: they end with what made them.

use super::browser::Browser;
use crate::machine::people::People;
use serde_json::{Value, json};

fn made(people: &People, by: &str, lasts: Option<&str>) -> Value {
    let wish = json!({ "name": "child", "scope": "all", "expires_in": lasts });
    let answer = people.ask(by, "POST", "/v1/tokens", &wish);
    assert!(answer.is_good(), "{answer:?}");
    answer.json()
}

fn secret(made: &Value) -> &str {
    made["secret"].as_str().expect("a secret")
}

fn is_good(people: &People, token: &str) -> bool {
    people.get(token, "/v1/me").status == 200
}

#[test]
fn a_token_that_ends_makes_none_that_outlives_it() {
    let people = People::start("1xL4");
    let (_, short) = people.new_token("kim", "all", Some("1h"));
    let own = people.get(&short, "/v1/me").json()["token"]["expires"].clone();
    assert!(own.is_string());
    for lasts in [None, Some("30d")] {
        let child = made(&people, &short, lasts);
        assert_eq!(child["token"]["expires"], own, "{lasts:?}");
        // Nor does one of the next generation.
        assert_eq!(made(&people, secret(&child), lasts)["token"]["expires"], own, "{lasts:?}");
    }
    let sooner = made(&people, &short, Some("1m"))["token"]["expires"].clone();
    assert!(sooner.as_str() < own.as_str(), "{sooner} {own}");
    // One without an end makes what it likes.
    assert_eq!(made(&people, &people.kim, None)["token"]["expires"], json!(null));

    let mut browser = Browser::default();
    assert_eq!(browser.sign_in(&people.server.url, &short).status, 200);
    let wish = json!({ "name": "child", "scope": "all", "expires_in": "30d" });
    let url = format!("{}/v1/tokens", people.server.url);
    let child = browser.api("POST", &url, &wish).json();
    assert_eq!(child["token"]["expires"], own, "a browser ends with its token, and so does this");
}

#[test]
fn a_command_line_that_a_browser_lets_in_is_signed_in_no_longer_than_the_browser() {
    let people = People::start("1xL4");
    let url = people.server.url.clone();
    let (id, short) = people.new_token("kim", "all", Some("1h"));
    let own = people.get(&short, "/v1/me").json()["token"]["expires"].clone();
    let mut browser = Browser::default();
    assert_eq!(browser.sign_in(&url, &short).status, 200);
    let mut line = Browser::default();
    let begun = line.api("POST", &format!("{url}/v1/session/device"), &json!({ "client": "x" }));
    let begun = begun.json();
    let device = format!("{url}/v1/session/device/{}", begun["user_code"].as_str().unwrap());
    assert_eq!(browser.api("POST", &device, &json!({ "approve": true })).status, 204);
    let body = json!({ "device_code": begun["device_code"] });
    let told = line.api("POST", &format!("{url}/v1/session/device/token"), &body).json();
    assert_eq!(told["token"]["token"]["expires"], own, "{told}");
    let token = secret(&told["token"]).to_owned();
    assert!(is_good(&people, &token));
    people.revoke(&id);
    assert!(!is_good(&people, &token));
}

#[test]
fn whoever_revokes_a_token_or_a_session_revokes_what_was_made_by_it() {
    let people = People::start("1xL4");
    let url = people.server.url.clone();
    let (id, first) = people.new_token("kim", "all", None);
    let child = made(&people, &first, None);
    let grandchild = made(&people, secret(&child), None);
    let other = made(&people, &people.kim, None);
    let mut browser = Browser::default();
    let session =
        browser.sign_in(&url, &first).json()["session"]["id"].as_str().unwrap().to_owned();
    let wish = json!({ "name": "child", "scope": "all" });
    let of_browser = browser.api("POST", &format!("{url}/v1/tokens"), &wish).json();
    let of_its_child = made(&people, secret(&of_browser), None);
    assert!(
        [&child, &grandchild, &of_browser, &of_its_child]
            .iter()
            .all(|one| is_good(&people, secret(one)))
    );

    people.admin("DELETE", &format!("/v1/sessions/{session}"), &json!({}));
    assert!(!is_good(&people, secret(&of_browser)) && !is_good(&people, secret(&of_its_child)));
    assert!(is_good(&people, &first) && is_good(&people, secret(&child)));

    // What a browser made goes with its token, too, also when the browser has signed out.
    let mut browser = Browser::default();
    assert_eq!(browser.sign_in(&url, &first).status, 200);
    let of_browser = browser.api("POST", &format!("{url}/v1/tokens"), &wish).json();
    assert_eq!(browser.api("DELETE", &format!("{url}/v1/session"), &json!({})).status, 200);
    assert!(is_good(&people, secret(&of_browser)));
    people.revoke(&id);
    for gone in [&child, &grandchild, &of_browser] {
        assert!(!is_good(&people, secret(gone)), "{gone}");
    }
    assert!(is_good(&people, secret(&other)), "it was made by another one");
    let verified = people.get(&people.admin, "/v1/audit/verify").json();
    assert_eq!((&verified["whole"], &verified["rights"]), (&json!(true), &json!([])), "{verified}");
}

#[test]
fn a_session_that_is_over_still_names_the_tokens_that_it_made_and_they_are_revoked_by_it() {
    let people = People::start("1xL4");
    let url = people.server.url.clone();
    let (parent, first) = people.new_token("kim", "all", None);
    let mut browser = Browser::default();
    let session =
        browser.sign_in(&url, &first).json()["session"]["id"].as_str().unwrap().to_owned();
    let wish = json!({ "name": "child", "scope": "all" });
    let of_browser = browser.api("POST", &format!("{url}/v1/tokens"), &wish).json();
    let of_its_child = made(&people, secret(&of_browser), None);
    assert_eq!(of_browser["token"]["session"], json!(session));
    assert_eq!(of_browser["token"]["parent"], json!(parent));
    assert_eq!(of_its_child["token"]["parent"], of_browser["token"]["id"]);
    assert_eq!(of_its_child["token"]["session"], json!(null));
    let listed = people.server.run_ok(&["token", "list"]);
    assert!(listed.contains(&format!("session {session}")), "{listed}");

    assert_eq!(browser.api("DELETE", &format!("{url}/v1/session"), &json!({})).status, 200);
    assert!(is_good(&people, secret(&of_browser)), "signing out revokes nothing");
    let path = format!("/v1/sessions/{session}");
    let lea = people.ask(&people.lea, "DELETE", &path, &json!({}));
    assert_eq!(lea.status, 404, "those of others are not there");
    let kim = people.ask(&people.kim, "DELETE", &path, &json!({}));
    assert!(kim.is_good(), "{kim:?}");
    assert!(!is_good(&people, secret(&of_browser)) && !is_good(&people, secret(&of_its_child)));
    assert!(is_good(&people, &first), "it made the session, and was not made by it");
    let none = people.ask(&people.kim, "DELETE", "/v1/sessions/00112233", &json!({}));
    assert_eq!(none.status, 404);
}

#[test]
fn tokens_of_others_stay_when_the_session_of_the_admin_who_made_them_is_revoked_after_its_end() {
    let people = People::start("1xL4");
    let url = people.server.url.clone();
    let mut browser = Browser::default();
    let session =
        browser.sign_in(&url, &people.admin).json()["session"]["id"].as_str().unwrap().to_owned();
    let mut make = |wish: Value| browser.api("POST", &format!("{url}/v1/tokens"), &wish).json();
    let of_kim = make(json!({ "name": "first", "scope": "all", "user": "kim" }));
    let own = make(json!({ "name": "own", "scope": "all" }));
    assert_eq!(browser.api("DELETE", &format!("{url}/v1/session"), &json!({})).status, 200);
    let path = format!("/v1/sessions/{session}");
    let kim = people.ask(&people.kim, "DELETE", &path, &json!({}));
    assert_eq!(kim.status, 404, "the session was not kim's");
    people.admin("DELETE", &path, &json!({}));
    assert!(is_good(&people, secret(&of_kim)) && !is_good(&people, secret(&own)));
}

#[test]
fn tokens_of_others_stay_when_the_admins_that_made_them_is_revoked() {
    let people = People::start("1xL4");
    let wish = json!({ "name": "second", "scope": "all" });
    let second = people.ask(&people.admin, "POST", "/v1/tokens", &wish).json();
    let wish = json!({ "name": "first", "scope": "all", "user": "kim" });
    let of_kim = people.ask(secret(&second), "POST", "/v1/tokens", &wish).json();
    let own = made(&people, secret(&second), None);
    people.revoke(second["token"]["id"].as_str().unwrap());
    assert!(is_good(&people, secret(&of_kim)) && !is_good(&people, secret(&own)));
}
