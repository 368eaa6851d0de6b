//! Who may do what. One table: for every permission the least role that has it, for things one
//! made oneself, for things of one's team, and over the whole cluster.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a person is in a team, or for the whole cluster. Each can do what the ones before can.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Sees.
    Viewer,
    /// Runs jobs, and acts on the own ones.
    Researcher,
    /// Acts on everything of the team.
    TeamLead,
    /// Sees all; acts on nodes and queues. Only as a role for the cluster is it more than a lead.
    Operator,
    /// Acts on everything.
    Admin,
}

impl Role {
    pub const ALL: [Role; 5] =
        [Role::Viewer, Role::Researcher, Role::TeamLead, Role::Operator, Role::Admin];

    pub const fn word(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Researcher => "researcher",
            Role::TeamLead => "team_lead",
            Role::Operator => "operator",
            Role::Admin => "admin",
        }
    }
}

/// What one is, with respect to one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
    /// The role in the team that the thing belongs to; none where one is no member.
    pub here: Option<Role>,
    /// The role for the whole cluster.
    pub cluster: Option<Role>,
}

/// Whose the thing is that is acted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    Oneself,
    Another,
}

/// The least one has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Least {
    /// Whoever has a token.
    Anyone,
    Role(Role),
    /// No role is enough by itself.
    NoRole,
}

impl Least {
    fn met_by(self, role: Option<Role>) -> bool {
        match self {
            Least::Anyone => true,
            Least::Role(least) => role.is_some_and(|role| role >= least),
            Least::NoRole => false,
        }
    }
}

/// What a permission takes. Any of the three is enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// In the team, for what one made oneself.
    pub own: Least,
    /// In the team, for what anyone made.
    pub team: Least,
    /// For the cluster, in every team.
    pub cluster: Least,
}

