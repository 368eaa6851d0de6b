//! Every route of the server, once. The server's handlers, the client's calls, the OpenAPI
//! document and docs/authorization.md are checked against this table.

use crate::access::Permission::{self, *};
use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// Its name in the OpenAPI document.
    pub id: &'static str,
    pub method: Method,
    pub path: &'static str,
    /// What it takes; some handlers ask for more, depending on what is in the request.
    pub permission: Permission,
    /// One sentence, without a full stop.
    pub about: &'static str,
}

impl Route {
    /// Whether it answers without a token.
    pub fn is_public(&self) -> bool {
        matches!(self.permission, Permission::Public | Permission::SignIn)
    }
}

const fn route(
    method: Method,
    path: &'static str,
    permission: Permission,
    id: &'static str,
    about: &'static str,
) -> Route {
    Route { id, method, path, permission, about }
}

use Method::{Delete, Get, Patch, Post, Put};

#[rustfmt::skip]
pub const ROUTES: &[Route] = &[
    route(Get, "/healthz", Public, "health", "Says that the server runs"),
    route(Get, "/readyz", Public, "ready", "Says whether the server takes requests"),
    route(Get, "/openapi.json", Public, "openapi", "The description of this API"),
    route(Get, "/metrics", MetricsRead, "metrics", "Figures for Prometheus"),
    route(Get, "/v1/version", Public, "version", "Which version the server is"),
    route(Get, "/v1/me", ClusterRead, "me", "Shows your identity and permissions"),
    route(Get, "/v1/config", ConfigRead, "list_config", "The settings of the server, and where each comes from"),

    route(Get, "/v1/jobs", JobsRead, "list_jobs", "Jobs, newest first, page by page"),
    route(Post, "/v1/jobs", JobsSubmit, "submit_job", "Submits a job file"),
    route(Post, "/v1/plan", JobsPlan, "plan_job", "Says what would become of a job file, and changes nothing"),
    route(Get, "/v1/jobs/{job}", JobsRead, "get_job", "One job, by number or name"),
    route(Patch, "/v1/jobs/{job}", JobsControl, "set_job", "Changes priority, time, deadline, team or hold of a job"),
    route(Get, "/v1/jobs/{job}/why", JobsRead, "why_job", "Why a job waits, until when, and what would start it sooner"),
    route(Get, "/v1/jobs/{job}/file", JobsRead, "job_file", "The job file as it was submitted"),
    route(Get, "/v1/jobs/{job}/attempts", JobsRead, "list_attempts", "Where and how a job ran"),
    route(Get, "/v1/jobs/{job}/figures", JobsRead, "job_figures", "What a job and its GPUs did over time, with a summary"),
    route(Get, "/v1/jobs/{job}/logs", LogsRead, "job_logs", "What a job printed, and goes on printing"),
    route(Post, "/v1/jobs/{job}/stop", JobsControl, "stop_job", "Ends a job"),
    route(Post, "/v1/jobs/{job}/pause", JobsControl, "pause_job", "Stops a job with its checkpoint, until it is resumed"),
    route(Post, "/v1/jobs/{job}/resume", JobsControl, "resume_job", "Lets a paused or held job run on"),
    route(Post, "/v1/jobs/{job}/clone", JobsSubmit, "clone_job", "Submits the file of a job anew, with changes"),
    route(Get, "/v1/jobs/{job}/shell", JobsShell, "job_shell", "A terminal in a running job, over a WebSocket"),

    route(Get, "/v1/jobs/{job}/timeline", JobsRead, "job_timeline", "When a job waited, ran, saved and was preempted, and for which job"),
    route(Get, "/v1/jobs/{job}/stop/preview", JobsRead, "preview_stop", "What ending a job would lose, and who would start"),
    route(Get, "/v1/jobs/{job}/logs/search", LogsRead, "search_logs", "Lines of what a job printed, in all attempts and ranks"),
    route(Get, "/v1/jobs/{job}/files", LogsRead, "list_files", "What is in the folder of a job"),
    route(Get, "/v1/jobs/{job}/files/content", LogsRead, "get_file", "A file of a job, in whole or in part"),
    route(Get, "/v1/leases", ClusterRead, "list_leases", "Who had which GPUs in a time, has them, and gets them by the plan of now"),
    route(Get, "/v1/gpus/figures", ClusterRead, "gpu_figures", "One figure of all GPUs over time"),
    route(Get, "/v1/nodes/{node}/drain/preview", ClusterRead, "preview_drain", "What draining a machine would stop, and what that would lose"),
    route(Get, "/v1/cost/series", CostRead, "cost_series", "What was spent by the day or hour"),
    route(Get, "/v1/cost/rows", CostRead, "cost_rows", "The single rows that a cost is made of"),
    route(Get, "/v1/cost/idle", CostRead, "cost_idle", "What was paid for and brought nothing, by cause"),
    route(Get, "/v1/budgets/{queue}/forecast", BudgetsRead, "budget_forecast", "How a budget burns down, and when it will be spent"),

    route(Get, "/v1/queues", ClusterRead, "list_queues", "Queues with what they use, and who waits"),
    route(Get, "/v1/queues/{queue}", ClusterRead, "get_queue", "One queue with the order of its waiting jobs"),
    route(Get, "/v1/shares", ClusterRead, "list_shares", "Who is entitled to what, and why"),
    route(Get, "/v1/gpus", ClusterRead, "list_gpus", "GPUs, and which are free"),
    route(Get, "/v1/nodes", ClusterRead, "list_nodes", "Machines"),
    route(Get, "/v1/nodes/{node}", ClusterRead, "get_node", "One machine"),
    route(Get, "/v1/nodes/{node}/figures", ClusterRead, "node_figures", "What the GPUs of a machine did over time"),
    route(Post, "/v1/nodes/{node}/drain", NodesManage, "drain_node", "Lets a machine take no work, and moves what runs there"),
    route(Post, "/v1/nodes/{node}/cordon", NodesManage, "cordon_node", "Lets a machine take no new work"),
    route(Post, "/v1/nodes/{node}/resume", NodesManage, "resume_node", "Lets a machine take work again"),
    route(Post, "/v1/nodes/{node}/gpus/{gpu}/resume", NodesManage, "resume_gpu", "Checks a GPU that had failed, and puts it back if it is well again"),

    route(Get, "/v1/cost", CostRead, "list_cost", "What was spent, by any of team, project, experiment, user and job"),
    route(Get, "/v1/budgets", BudgetsRead, "list_budgets", "Budgets and what is left of them"),
    route(Put, "/v1/budgets/{queue}", BudgetsManage, "set_budget", "Sets the budget of a queue"),
    route(Delete, "/v1/budgets/{queue}", BudgetsManage, "delete_budget", "Removes the budget of a queue"),

    route(Get, "/v1/session/options", Public, "session_options", "How one can sign in with a browser"),
    route(Get, "/v1/session", ClusterRead, "get_session", "Who is signed in with this browser, and until when"),
    route(Post, "/v1/session", SignIn, "sign_in", "Signs a browser in with a token"),
    route(Delete, "/v1/session", SignIn, "sign_out", "Signs this browser out"),
    route(Get, "/v1/session/oidc/start", Public, "start_oidc", "Sends a browser to the provider of identities"),
    route(Get, "/v1/session/oidc/callback", Public, "finish_oidc", "Signs a browser in that comes back from there"),
    route(Post, "/v1/session/device", SignIn, "start_device", "Gives a command line a code to sign in by"),
    route(Post, "/v1/session/device/token", SignIn, "device_token", "Returns a token after a user has approved the device"),
    route(Get, "/v1/session/device/{code}", TokensRead, "get_device", "Which command line shows a code"),
    route(Post, "/v1/session/device/{code}", TokensManage, "answer_device", "Lets a command line sign in as oneself, or not"),
    route(Get, "/v1/sessions", TokensRead, "list_sessions", "Browsers in which one is signed in"),
    route(Delete, "/v1/sessions/{session}", TokensManage, "revoke_session", "Signs a browser out at once"),

    route(Get, "/v1/tokens", TokensRead, "list_tokens", "One's tokens, without their secrets"),
    route(Post, "/v1/tokens", TokensManage, "create_token", "Makes a token, whose secret is shown this once"),
    route(Delete, "/v1/tokens/{token}", TokensManage, "revoke_token", "Ends a token at once"),
    route(Get, "/v1/users", UsersRead, "list_users", "People"),
    route(Post, "/v1/users", UsersManage, "create_user", "Adds a person"),
    route(Delete, "/v1/users/{user}", UsersManage, "delete_user", "Removes a person with all tokens"),
    route(Get, "/v1/teams", ClusterRead, "list_teams", "Teams"),
    route(Post, "/v1/teams", TeamsManage, "create_team", "Adds a team"),
    route(Delete, "/v1/teams/{team}", TeamsManage, "delete_team", "Removes a team without jobs, volumes and data, with all that it tracked"),
    route(Get, "/v1/teams/{team}/members", MembersRead, "list_members", "Members of a team"),
    route(Put, "/v1/teams/{team}/members/{user}", MembersManage, "set_member", "Gives a person a role in a team"),
    route(Delete, "/v1/teams/{team}/members/{user}", MembersManage, "delete_member", "Takes a person out of a team"),
    route(Get, "/v1/projects", ProjectsRead, "list_projects", "Projects"),
    route(Post, "/v1/projects", ProjectsManage, "create_project", "Adds a project to a team"),
    route(Delete, "/v1/projects/{project}", ProjectsManage, "delete_project", "Removes a project"),
    route(Get, "/v1/secrets", SecretsRead, "list_secrets", "Names of secrets"),
    route(Put, "/v1/secrets/{team}/{secret}", SecretsManage, "set_secret", "Keeps a secret, or changes it"),
    route(Delete, "/v1/secrets/{team}/{secret}", SecretsManage, "delete_secret", "Forgets a secret"),
    route(Get, "/v1/volumes", VolumesRead, "list_volumes", "Named volumes of teams, and which jobs use them"),
    route(Put, "/v1/volumes/{team}/{volume}", VolumesManage, "create_volume", "Makes an empty volume, or leaves the one there is"),
    route(Delete, "/v1/volumes/{team}/{volume}", VolumesManage, "delete_volume", "Deletes a volume with all that is in it"),

    route(Get, "/v1/code/{team}/{code}", LogsRead, "get_code", "Says whether a snapshot of code is kept"),
    route(Put, "/v1/code/{team}/{code}", JobsSubmit, "put_code", "Keeps a snapshot of code for the jobs of a team"),
    route(Get, "/v1/code/{team}/{code}/content", LogsRead, "code_content", "A snapshot of code, packed"),

    route(Get, "/v1/data", DataRead, "list_data", "Versions of data"),
    route(Post, "/v1/data/{team}", DataWrite, "make_data", "Names a version of data that was pushed"),
    route(Post, "/v1/objects/{team}/missing", DataRead, "missing_data", "Says which objects a team has not pushed"),
    route(Post, "/v1/objects/{team}/clean", DataClean, "clean_data", "Removes what was pushed and no version of data names"),
    route(Get, "/v1/data/{team}/{data}", DataRead, "get_data", "One version of data, or the newest of a name"),
    route(Delete, "/v1/data/{team}/{data}", DataManage, "delete_data", "Removes a version of data"),
    route(Get, "/v1/data/{team}/{data}/files", DataRead, "data_files", "The files of a version of data"),
    route(Get, "/v1/data/{team}/{data}/diff", DataRead, "diff_data", "What is different between two versions of data"),
    route(Get, "/v1/storage", ArtifactsRead, "list_storage", "What teams keep in the store of objects, and may keep"),
    route(Put, "/v1/storage/{team}", StorageManage, "set_storage", "Sets what a team may keep in the store of objects"),

    route(Get, "/v1/experiments/returns", LogsRead, "experiment_returns", "The cost of experiments or projects and their results"),
    route(Get, "/v1/experiments/{team}/{experiment}/shares", LogsRead, "experiment_shares", "Other teams that may read an experiment"),
    route(Put, "/v1/experiments/{team}/{experiment}/shares/{with}", JobsControl, "share_experiment", "Lets another team read an experiment"),
    route(Delete, "/v1/experiments/{team}/{experiment}/shares/{with}", JobsControl, "unshare_experiment", "Stops sharing an experiment with another team"),
    route(Get, "/v1/models/{team}/{registered_model}/shares", LogsRead, "model_shares", "Other teams that may read a registered model"),
    route(Put, "/v1/models/{team}/{registered_model}/shares/{with}", JobsControl, "share_model", "Lets another team read a registered model"),
    route(Delete, "/v1/models/{team}/{registered_model}/shares/{with}", JobsControl, "unshare_model", "Stops sharing a registered model with another team"),
    route(Get, "/v1/lineage", LogsRead, "lineage", "Inputs and outputs of a model, a run, a job or a version of data"),
    route(Post, "/v1/runs/clean", StorageManage, "clean_runs", "Removes deleted runs and experiments for good"),
    route(Get, "/v1/runs/{run}/recipe", LogsRead, "run_recipe", "The job file, code and data that repeat a run, and what has changed since"),

    route(Get, "/v1/templates", TemplatesRead, "list_templates", "Templates"),
    route(Get, "/v1/templates/{template}", TemplatesRead, "get_template", "One template"),
    route(Put, "/v1/templates/{template}", TemplatesManage, "set_template", "Keeps a job file as a template"),
    route(Delete, "/v1/templates/{template}", TemplatesManage, "delete_template", "Removes a template"),
    route(Get, "/v1/schedules", SchedulesRead, "list_schedules", "Schedules"),
    route(Get, "/v1/schedules/{schedule}", SchedulesRead, "get_schedule", "One schedule"),
    route(Post, "/v1/schedules/{schedule}/pause", SchedulesManage, "pause_schedule", "Lets a schedule make no jobs"),
    route(Post, "/v1/schedules/{schedule}/resume", SchedulesManage, "resume_schedule", "Lets a schedule make jobs again"),
    route(Delete, "/v1/schedules/{schedule}", SchedulesManage, "delete_schedule", "Removes a schedule"),

    route(Get, "/v1/audit", AuditRead, "list_audit", "Who changed what, newest first"),
    route(Get, "/v1/audit/verify", AuditRead, "verify_audit", "Checks that the audit log is whole"),
    route(Post, "/v1/audit/rotate-key", AuditManage, "rotate_audit_key", "Signs the audit log with a new key from now on"),
    route(Get, "/v1/policy", ClusterRead, "get_policy", "How the scheduler behaves"),
    route(Post, "/v1/apply", QueuesManage, "apply", "Makes teams, queues, policy, budgets, classes, prices and projects as files say"),
    route(Post, "/v1/diff", QueuesRead, "diff", "Says what applying files would change"),
    route(Get, "/v1/events", ClusterRead, "stream_events", "Streams the events that the caller may see"),
    route(Get, "/v1/world", WorldRead, "get_world", "The live state as a world file"),
    route(Post, "/v1/backup", Backup, "backup", "Writes a backup beside the database"),
];

