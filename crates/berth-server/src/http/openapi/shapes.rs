//! What each route takes and gives.

use berth_api::wire;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use utoipa::openapi::path::ParameterIn;
use utoipa::{IntoParams, ToSchema};

/// A media type and the schema of what it carries.
pub type Content = (&'static str, Value);

/// The schemas that something refers to.
#[derive(Default)]
pub struct Parts(BTreeMap<String, Value>);

impl Parts {
    /// A reference to a type, which is described with all it is made of.
    pub fn refer<T: ToSchema>(&mut self) -> Value {
        let mut schemas = vec![(T::name().into_owned(), T::schema())];
        T::schemas(&mut schemas);
        for (name, schema) in schemas {
            self.0
                .entry(name)
                .or_insert_with(|| serde_json::to_value(schema).expect("a schema is plain data"));
        }
        super::schema(&T::name())
    }

    /// A schema that is made by hand.
    pub fn add(&mut self, name: &str, schema: Value) {
        self.0.insert(name.to_owned(), schema);
    }

    pub fn into_schemas(self) -> BTreeMap<String, Value> {
        self.0
    }
}

/// One operation, but for what the table of routes knows.
pub struct Shape {
    pub parameters: Vec<Value>,
    pub body: Option<Vec<Content>>,
    /// Whether an empty body is not enough.
    pub needs_body: bool,
    pub status: &'static str,
    pub says: &'static str,
    pub answer: Option<Vec<Content>>,
}

const JSON: &str = "application/json";

impl Shape {
    fn new(status: &'static str, says: &'static str, answer: Option<Vec<Content>>) -> Shape {
        Shape { parameters: Vec::new(), body: None, needs_body: false, status, says, answer }
    }

    fn query<Q: IntoParams>(mut self) -> Shape {
        let all = Q::into_params(|| Some(ParameterIn::Query));
        let all = all.into_iter().map(|one| serde_json::to_value(one).expect("plain data"));
        self.parameters.extend(all);
        self
    }

    /// Parameters that are texts, and may be left out.
    fn text_query(mut self, names: &[&str]) -> Shape {
        self.parameters.extend(names.iter().map(|name| {
            json!({ "name": name, "in": "query", "required": false, "schema": { "type": "string" } })
        }));
        self
    }

    /// A request that may be sent again makes one job.
    fn once(mut self) -> Shape {
        self.parameters.push(json!({
            "name": "Idempotency-Key", "in": "header", "required": false,
            "description": "The same key stands for the same request, which is done once",
            "schema": { "type": "string", "minLength": 1, "maxLength": 255 },
        }));
        self
    }

    fn body(mut self, contents: Vec<Content>, needed: bool) -> Shape {
        (self.body, self.needs_body) = (Some(contents), needed);
        self
    }

    fn job_file(self) -> Shape {
        let about = "A job file as YAML, with the keys of JobDocument";
        let text = json!({ "type": "string", "description": about });
        self.body(vec![("application/yaml", text), (JSON, super::schema(super::JOB))], true)
    }
}

/// What a route takes and gives, by its name.
pub fn shape(id: &str, parts: &mut Parts) -> Shape {
    let mut known = Known(parts);
    known
        .server(id)
        .or_else(|| known.jobs(id))
        .or_else(|| known.cluster(id))
        .or_else(|| known.money(id))
        .or_else(|| known.identity(id))
        .or_else(|| known.sign_in(id))
        .or_else(|| known.admin(id))
        .unwrap_or_else(|| panic!("the route {id} is not described"))
}

struct Known<'a>(&'a mut Parts);

