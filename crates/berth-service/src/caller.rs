//! Who asks. Every route but the public ones needs a token. The table in `berth_api::access` decides
//! what it allows: here for what concerns no team, in each use case for what does.

mod of_job;

use crate::approver::{Approver, By};
use crate::checks;
use crate::credentials;
use crate::fault::Fault;
use crate::job_token::{JobToken, Reach};
use crate::service::Service;
use crate::sessions;
use crate::token;
use berth_api::access::{self, Owner, Permission, Role, Scope, Standing};
use berth_api::routes::Route;
use berth_api::{Code, wire};
use berth_engine::{DEFAULT_TEAM, TeamTree, Write, clock};
use berth_file::error::{did_you_mean, or_list};
use berth_model::{JobId, Time};
use berth_store::{AuditEntry, Batch, MemberRow, SessionRow, TokenRow};
use of_job::{of_job, running};
use std::sync::Arc;

/// What the names of users begin with who are a namespace of a cluster. No person has such a name.
const NAMESPACE: &str = "kube:";
/// Teams that a message names.
const MOST_NAMED: usize = 20;

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

    /// The server as it keeps the record of a job: in the team of the job, in the name of its user.
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

    /// What one is with respect to things of a team.
    pub fn standing(&self, team: Option<&str>) -> Standing {
        if self.inner.job.as_ref().is_some_and(|of| team != Some(of.team.as_str())) {
            return Standing::default();
        }
        let here = team.and_then(|team| highest(&self.inner.teams, &self.inner.tree, team));
        Standing { here, cluster: self.inner.cluster }
    }

    /// Whether the thing, of that team and made by that user, may be dealt with so.
    pub fn may(&self, permission: Permission, team: Option<&str>, by: Option<&str>) -> bool {
        let owner = if by == Some(self.user()) { Owner::Oneself } else { Owner::Another };
        self.is_good_for(permission) && access::allows(self.standing(team), permission, owner)
    }

    /// Whether the token is, whatever its owner may do.
    fn is_good_for(&self, permission: Permission) -> bool {
        let job = self.inner.job.is_some();
        self.inner.scope.allows(permission) && (!job || permission.is_for_jobs())
    }

    /// The same, as a refusal that says what is missing.
    pub fn must(
        &self,
        permission: Permission,
        team: Option<&str>,
        by: Option<&str>,
    ) -> Result<(), Fault> {
        if self.may(permission, team, by) {
            return Ok(());
        }
        if !self.is_good_for(permission) {
            let detail =
                format!("the scope of the token `{}` does not allow this", self.token().name);
            return Err(Fault::new(Code::ScopeTooSmall, detail));
        }
        if let Some(team) = team {
            self.must_know(team)?;
        }
        let whom = team.map_or_else(|| "the cluster".to_owned(), |team| format!("team {team}"));
        let (user, right) = (self.user(), permission.name());
        let detail = format!("{user} may not do this for {whom}: it takes the right {right}");
        let ask = match team {
            Some(team) => format!("Ask a lead of {team} or an admin."),
            None => "Ask an admin.".to_owned(),
        };
        let next = format!("{ask} `berth whoami` shows your roles.");
        Err(Fault::new(Code::Forbidden, detail).next(next))
    }

    /// Refuses the name of a team that does not exist, with the one that may have been meant among
    /// those whose jobs the caller may see.
    pub fn must_know(&self, team: &str) -> Result<(), Fault> {
        if self.inner.tree.names().any(|name| name == team) {
            return Ok(());
        }
        let seen: Vec<&str> = self
            .inner
            .tree
            .names()
            .filter(|name| self.may(Permission::JobsRead, Some(name), None))
            .collect();
        let detail = format!("there is no team `{team}`{}", did_you_mean(team, seen.clone()));
        let next = match seen.is_empty() {
            true => "`berth team list` lists the teams".to_owned(),
            false => format!("name one of {}", or_list(seen.into_iter().take(MOST_NAMED))),
        };
        Err(Fault::new(Code::NotFound, detail).next(next))
    }

    /// Teams whose things may be read with this permission; nothing: those of all teams.
    pub fn reads(&self, permission: Permission) -> Option<Vec<String>> {
        if self.may(permission, None, None) {
            return None;
        }
        let teams = self.inner.tree.names();
        let seen = teams.filter(|team| self.may(permission, Some(team), None));
        Some(seen.map(ToOwned::to_owned).collect())
    }

    /// Whether a role may be given to others, or taken from them, in a team.
    pub fn may_grant(&self, team: Option<&str>, role: Role) -> bool {
        access::may_grant(self.standing(team), role)
    }

    /// The team of what names none: one's own, where there is only one, or the default one.
    pub fn default_team(&self) -> Option<String> {
        let teams = &self.inner.teams;
        let default = teams.iter().find(|of| of.team == DEFAULT_TEAM);
        default.or(teams.first()).map(|of| of.team.clone())
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

/// Identifies the caller of a route by a token or a session, and refuses what these or the role for
/// the cluster does not allow. What belongs to a team is decided by each use case.
pub async fn identify(
    service: &Service,
    given: Option<Credential>,
    from: String,
    route: &'static Route,
) -> Result<Caller, Unidentified> {
    let caller = known(service, given, from, route).await?;
    match allowed(&caller) {
        Ok(()) => Ok(caller),
        Err(fault) => Err(Unidentified { caller: Some(caller), fault }),
    }
}

/// A request that goes no further, and who sent it, as far as that is known.
#[derive(Debug)]
pub struct Unidentified {
    pub caller: Option<Caller>,
    pub fault: Fault,
}

impl From<Fault> for Unidentified {
    fn from(fault: Fault) -> Unidentified {
        Unidentified { caller: None, fault }
    }
}

/// Whom the token or session belongs to, whatever they may do.
async fn known(
    service: &Service,
    given: Option<Credential>,
    from: String,
    route: &'static Route,
) -> Result<Caller, Fault> {
    let given = match given {
        None => return Err(Fault::new(Code::NoToken, "the request has no token")),
        Some(Credential::Session(shown)) => {
            let row = sessions::valid(service, &shown).await?;
            return of_session(service, row, from, route).await;
        }
        Some(Credential::Token(token)) => token,
    };
    if let Some(token) = service.vault.job_tokens().read(&given) {
        return of_job(service, token?, from, route).await;
    }
    let token = credentials::valid(&service.store, &given).await?;
    note_use(service, &token);
    of_token(service, token, from, route).await
}

/// The owner of a token that is good, with the rights of this moment.
async fn of_token(
    service: &Service,
    token: TokenRow,
    from: String,
    route: &'static Route,
) -> Result<Caller, Fault> {
    let Some(user) = credentials::user(service, &token.user).await? else {
        return Err(Fault::new(Code::TokenEnded, "the owner of this token is gone"));
    };
    let teams = service.store.memberships_of(&user.name).await?;
    let inner = Inner {
        user: user.name,
        scope: token::scope(&token.scopes),
        token,
        cluster: user.role.as_deref().and_then(role),
        teams: teams.into_iter().filter_map(membership).collect(),
        tree: service.engine.teams(),
        from,
        job: None,
        session: None,
    };
    Ok(Caller { inner: Arc::new(inner), route })
}

/// Whoever is signed in with a browser: what the token is good for that was signed in with, as far as
/// it is good now, or whatever they may do.
async fn of_session(
    service: &Service,
    row: SessionRow,
    from: String,
    route: &'static Route,
) -> Result<Caller, Fault> {
    let token = match &row.token {
        Some(id) => {
            Some(credentials::good(service.store.get::<TokenRow>(id).await?.ok_or_else(|| {
                Fault::new(Code::TokenEnded, "the token that was signed in with is gone")
            })?)?)
        }
        None => None,
    };
    sessions::note_use(service, &row);
    let mut scope = token::scope(&row.scopes);
    let mut expires = row.expires;
    if let Some(token) = &token {
        scope = scope.min(token::scope(&token.scopes));
        expires = token.expires.map_or(expires, |end| end.min(expires));
    }
    let as_token = TokenRow {
        id: format!("session-{}", row.id),
        user: row.user.clone(),
        name: token.map_or_else(|| "browser".to_owned(), |token| token.name),
        hash: String::new(),
        scopes: token::scope_word(scope).to_owned(),
        created: row.created,
        expires: Some(expires),
        revoked: None,
        last_used: Some(row.last_used),
        parent: None,
        session: None,
    };
    let Caller { inner, .. } = of_token(service, as_token, from, route).await?;
    let inner = Arc::into_inner(inner).expect("nobody else has it yet");
    Ok(Caller { inner: Arc::new(Inner { session: Some(row), ..inner }), route })
}

/// Refuses what the token, or the role for the cluster, does not allow on the route.
fn allowed(caller: &Caller) -> Result<(), Fault> {
    let permission = caller.route.permission;
    if !caller.is_good_for(permission) {
        caller.must(permission, None, None)?;
    }
    if !by_team(permission) {
        caller.must(permission, None, Some(caller.user()))?;
    }
    Ok(())
}

/// Whether a role in some team, or being the owner, could be enough.
fn by_team(permission: Permission) -> bool {
    let needs = permission.needs();
    needs.team != access::Least::NoRole || needs.own != access::Least::NoRole
}

/// The highest of these roles in a team, or in one above it.
fn highest(roles: &[wire::Membership], tree: &TeamTree, team: &str) -> Option<Role> {
    let of = |team: &str| roles.iter().find(|of| of.team == team).map(|of| of.role);
    tree.path(team).filter_map(of).max()
}

pub fn role(word: &str) -> Option<Role> {
    Role::ALL.into_iter().find(|role| role.word() == word)
}

fn membership(row: MemberRow) -> Option<wire::Membership> {
    Some(wire::Membership { role: role(&row.role)?, team: row.team })
}

/// Notes that a token was used. The request does not wait for that, and it undoes nothing that was
/// done to the token meanwhile.
fn note_use(service: &Service, token: &TokenRow) {
    let now = clock::now();
    if !service.token_use.is_news(token, now) {
        return;
    }
    let mut documents = Batch::default();
    documents.touch(&TokenRow { last_used: Some(now), ..token.clone() });
    let (engine, token) = (service.engine.clone(), token.clone());
    tokio::spawn(async move {
        let write = Write::unnoted(documents).only_if(async move |store| {
            checks::all(checks::same(&store, token.id.as_str(), Some(&token))).await
        });
        // A use that could not be noted is noted the next time.
        let _ = engine.write(write).await;
    });
}