/// Routes whose requests and answers the clients of other programs decide: those of MLflow and of DVC.
/// They take a token as `Bearer`, or as the password of `Basic`.
#[rustfmt::skip]
pub const FOREIGN: &[Route] = &[
    route(Get, "/v1/dvc/{team}/{*path}", DataRead, "dvc_get", "An object of a remote of DVC"),
    route(Put, "/v1/dvc/{team}/{*path}", DataWrite, "dvc_put", "Keeps an object of a remote of DVC"),
    route(Post, "/v1/dvc/{team}/{*path}", DataWrite, "dvc_post", "Keeps an object of a remote of DVC"),

    route(Get, "/api/2.0/mlflow-artifacts/artifacts", ArtifactsRead, "artifact_list", "What is in a folder of artifacts"),
    route(Get, "/api/2.0/mlflow-artifacts/artifacts/{*path}", ArtifactsRead, "artifact_get", "An artifact, in whole or in part"),
    route(Put, "/api/2.0/mlflow-artifacts/artifacts/{*path}", ArtifactsWrite, "artifact_put", "Keeps an artifact"),
    route(Delete, "/api/2.0/mlflow-artifacts/artifacts/{*path}", ArtifactsWrite, "artifact_delete", "Deletes an artifact, or a folder of artifacts"),
    route(Post, "/api/2.0/mlflow-artifacts/mpu/create/{*path}", ArtifactsWrite, "artifact_parts_create", "Begins an artifact that comes in parts"),
    route(Post, "/api/2.0/mlflow-artifacts/mpu/complete/{*path}", ArtifactsWrite, "artifact_parts_complete", "Puts the parts of an artifact together"),
    route(Post, "/api/2.0/mlflow-artifacts/mpu/abort/{*path}", ArtifactsWrite, "artifact_parts_abort", "Gives the parts of an artifact up"),
    route(Put, "/api/2.0/mlflow-artifacts/mpu/part/{upload}/{part}", SignIn, "artifact_part", "Keeps a part of an artifact, for who has the secret of its upload"),
    route(Get, "/api/2.0/mlflow-artifacts/presigned/{*path}", ArtifactsRead, "artifact_presigned", "Says that there are no presigned addresses"),

    route(Get, "/ajax-api/2.0/mlflow-artifacts/artifacts", ArtifactsRead, "artifact_list", "What is in a folder of artifacts"),
    route(Get, "/ajax-api/2.0/mlflow-artifacts/artifacts/{*path}", ArtifactsRead, "artifact_get", "An artifact, in whole or in part"),
    route(Put, "/ajax-api/2.0/mlflow-artifacts/artifacts/{*path}", ArtifactsWrite, "artifact_put", "Keeps an artifact"),
    route(Delete, "/ajax-api/2.0/mlflow-artifacts/artifacts/{*path}", ArtifactsWrite, "artifact_delete", "Deletes an artifact, or a folder of artifacts"),
    route(Post, "/ajax-api/2.0/mlflow-artifacts/mpu/create/{*path}", ArtifactsWrite, "artifact_parts_create", "Begins an artifact that comes in parts"),
    route(Post, "/ajax-api/2.0/mlflow-artifacts/mpu/complete/{*path}", ArtifactsWrite, "artifact_parts_complete", "Puts the parts of an artifact together"),
    route(Post, "/ajax-api/2.0/mlflow-artifacts/mpu/abort/{*path}", ArtifactsWrite, "artifact_parts_abort", "Gives the parts of an artifact up"),
    route(Get, "/ajax-api/2.0/mlflow-artifacts/presigned/{*path}", ArtifactsRead, "artifact_presigned", "Says that there are no presigned addresses"),
];

