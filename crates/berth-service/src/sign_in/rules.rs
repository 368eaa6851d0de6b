//! What groups at a provider of identities give in Berth.

use crate::caller::role;
use berth_api::access::Role;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

/// Who may sign in by a provider, and as what.
#[derive(Debug, Clone, Default)]
pub struct OidcRules {
    pub groups: Vec<GroupRule>,
    /// Whether a person to whom a group gives a role becomes a user of Berth.
    pub create_users: bool,
    /// Whether the first sign-in of a person takes the user who is there already by that name.
    pub link_by_name: bool,
    /// Whether a name at the provider may stand for an account of the machine, and jobs act for it.
    pub machine_accounts: bool,
    /// The part after the `@` that is left out of names.
    pub strip_domain: Option<String>,
}

/// The members of a group have a role: `GROUP=TEAM:ROLE`, or `GROUP=ROLE` for the whole cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupRule {
    pub group: String,
    /// None for the whole cluster.
    pub team: Option<String>,
    pub role: Role,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not GROUP=TEAM:ROLE or GROUP=ROLE, with one of viewer, researcher, team_lead, \
    operator and admin; a role for the whole cluster is viewer, operator or admin"
)]
pub struct RuleError(String);

impl FromStr for GroupRule {
    type Err = RuleError;
    fn from_str(text: &str) -> Result<GroupRule, RuleError> {
        let wrong = || RuleError(text.to_owned());
        let (group, gives) = text.rsplit_once('=').ok_or_else(wrong)?;
        let (team, word) = match gives.rsplit_once(':') {
            Some((team, word)) => (Some(team.to_owned()), word),
            None => (None, gives),
        };
        let role = role(word).ok_or_else(wrong)?;
        let of_cluster = matches!(role, Role::Viewer | Role::Operator | Role::Admin);
        if group.is_empty()
            || team.as_ref().is_some_and(String::is_empty)
            || (team.is_none() && !of_cluster)
        {
            return Err(wrong());
        }
        Ok(GroupRule { group: group.to_owned(), team, role })
    }
}

impl fmt::Display for GroupRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GroupRule { group, team, role } = self;
        match team {
            Some(team) => write!(f, "{group}={team}:{}", role.word()),
            None => write!(f, "{group}={}", role.word()),
        }
    }
}

/// What a person has by their groups, where groups decide.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Given {
    pub cluster: Option<Role>,
    pub teams: BTreeMap<String, Role>,
}

impl OidcRules {
    pub(super) fn given(&self, groups: &[String]) -> Given {
        let mut given = Given::default();
        for rule in self.groups.iter().filter(|rule| groups.contains(&rule.group)) {
            let role = Some(rule.role);
            match &rule.team {
                None => given.cluster = given.cluster.max(role),
                Some(team) => {
                    let held = given.teams.entry(team.clone()).or_insert(rule.role);
                    *held = (*held).max(rule.role);
                }
            }
        }
        given
    }

    /// Whether a person whom Berth does not know yet can get in.
    pub fn lets_newcomers_in(&self) -> bool {
        self.create_users || self.link_by_name
    }

    /// Whether groups decide who has a role for the cluster.
    pub(super) fn governs_cluster(&self) -> bool {
        self.groups.iter().any(|rule| rule.team.is_none())
    }

    /// Teams whose members groups decide, as far as people sign in by the provider.
    pub(super) fn governed_teams(&self) -> BTreeSet<&str> {
        self.groups.iter().filter_map(|rule| rule.team.as_deref()).collect()
    }

    /// The name in Berth of a person whom the provider calls that.
    pub(super) fn name(&self, claimed: &str) -> String {
        let name = claimed.trim().to_lowercase();
        match (name.split_once('@'), &self.strip_domain) {
            (Some((local, domain)), Some(ours)) if domain.eq_ignore_ascii_case(ours) => {
                local.to_owned()
            }
            _ => name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(all: &[&str]) -> OidcRules {
        let groups = all.iter().map(|one| one.parse().unwrap()).collect();
        OidcRules {
            groups,
            create_users: true,
            strip_domain: Some("example.com".into()),
            ..OidcRules::default()
        }
    }

    #[test]
    fn rules_are_read_and_written_the_same_and_odd_ones_refused() {
        for text in ["ml=vision:researcher", "cn=ml,dc=x=vision:team_lead", "ops=operator"] {
            assert_eq!(text.parse::<GroupRule>().unwrap().to_string(), text);
        }
        for odd in ["", "ml", "ml=", "ml=vision:", "ml=:viewer", "ml=vision:king", "ml=researcher"]
        {
            assert!(odd.parse::<GroupRule>().is_err(), "{odd}");
        }
    }

    #[test]
    fn the_highest_role_of_all_groups_counts() {
        let rules = rules(&["a=vision:viewer", "b=vision:team_lead", "c=audio:viewer", "d=admin"]);
        let given = |groups: &[&str]| {
            rules.given(&groups.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(given(&["b", "a", "x"]).teams, [("vision".to_owned(), Role::TeamLead)].into());
        assert_eq!(given(&["d"]).cluster, Some(Role::Admin));
        assert_eq!(given(&[]), Given::default());
        assert_eq!(rules.governed_teams(), ["audio", "vision"].into());
        assert!(rules.governs_cluster());
    }

    #[test]
    fn a_name_loses_our_domain_and_no_other() {
        let rules = rules(&[]);
        for (claimed, name) in
            [("Kim", "kim"), ("kim@Example.com", "kim"), ("kim@evil.example", "kim@evil.example")]
        {
            assert_eq!(rules.name(claimed), name);
        }
    }
}
