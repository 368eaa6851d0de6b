//! A function for each route.

use super::error::Result;
use super::stream::{Lines, Pieces};
use super::{Client, idempotency_key};
use crate::wire::*;
use std::time::Duration;

macro_rules! calls {
    ($($(#[doc = $doc:literal])* $name:ident = $id:literal ($($part:ident),*)
        $(query $query:ident)? $(body $body:ident)? => $out:ty;)*) => {
        impl Client {
            $($(#[doc = $doc])*
            pub async fn $name(
                &self $(, $part: &str)* $(, query: &$query)? $(, body: &$body)?
            ) -> Result<$out> {
                let call = self.call($id, &[$($part),*]);
                $(let call = call.query::<$query>(query)?;)?
                $(let call = call.body::<$body>(body)?;)?
                call.answer().await
            })*
        }

        #[cfg(test)]
        const CALLS: &[&str] = &[$($id),*];
    };
}

calls! {
    health = "health" () => Health;
    ready = "ready" () => Health;
    version = "version" () => Version;
    openapi = "openapi" () => serde_json::Value;
    me = "me" () => Me;
    config = "list_config" () => Items<ConfigEntry>;

    jobs = "list_jobs" () query JobQuery => JobList;
    /// By number or name.
    job = "get_job" (job) => Job;
    set_job = "set_job" (job) body JobChange => Job;
    why = "why_job" (job) => Why;
    attempts = "list_attempts" (job) => Items<Attempt>;
    job_figures = "job_figures" (job) query FigureQuery => JobFigures;
    stop_job = "stop_job" (job) body JobStop => Job;
    pause_job = "pause_job" (job) => Job;
    resume_job = "resume_job" (job) => Job;

    timeline = "job_timeline" (job) => Timeline;
    preview_stop = "preview_stop" (job) => StopPreview;
    search_logs = "search_logs" (job) query LogSearchQuery => LogMatches;
    files = "list_files" (job) query JobFileQuery => JobFileList;
    leases = "list_leases" () query LeaseQuery => LeaseList;
    gpu_figures = "gpu_figures" () query ClusterFigureQuery => ClusterFigures;
    preview_drain = "preview_drain" (node) => DrainPreview;
    cost_series = "cost_series" () query CostSeriesQuery => CostSeries;
    cost_rows = "cost_rows" () query CostRowsQuery => CostLines;
    cost_idle = "cost_idle" () query CostIdleQuery => CostIdle;
    budget_forecast = "budget_forecast" (queue) => BudgetForecast;

    queues = "list_queues" () => Items<Queue>;
    queue = "get_queue" (queue) => Queue;
    shares = "list_shares" () => Items<Share>;
    gpus = "list_gpus" () => Items<Gpu>;
    nodes = "list_nodes" () => Items<Node>;
    node = "get_node" (node) => Node;
    node_figures = "node_figures" (node) query FigureQuery => NodeFigures;
    drain_node = "drain_node" (node) query NodeChange => Node;
    cordon_node = "cordon_node" (node) query NodeChange => Node;
    resume_node = "resume_node" (node) => Node;

    cost = "list_cost" () query CostQuery => CostReport;
    budgets = "list_budgets" () => Items<Budget>;
    set_budget = "set_budget" (queue) body BudgetSet => Budget;
    delete_budget = "delete_budget" (queue) => ();

    session_options = "session_options" () => SessionOptions;
    session = "get_session" () => Session;
    sign_in = "sign_in" () body SignIn => SignedIn;
    sign_out = "sign_out" () => SignedOut;
    start_device = "start_device" () body DeviceStart => DeviceStarted;
    device_token = "device_token" () body DevicePoll => DeviceToken;
    device = "get_device" (code) => DeviceAsk;
    answer_device = "answer_device" (code) body DeviceAnswer => ();
    sessions = "list_sessions" () => Items<OpenSession>;
    revoke_session = "revoke_session" (session) => ();

    tokens = "list_tokens" () => Items<Token>;
    create_token = "create_token" () body TokenCreate => TokenCreated;
    revoke_token = "revoke_token" (token) => ();
    users = "list_users" () => Items<User>;
    create_user = "create_user" () body UserCreate => User;
    delete_user = "delete_user" (user) query Removal => ();
    teams = "list_teams" () => Items<Team>;
    create_team = "create_team" () body Team => Team;
    delete_team = "delete_team" (team) => ();
    members = "list_members" (team) => Items<Member>;
    set_member = "set_member" (team, user) body MemberSet => Member;
    delete_member = "delete_member" (team, user) => ();
    projects = "list_projects" () => Items<Project>;
    create_project = "create_project" () body Project => Project;
    delete_project = "delete_project" (project) query Removal => ();
    secrets = "list_secrets" () => Items<Secret>;
    set_secret = "set_secret" (team, secret) body SecretSet => Secret;
    delete_secret = "delete_secret" (team, secret) => ();
    code = "get_code" (team, id) => CodeSnapshot;
    data = "list_data" () query DataQuery => Items<DataVersion>;
    make_data = "make_data" (team) body DataMake => DataVersion;
    missing_data = "missing_data" (team) body DataAsk => DataMissing;
    clean_data = "clean_data" (team) body DataClean => DataCleaned;
    data_version = "get_data" (team, data) => DataVersion;
    delete_data = "delete_data" (team, data) => ();
    data_files = "data_files" (team, data) query DataFilesQuery => DataFiles;
    diff_data = "diff_data" (team, data) query DataDiffQuery => DataDiff;
    storage = "list_storage" () => Items<Storage>;
    set_storage = "set_storage" (team) body StorageSet => Storage;
    volumes = "list_volumes" () query VolumeQuery => Items<Volume>;
    create_volume = "create_volume" (team, volume) => Volume;
    delete_volume = "delete_volume" (team, volume) query VolumeDelete => ();

    returns = "experiment_returns" () query ReturnsQuery => Returns;
    clean_runs = "clean_runs" () body RunsClean => RunsCleaned;
    experiment_shares = "experiment_shares" (team, experiment) => ExperimentShares;
    share_experiment = "share_experiment" (team, experiment, with) => ExperimentShares;
    unshare_experiment = "unshare_experiment" (team, experiment, with) => ExperimentShares;
    model_shares = "model_shares" (team, registered_model) => ModelShares;
    share_model = "share_model" (team, registered_model, with) => ModelShares;
    unshare_model = "unshare_model" (team, registered_model, with) => ModelShares;
    lineage = "lineage" () query LineageQuery => Lineage;
    recipe = "run_recipe" (run) query RecipeQuery => Recipe;

    templates = "list_templates" () => Items<Template>;
    template = "get_template" (template) => Template;
    set_template = "set_template" (template) body TemplateSet => Template;
    delete_template = "delete_template" (template) => ();
    schedules = "list_schedules" () => Items<Schedule>;
    schedule = "get_schedule" (schedule) => Schedule;
    pause_schedule = "pause_schedule" (schedule) => Schedule;
    resume_schedule = "resume_schedule" (schedule) => Schedule;
    delete_schedule = "delete_schedule" (schedule) => ();

    audit = "list_audit" () query AuditQuery => AuditList;
    verify_audit = "verify_audit" () => AuditVerified;
    rotate_audit_key = "rotate_audit_key" () => AuditKeyRotated;
    policy = "get_policy" () => Policy;
    apply = "apply" () body ApplyRequest => Diff;
    diff = "diff" () body ApplyRequest => Diff;
    world = "get_world" () => WorldText;
    backup = "backup" () => BackupDone;
}

const YAML: &str = "application/yaml";
/// A server gives an upload up before.
const LONGEST_UPLOAD: Duration = Duration::from_secs(590);
/// A server gives a check up before.
const LONGEST_CHECK: Duration = Duration::from_secs(58);

impl Client {
    /// Submits a job file. A request whose answer was lost is sent again under the same key, and
    /// makes one job.
    pub async fn submit(&self, file: &str, query: &SubmitQuery) -> Result<JobSubmitted> {
        self.submit_as(file, query, idempotency_key()?).await
    }

    /// The same under a key of the caller's, who may have to start anew in between.
    pub async fn submit_as(
        &self,
        file: &str,
        query: &SubmitQuery,
        key: String,
    ) -> Result<JobSubmitted> {
        self.call("submit_job", &[]).query(query)?.text(YAML, file).key(key).answer().await
    }

    /// Submits the file of a job anew, with changes; like a submission, it makes one job.
    pub async fn clone_job(&self, job: &str, changes: &JobClone) -> Result<JobSubmitted> {
        let call = self.call("clone_job", &[job]).body(changes)?;
        call.key(idempotency_key()?).answer().await
    }

    /// Puts a GPU back. That takes as long as its check.
    pub async fn resume_gpu(&self, node: &str, gpu: &str, how: &GpuResume) -> Result<Gpu> {
        let call = self.call("resume_gpu", &[node, gpu]).body(how)?;
        call.longest(LONGEST_CHECK).answer().await
    }

    /// What would become of a job file.
    pub async fn plan(&self, file: &str, query: &SubmitQuery) -> Result<Plan> {
        self.call("plan_job", &[]).query(query)?.text(YAML, file).answer().await
    }

    /// The job file as it was submitted.
    pub async fn job_file(&self, job: &str) -> Result<String> {
        self.call("job_file", &[job]).answer_text().await
    }

    /// What time the server has, as its answers say in their header `Date`.
    pub async fn date(&self) -> Result<Option<String>> {
        self.call("version", &[]).date().await
    }

    pub async fn metrics(&self) -> Result<String> {
        self.call("metrics", &[]).answer_text().await
    }

    /// What a job printed; with `follow`, until it ends.
    pub async fn logs(&self, job: &str, query: &LogQuery) -> Result<Logs> {
        let call = self.call("job_logs", &[job]).query(query)?;
        call.lines("application/x-ndjson").await.map(Logs)
    }

    /// A file of a job, piece by piece.
    pub async fn file(&self, job: &str, query: &JobFileQuery) -> Result<Pieces> {
        self.call("get_file", &[job]).query(query)?.pieces().await
    }

    /// Sends a snapshot of code.
    pub async fn put_code(&self, team: &str, id: &str, packed: Vec<u8>) -> Result<CodeSnapshot> {
        let call = self.call("put_code", &[team, id]).bytes_of("application/octet-stream", packed);
        call.longest(LONGEST_UPLOAD).answer().await
    }

    /// A snapshot of code, piece by piece.
    pub async fn code_content(&self, team: &str, id: &str) -> Result<Pieces> {
        self.call("code_content", &[team, id]).pieces().await
    }

    /// The same as a table, of one of the routes about cost.
    pub async fn cost_csv<Q: serde::Serialize>(
        &self,
        route: &'static str,
        query: &Q,
    ) -> Result<String> {
        self.call(route, &[]).query(query)?.answer_text().await
    }

    /// What happens, as it happens.
    pub async fn events(&self, query: &EventQuery) -> Result<Events> {
        let call = self.call("stream_events", &[]).query(query)?;
        call.lines("text/event-stream").await.map(Events)
    }
}

/// The chunks of a log.
#[derive(Debug)]
pub struct Logs(Lines);

impl Logs {
    pub async fn next(&mut self) -> Result<Option<LogChunk>> {
        self.0.next_json().await
    }
}

/// A stream of events. After it breaks, ask again for those after the last `seq`.
#[derive(Debug)]
pub struct Events(Lines);

impl Events {
    pub async fn next(&mut self) -> Result<Option<Event>> {
        self.0.next_event().await
    }
}

#[cfg(test)]
mod tests {
    use super::CALLS;
    use crate::routes::ROUTES;
    use std::collections::BTreeSet;

    /// Routes with functions that are written out, above and beside.
    const WRITTEN: [&str; 12] = [
        "put_code",
        "code_content",
        "get_file",
        "resume_gpu",
        "submit_job",
        "clone_job",
        "plan_job",
        "job_file",
        "metrics",
        "job_logs",
        "stream_events",
        "job_shell",
    ];

    /// Where only browsers go.
    const BROWSED: [&str; 2] = ["start_oidc", "finish_oidc"];

    #[test]
    fn there_is_a_function_for_every_route() {
        let known = CALLS.iter().chain(&WRITTEN).chain(&BROWSED).copied();
        let routes = ROUTES.iter().map(|route| route.id);
        assert_eq!(known.collect::<BTreeSet<_>>(), routes.collect::<BTreeSet<_>>());
    }
}
