//! A request for every route, about a thing of somebody.

use super::super::http::Request;
use super::super::server::until;
use super::page::{Column, Whose};
use super::stage::Stage;
use berth_api::Route;
use serde_json::{Value, json};

/// What is sent as a snapshot. That it is none is found out when a job starts.
mod code {
    pub const PACKED: &str = "packed";
    pub const ID: &str = "sha256:88cb8a087b6e8cebfc9ae5602f5a2159a6bcf923e7f2c56809bcda6cad1727a7";
}

/// An empty folder, as DVC lists it.
mod data {
    pub const LIST: &str = "[]";
    pub const HASH: &str = "d751713988987e9331980363e24189ce.dir";
    pub const PATH: &str = "files/md5/d7/51713988987e9331980363e24189ce.dir";
}

/// A job that waits for long, and so stays as it is.
const WAITS: &str = "begin: 100h\nrun: 'true'\n";
/// A moment that comes once a year.
const YEARLY: &str = "0 3 1 1 *";

/// What is asked for, and how its answer tells whether it was allowed.
pub struct Attempt {
    pub path: String,
    pub body: Body,
    /// A list is always given; this is in it only for those who may see it.
    pub shows: Option<String>,
}

pub enum Body {
    Nothing,
    Json(Value),
    Yaml(String),
    Packed(&'static str),
    /// None, but the request for a WebSocket.
    Upgrade,
}

impl Attempt {
    /// Makes the thing first, where one has to be there.
    pub fn prepare(stage: &Stage, route: &Route, column: Column, whose: Whose) -> Attempt {
        let maker = Maker { stage, route, column, whose };
        let path = maker.path();
        Attempt { body: maker.body(&path), shows: maker.shows(), path }
    }

    pub fn request<'a>(&self, route: &Route, token: Option<&'a str>) -> Request<'a> {
        let mut request = Request::new(route.method, &self.path).token(token);
        match &self.body {
            Body::Nothing => request,
            Body::Json(body) => request.json(body),
            Body::Yaml(body) => request.body("application/yaml", body),
            Body::Packed(body) => request.body("application/octet-stream", *body),
            Body::Upgrade => {
                let fields = [
                    ("connection", "Upgrade"),
                    ("upgrade", "websocket"),
                    ("sec-websocket-version", "13"),
                    ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
                ];
                request.headers.extend(fields.map(|(name, value)| (name, value.to_owned())));
                request
            }
        }
    }
}

struct Maker<'a> {
    stage: &'a Stage,
    route: &'a Route,
    column: Column,
    whose: Whose,
}

