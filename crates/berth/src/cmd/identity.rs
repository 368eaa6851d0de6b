//! People, teams and projects.

use super::deletion::{self, Deletion};
use crate::complete;
use crate::context::Context;
use crate::fail::{BadValue, Failure, Result};
use crate::show::{Look, Page, Table};
use berth_api::Role;
use berth_api::wire::{
    Items, Me, Member as MemberRow, MemberSet, Membership, Project as ProjectRow, Removal,
    Team as TeamRow, User as UserRow, UserCreate,
};
use clap::Subcommand;

#[derive(Subcommand, Debug)]
pub enum User {
    /// List users and their roles
    List,
    /// Add a user
    Add {
        #[arg(value_name = "USER")]
        user: String,
        /// A role in the whole cluster, such as viewer, operator or admin
        #[arg(long, value_parser = role)]
        role: Option<Role>,
    },
    /// Delete a user with all tokens
    Rm {
        #[arg(value_name = "USER", add = complete::users())]
        user: String,
        /// Also if the user has jobs or schedules: jobs go on, schedules are paused
        #[arg(long)]
        force: bool,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
}

#[derive(Subcommand, Debug)]
pub enum Team {
    /// List teams
    List,
    /// Add a team
    Add {
        #[arg(value_name = "TEAM")]
        team: String,
        /// The parent team
        #[arg(long, value_name = "TEAM", add = complete::teams())]
        parent: Option<String>,
    },
    /// Delete a team that has no jobs, volumes, data or teams below it
    Rm {
        #[arg(value_name = "TEAM", add = complete::teams())]
        team: String,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
}

#[derive(Subcommand, Debug)]
pub enum Member {
    /// List the members of a team
    List {
        #[arg(value_name = "TEAM", add = complete::teams())]
        team: String,
    },
    /// Add a member, or change the role of one
    Set {
        #[arg(value_name = "TEAM", add = complete::teams())]
        team: String,
        #[arg(value_name = "USER", add = complete::users())]
        user: String,
        /// viewer, researcher, team_lead, operator or admin
        #[arg(value_parser = role)]
        role: Role,
    },
    /// Remove a member
    Rm {
        #[arg(value_name = "TEAM", add = complete::teams())]
        team: String,
        #[arg(value_name = "USER", add = complete::users())]
        user: String,
    },
}

#[derive(Subcommand, Debug)]
pub enum Project {
    /// List projects
    List,
    /// Add a project to a team
    Add {
        #[arg(value_name = "PROJECT")]
        project: String,
        /// The team (your default team)
        #[arg(short, long, value_name = "TEAM", add = complete::teams())]
        team: Option<String>,
    },
    /// Delete a project
    Rm {
        #[arg(value_name = "PROJECT", add = complete::projects())]
        project: String,
        /// Also if it has jobs: they go on, and keep its name
        #[arg(long)]
        force: bool,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
}

fn role(text: &str) -> Result<Role, BadValue> {
    Role::ALL.into_iter().find(|role| role.word() == text).ok_or_else(|| {
        let words: Vec<&str> = Role::ALL.iter().map(|role| role.word()).collect();
        BadValue(format!("expected one of {}", words.join(", ")))
    })
}

pub async fn user(context: &Context, args: &User) -> Result<()> {
    let client = context.client()?;
    match args {
        User::List => {
            let names = |all: &Items<UserRow>| all.items.iter().map(|u| u.name.clone()).collect();
            context.show(&Page::new(client.users().await?, users, names))
        }
        User::Add { user, role } => {
            let body = UserCreate { name: user.clone(), cluster_role: *role };
            let added = client.create_user(&body).await?;
            context.done(
                added,
                |user| user.name.clone(),
                |user| format!("Added user {}", user.name),
            )
        }
        User::Rm { user, force, yes } => {
            deletion::confirm(client, Deletion::User(user), *yes).await?;
            client.delete_user(user, &Removal { force: force.then_some(true) }).await?;
            context.gone(user, &format!("Deleted user {user}"))
        }
    }
}

fn users(all: &Items<UserRow>, look: &Look) -> String {
    let mut table = Table::new(&["USER", "CLUSTER ROLE", "TEAMS", "SINCE"]);
    for user in &all.items {
        table.row(vec![
            user.name.as_str().into(),
            user.cluster_role.map(Role::word).into(),
            memberships(&user.teams).into(),
            look.at(user.created).into(),
        ]);
    }
    table.or(look, "No users.")
}

/// `nlp:team_lead, vision:viewer`.
fn memberships(teams: &[Membership]) -> String {
    let parts = teams.iter().map(|one| format!("{}:{}", one.team, one.role.word()));
    parts.collect::<Vec<_>>().join(", ")
}

pub async fn team(context: &Context, args: &Team) -> Result<()> {
    let client = context.client()?;
    match args {
        Team::List => {
            let names = |all: &Items<TeamRow>| all.items.iter().map(|t| t.name.clone()).collect();
            let text = |all: &Items<TeamRow>, look: &Look| {
                let mut table = Table::new(&["TEAM", "PARENT"]);
                for team in &all.items {
                    table.row(vec![team.name.as_str().into(), team.parent.as_deref().into()]);
                }
                table.or(look, "No teams.")
            };
            context.show(&Page::new(client.teams().await?, text, names))
        }
        Team::Add { team, parent } => {
            let body = TeamRow { name: team.clone(), parent: parent.clone() };
            let added = client.create_team(&body).await?;
            context.done(
                added,
                |team| team.name.clone(),
                |team| format!("Added team {}", team.name),
            )
        }
        Team::Rm { team, yes } => {
            deletion::confirm(client, Deletion::Team(team), *yes).await?;
            client.delete_team(team).await?;
            context.gone(team, &format!("Deleted team {team}"))
        }
    }
}

pub async fn member(context: &Context, args: &Member) -> Result<()> {
    let client = context.client()?;
    match args {
        Member::List { team } => {
            let names = |all: &Items<MemberRow>| all.items.iter().map(|m| m.user.clone()).collect();
            let text = |all: &Items<MemberRow>, look: &Look| {
                let mut table = Table::new(&["USER", "ROLE", "TEAM"]);
                for one in &all.items {
                    let cells = [one.user.as_str(), one.role.word(), one.team.as_str()];
                    table.row(cells.into_iter().map(Into::into).collect());
                }
                table.or(look, "No members.")
            };
            context.show(&Page::new(client.members(team).await?, text, names))
        }
        Member::Set { team, user, role } => {
            let member = client.set_member(team, user, &MemberSet { role: *role }).await?;
            let said = |m: &MemberRow| format!("Made {} {} of {}", m.user, m.role.word(), m.team);
            context.done(member, |member| member.user.clone(), said)
        }
        Member::Rm { team, user } => {
            client.delete_member(team, user).await?;
            context.gone(user, &format!("Removed {user} from {team}"))
        }
    }
}

pub async fn project(context: &Context, args: &Project) -> Result<()> {
    let client = context.client()?;
    match args {
        Project::List => {
            let names =
                |all: &Items<ProjectRow>| all.items.iter().map(|p| p.name.clone()).collect();
            let text = |all: &Items<ProjectRow>, look: &Look| {
                let mut table = Table::new(&["PROJECT", "TEAM"]);
                for project in &all.items {
                    table.row(vec![project.name.as_str().into(), project.team.as_str().into()]);
                }
                table.or(look, "No projects.")
            };
            context.show(&Page::new(client.projects().await?, text, names))
        }
        Project::Add { project, team } => {
            let team = team_of(context, team.as_deref()).await?;
            let body = ProjectRow { name: project.clone(), team };
            let added = client.create_project(&body).await?;
            let said = |project: &ProjectRow| format!("Added project {}", project.name);
            context.done(added, |project| project.name.clone(), said)
        }
        Project::Rm { project, force, yes } => {
            deletion::confirm(client, Deletion::Project(project), *yes).await?;
            client.delete_project(project, &Removal { force: force.then_some(true) }).await?;
            context.gone(project, &format!("Deleted project {project}"))
        }
    }
}

/// The team that was named, the one that is set, or the server's choice for this user.
pub async fn team_of(context: &Context, named: Option<&str>) -> Result<String> {
    if let Some(team) = context.team(named) {
        return Ok(team);
    }
    context.client()?.me().await?.default_team.ok_or_else(|| {
        Failure::usage("no team is set, and you are in several")
            .next("Choose one with --team, or set `team` in .berth.toml or BERTH_TEAM.")
    })
}

pub async fn whoami(context: &Context) -> Result<()> {
    let me = context.client()?.me().await?;
    context.show(&Page::new(me, me_text, |me| vec![me.user.clone()]))
}

fn me_text(me: &Me, look: &Look) -> String {
    let mut table =
        Table::new(&["USER", "CLUSTER ROLE", "TEAMS", "DEFAULT TEAM", "TOKEN", "EXPIRES"]);
    table.row(vec![
        me.user.as_str().into(),
        me.cluster_role.map(Role::word).into(),
        memberships(&me.teams).into(),
        me.default_team.as_deref().into(),
        format!("{} {}", me.token.id, me.token.name).into(),
        me.token.expires.map_or_else(|| "never".to_owned(), |at| look.at(at)).into(),
    ]);
    table.text(look)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_named_by_their_words() {
        assert_eq!(role("team_lead"), Ok(Role::TeamLead));
        assert!(role("king").unwrap_err().to_string().contains("viewer, researcher, team_lead"));
    }

    #[test]
    fn people_are_shown_with_what_they_are_where() {
        let user = UserRow {
            name: "kim".into(),
            created: "2026-11-15T08:00:00Z".parse().unwrap(),
            cluster_role: None,
            teams: vec![Membership { team: "nlp".into(), role: Role::TeamLead }],
        };
        let expect = "\
USER  CLUSTER ROLE  TEAMS          SINCE
kim   -             nlp:team_lead  09:00
";
        assert_eq!(users(&Items { items: vec![user] }, &Look::fixed()), expect);
    }
}
