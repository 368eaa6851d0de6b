//! Which user of Berth a person of the provider is.

use super::browser::{Browser, Seen};
use super::house::House;
use serde_json::json;

fn is_refused(seen: &Seen, why: &str) -> bool {
    seen.status == 403 && seen.body.contains("BRT0034") && seen.body.contains(why)
}

#[test]
fn a_name_at_the_provider_takes_over_no_user_unless_the_operator_says_so() {
    let mut house = House::open();
    let admin = house.people.get(&house.people.admin, "/v1/me").json()["user"].clone();
    let admin = admin.as_str().unwrap();
    let everyone = json!({
        admin: { "groups": ["ml"] }, "kim": { "groups": ["ml"] }, "noor": { "groups": ["ml"] },
    });
    house.provider.tell("people", &everyone);
    for name in [admin, "kim"] {
        let refused = house.sign_in(&mut Browser::default(), name);
        assert!(is_refused(&refused, "not linked"), "{refused:?}");
    }
    // A person whom no user has the name of becomes one, and stays that user.
    for _ in 0..2 {
        assert_eq!(house.sign_in(&mut Browser::default(), "noor").status, 200);
    }

    house.start_again_with(&["--oidc-link-by-name"]);
    let mut kim = Browser::default();
    assert_eq!(house.sign_in(&mut kim, "kim").status, 200);
    assert_eq!(house.me(&mut kim)["user"], "kim");
    // Even then a name alone gives no role for the cluster.
    let refused = house.sign_in(&mut Browser::default(), admin);
    assert!(is_refused(&refused, "role for the cluster"), "{refused:?}");

    // A link stays when the flag goes.
    house.start_again_with(&[]);
    assert_eq!(house.sign_in(&mut Browser::default(), "kim").status, 200);
}

#[test]
fn an_email_address_is_a_name_only_if_the_provider_says_that_it_is_verified() {
    let flags = ["--oidc-scopes", "email", "--oidc-user-claim", "email"];
    let house = House::open_with(&[&flags[..], &["--oidc-strip-domain", "example.com"]].concat());
    let person = |email: &str, verified: Option<bool>| {
        json!({
            "groups": ["ml"], "email": email, "email_verified": verified,
        })
    };
    house.provider.tell(
        "people",
        &json!({
            "noor": person("noor@example.com", Some(true)),
            "eve": person("ada@example.com", Some(false)),
            "mallory": person("ada@example.com", None),
        }),
    );
    for name in ["eve", "mallory"] {
        let refused = house.sign_in(&mut Browser::default(), name);
        assert!(is_refused(&refused, "email address is verified"), "{refused:?}");
    }
    let mut noor = Browser::default();
    assert_eq!(house.sign_in(&mut noor, "noor").status, 200);
    assert_eq!(house.me(&mut noor)["user"], "noor");
    // The link is by the provider's id: an address that is not verified any more changes nothing.
    house.provider.tell("people", &json!({ "noor": person("eve@example.com", Some(false)) }));
    let mut noor = Browser::default();
    assert_eq!(house.sign_in(&mut noor, "noor").status, 200);
    assert_eq!(house.me(&mut noor)["user"], "noor");
}

/// A person who has an account of this machine.
fn person_here() -> Option<String> {
    let accounts = std::fs::read_to_string("/etc/passwd").ok()?;
    let mut accounts = accounts.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let person = |account: &Vec<&str>| {
        let number = account.get(2).and_then(|number| number.parse::<u32>().ok());
        number.is_some_and(|number| (1_000..60_000).contains(&number))
    };
    accounts.find(person).map(|account| account[0].to_owned())
}

#[test]
fn a_name_at_the_provider_gives_no_account_of_the_machine_unless_the_operator_says_so() {
    let Some(name) = person_here() else {
        eprintln!("not tried: no person has an account of this machine");
        return;
    };
    let mut house = House::open_with(&["--oidc-link-by-name"]);
    if house.people.server.json(&["nodes"])["items"][0]["isolation"] != "accounts" {
        eprintln!("not tried: jobs have no accounts of their own");
        return;
    }
    house.provider.tell("people", &json!({ &name: { "groups": ["ml"] } }));
    let refused = house.sign_in(&mut Browser::default(), &name);
    assert!(is_refused(&refused, "account"), "{refused:?}");
    // Not even where an admin has made a user of that name.
    house.people.join(&name, "audio", "viewer");
    let refused = house.sign_in(&mut Browser::default(), &name);
    assert!(is_refused(&refused, "account"), "{refused:?}");

    house.start_again_with(&["--oidc-link-by-name", "--oidc-machine-accounts"]);
    let mut browser = Browser::default();
    assert_eq!(house.sign_in(&mut browser, &name).status, 200);
    assert_eq!(house.me(&mut browser)["user"], name);

    // Also of a person who is linked by now.
    house.start_again_with(&[]);
    let refused = house.sign_in(&mut Browser::default(), &name);
    assert!(is_refused(&refused, "account"), "{refused:?}");
}
