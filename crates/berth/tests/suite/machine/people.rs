//! A server with a few people: kim is a researcher and lea a lead in team vision; team audio is
//! not theirs.

use super::http::{Answer, Request};
use super::server::{Server, until};
use serde_json::{Value, json};

pub struct People {
    pub server: Server,
    pub admin: String,
    pub kim: String,
    pub lea: String,
}

impl People {
    pub fn start(gpus: &str) -> People {
        People::start_with(&["--gpus", gpus])
    }

    pub fn start_with(args: &[&str]) -> People {
        let server = Server::start(args);
        let admin = server.token();
        let mut people = People { server, admin, kim: String::new(), lea: String::new() };
        for team in ["vision", "audio"] {
            people.admin("POST", "/v1/teams", &json!({ "name": team }));
        }
        people.kim = people.join("kim", "vision", "researcher");
        people.lea = people.join("lea", "vision", "team_lead");
        people
    }

    /// A new user with a role in a team, and a token of theirs.
    pub fn join(&self, user: &str, team: &str, role: &str) -> String {
        self.admin("POST", "/v1/users", &json!({ "name": user }));
        self.give(user, team, role);
        self.new_token(user, "all", None).1
    }

    pub fn give(&self, user: &str, team: &str, role: &str) {
        let path = format!("/v1/teams/{team}/members/{user}");
        self.admin("PUT", &path, &json!({ "role": role }));
    }

    pub fn take(&self, user: &str, team: &str) {
        self.admin("DELETE", &format!("/v1/teams/{team}/members/{user}"), &json!({}));
    }

    /// The id of a new token, and the token.
    pub fn new_token(&self, user: &str, scope: &str, lasts: Option<&str>) -> (String, String) {
        let wish = json!({ "name": "test", "user": user, "scope": scope, "expires_in": lasts });
        let made = self.admin("POST", "/v1/tokens", &wish);
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        (text(&made["token"]["id"]), text(&made["secret"]))
    }

    pub fn revoke(&self, id: &str) {
        self.admin("DELETE", &format!("/v1/tokens/{id}"), &json!({}));
    }

    /// Asks as somebody.
    pub fn ask(&self, token: &str, method: &str, path: &str, body: &Value) -> Answer {
        Request::new(method, path).token(Some(token)).json(body).send(&self.server.url)
    }

    pub fn get(&self, token: &str, path: &str) -> Answer {
        Request::new("GET", path).token(Some(token)).send(&self.server.url)
    }

    /// Asks as the admin, who may.
    pub fn admin(&self, method: &str, path: &str, body: &Value) -> Value {
        let answer = self.ask(&self.admin, method, path, body);
        assert!(answer.is_good(), "{method} {path} {body}: {answer:?}");
        serde_json::from_str(&answer.body).unwrap_or_default()
    }

    pub fn submit(&self, token: &str, file: &str) -> Answer {
        let request = Request::new("POST", "/v1/jobs").token(Some(token));
        request.body("application/yaml", file).send(&self.server.url)
    }

    /// Submits a job that is taken; its number.
    pub fn job(&self, token: &str, file: &str) -> String {
        let answer = self.submit(token, file);
        assert_eq!(answer.status, 201, "{file}: {answer:?}");
        answer.json()["id"].as_str().expect("a number").to_owned()
    }

    /// Submits a job or a schedule that is taken.
    pub fn job_or_schedule(&self, token: &str, file: &str) {
        let answer = self.submit(token, file);
        assert_eq!(answer.status, 201, "{file}: {answer:?}");
    }

    /// A job of a team that runs until it is stopped.
    pub fn runs(&self, token: &str, team: &str, run: &str) -> String {
        let id = self.job(token, &format!("team: {team}\nrun: |\n  {run}\n"));
        self.until_is(&id, "running");
        id
    }

    pub fn until_is(&self, job: &str, state: &str) {
        until(&format!("job {job} is {state}"), || self.server.job(job)["state"] == state);
    }
}
