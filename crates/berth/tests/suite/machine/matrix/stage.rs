//! People of every role, and things of theirs and of others, on a real server.

use super::super::http::{Answer, Request};
use super::super::server::{Server, until};
use super::page::{Column, Whose};
use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::BTreeMap;

/// The team in which people have their roles.
const HERE: &str = "vision";
/// A team in which none of them has any.
const ELSEWHERE: &str = "nlp";
/// Somebody who makes things in each of them.
const MATE: &str = "mate";
const STRANGER: &str = "stranger";

pub struct Stage {
    server: Server,
    admin: String,
    tokens: BTreeMap<String, String>,
    count: Cell<u32>,
}

impl Stage {
    pub fn set() -> Stage {
        let server = Server::start(&["--gpus", "16xL4"]);
        let admin = server.token();
        let mut stage = Stage { server, admin, tokens: BTreeMap::new(), count: Cell::new(0) };
        for team in [HERE, ELSEWHERE] {
            stage.admin("POST", "/v1/teams", &json!({ "name": team }));
            let budget =
                json!({ "limit_micros": 9_000_000_000_i64, "per": "month", "action": "notify" });
            stage.admin("PUT", &format!("/v1/budgets/{team}"), &budget);
        }
        stage.enter(MATE, None);
        stage.enter(STRANGER, None);
        stage.give(HERE, MATE, Some("team_lead"));
        stage.give(ELSEWHERE, STRANGER, Some("team_lead"));
        for column in Column::ALL.into_iter().filter(|column| *column != Column::NoToken) {
            stage.enter(&column.user(), cluster_role(column));
            stage.give(HERE, &column.user(), team_role(column));
        }
        stage.let_run();
        stage
    }

    pub fn enter(&mut self, user: &str, role: Option<&str>) {
        self.admin("POST", "/v1/users", &json!({ "name": user, "cluster_role": role }));
        let token = self.new_token(user, "all", None);
        self.tokens.insert(user.to_owned(), token.1);
    }

    /// A token of somebody: its id and its secret.
    pub fn new_token(&self, user: &str, scope: &str, lives: Option<&str>) -> (String, String) {
        let name = self.fresh("token");
        let wish = json!({ "name": name, "user": user, "scope": scope, "expires_in": lives });
        let made = self.admin("POST", "/v1/tokens", &wish).json();
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        (text(&made["token"]["id"]), text(&made["secret"]))
    }

    pub fn give(&self, team: &str, user: &str, role: Option<&str>) {
        let path = format!("/v1/teams/{team}/members/{user}");
        match role {
            Some(role) => drop(self.admin("PUT", &path, &json!({ "role": role }))),
            None => drop(self.request("DELETE", &path, Some(&self.admin), None)),
        }
    }

    /// One job of everybody that runs, and one in each team that has cost something.
    fn let_run(&self) {
        for (who, whose) in [(Column::NoRole, Whose::Team), (Column::NoRole, Whose::Other)] {
            let team = self.team(whose);
            self.submit(who, whose, &format!("name: paid-{team}\ngpus: 1\nrun: 'true'\n"));
        }
        for column in Column::ALL {
            for whose in Whose::ALL {
                let name = self.standing(column, whose);
                if self.admin_says(&format!("/v1/jobs?name={name}"))["jobs"] == json!([]) {
                    self.submit(
                        column,
                        whose,
                        &format!("name: {name}\ngpus: 1\nrun: touch made; sleep 3600\n"),
                    );
                }
            }
        }
        until("the jobs of everybody run", || {
            self.states().iter().all(|(name, state)| {
                state == if name.starts_with("paid-") { "done" } else { "running" }
            })
        });
    }

    fn states(&self) -> Vec<(String, String)> {
        let jobs = self.admin_says("/v1/jobs?limit=1000");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let each = jobs["jobs"].as_array().expect("jobs").iter();
        each.map(|job| (text(&job["name"]), text(&job["state"]))).collect()
    }

    /// The name of the job that runs all the time.
    pub fn standing(&self, column: Column, whose: Whose) -> String {
        format!("runs-{}", self.owner(column, whose))
    }

