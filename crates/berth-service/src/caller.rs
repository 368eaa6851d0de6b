//! Who asks. Every route but the public ones needs a token. The table in `berth_api::access` decides
//! what it allows: here for what concerns no team, in each use case for what does.

mod identify;
mod of_job;
mod rights;

pub use identify::{Unidentified, identify};
pub use rights::role;

use crate::approver::{Approver, By};
use crate::credentials;
use crate::fault::Fault;
use crate::job_token::{JobToken, Reach};
use crate::service::Service;
use crate::sessions;
use crate::token;
use berth_api::access::{Role, Scope};
use berth_api::routes::Route;
use berth_api::{Code, wire};
use berth_engine::TeamTree;
use berth_model::{JobId, Time};
use berth_store::{AuditEntry, SessionRow, TokenRow};
use identify::{of_session, of_token};
use of_job::{of_job, running};
use rights::{allowed, membership};
use std::sync::Arc;

/// The prefix of users that stand for a namespace of a cluster. No other user has such a name.
const NAMESPACE: &str = "kube:";

/// Whoever is asking, and what they are where.
#[derive(Debug, Clone)]
pub struct Caller {
    inner: Arc<Inner>,
    pub route: &'static Route,
}

#[derive(Debug)]
struct Inner {
    user: String,
    token: TokenRow,
    scope: Scope,
    cluster: Option<Role>,
    teams: Vec<wire::Membership>,
    /// Roles count in the teams below, too.
    tree: Arc<TeamTree>,
    from: String,
    /// A job that asks by the token of its own: what it may do stays within its team.
    job: Option<OfJob>,
    /// A browser that is signed in.
    session: Option<SessionRow>,
}

/// What a request says who it is by.
#[derive(Clone)]
pub enum Credential {
    Token(String),
    /// What a browser shows that is signed in.
    Session(sessions::Shown),
}

#[derive(Debug, Clone)]
struct OfJob {
    token: JobToken,
    team: String,
}

impl Caller {
    pub fn user(&self) -> &str {
        &self.inner.user
    }

    pub fn cluster_role(&self) -> Option<Role> {
        self.inner.cluster
    }

    pub fn teams(&self) -> &[wire::Membership] {
        &self.inner.teams
    }

    pub fn token(&self) -> &TokenRow {
        &self.inner.token
    }

    pub fn scope(&self) -> Scope {
        self.inner.scope
    }

    /// The job that asks by the token of its own, if it is one.
    pub fn job(&self) -> Option<JobId> {
        self.inner.job.as_ref().map(|of| of.token.lease.job)
    }

    /// The job whose code and data is all that it may fetch, if it asks by a token for that.
    pub(crate) fn fetches_of(&self) -> Option<JobId> {
        let of = self.inner.job.as_ref().filter(|of| of.token.reach == Reach::Code)?;
        Some(of.token.lease.job)
    }

    /// The browser that asks, if it is one that is signed in.
    pub fn session(&self) -> Option<&SessionRow> {
        self.inner.session.as_ref()
    }

    /// Whether what it stands for is over: a job that has ended. A person's token ends otherwise.
    pub fn has_ended(&self, service: &Service) -> bool {
        self.inner.job.as_ref().is_some_and(|of| running(service, of.token.lease).is_none())
    }

    /// The same caller with the rights of this moment, or why there are none any more.
    pub async fn again(&self, service: &Service) -> Result<Caller, Fault> {
        Caller::again_by(service, &self.approver()).await
    }

    /// Enough to ask again who it is, and what they may do.
    pub(crate) fn approver(&self) -> Approver {
        let by = match (&self.inner.job, self.session()) {
            (Some(of), _) => By::Job(of.token),
            (None, Some(row)) => By::Session(row.id.clone()),
            (None, None) => By::Token(self.token().id.clone()),
        };
        Approver { by, from: self.inner.from.clone(), route: self.route }
    }

