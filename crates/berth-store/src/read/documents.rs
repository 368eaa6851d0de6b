//! What is kept by name, found by something else than its name.

use crate::error::Result;
use crate::rows::{
    MemberRow, NoticeRow, ProjectRow, ScheduleRow, SecretRow, TemplateRow, TokenRow,
};
use crate::store::Store;
use crate::value::{Binds, Value};
use berth_model::Time;

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

    /// Notices that are to be sent now, those that have waited longest first.
    pub async fn due_notices(&self, now: Time, limit: u32) -> Result<Vec<NoticeRow>> {
        let mut binds = Binds::default();
        let now = binds.mark(Value::Int(Some(now.0)));
        let due =
            format!("WHERE sent IS NULL AND next_at <= {now} ORDER BY next_at, id LIMIT {limit}");
        self.select(&due, binds).await
    }
}

fn text(text: &str) -> Value {
    Value::Text(Some(text.to_owned()))
}
