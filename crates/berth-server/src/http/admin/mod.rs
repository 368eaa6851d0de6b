//! Templates, schedules, the audit log and backups.

mod audit;
mod backup;
mod schedules;
mod templates;

pub(super) use templates::named as template;

use crate::app::App;
use axum::routing::{MethodFilter, MethodRouter, on};

pub(super) fn handler(id: &str, filter: MethodFilter) -> Option<MethodRouter<App>> {
    Some(match id {
        "list_templates" => on(filter, templates::list),
        "get_template" => on(filter, templates::get),
        "set_template" => on(filter, templates::set),
        "delete_template" => on(filter, templates::delete),
        "list_schedules" => on(filter, schedules::list),
        "get_schedule" => on(filter, schedules::get),
        "pause_schedule" => on(filter, schedules::pause),
        "resume_schedule" => on(filter, schedules::resume),
        "delete_schedule" => on(filter, schedules::delete),
        "list_audit" => on(filter, audit::list),
        "verify_audit" => on(filter, audit::verify),
        "backup" => on(filter, backup::backup),
        _ => return None,
    })
}
