//! What a caller may do, by their roles and by the token that they ask with.

use super::Caller;
use crate::fault::Fault;
use berth_api::access::{self, Owner, Permission, Role, Standing};
use berth_api::{Code, wire};
use berth_engine::{DEFAULT_TEAM, TeamTree};
use berth_file::error::{did_you_mean, or_list};
use berth_store::MemberRow;

/// Teams that a message names.
const MOST_NAMED: usize = 20;

impl Caller {
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
        let owner = if by == Some(self.user()) { Owner::Oneself } else { Owner::Another };
        // Without the role, another token would not help, so the role comes first.
        if access::allows(self.standing(team), permission, owner) {
            return Err(self.scope_too_small());
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

    fn scope_too_small(&self) -> Fault {
        let detail = format!("the scope of the token `{}` does not allow this", self.token().name);
        Fault::new(Code::ScopeTooSmall, detail)
    }

    /// Whether a role of the caller allows it somewhere: for the cluster, or for own things of a team.
    fn has_role_for(&self, permission: Permission) -> bool {
        let teams = self.inner.teams.iter().map(|of| Some(of.team.as_str()));
        let mut places = teams.filter(|_| by_team(permission)).chain([None]);
        places.any(|team| access::allows(self.standing(team), permission, Owner::Oneself))
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
}

/// Refuses what the token, or the role for the cluster, does not allow on the route.
pub(super) fn allowed(caller: &Caller) -> Result<(), Fault> {
    let permission = caller.route.permission;
    if !caller.is_good_for(permission) && caller.has_role_for(permission) {
        return Err(caller.scope_too_small());
    }
    if !caller.is_good_for(permission) {
        caller.must(permission, None, Some(caller.user()))?;
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
pub(super) fn highest(roles: &[wire::Membership], tree: &TeamTree, team: &str) -> Option<Role> {
    let of = |team: &str| roles.iter().find(|of| of.team == team).map(|of| of.role);
    tree.path(team).filter_map(of).max()
}

pub fn role(word: &str) -> Option<Role> {
    Role::ALL.into_iter().find(|role| role.word() == word)
}

pub(super) fn membership(row: MemberRow) -> Option<wire::Membership> {
    Some(wire::Membership { role: role(&row.role)?, team: row.team })
}
