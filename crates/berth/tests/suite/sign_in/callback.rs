//! Browsers that are sent to the provider, and come back: what strangers can do with these two routes.

use super::browser::{Browser, Seen};
use super::house::House;
use crate::machine::server::until;
use serde_json::json;

/// Browsers that come back with made-up codes, all at the same moment: what the limits let through must not
/// grow while the test waits.
fn come_back_at_once(house: &House, begun: Vec<(Browser, String)>) -> Vec<Seen> {
    let tries: Vec<_> = begun
        .into_iter()
        .map(|(mut browser, state)| {
            let to = house.made_up_answer(&state);
            std::thread::spawn(move || browser.send("GET", &to, &[], ""))
        })
        .collect();
    tries.into_iter().map(|one| one.join().unwrap()).collect()
}

#[test]
fn one_sign_in_asks_the_provider_once_however_many_codes_are_tried_with_it() {
    let house = House::open();
    let (mut browser, state) = house.begun();
    let made_up = house.made_up_answer(&state);
    let seen = browser.send("GET", &made_up, &[], "");
    assert_eq!((seen.status, seen.code().as_deref()), (403, Some("BRT0033")), "{seen:?}");
    for _ in 0..4 {
        let seen = browser.send("GET", &made_up, &[], "");
        assert!(seen.status == 403 && seen.body.contains("used already"), "{seen:?}");
    }
    assert_eq!(house.provider.asked(), 1);
    // The browser begins again, and signs in.
    house.provider.tell("people", &json!({ "noor": { "groups": ["ml"] } }));
    assert_eq!(house.sign_in(&mut browser, "noor").status, 200);
}

#[test]
fn made_up_codes_reach_the_provider_within_the_limits_alone() {
    let house = House::open();
    let begun = (0..80).map(|_| house.begun()).collect();
    let seen = come_back_at_once(&house, begun);
    let (limited, failed): (Vec<&Seen>, Vec<&Seen>) =
        seen.iter().partition(|one| one.status == 429);
    assert!(failed.iter().all(|one| one.status == 403), "{failed:?}");
    assert!(!limited.is_empty(), "{} tries", failed.len());
    assert_eq!(limited[0].code().as_deref(), Some("BRT0032"));
    assert!(limited[0].header("retry-after").is_some(), "{:?}", limited[0]);
    assert_eq!(house.provider.asked(), failed.len(), "a limited try asks the provider nothing");
}

#[test]
fn tries_while_the_provider_is_down_count_too() {
    let mut house = House::open();
    let begun = (0..80).map(|_| house.begun()).collect();
    house.provider.stop();
    let seen = come_back_at_once(&house, begun);
    let of = |status: u16| seen.iter().filter(|one| one.status == status).count();
    assert_eq!(of(503) + of(429), seen.len(), "{seen:?}");
    assert!(of(503) > 0 && of(429) > 0, "{} and {}", of(503), of(429));
}

#[test]
fn answers_that_no_browser_asked_for_keep_no_user_of_the_same_address_from_signing_in() {
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
fn no_page_of_another_site_sends_a_browser_into_a_sign_in() {
    let house = House::open();
    house.provider.tell("people", &json!({ "noor": { "groups": ["ml"] } }));
    let mut browser = Browser::default();
    assert_eq!(house.sign_in(&mut browser, "noor").status, 200);
    let start = house.url("/v1/session/oidc/start");
    for site in ["cross-site", "same-site"] {
        let headers = [("sec-fetch-site", site), ("sec-fetch-mode", "navigate")];
        let seen = browser.send("GET", &start, &headers, "");
        assert_eq!((seen.status, seen.code().as_deref()), (403, Some("BRT0031")), "{site}");
        assert!(seen.cookies().is_empty() && seen.header("location").is_none(), "{seen:?}");
        let headers = [headers[0], ("accept", "text/html")];
        let page = browser.send("GET", &start, &headers, "");
        assert!(page.body.contains("page of another site") && page.body.contains("BRT0031"));
        assert!(page.header("content-type").unwrap().contains("html"), "{page:?}");
    }
    assert_eq!(house.me(&mut browser)["user"], "noor", "the browser is still signed in");
    for site in ["same-origin", "none"] {
        let seen = browser.send("GET", &start, &[("sec-fetch-site", site)], "");
        assert_eq!(seen.status, 303, "{site}");
    }
}