impl Maker<'_> {
    /// The path with the names of things in it, and what makes a list complete.
    fn path(&self) -> String {
        let parts = self.route.path.split('/').map(|part| {
            match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
                None => part.to_owned(),
                Some(kind) => self.thing(kind),
            }
        });
        let path = parts.collect::<Vec<_>>().join("/");
        match self.route.id {
            "list_jobs" => format!("{path}?limit=1000"),
            "list_cost" => format!("{path}?by=team"),
            "cost_series" | "cost_idle" | "experiment_returns" => {
                format!("{path}?team={}", self.team())
            }
            "cost_rows" => format!("{path}?team={}&limit=5", self.team()),
            "lineage" => format!("{path}?of=job:{}", self.job_number()),
            "search_logs" => format!("{path}?text=begun"),
            "get_file" => format!("{path}?path=made"),
            "diff_data" => {
                let to = path.rsplit('/').nth(1).unwrap_or_default();
                format!("{path}?to={to}")
            }
            _ => path,
        }
    }

    fn team(&self) -> &'static str {
        self.stage.team(self.whose)
    }

    fn owner(&self) -> String {
        self.stage.owner(self.column, self.whose)
    }

    fn thing(&self, kind: &str) -> String {
        let stage = self.stage;
        match kind {
            "job" => self.job(),
            // The run of a job, by the number of the job.
            "run" => self.job_number(),
            "queue" => {
                let budget =
                    json!({ "limit_micros": 5_000_000, "per": "month", "action": "notify" });
                if self.route.id == "delete_budget" {
                    stage.admin("PUT", &format!("/v1/budgets/{}", self.team()), &budget);
                }
                self.team().to_owned()
            }
            "node" => "box".to_owned(),
            "gpu" => "0".to_owned(),
            "token" => stage.new_token(&self.owner(), "read", None).0,
            "session" => self.session(),
            "user" => self.user(),
            "team" if self.route.id == "delete_team" => {
                let name = stage.fresh("team");
                stage.admin("POST", "/v1/teams", &json!({ "name": name }));
                name
            }
            "team" => self.team().to_owned(),
            "project" => {
                let name = stage.fresh("project");
                stage.admin("POST", "/v1/projects", &json!({ "name": name, "team": self.team() }));
                format!("{}:{name}", self.team())
            }
            "secret" => {
                let name = stage.fresh("secret");
                let path = format!("/v1/secrets/{}/{name}", self.team());
                stage.admin("PUT", &path, &json!({ "value": "hush" }));
                name
            }
            "volume" => {
                let name = stage.fresh("volume");
                if self.route.id != "create_volume" {
                    let path = format!("/v1/volumes/{}/{name}", self.team());
                    stage.admin("PUT", &path, &json!({}));
                }
                name
            }
            "code" => {
                if self.route.id != "put_code" {
                    let path = format!("/v1/code/{}/{}", self.team(), code::ID);
                    self.stage.put_as_admin(&path, code::PACKED);
                }
                code::ID.to_owned()
            }
            "data" => self.data(),
            "template" => self.template(),
            "schedule" => self.schedule(),
            "experiment" => self.experiment(),
            "registered_model" => self.registered_model(),
            // Every team.
            "with" => "*".to_owned(),
            other => panic!("nothing makes a {other}"),
        }
    }

    /// What is only looked at runs; what is changed is a job of its own.
    fn job(&self) -> String {
        if self.route.permission.reads() || matches!(self.route.id, "job_shell" | "clone_job") {
            return self.job_number();
        }
        let name = self.stage.fresh("job");
        let file = format!("name: {name}\nhold: true\n{WAITS}");
        let made = self.stage.submit(self.column, self.whose, &file);
        made["id"].as_str().expect("a number").to_owned()
    }

    /// By number: a name would be looked for only among those one may see.
    fn job_number(&self) -> String {
        let name = self.stage.standing(self.column, self.whose);
        let jobs = self.stage.admin("GET", &format!("/v1/jobs?name={name}"), &json!({})).json();
        jobs["jobs"][0]["id"].as_str().expect("it runs").to_owned()
    }

    /// A browser in which the owner has just signed in.
    fn session(&self) -> String {
        let (_, token) = self.stage.new_token(&self.owner(), "read", None);
        let wish = json!({ "token": token });
        let made = self.stage.request("POST", "/v1/session", None, Some(&wish));
        made.json()["session"]["id"].as_str().expect("a session").to_owned()
    }

    /// Somebody new, who is in the team if they are to be taken out of it.
    fn user(&self) -> String {
        let name = self.stage.fresh("user");
        self.stage.admin("POST", "/v1/users", &json!({ "name": name }));
        if self.route.id == "delete_member" {
            let path = format!("/v1/teams/{}/members/{name}", self.team());
            self.stage.admin("PUT", &path, &json!({ "role": "viewer" }));
        }
        name
    }

    /// A version that the owner has named.
    fn data(&self) -> String {
        let (name, team) = (format!("{}@v1", self.stage.fresh("data")), self.team());
        self.push();
        let wish = json!({ "version": name, "hash": data::HASH });
        self.stage.as_owner(self.column, self.whose, |token| {
            self.stage.request("POST", &format!("/v1/data/{team}"), Some(token), Some(&wish))
        });
        name
    }

    fn push(&self) {
        let path = format!("/v1/dvc/{}/{}", self.team(), data::PATH);
        self.stage.put_as_admin(&path, data::LIST);
    }

    /// An experiment that is shared, to unshare it.
    fn experiment(&self) -> String {
        let (name, team) = (self.stage.fresh("experiment"), self.team());
        let wish = json!({ "name": format!("{team}/{name}") });
        let path = "/api/2.0/mlflow/experiments/create";
        self.stage.as_owner(self.column, self.whose, |token| {
            self.stage.request("POST", path, Some(token), Some(&wish))
        });
        if self.route.id == "unshare_experiment" {
            let path = format!("/v1/experiments/{team}/{name}/shares/*");
            self.stage.admin("PUT", &path, &json!({}));
        }
        name
    }

    /// A registered model that is shared, to unshare it.
    fn registered_model(&self) -> String {
        let (name, team) = (self.stage.fresh("model"), self.team());
        let path = "/api/2.0/mlflow/registered-models/create";
        let wish = json!({ "name": name });
        self.stage.as_owner(self.column, self.whose, |token| {
            let mut request = Request::new("POST", path).token(Some(token)).json(&wish);
            request.headers.push(("x-berth-team", team.to_owned()));
            self.stage.send(request)
        });
        if self.route.id == "unshare_model" {
            let path = format!("/v1/models/{team}/{name}/shares/*");
            self.stage.admin("PUT", &path, &json!({}));
        }
        name
    }

    fn template(&self) -> String {
        let name = self.stage.fresh("template");
        let wish = json!({ "team": self.team(), "file": WAITS });
        self.stage.as_owner(self.column, self.whose, |token| {
            self.stage.request("PUT", &format!("/v1/templates/{name}"), Some(token), Some(&wish))
        });
        // A name that is put says nothing of its team: the body does.
        if self.route.id == "set_template" { name } else { format!("{}:{name}", self.team()) }
    }

    fn schedule(&self) -> String {
        let name = self.stage.fresh("schedule");
        let file = format!("name: {name}\nschedule: '{YEARLY}'\nrun: 'true'\n");
        let made = self.stage.submit(self.column, self.whose, &file);
        let id = made["schedule"].as_str().expect("a schedule").to_owned();
        // Whoever asks without a token has no things of their own; an owner lends theirs.
        let submits = [Column::NoToken, Column::Researcher, Column::TeamLead, Column::Admin];
        if self.whose == Whose::Own && !submits.contains(&self.column) {
            // Its owner had the right for that moment only, and a schedule is paused without.
            until("the schedule is paused", || self.stage.is_paused(&id));
        }
        id
    }

    fn body(&self, path: &str) -> Body {
        let (team, fresh) = (self.team(), |what| self.stage.fresh(what));
        Body::Json(match self.route.id {
            "submit_job" | "plan_job" => {
                return Body::Yaml(format!("name: {}\nteam: {team}\n{WAITS}", fresh("job")));
            }
            "job_shell" => return Body::Upgrade,
            "put_code" => return Body::Packed(code::PACKED),
            "set_job" => json!({ "priority": "7" }),
            "clone_job" => json!({ "file": format!("name: {}\n{WAITS}", fresh("job")) }),
            "set_budget" => json!({ "limit_micros": 7, "per": "day", "action": "notify" }),
            "create_token" => {
                json!({ "name": fresh("token"), "user": self.owner(), "scope": "read" })
            }
            "create_user" => json!({ "name": fresh("user") }),
            "create_team" => json!({ "name": fresh("team") }),
            "set_member" => json!({ "role": "viewer" }),
            "create_project" => json!({ "name": fresh("project"), "team": team }),
            "set_secret" => json!({ "value": path }),
            "make_data" => {
                self.push();
                json!({ "version": fresh("data"), "hash": data::HASH })
            }
            "missing_data" => json!({ "hashes": [data::HASH] }),
            "clean_data" | "clean_runs" => json!({ "dry_run": true }),
            "set_storage" => json!({ "quota": 1_000_000 }),
            "set_template" => json!({ "team": team, "file": "run: hostname" }),
            "apply" | "diff" => {
                json!({ "documents": format!("{{kind: queue, name: {}}}", fresh("queue")) })
            }
            _ => return Body::Nothing,
        })
    }

    fn shows(&self) -> Option<String> {
        let quoted = |text: &str| Some(format!("\"{text}\""));
        match self.route.id {
            "list_jobs" => quoted(&self.stage.standing(self.column, self.whose)),
            "list_cost" | "list_budgets" | "cost_series" | "cost_rows" | "cost_idle" => {
                quoted(self.team())
            }
            "list_tokens" => quoted(&self.thing("token")),
            "list_sessions" => quoted(&self.thing("session")),
            "list_users" => quoted(&self.owner()),
            "list_projects" => quoted(after_colon(&self.thing("project"))),
            "list_secrets" => quoted(&self.thing("secret")),
            "list_volumes" => quoted(&self.thing("volume")),
            "list_data" => quoted(before_at(&self.thing("data"))),
            "list_storage" => quoted(self.team()),
            "list_templates" => quoted(after_colon(&self.thing("template"))),
            "list_schedules" => quoted(&self.thing("schedule")),
            _ => None,
        }
    }
}

fn before_at(name: &str) -> &str {
    name.split_once('@').map_or(name, |(name, _)| name)
}

fn after_colon(name: &str) -> &str {
    name.split_once(':').map_or(name, |(_, name)| name)
}