    pub fn team(&self, whose: Whose) -> &'static str {
        if whose == Whose::Other { ELSEWHERE } else { HERE }
    }

    /// Who made the thing; somebody without a token has made none.
    pub fn owner(&self, column: Column, whose: Whose) -> String {
        match whose {
            Whose::Own if column != Column::NoToken => column.user(),
            Whose::Own | Whose::Team => MATE.to_owned(),
            Whose::Other => STRANGER.to_owned(),
        }
    }

    pub fn token_of(&self, column: Column) -> Option<&str> {
        self.token_named(&column.user())
    }

    pub fn token_named(&self, user: &str) -> Option<&str> {
        self.tokens.get(user).map(String::as_str)
    }

    pub fn fresh(&self, what: &str) -> String {
        self.count.set(self.count.get() + 1);
        format!("{what}-{}", self.count.get())
    }

    /// Has the thing's owner ask for something, as a lead of the team for that moment.
    pub fn as_owner(
        &self,
        column: Column,
        whose: Whose,
        request: impl FnOnce(&str) -> Answer,
    ) -> Answer {
        let owner = self.owner(column, whose);
        let lends = whose == Whose::Own && column != Column::NoToken;
        if lends {
            self.give(HERE, &owner, Some("team_lead"));
        }
        let answer = request(&self.tokens[&owner]);
        if lends {
            self.give(HERE, &owner, team_role(column));
        }
        assert!(answer.is_good(), "{owner} could not make it: {answer:?}");
        answer
    }

    pub fn submit(&self, column: Column, whose: Whose, file: &str) -> Value {
        let file = format!("team: {}\n{file}", self.team(whose));
        self.as_owner(column, whose, |token| {
            let request = Request::new("POST", "/v1/jobs").token(Some(token));
            request.body("application/yaml", file).send(&self.server.url)
        })
        .json()
    }

    pub fn request(
        &self,
        method: &str,
        path: &str,
        token: Option<&str>,
        body: Option<&Value>,
    ) -> Answer {
        let request = Request::new(method, path).token(token);
        body.map_or_else(|| Request::new(method, path).token(token), |body| request.json(body))
            .send(&self.server.url)
    }

    pub fn send(&self, request: Request<'_>) -> Answer {
        request.send(&self.server.url)
    }

    pub fn admin(&self, method: &str, path: &str, body: &Value) -> Answer {
        let answer = self.request(method, path, Some(&self.admin), Some(body));
        assert!(answer.is_good(), "{method} {path} {body}: {answer:?}");
        answer
    }

    pub fn put_as_admin(&self, path: &str, body: &str) {
        let request = Request::new("PUT", path).token(Some(&self.admin));
        let answer = request.body("application/octet-stream", body).send(&self.server.url);
        assert!(answer.is_good(), "{path}: {answer:?}");
    }

    fn admin_says(&self, path: &str) -> Value {
        self.request("GET", path, Some(&self.admin), None).json()
    }

    pub fn is_paused(&self, schedule: &str) -> bool {
        self.admin_says(&format!("/v1/schedules/{schedule}"))["paused"] == true
    }

    /// A drained machine works again, with all that ran there.
    pub fn resume_work(&self) {
        self.admin("POST", "/v1/nodes/box/resume", &json!({}));
        until("everybody's jobs run again", || {
            let states = self.states();
            states.iter().filter(|(name, _)| name.starts_with("runs-")).all(|(_, s)| s == "running")
        });
    }

    /// The last row that is no refusal: it is another one after every change.
    pub fn audit_head(&self) -> Value {
        self.admin_says("/v1/audit?limit=1&refused=false")["rows"][0]["hash"].clone()
    }

    /// All that a request could change.
    pub fn everything(&self) -> Vec<Value> {
        let pick = |path: &str, list: &str, fields: &[&str]| {
            let answer = self.admin_says(path);
            let items = answer[list].as_array().unwrap_or_else(|| panic!("{path}: {answer}"));
            let each = items.iter().map(|item| fields.iter().map(|field| item[*field].clone()));
            Value::from(each.map(Iterator::collect).collect::<Vec<Value>>())
        };
        vec![
            // A refusal is recorded, and changes nothing.
            pick("/v1/audit?limit=1&refused=false", "rows", &["seq", "hash"]),
            pick("/v1/jobs?limit=1000", "jobs", &["id", "state", "priority", "team"]),
            pick("/v1/tokens", "items", &["id", "user", "scope", "expires", "revoked"]),
            pick("/v1/sessions", "items", &["id", "user"]),
            pick("/v1/users", "items", &["name", "cluster_role", "teams"]),
            pick("/v1/teams", "items", &["name", "parent"]),
            pick("/v1/projects", "items", &["team", "name"]),
            pick("/v1/secrets", "items", &["team", "name", "created", "by"]),
            pick("/v1/volumes", "items", &["team", "name", "created"]),
            pick("/v1/data", "items", &["team", "name", "version", "hash"]),
            pick("/v1/storage", "items", &["team", "quota"]),
            pick("/v1/templates", "items", &["team", "name", "by", "file"]),
            pick("/v1/schedules", "items", &["id", "paused"]),
            pick("/v1/budgets", "items", &["queue", "limit_micros", "per", "action"]),
            pick("/v1/nodes", "items", &["name", "state"]),
            pick("/v1/shares", "items", &["queue", "parent", "quota_milli", "weight_milli"]),
            self.admin_says("/v1/policy"),
        ]
    }
}

const fn team_role(column: Column) -> Option<&'static str> {
    match column {
        Column::Viewer => Some("viewer"),
        Column::Researcher => Some("researcher"),
        Column::TeamLead => Some("team_lead"),
        Column::NoToken
        | Column::NoRole
        | Column::ClusterViewer
        | Column::Operator
        | Column::Admin => None,
    }
}

const fn cluster_role(column: Column) -> Option<&'static str> {
    match column {
        Column::ClusterViewer => Some("viewer"),
        Column::Operator => Some("operator"),
        Column::Admin => Some("admin"),
        Column::NoToken
        | Column::NoRole
        | Column::Viewer
        | Column::Researcher
        | Column::TeamLead => None,
    }
}
