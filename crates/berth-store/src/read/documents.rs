//! What is kept by name, found by something else than its name.

use crate::error::Result;
use crate::rows::{
    IdentityRow, MemberRow, NoticeRow, ProjectRow, ScheduleRow, SecretRow, SessionRow, TemplateRow,
    TokenRow,
};
use crate::store::Store;
use crate::value::{Binds, Field, Reader, Value};
use berth_model::Time;
use std::collections::BTreeSet;

/// Which notices to read of those that are due.
#[derive(Debug, Clone, Copy)]
pub struct DueNotices<'a> {
    /// To targets that have a name, or to those that are addresses themselves.
    pub named: bool,
    /// Ids to leave out.
    pub skip: &'a BTreeSet<String>,
    pub skip_targets: &'a BTreeSet<String>,
    pub limit: u32,
}

impl Store {
    pub async fn members_of(&self, team: &str) -> Result<Vec<MemberRow>> {
        self.rows_where("team", text(team)).await
    }

    /// The teams of a user, with the role in each.
    pub async fn memberships_of(&self, user: &str) -> Result<Vec<MemberRow>> {
        self.rows_where("user", text(user)).await
    }

    pub async fn projects_of(&self, team: &str) -> Result<Vec<ProjectRow>> {
        self.rows_where("team", text(team)).await
    }

    pub async fn tokens_of(&self, user: &str) -> Result<Vec<TokenRow>> {
        self.rows_where("user", text(user)).await
    }

    /// Those that were made by a token.
    pub async fn tokens_made_by(&self, token: &str) -> Result<Vec<TokenRow>> {
        self.rows_where("parent", text(token)).await
    }

    /// Those that were made by a session.
    pub async fn tokens_made_in(&self, session: &str) -> Result<Vec<TokenRow>> {
        self.rows_where("session", text(session)).await
    }

    pub async fn sessions_of(&self, user: &str) -> Result<Vec<SessionRow>> {
        self.rows_where("user", text(user)).await
    }

    /// Sessions that end after a moment and were used after another.
    pub async fn count_sessions(&self, now: Time, used_after: Time) -> Result<u64> {
        let mut binds = Binds::default();
        let now = binds.mark(Value::Int(Some(now.0)));
        let used = binds.mark(Value::Int(Some(used_after.0)));
        let sql =
            format!("SELECT COUNT(*) FROM sessions WHERE expires > {now} AND last_used > {used}");
        let rows = self.rows("sessions", sql, binds).await?;
        let count = rows.first().map_or(Ok(0), |row| u64::read(&mut Reader::new(row)));
        count.map_err(|why| self.unreadable("a count of sessions", why))
    }

    pub async fn identities_of(&self, user: &str) -> Result<Vec<IdentityRow>> {
        self.rows_where("user", text(user)).await
    }

    pub async fn secrets_of(&self, team: &str) -> Result<Vec<SecretRow>> {
        self.rows_where("team", text(team)).await
    }

    pub async fn templates_of(&self, team: &str) -> Result<Vec<TemplateRow>> {
        self.rows_where("team", text(team)).await
    }

    /// Schedules whose time has come, those that have waited longest first.
    pub async fn due_schedules(&self, now: Time, limit: u32) -> Result<Vec<ScheduleRow>> {
        let mut binds = Binds::default();
        let now = binds.mark(Value::Int(Some(now.0)));
        let due =
            format!("WHERE paused = 0 AND next_at <= {now} ORDER BY next_at, id LIMIT {limit}");
        self.select(&due, binds).await
    }

    /// The number of unsent messages to a target.
    pub async fn waiting_notices(&self, target: &str) -> Result<u64> {
        let mut binds = Binds::default();
        let target = binds.mark(text(target));
        let sql = format!("SELECT COUNT(*) FROM notices WHERE sent IS NULL AND target = {target}");
        let rows = self.rows("notices", sql, binds).await?;
        let count = rows.first().map_or(Ok(0), |row| u64::read(&mut Reader::new(row)));
        count.map_err(|why| self.unreadable("a count of notices", why))
    }

    /// Notices that are to be sent now, those that have waited longest first.
    pub async fn due_notices(&self, now: Time, due: DueNotices<'_>) -> Result<Vec<NoticeRow>> {
        let DueNotices { named, skip, skip_targets, limit } = due;
        let mut binds = Binds::default();
        let now = binds.mark(Value::Int(Some(now.0)));
        let not = if named { "NOT " } else { "" };
        let mut terms = format!("sent IS NULL AND next_at <= {now} AND target {not}LIKE '%://%'");
        for (column, values) in [("id", skip), ("target", skip_targets)] {
            if !values.is_empty() {
                let marks: Vec<String> =
                    values.iter().map(|value| binds.mark(text(value))).collect();
                terms.push_str(&format!(" AND {column} NOT IN ({})", marks.join(", ")));
            }
        }
        self.select(&format!("WHERE {terms} ORDER BY next_at, id LIMIT {limit}"), binds).await
    }
}

fn text(text: &str) -> Value {
    Value::Text(Some(text.to_owned()))
}