    pub(crate) async fn again_by(service: &Service, approver: &Approver) -> Result<Caller, Fault> {
        let Approver { by, from, route } = approver.clone();
        let caller = match by {
            By::Job(token) => of_job(service, token, from, route).await?,
            By::Session(id) => {
                let row = sessions::again(service, &id).await?;
                of_session(service, row, from, route).await?
            }
            By::Token(id) => {
                let gone = || Fault::new(Code::TokenEnded, "the owner of this token is gone");
                let row = service.store.get::<TokenRow>(id.as_str()).await?;
                of_token(service, credentials::good(row.ok_or_else(gone)?)?, from, route).await?
            }
        };
        allowed(&caller)?;
        Ok(caller)
    }

    /// Whoever a schedule belongs to, as they are now.
    pub async fn of_owner(service: &Service, user: &str) -> Result<Caller, Fault> {
        let Some(row) = credentials::user(service, user).await? else {
            return Err(Fault::new(Code::Forbidden, format!("{user} is gone")));
        };
        let teams = service.store.memberships_of(user).await?;
        let teams = teams.into_iter().filter_map(membership).collect();
        let cluster = row.role.as_deref().and_then(role);
        Ok(Caller::without_token(service, user, "schedule", cluster, teams))
    }

    /// Whoever writes into a namespace of a cluster. Who may, the API server has decided; that it is
    /// a namespace of the team, the caller has.
    pub fn of_namespace(service: &Service, namespace: &str, team: &str) -> Caller {
        let team = wire::Membership { team: team.to_owned(), role: Role::Researcher };
        Caller::without_token(
            service,
            &format!("{NAMESPACE}{namespace}"),
            "kubernetes",
            None,
            vec![team],
        )
    }

    /// The server as caller for the record of a job: in the team of the job, on behalf of its user.
    pub fn of_record(service: &Service, user: &str, team: &str) -> Caller {
        let team = wire::Membership { team: team.to_owned(), role: Role::Researcher };
        Caller::without_token(service, user, "record", None, vec![team])
    }

    /// The owner of jobs that the server submits by itself, without a request of the owner.
    fn without_token(
        service: &Service,
        user: &str,
        from: &str,
        cluster: Option<Role>,
        teams: Vec<wire::Membership>,
    ) -> Caller {
        let route = berth_api::routes::named("submit_job").expect("it is in the table");
        let token = TokenRow {
            id: String::new(),
            user: user.to_owned(),
            name: from.to_owned(),
            hash: String::new(),
            scopes: token::scope_word(Scope::Jobs).to_owned(),
            created: Time(0),
            expires: None,
            revoked: None,
            last_used: None,
            parent: None,
            session: None,
        };
        let (user, from, tree) = (user.to_owned(), from.to_owned(), service.engine.teams());
        let (scope, job, session) = (Scope::Jobs, None, None);
        let inner = Inner { user, token, scope, cluster, teams, tree, from, job, session };
        Caller { inner: Arc::new(inner), route }
    }

    /// Somebody without any role.
    #[cfg(test)]
    pub(crate) fn stranger() -> Caller {
        let token = TokenRow {
            id: String::new(),
            user: "stranger".to_owned(),
            name: String::new(),
            hash: String::new(),
            scopes: String::new(),
            created: Time(0),
            expires: None,
            revoked: None,
            last_used: None,
            parent: None,
            session: None,
        };
        let inner = Inner {
            user: token.user.clone(),
            token,
            scope: Scope::Jobs,
            cluster: None,
            teams: Vec::new(),
            tree: Arc::default(),
            from: String::new(),
            job: None,
            session: None,
        };
        let route = berth_api::routes::named("submit_job").expect("it is in the table");
        Caller { inner: Arc::new(inner), route }
    }

    /// What the audit log says of a change that this request makes.
    pub fn audit(&self, target: impl Into<String>, detail: serde_json::Value) -> AuditEntry {
        AuditEntry {
            at: Time(0),
            who: self.user().to_owned(),
            token: self.token().id.clone(),
            from: self.inner.from.clone(),
            method: self.route.method.to_string(),
            what: self.route.id.to_owned(),
            target: target.into(),
            outcome: "ok".to_owned(),
            detail: detail.to_string(),
        }
    }
}
