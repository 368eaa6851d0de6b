//! Jobs: submitted, looked at, acted on.

mod act;
pub(super) mod find;
pub(super) mod list;
mod logs;
mod output;
mod plan;
mod pod_shell;
mod shell;
pub(super) mod show;
pub(super) mod submit;
mod why;

use crate::app::App;
use axum::routing::{MethodFilter, MethodRouter, on};

pub(super) fn handler(id: &str, filter: MethodFilter) -> Option<MethodRouter<App>> {
    Some(match id {
        "list_jobs" => on(filter, list::list),
        "get_job" => on(filter, list::get),
        "job_file" => on(filter, list::file),
        "list_attempts" => on(filter, list::attempts),
        "submit_job" => on(filter, submit::submit),
        "clone_job" => on(filter, submit::clone),
        "plan_job" => on(filter, plan::plan),
        "why_job" => on(filter, why::why),
        "job_logs" => on(filter, logs::logs),
        "job_shell" => on(filter, shell::shell),
        "set_job" => on(filter, act::set),
        "stop_job" => on(filter, act::stop),
        "pause_job" => on(filter, act::pause),
        "resume_job" => on(filter, act::resume),
        _ => return None,
    })
}
