//! Signing in by a real provider of identities.

use super::browser::{Browser, Seen};
use super::provider::Provider;
use crate::machine::people::People;
use crate::machine::server::until;
use serde_json::{Value, json};

/// A server whose people come from a provider.
struct House {
    people: People,
    provider: Provider,
}

impl House {
    fn open() -> House {
        House::open_with(&[])
    }

    fn open_with(more: &[&str]) -> House {
        let mut people = People::start("1xL4");
        let provider = Provider::start();
        let url = people.server.url.clone();
        let secret = people.server.work.path().join("oidc.secret");
        std::fs::write(&secret, "a secret of the tests\n").unwrap();
        provider.tell("client", &json!({ "base": url }));
        people.server.stop();
        let usual = [
            "--gpus",
            "1xL4",
            "--public-url",
            &url,
            "--oidc-issuer",
            &provider.url,
            "--oidc-client-id",
            "berth",
            "--oidc-client-secret",
            &secret.display().to_string(),
            "--oidc-scopes",
            "profile,groups",
            "--oidc-name",
            "The Lab",
            "--oidc-group",
            "ml=vision:researcher",
            "--oidc-group",
            "leads=vision:team_lead",
            "--oidc-group",
            "ops=operator",
            "--oidc-create-users",
        ];
        people.server.start_again_with(&[&usual[..], more].concat());
        House { people, provider }
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.people.server.url)
    }

    /// Goes the whole way with a browser, and lands somewhere.
    fn sign_in(&self, browser: &mut Browser, name: &str) -> Seen {
        let asked = browser.go(&self.url("/v1/session/oidc/start?next=/jobs?mine=1"));
        match asked.url.contains("/interaction/") {
            true => self.provider.sign_in(browser, &asked, name),
            false => asked,
        }
    }

    /// The way back from the provider of somebody who was sent there, before they take it.
    fn last_step(&self, browser: &mut Browser, to: &str, name: &str) -> String {
        let asked = browser.go(to);
        let kind = [("content-type", "application/x-www-form-urlencoded")];
        let mut step = browser.send("POST", &asked.url, &kind, &format!("login={name}"));
        loop {
            let next = step.header("location").expect("it leads on").to_owned();
            if next.contains("/v1/session/oidc/callback") {
                return next;
            }
            let at_home = next.starts_with('/');
            let next = if at_home { format!("{}{next}", self.provider.url) } else { next };
            step = browser.send("GET", &next, &[], "");
        }
    }

    fn me(&self, browser: &mut Browser) -> Value {
        browser.api("GET", &self.url("/v1/me"), &json!({})).json()
    }
}

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
fn answers_that_nobody_asked_for_keep_nobody_from_signing_in_from_the_same_address() {
    let house = House::open();
    house.provider.tell("people", &json!({ "noor": { "groups": ["ml"] } }));
    let made_up = house.url("/v1/session/oidc/callback?code=x&state=x");
    until("failures are limited", || Browser::default().go(&made_up).status == 429);
    for _ in 0..150 {
        let begun = house.url("/v1/session/oidc/start");
        assert_eq!(Browser::default().send("GET", &begun, &[], "").status, 303);
    }
    assert_eq!(house.sign_in(&mut Browser::default(), "noor").status, 200);
}

#[test]
fn nobody_becomes_an_admin_by_a_name() {
    let house = House::open();
    let admin = house.people.get(&house.people.admin, "/v1/me").json()["user"].clone();
    let admin = admin.as_str().unwrap();
    house
        .provider
        .tell("people", &json!({ admin: { "groups": ["ml"] }, "kim": { "groups": ["ml"] } }));
    let refused = house.sign_in(&mut Browser::default(), admin);
    assert!(refused.status == 403 && refused.body.contains("BRT0034"), "{refused:?}");
    // Somebody without such a role is who they are called.
    let mut kim = Browser::default();
    assert_eq!(house.sign_in(&mut kim, "kim").status, 200);
    assert_eq!(house.me(&mut kim)["user"], "kim");
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

/// A person who has an account of this machine.
fn somebody_here() -> Option<String> {
    let accounts = std::fs::read_to_string("/etc/passwd").ok()?;
    let mut accounts = accounts.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let person = |account: &Vec<&str>| {
        let number = account.get(2).and_then(|number| number.parse::<u32>().ok());
        number.is_some_and(|number| (1_000..60_000).contains(&number))
    };
    accounts.find(person).map(|account| account[0].to_owned())
}

#[test]
fn a_name_at_the_provider_gives_nobody_an_account_of_the_machine_unless_the_server_is_told_so() {
    let Some(name) = somebody_here() else {
        eprintln!("not tried: nobody has an account of this machine");
        return;
    };
    let known = json!({ &name: { "groups": ["ml"] } });
    let house = House::open();
    if house.people.server.json(&["nodes"])["items"][0]["isolation"] != "accounts" {
        eprintln!("not tried: jobs have no accounts of their own");
        return;
    }
    house.provider.tell("people", &known);
    let refused = house.sign_in(&mut Browser::default(), &name);
    assert!(refused.status == 403 && refused.body.contains("BRT0034"), "{refused:?}");
    // Not even where an admin has made a user of that name.
    house.people.join(&name, "audio", "viewer");
    let refused = house.sign_in(&mut Browser::default(), &name);
    assert!(refused.status == 403 && refused.body.contains("account"), "{refused:?}");

    let house = House::open_with(&["--oidc-machine-accounts"]);
    house.provider.tell("people", &known);
    let mut browser = Browser::default();
    assert_eq!(house.sign_in(&mut browser, &name).status, 200);
    assert_eq!(house.me(&mut browser)["user"], name);
}