macro_rules! permissions {
    ($($(#[doc = $doc:literal])* $name:ident $kind:ident: $own:expr, $team:expr, $cluster:expr;)*) => {
        /// One thing that may be allowed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Permission {
            $($(#[doc = $doc])* $name,)*
        }

        impl Permission {
            pub const ALL: &[Permission] = &[$(Permission::$name),*];

            pub const fn name(self) -> &'static str {
                match self {
                    $(Permission::$name => stringify!($name),)*
                }
            }

            /// The least role, row by row.
            pub const fn needs(self) -> Needs {
                use Least::{Anyone, NoRole};
                use {ADMIN as Admin, LEAD as Lead, OPERATOR as Operator};
                use {RESEARCHER as Researcher, VIEWER as Viewer};
                match self {
                    $(Permission::$name => Needs { own: $own, team: $team, cluster: $cluster },)*
                }
            }

            /// Whether it changes nothing.
            pub const fn reads(self) -> bool {
                match self {
                    $(Permission::$name => matches!(Kind::$kind, Kind::Reads),)*
                }
            }

            /// Whether it is about running jobs, which a token can be limited to.
            const fn runs(self) -> bool {
                match self {
                    $(Permission::$name => matches!(Kind::$kind, Kind::Runs),)*
                }
            }
        }
    };
}

enum Kind {
    Reads,
    Runs,
    Manages,
}

const VIEWER: Least = Least::Role(Role::Viewer);
const RESEARCHER: Least = Least::Role(Role::Researcher);
const LEAD: Least = Least::Role(Role::TeamLead);
const OPERATOR: Least = Least::Role(Role::Operator);
const ADMIN: Least = Least::Role(Role::Admin);

permissions! {
    /// Health, the version and the API's own description.
    Public          Reads:   Anyone,     Anyone,     Anyone;
    /// Signing in and out, which is done without a token.
    SignIn          Manages: Anyone,     Anyone,     Anyone;
    /// Queues, shares, GPUs, nodes, the policy: what everyone needs to know to wait in patience.
    ClusterRead     Reads:   Anyone,     Anyone,     Anyone;
    /// Jobs, with why they wait and where they ran.
    JobsRead        Reads:   Viewer,     Viewer,     Viewer;
    LogsRead        Reads:   Viewer,     Viewer,     Operator;
    /// A dry run.
    JobsPlan        Reads:   Viewer,     Viewer,     Operator;
    JobsSubmit      Runs:    Researcher, Researcher, Admin;
    /// Stop, pause, resume and change.
    JobsControl     Runs:    Researcher, Lead,       Admin;
    /// A shell inside a running job.
    JobsShell       Runs:    Researcher, Lead,       Admin;
    CostRead        Reads:   Viewer,     Viewer,     Viewer;
    BudgetsRead     Reads:   Viewer,     Viewer,     Viewer;
    BudgetsManage   Manages: NoRole,     NoRole,     Admin;
    TemplatesRead   Reads:   Viewer,     Viewer,     Viewer;
    TemplatesManage Runs:    Researcher, Lead,       Admin;
    SchedulesRead   Reads:   Viewer,     Viewer,     Viewer;
    SchedulesManage Runs:    Researcher, Lead,       Admin;
    /// Names of secrets. Their values are never read back.
    SecretsRead     Reads:   Researcher, Researcher, Operator;
    SecretsManage   Manages: Lead,       Lead,       Admin;
    /// Names and sizes of named volumes, and which jobs use them.
    VolumesRead     Reads:   Viewer,     Viewer,     Viewer;
    VolumesManage   Manages: Lead,       Lead,       Admin;
    /// Artifacts of runs, and what teams keep in the store of objects.
    ArtifactsRead   Reads:   Viewer,     Viewer,     Operator;
    ArtifactsWrite  Runs:    Researcher, Researcher, Admin;
    /// Versions of data, and what was pushed by DVC.
    DataRead        Reads:   Viewer,     Viewer,     Operator;
    /// Push data, and name versions of it.
    DataWrite       Runs:    Researcher, Researcher, Admin;
    /// Remove versions.
    DataManage      Runs:    Researcher, Lead,       Admin;
    /// Delete what was pushed and no version names.
    DataClean       Manages: Lead,       Lead,       Admin;
    /// What teams may keep in the store of objects.
    StorageManage   Manages: NoRole,     NoRole,     Admin;
    ProjectsRead    Reads:   Viewer,     Viewer,     Viewer;
    ProjectsManage  Manages: Lead,       Lead,       Admin;
    MembersRead     Reads:   Viewer,     Viewer,     Viewer;
    MembersManage   Manages: Lead,       Lead,       Admin;
    TeamsManage     Manages: NoRole,     NoRole,     Admin;
    UsersRead       Reads:   Anyone,     NoRole,     Operator;
    UsersManage     Manages: NoRole,     NoRole,     Admin;
    /// One's own tokens and sessions; an admin's right covers everybody's.
    TokensRead      Reads:   Anyone,     NoRole,     Admin;
    TokensManage    Manages: Anyone,     NoRole,     Admin;
    NodesManage     Manages: NoRole,     NoRole,     Operator;
    /// Compare files with what is set up.
    QueuesRead      Reads:   NoRole,     NoRole,     Operator;
    /// Queues, classes and prices.
    QueuesManage    Manages: NoRole,     NoRole,     Operator;
    /// The policy of the scheduler.
    PolicyManage    Manages: NoRole,     NoRole,     Admin;
    /// Where messages go: whoever sets it may read them.
    NotifyManage    Manages: NoRole,     NoRole,     Operator;
    AuditRead       Reads:   NoRole,     NoRole,     Operator;
    /// The key that signs the audit log.
    AuditManage     Manages: NoRole,     NoRole,     Admin;
    /// The whole state, with every team's jobs.
    WorldRead       Reads:   NoRole,     NoRole,     Operator;
    MetricsRead     Reads:   NoRole,     NoRole,     Viewer;
    ConfigRead      Reads:   NoRole,     NoRole,     Operator;
    Backup          Manages: NoRole,     NoRole,     Admin;
}

impl Permission {
    /// Whether a running job has it by the token of its own, within its team. [`JobsControl`] it
    /// has for itself and for the jobs it has submitted.
    ///
    /// [`JobsControl`]: Permission::JobsControl
    pub const fn is_for_jobs(self) -> bool {
        matches!(
            self,
            Permission::Public
                | Permission::ClusterRead
                | Permission::JobsRead
                | Permission::LogsRead
                | Permission::JobsPlan
                | Permission::JobsSubmit
                | Permission::JobsControl
                | Permission::TemplatesRead
                | Permission::ArtifactsRead
                | Permission::ArtifactsWrite
                | Permission::DataRead
                | Permission::DataWrite
                | Permission::ProjectsRead
        )
    }
}

/// Whether someone of that standing may do it.
pub fn allows(standing: Standing, permission: Permission, owner: Owner) -> bool {
    let Needs { own, team, cluster } = permission.needs();
    (owner == Owner::Oneself && own.met_by(standing.here))
        || team.met_by(standing.here)
        || cluster.met_by(standing.cluster)
}

/// Whether a role may be given to another, or taken away, by someone of that standing. Nobody
/// makes others more than they are themselves.
pub fn may_grant(standing: Standing, role: Role) -> bool {
    allows(standing, Permission::MembersManage, Owner::Another)
        && standing.here.max(standing.cluster) >= Some(role)
}

/// How the token of a running job begins. Those of people begin otherwise.
pub const JOB_TOKEN_PREFIX: &str = "brj_";

/// What a token is good for, whoever has it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Nothing is changed with it.
    Read,
    /// Reads, and runs jobs.
    Jobs,
    /// Whatever its owner may do.
    All,
}

impl Scope {
    pub const fn allows(self, permission: Permission) -> bool {
        match self {
            Scope::Read => permission.reads(),
            Scope::Jobs => permission.reads() || permission.runs(),
            Scope::All => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here(role: Role) -> Standing {
        Standing { here: Some(role), cluster: None }
    }

    #[test]
    fn a_researcher_acts_on_own_jobs_and_a_lead_on_all_of_the_team() {
        let control = |role, owner| allows(here(role), Permission::JobsControl, owner);
        assert!(control(Role::Researcher, Owner::Oneself));
        assert!(!control(Role::Researcher, Owner::Another));
        assert!(control(Role::TeamLead, Owner::Another));
        assert!(!control(Role::Viewer, Owner::Oneself));
    }

    #[test]
    fn a_role_in_one_team_counts_nowhere_else() {
        for permission in Permission::ALL {
            let elsewhere = allows(Standing::default(), *permission, Owner::Another);
            assert_eq!(elsewhere, permission.needs().team == Least::Anyone, "{permission:?}");
        }
    }

    #[test]
    fn a_higher_role_can_do_whatever_a_lower_one_can() {
        for permission in Permission::ALL {
            for pair in Role::ALL.windows(2) {
                for owner in [Owner::Oneself, Owner::Another] {
                    let cluster = |role| Standing { here: None, cluster: Some(role) };
                    let can = |standing| allows(standing, *permission, owner);
                    assert!(!can(here(pair[0])) || can(here(pair[1])));
                    assert!(!can(cluster(pair[0])) || can(cluster(pair[1])));
                }
            }
        }
    }

    #[test]
    fn an_admin_of_the_cluster_may_do_everything_and_one_of_a_team_only_there() {
        let admin = Standing { here: None, cluster: Some(Role::Admin) };
        for permission in Permission::ALL {
            assert!(allows(admin, *permission, Owner::Another), "{permission:?}");
        }
        assert!(!allows(here(Role::Admin), Permission::Backup, Owner::Another));
        assert!(allows(here(Role::Admin), Permission::SecretsManage, Owner::Another));
    }

    #[test]
    fn nobody_makes_others_more_than_they_are() {
        assert!(may_grant(here(Role::TeamLead), Role::TeamLead));
        assert!(!may_grant(here(Role::TeamLead), Role::Operator));
        assert!(!may_grant(here(Role::Researcher), Role::Viewer));
        let admin = Standing { here: None, cluster: Some(Role::Admin) };
        assert!(may_grant(admin, Role::Admin));
    }

    #[test]
    fn a_token_to_read_changes_nothing_and_one_for_jobs_manages_nothing() {
        assert!(Scope::Read.allows(Permission::JobsRead));
        assert!(!Scope::Read.allows(Permission::JobsSubmit));
        assert!(Scope::Jobs.allows(Permission::JobsControl));
        assert!(!Scope::Jobs.allows(Permission::TokensManage));
        assert!(Permission::ALL.iter().all(|permission| Scope::All.allows(*permission)));
    }

    #[test]
    fn a_job_manages_nothing_with_the_token_of_its_own() {
        for permission in Permission::ALL.iter().filter(|one| one.is_for_jobs()) {
            assert!(Scope::Jobs.allows(*permission), "{permission:?}");
        }
        for permission in [
            Permission::TokensRead,
            Permission::SecretsRead,
            Permission::VolumesManage,
            Permission::JobsShell,
        ] {
            assert!(!permission.is_for_jobs(), "{permission:?}");
        }
    }
}
