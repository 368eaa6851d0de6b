//! A server whose people come from a real provider of identities.

use super::browser::{Browser, Seen};
use super::provider::Provider;
use crate::machine::people::People;
use serde_json::{Value, json};

/// The server and its provider.
pub struct House {
    pub people: People,
    pub provider: Provider,
}

impl House {
    pub fn open() -> House {
        House::open_with(&[])
    }

    pub fn open_with(more: &[&str]) -> House {
        let people = People::start("1xL4");
        let provider = Provider::start();
        provider.tell("client", &json!({ "base": people.server.url }));
        let mut house = House { people, provider };
        house.start_again_with(more);
        house
    }

    /// The same server with other flags.
    pub fn start_again_with(&mut self, more: &[&str]) {
        let House { people, provider } = self;
        let url = people.server.url.clone();
        let secret = people.server.work.path().join("oidc.secret");
        std::fs::write(&secret, "a secret of the tests\n").unwrap();
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
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.people.server.url)
    }

    /// Goes the whole way with a browser, and lands somewhere.
    pub fn sign_in(&self, browser: &mut Browser, name: &str) -> Seen {
        let asked = browser.go(&self.url("/v1/session/oidc/start?next=/jobs?mine=1"));
        match asked.url.contains("/interaction/") {
            true => self.provider.sign_in(browser, &asked, name),
            false => asked,
        }
    }

    /// A browser that has begun to sign in, and the state of that.
    pub fn begun(&self) -> (Browser, String) {
        let mut browser = Browser::default();
        let sent = browser.send("GET", &self.url("/v1/session/oidc/start"), &[], "");
        let to = sent.header("location").expect("the provider").to_owned();
        let state = to.split("state=").nth(1).and_then(|rest| rest.split('&').next());
        (browser, state.expect("a state").to_owned())
    }

    /// The way back to Berth, with a code that no provider has given.
    pub fn made_up_answer(&self, state: &str) -> String {
        self.url(&format!("/v1/session/oidc/callback?code=made-up&state={state}"))
    }

    /// The way back of a person who was sent to the provider, before they take it.
    pub fn last_step(&self, browser: &mut Browser, to: &str, name: &str) -> String {
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

    pub fn me(&self, browser: &mut Browser) -> Value {
        browser.api("GET", &self.url("/v1/me"), &json!({})).json()
    }
}