impl Known<'_> {
    fn one<T: ToSchema>(&mut self) -> Shape {
        Shape::new("200", "What was asked for", Some(vec![(JSON, self.0.refer::<T>())]))
    }

    /// What may also be had as comma-separated values.
    fn table<T: ToSchema>(&mut self) -> Shape {
        let csv = ("text/csv", json!({ "type": "string" }));
        let contents = vec![(JSON, self.0.refer::<T>()), csv];
        Shape::new("200", "What was asked for", Some(contents))
    }

    fn made<T: ToSchema>(&mut self) -> Shape {
        Shape::new("201", "What was made", Some(vec![(JSON, self.0.refer::<T>())]))
    }

    fn items<T: ToSchema>(&mut self) -> Shape {
        let items = json!({
            "type": "object",
            "required": ["items"],
            "properties": { "items": { "type": "array", "items": self.0.refer::<T>() } },
        });
        Shape::new("200", "All that the caller may see", Some(vec![(JSON, items)]))
    }

    fn takes<T: ToSchema>(&mut self, shape: Shape) -> Shape {
        let contents = vec![(JSON, self.0.refer::<T>())];
        shape.body(contents, true)
    }

    /// A body that may be empty.
    fn may_take<T: ToSchema>(&mut self, shape: Shape) -> Shape {
        let contents = vec![(JSON, self.0.refer::<T>())];
        shape.body(contents, false)
    }

    fn text(kind: &'static str, says: &'static str) -> Shape {
        Shape::new("200", says, Some(vec![(kind, json!({ "type": "string" }))]))
    }

    fn done() -> Shape {
        Shape::new("204", "It is done", None)
    }

    fn server(&mut self, id: &str) -> Option<Shape> {
        Some(match id {
            "health" | "ready" => self.one::<wire::Health>(),
            "version" => self.one::<wire::Version>(),
            "openapi" => {
                let any = json!({ "type": "object" });
                Shape::new("200", "This document", Some(vec![(JSON, any)]))
            }
            "metrics" => Self::text("text/plain", "Figures for Prometheus"),
            "list_config" => self.items::<wire::ConfigEntry>(),
            _ => return None,
        })
    }

    fn jobs(&mut self, id: &str) -> Option<Shape> {
        Some(match id {
            "list_jobs" => self.one::<wire::JobList>().query::<wire::JobQuery>(),
            "submit_job" => {
                self.made::<wire::JobSubmitted>().query::<wire::SubmitQuery>().once().job_file()
            }
            "plan_job" => self.one::<wire::Plan>().query::<wire::SubmitQuery>().job_file(),
            "get_job" | "pause_job" | "resume_job" => self.one::<wire::Job>(),
            "set_job" => {
                let shape = self.one::<wire::Job>();
                self.may_take::<wire::JobChange>(shape)
            }
            "stop_job" => {
                let shape = self.one::<wire::Job>();
                self.may_take::<wire::JobStop>(shape)
            }
            "clone_job" => {
                let shape = self.made::<wire::JobSubmitted>().once();
                self.may_take::<wire::JobClone>(shape)
            }
            "why_job" => self.one::<wire::Why>(),
            "job_file" => {
                // A map of YAML, as a client that reads the text finds it.
                let file = vec![("application/yaml", json!({ "type": "object" }))];
                Shape::new("200", "The file as it was submitted", Some(file))
            }
            "job_figures" => self.one::<wire::JobFigures>().query::<wire::FigureQuery>(),
            "list_attempts" => self.items::<wire::Attempt>(),
            "job_logs" => {
                let chunks = vec![("application/x-ndjson", self.0.refer::<wire::LogChunk>())];
                Shape::new("200", "One chunk on each line", Some(chunks)).query::<wire::LogQuery>()
            }
            "job_timeline" => self.one::<wire::Timeline>(),
            "preview_stop" => self.one::<wire::StopPreview>(),
            "search_logs" => self.one::<wire::LogMatches>().query::<wire::LogSearchQuery>(),
            "list_files" => self.one::<wire::JobFileList>().query::<wire::JobFileQuery>(),
            "get_file" => {
                let bytes = json!({ "type": "string", "format": "binary" });
                let file = vec![("application/octet-stream", bytes)];
                Shape::new("200", "The file; with `Range` a part of it, as 206", Some(file))
                    .query::<wire::JobFileQuery>()
            }
            "job_shell" => Shape::new("101", "The connection becomes a WebSocket", None),
            "stream_events" => {
                let events = vec![("text/event-stream", self.0.refer::<wire::Event>())];
                Shape::new("200", "One event after another", Some(events))
                    .query::<wire::EventQuery>()
            }
            _ => return None,
        })
    }

    fn cluster(&mut self, id: &str) -> Option<Shape> {
        Some(match id {
            "list_queues" => self.items::<wire::Queue>(),
            "get_queue" => self.one::<wire::Queue>(),
            "list_shares" => self.items::<wire::Share>(),
            "list_gpus" => self.items::<wire::Gpu>(),
            "list_nodes" => self.items::<wire::Node>(),
            "get_node" | "resume_node" => self.one::<wire::Node>(),
            "drain_node" | "cordon_node" => self.one::<wire::Node>().query::<wire::NodeChange>(),
            "resume_gpu" => {
                let shape = self.one::<wire::Gpu>();
                self.may_take::<wire::GpuResume>(shape)
            }
            "list_leases" => self.one::<wire::LeaseList>().query::<wire::LeaseQuery>(),
            "preview_drain" => self.one::<wire::DrainPreview>(),
            "gpu_figures" => self.one::<wire::ClusterFigures>().query::<wire::ClusterFigureQuery>(),
            "node_figures" => self.one::<wire::NodeFigures>().query::<wire::FigureQuery>(),
            "get_policy" => self.one::<wire::Policy>(),
            "get_world" => self.one::<wire::WorldText>(),
            _ => return None,
        })
    }

    fn money(&mut self, id: &str) -> Option<Shape> {
        Some(match id {
            "list_cost" => self.table::<wire::CostReport>().query::<wire::CostQuery>(),
            "cost_series" => self.table::<wire::CostSeries>().query::<wire::CostSeriesQuery>(),
            "cost_rows" => self.table::<wire::CostLines>().query::<wire::CostRowsQuery>(),
            "cost_idle" => self.table::<wire::CostIdle>().query::<wire::CostIdleQuery>(),
            "experiment_returns" => self.one::<wire::Returns>().query::<wire::ReturnsQuery>(),
            "budget_forecast" => self.one::<wire::BudgetForecast>(),
            "list_budgets" => self.items::<wire::Budget>(),
            "set_budget" => {
                let shape = self.one::<wire::Budget>();
                self.takes::<wire::BudgetSet>(shape)
            }
            "delete_budget" => Self::done(),
            _ => return None,
        })
    }

    fn identity(&mut self, id: &str) -> Option<Shape> {
        Some(match id {
            "me" => self.one::<wire::Me>(),
            "list_tokens" => self.items::<wire::Token>(),
            "create_token" => {
                let shape = self.made::<wire::TokenCreated>();
                self.takes::<wire::TokenCreate>(shape)
            }
            "list_users" => self.items::<wire::User>(),
            "create_user" => {
                let shape = self.made::<wire::User>();
                self.takes::<wire::UserCreate>(shape)
            }
            "list_teams" => self.items::<wire::Team>(),
            "create_team" => {
                let shape = self.made::<wire::Team>();
                self.takes::<wire::Team>(shape)
            }
            "list_members" => self.items::<wire::Member>(),
            "set_member" => {
                let shape = self.one::<wire::Member>();
                self.takes::<wire::MemberSet>(shape)
            }
            "list_projects" => self.items::<wire::Project>(),
            "create_project" => {
                let shape = self.made::<wire::Project>();
                self.takes::<wire::Project>(shape)
            }
            "list_secrets" => self.items::<wire::Secret>(),
            "set_secret" => {
                let shape = self.one::<wire::Secret>();
                self.takes::<wire::SecretSet>(shape)
            }
            "get_code" => self.one::<wire::CodeSnapshot>(),
            "put_code" => {
                let bytes = json!({ "type": "string", "format": "binary" });
                let packed = vec![("application/octet-stream", bytes)];
                self.one::<wire::CodeSnapshot>().body(packed, true)
            }
            "code_content" => {
                let bytes = json!({ "type": "string", "format": "binary" });
                let packed = vec![("application/octet-stream", bytes)];
                Shape::new("200", "The files as a tar archive, compressed by gzip", Some(packed))
            }
            "revoke_token" | "delete_team" | "delete_member" | "delete_secret" => Self::done(),
            "delete_user" | "delete_project" => Self::done().query::<wire::Removal>(),
            "list_data" => self.items::<wire::DataVersion>().query::<wire::DataQuery>(),
            "make_data" => {
                let shape = self.made::<wire::DataVersion>();
                self.takes::<wire::DataMake>(shape)
            }
            "missing_data" => {
                let shape = self.one::<wire::DataMissing>();
                self.takes::<wire::DataAsk>(shape)
            }
            "clean_data" => {
                let shape = self.one::<wire::DataCleaned>();
                self.may_take::<wire::DataClean>(shape)
            }
            "get_data" => self.one::<wire::DataVersion>(),
            "delete_data" => Self::done(),
            "data_files" => self.one::<wire::DataFiles>().query::<wire::DataFilesQuery>(),
            "diff_data" => self.one::<wire::DataDiff>().query::<wire::DataDiffQuery>(),
            "list_storage" => self.items::<wire::Storage>(),
            "set_storage" => {
                let shape = self.one::<wire::Storage>();
                self.may_take::<wire::StorageSet>(shape)
            }
            "clean_runs" => {
                let shape = self.one::<wire::RunsCleaned>();
                self.may_take::<wire::RunsClean>(shape)
            }
            "experiment_shares" | "share_experiment" | "unshare_experiment" => {
                self.one::<wire::ExperimentShares>()
            }
            "model_shares" | "share_model" | "unshare_model" => self.one::<wire::ModelShares>(),
            "lineage" => self.one::<wire::Lineage>().query::<wire::LineageQuery>(),
            "run_recipe" => self.one::<wire::Recipe>().query::<wire::RecipeQuery>(),
            "list_volumes" => self.items::<wire::Volume>().query::<wire::VolumeQuery>(),
            "create_volume" => self.one::<wire::Volume>(),
            "delete_volume" => Self::done().query::<wire::VolumeDelete>(),
            _ => return None,
        })
    }

    fn sign_in(&mut self, id: &str) -> Option<Shape> {
        Some(match id {
            "session_options" => self.one::<wire::SessionOptions>(),
            "get_session" => self.one::<wire::Session>(),
            "sign_in" => {
                let shape = self.one::<wire::SignedIn>();
                self.takes::<wire::SignIn>(shape)
            }
            "sign_out" => self.one::<wire::SignedOut>(),
            "start_oidc" => Shape::new("303", "To the provider", None).text_query(&["next"]),
            "finish_oidc" => Shape::new("303", "To where the sign-in was begun for", None)
                .text_query(&["code", "state", "error"]),
            "start_device" => {
                let shape = self.made::<wire::DeviceStarted>();
                self.takes::<wire::DeviceStart>(shape)
            }
            "device_token" => {
                let shape = self.one::<wire::DeviceToken>();
                self.takes::<wire::DevicePoll>(shape)
            }
            "get_device" => self.one::<wire::DeviceAsk>(),
            "answer_device" => self.takes::<wire::DeviceAnswer>(Self::done()),
            "list_sessions" => self.items::<wire::OpenSession>(),
            "revoke_session" => Self::done(),
            _ => return None,
        })
    }

    fn admin(&mut self, id: &str) -> Option<Shape> {
        Some(match id {
            "list_templates" => self.items::<wire::Template>(),
            "get_template" => self.one::<wire::Template>(),
            "set_template" => {
                let shape = self.one::<wire::Template>();
                self.takes::<wire::TemplateSet>(shape)
            }
            "list_schedules" => self.items::<wire::Schedule>(),
            "get_schedule" | "pause_schedule" | "resume_schedule" => self.one::<wire::Schedule>(),
            "delete_template" | "delete_schedule" => Self::done(),
            "list_audit" => self.one::<wire::AuditList>().query::<wire::AuditQuery>(),
            "verify_audit" => self.one::<wire::AuditVerified>(),
            "rotate_audit_key" => self.one::<wire::AuditKeyRotated>(),
            "apply" | "diff" => {
                let shape = self.one::<wire::Diff>();
                self.takes::<wire::ApplyRequest>(shape)
            }
            "backup" => self.one::<wire::BackupDone>(),
            _ => return None,
        })
    }
}
