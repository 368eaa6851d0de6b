//! Signing in by a real provider of identities.

use super::browser::{Browser, Seen};
use super::house::House;
use crate::machine::server::until;
use serde_json::{Value, json};

#[test]
fn groups_at_the_provider_give_and_take_roles_and_the_browser_lands_where_it_was_going() {
    let house = House::open();
    house.provider.tell("people", &json!({ "noor": { "groups": ["ml", "chess"] }, "eve": {} }));
    let options =
        Browser::default().api("GET", &house.url("/v1/session/options"), &json!({})).json();
    let expect = json!({ "name": "The Lab", "start": "/v1/session/oidc/start" });
    assert_eq!(options["oidc"], expect);

    let mut noor = Browser::default();
    let landed = house.sign_in(&mut noor, "noor");
    assert_eq!(landed.url, house.url("/jobs?mine=1"));
    let me = house.me(&mut noor);
    assert_eq!(me["teams"], json!([{ "team": "vision", "role": "researcher" }]), "{me}");
    let session = noor.api("GET", &house.url("/v1/session"), &json!({})).json();
    assert_eq!(session["means"], "oidc");
    assert!(noor.cookie("berth_sign_in").is_none(), "it is of no use any more");
    let file = json!("team: vision\nhold: true\nrun: 'true'\n");
    let key = noor.key.clone().expect("she landed with one");
    assert!(session.get("key").is_none(), "it is told once: {session}");
    let submitted = noor.send(
        "POST",
        &house.url("/v1/jobs"),
        &[("content-type", "application/yaml"), ("x-berth-session-key", &key)],
        file.as_str().unwrap(),
    );
    assert_eq!(submitted.status, 201, "{submitted:?}");

    // What Berth gave by itself in another team stays; what groups decide changes.
    house.people.give("noor", "audio", "viewer");
    house.provider.tell("people", &json!({ "noor": { "groups": ["leads", "ops"] } }));
    house.sign_in(&mut Browser::default(), "noor");
    let me = house.me(&mut noor);
    assert_eq!(me["cluster_role"], "operator");
    let teams = json!([
        { "team": "audio", "role": "viewer" }, { "team": "vision", "role": "team_lead" }
    ]);
    assert_eq!(me["teams"], teams);

    // Without any role left, nobody stays signed in.
    house.people.take("noor", "audio");
    house.provider.tell("people", &json!({ "noor": { "groups": [] }, "eve": {} }));
    let refused = house.sign_in(&mut Browser::default(), "noor");
    assert_eq!(refused.status, 403, "{refused:?}");
    assert!(refused.body.contains("BRT0034"), "{refused:?}");
    assert_eq!(noor.api("GET", &house.url("/v1/me"), &json!({})).status, 401);
    let stranger = house.sign_in(&mut Browser::default(), "eve");
    assert!(stranger.status == 403 && stranger.body.contains("BRT0034"), "{stranger:?}");
    let rows = house.people.get(&house.people.admin, "/v1/audit?what=map_groups").body;
    assert!(rows.contains("vision:team_lead") && rows.contains("user noor"), "{rows}");
}

#[test]
fn a_provider_that_changes_its_key_is_understood_and_signing_out_leaves_it_too() {
    let house = House::open();
    house.provider.tell("people", &json!({ "noor": { "groups": ["ml"] } }));
    let mut first = Browser::default();
    assert_eq!(house.sign_in(&mut first, "noor").status, 200);
    // Berth reads keys anew only so often.
    house.provider.tell("rotate", &json!({}));
    let mut second = Browser::default();
    until("the new key is known", || {
        second = Browser::default();
        house.sign_in(&mut second, "noor").status == 200
    });
    assert_eq!(house.me(&mut second)["user"], "noor");
    let out = second.api("DELETE", &house.url("/v1/session"), &json!({})).json();
    let logout = out["logout_url"].as_str().expect("an address of the provider");
    assert!(logout.starts_with(&format!("{}/session/end?", house.provider.url)), "{logout}");
    let asked = second.send("GET", logout, &[("accept", "text/html")], "");
    assert_eq!(asked.status, 200, "the provider knows who wants to leave: {asked:?}");
    assert_eq!(second.api("GET", &house.url("/v1/me"), &json!({})).status, 401);
    assert_eq!(first.api("GET", &house.url("/v1/me"), &json!({})).status, 200);
}

#[test]
fn an_answer_that_this_browser_has_not_asked_for_signs_nobody_in() {
    let house = House::open();
    house.provider.tell("people", &json!({ "noor": { "groups": ["ml"] } }));
    let start = house.url("/v1/session/oidc/start?next=https://evil.example");
    let (mut hers, mut his) = (Browser::default(), Browser::default());
    let sent = hers.send("GET", &start, &[], "");
    let to = sent.header("location").expect("the provider");
    for part in ["code_challenge_method=S256", "code_challenge=", "nonce=", "state="] {
        assert!(to.contains(part), "{to}");
    }
    let cookie = sent.cookies().join("\n");
    for part in ["HttpOnly", "SameSite=Lax", "Path=/v1/session/oidc", "Max-Age=600"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    // An attacker who has signed in as herself sends him the last step of her way.
    let callback = house.last_step(&mut hers, to, "noor");
    for browser in [&mut his, &mut Browser::default()] {
        let seen = browser.go(&callback);
        assert!(seen.status == 403 && seen.body.contains("BRT0033"), "{seen:?}");
        assert!(browser.cookie("berth_session").is_none());
    }
    his.send("GET", &start, &[], "");
    let seen = his.go(&callback);
    assert!(seen.body.contains("belongs to another sign-in"), "{seen:?}");
    // Her own browser lands at home: the address that she asked for is none of ours.
    let landed = hers.go(&callback);
    assert_eq!((landed.status, landed.url), (200, house.url("/")));
    // And nobody signs in with it twice.
    let seen = hers.go(&callback);
    assert!(seen.status == 403, "{seen:?}");
}

#[test]
fn of_two_people_who_come_with_one_name_at_the_same_moment_one_becomes_the_user() {
    let house = House::open();
    let named = |name: String| json!({ "groups": ["ml"], "preferred_username": name });
    let start = house.url("/v1/session/oidc/start?next=/");
    for round in 0..4 {
        let people: serde_json::Map<String, Value> =
            (0..4).map(|one| (format!("p{round}x{one}"), named(format!("both{round}")))).collect();
        house.provider.tell("people", &Value::Object(people.clone()));
        let ready: Vec<(Browser, String)> = people
            .keys()
            .map(|name| {
                let mut browser = Browser::default();
                let sent = browser.send("GET", &start, &[], "");
                let to = sent.header("location").expect("the provider").to_owned();
                let step = house.last_step(&mut browser, &to, name);
                (browser, step)
            })
            .collect();
        let tries: Vec<_> = ready
            .into_iter()
            .map(|(mut browser, step)| {
                std::thread::spawn(move || browser.send("GET", &step, &[], ""))
            })
            .collect();
        let seen: Vec<Seen> = tries.into_iter().map(|one| one.join().unwrap()).collect();
        let good = seen.iter().filter(|seen| seen.status == 303).count();
        assert_eq!(good, 1, "{seen:?}");
    }
}