/// The route of that name.
pub fn named(id: &str) -> Option<&'static Route> {
    ROUTES.iter().chain(FOREIGN).find(|route| route.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_routes_share_a_name_or_a_method_and_path() {
        let names: BTreeSet<&str> = ROUTES.iter().map(|route| route.id).collect();
        let places: BTreeSet<(Method, &str)> =
            ROUTES.iter().map(|route| (route.method, route.path)).collect();
        assert_eq!((names.len(), places.len()), (ROUTES.len(), ROUTES.len()));
    }

    #[test]
    fn the_routes_of_other_programs_meet_none_of_ours_and_none_is_open_but_that_of_parts() {
        let all = || ROUTES.iter().chain(FOREIGN);
        let places: BTreeSet<(Method, &str)> =
            all().map(|route| (route.method, route.path)).collect();
        assert_eq!(places.len(), all().count());
        let open = FOREIGN.iter().filter(|route| route.is_public());
        assert_eq!(open.map(|route| route.id).collect::<Vec<_>>(), ["artifact_part"]);
        let ours: BTreeSet<&str> = ROUTES.iter().map(|route| route.id).collect();
        assert!(FOREIGN.iter().all(|route| !ours.contains(route.id)));
    }

    #[test]
    fn what_a_route_only_reads_is_got() {
        for route in ROUTES {
            let reads = route.permission.reads();
            let terminal = route.id == "job_shell";
            let asks = matches!(route.id, "plan_job" | "diff" | "missing_data");
            assert_eq!(reads, (route.method == Get && !terminal) || asks, "{}", route.id);
        }
    }

    #[test]
    fn only_health_version_the_description_and_signing_in_are_public() {
        let public: Vec<&str> =
            ROUTES.iter().filter(|route| route.is_public()).map(|route| route.path).collect();
        let expect = [
            "/healthz",
            "/readyz",
            "/openapi.json",
            "/v1/version",
            "/v1/session/options",
            "/v1/session",
            "/v1/session",
            "/v1/session/oidc/start",
            "/v1/session/oidc/callback",
            "/v1/session/device",
            "/v1/session/device/token",
        ];
        assert_eq!(public, expect);
    }
}
