//! Messages that have to reach people outside: made here, kept in the outbox, sent by `mail`.

use crate::live::LiveJob;
use berth_api::wire;
use berth_ledger::Alert;
use berth_model::JobState;
use berth_model::run::{Moment, Notify, Via};
use berth_model::{BudgetAction, Time};
use berth_store::NoticeRow;
use serde_json::json;

/// Where alerts about budgets go: whoever the server's settings name.
pub const OPERATORS: &str = "operators";

/// The setting that says where messages to a target go.
pub fn setting(target: &str) -> String {
    format!("notify.{target}")
}

/// What a job's owner asked to be told of its end.
pub fn of_job(job: &LiveJob, at: Time) -> Vec<NoticeRow> {
    match job.row.state {
        JobState::Done => about(job, Moment::Done, at),
        JobState::Failed => about(job, Moment::Failed, at),
        _ => Vec::new(),
    }
}

/// The job has cost what it may.
pub fn of_budget_of_job(job: &LiveJob, at: Time) -> Vec<NoticeRow> {
    about(job, Moment::Budget, at)
}

fn about(job: &LiveJob, moment: Moment, at: Time) -> Vec<NoticeRow> {
    let ends = matches!(moment, Moment::Done | Moment::Failed);
    let wanted = |notify: &&Notify| notify.on.contains(&moment) || (notify.on.is_empty() && ends);
    let notify = job.detail.workload.run().into_iter().flat_map(|run| &run.notify);
    let all = notify.filter(wanted).enumerate();
    all.map(|(n, notify)| of(job, notify, n, at)).collect()
}

fn of(job: &LiveJob, notify: &Notify, n: usize, at: Time) -> NoticeRow {
    let row = &job.row;
    let text = format!("{} {} {}: {}", row.id, row.name, row.state.as_str(), row.reason);
    let body = json!({
        "text": text,
        "job": row.id.to_string(),
        "name": row.name,
        "team": row.team,
        "user": row.user,
        "state": row.state.as_str(),
        "cost_micros": row.cost.0,
    });
    let via = match notify.via {
        Via::Slack => "slack",
        Via::Webhook => "webhook",
    };
    NoticeRow {
        id: format!("job-{}-{}-{n}", row.id, row.state.as_str()),
        at,
        target: format!("{via}:{}", notify.to),
        body: body.to_string(),
        attempts: 0,
        next_at: at,
        sent: None,
    }
}

/// The alert as people see it live.
pub fn budget_alert(alert: &Alert) -> wire::EventKind {
    let code = if alert.action.is_some() { "budget-spent" } else { "budget-threshold" };
    let team = Some(alert.queue.to_string());
    wire::EventKind::Alert { code: code.to_owned(), text: words(alert), team }
}

pub fn of_budget(alert: &Alert, at: Time) -> NoticeRow {
    let body = json!({
        "text": words(alert),
        "team": alert.queue.to_string(),
        "spent_micros": alert.spent.0,
        "limit_micros": alert.limit.0,
        "threshold_milli": alert.threshold.0,
    });
    NoticeRow {
        id: format!("budget-{}-{}-{}", alert.queue, alert.threshold.0, at.0),
        at,
        target: OPERATORS.to_owned(),
        body: body.to_string(),
        attempts: 0,
        next_at: at,
        sent: None,
    }
}

fn words(alert: &Alert) -> String {
    let (queue, spent, limit) = (&alert.queue, alert.spent.money(), alert.limit.money());
    let follows = match alert.action {
        None => "",
        Some(BudgetAction::Notify) => "; nothing is stopped",
        Some(BudgetAction::Block) => "; no new job of it starts",
        Some(BudgetAction::LowerPriority) => "; its jobs go after all others",
        Some(BudgetAction::Pause) => "; its jobs are paused",
    };
    format!("{queue} has spent {spent} of its budget of {limit}{follows}")
}
