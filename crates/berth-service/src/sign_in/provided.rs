//! A person who comes from an identity provider: which user they are in Berth, and what their groups
//! give them there.

use super::rules::{Given, OidcRules};
use crate::audit::server_audit;
use crate::caller::role;
use crate::checks;
use crate::fault::Fault;
use crate::names;
use crate::service::Service;
use crate::sessions::{self, Known, Opened, Origin};
use berth_api::Code;
use berth_api::access::{Role, Scope};
use berth_api::wire::SignInMeans;
use berth_engine::{Write, clock};
use berth_store::{Batch, IdentityRow, MemberRow, Store, TeamRow, UserRow};
use ring::digest::{SHA256, digest};
use serde_json::json;

/// What a provider has signed about a person.
#[derive(Clone)]
pub struct Provided {
    pub issuer: String,
    /// What it calls them, always the same.
    pub subject: String,
    /// The name they have there.
    pub name: Option<String>,
    /// There is no name, because it would be an email address that the provider has not verified.
    pub is_unverified_email: bool,
    pub full_name: String,
    pub groups: Vec<String>,
    /// What it wants to see when they sign out.
    pub id_token: String,
}

/// Opens a session for them. What their groups give is made so first; where nothing is left that
/// they may do, their sessions end.
pub async fn admit(
    service: &Service,
    rules: &OidcRules,
    provided: Provided,
    origin: &Origin,
) -> Result<Opened, Fault> {
    let id = identity_id(&provided.issuer, &provided.subject);
    let store = &service.store;
    let identity = store.get::<IdentityRow>(&id).await?;
    let name = match &identity {
        Some(identity) => identity.user.clone(),
        None => claimed_name(rules, &provided)?,
    };
    let given = rules.given(&provided.groups);
    let user = store.get::<UserRow>(&name).await?;
    if let Some(user) = &user {
        if user.disabled.is_some() {
            return Err(no_access(format!("the user `{name}` is disabled")));
        }
        if identity.is_none() {
            linkable(store, rules, user, &provided.issuer, &given).await?;
        }
    } else if !rules.create_users || given == Given::default() {
        let why = match rules.create_users {
            true => "none of the groups gives a role",
            false => "users are not made by signing in",
        };
        return Err(no_access(format!("there is no user `{name}`, and {why}")));
    }
    // At every sign-in: the machine may have got an account of that name since the last one.
    if !rules.machine_accounts {
        leaves_accounts_alone(service, &name).await?;
    }
    let members = store.memberships_of(&name).await?;
    let plan = Plan::new(service, rules, &given, user.as_ref(), &members).await?;
    let has_rights = plan.role.is_some() || !plan.stays.is_empty() || !plan.puts.is_empty();
    let link = identity.is_none().then(|| IdentityRow {
        id,
        user: name.clone(),
        issuer: provided.issuer.clone(),
        subject: provided.subject.clone(),
        created: clock::now(),
    });
    write(service, &name, &provided, user, plan, link).await?;
    if !has_rights {
        sessions::close_all_of(service, &name, "no group gives a role any more").await?;
        return Err(no_access(format!("{name} has no role, and no group gives one")));
    }
    let known = Known {
        user: name,
        scope: Scope::All,
        means: SignInMeans::Oidc,
        token: None,
        hint: Some(provided.id_token),
    };
    sessions::open(service, known, origin).await
}

fn no_access(detail: String) -> Fault {
    Fault::new(Code::NoAccess, detail)
}

fn identity_id(issuer: &str, subject: &str) -> String {
    let text = format!("{}:{issuer}{subject}", issuer.len());
    hex::encode(&digest(&SHA256, text.as_bytes()).as_ref()[..16])
}

fn claimed_name(rules: &OidcRules, provided: &Provided) -> Result<String, Fault> {
    if provided.is_unverified_email {
        let detail = "the provider does not say that your email address is verified, and users are \
                      named by it here";
        let next = "verify the address at the provider, or let an admin choose another claim for \
                    names: --oidc-user-claim";
        return Err(no_access(detail.to_owned()).next(next));
    }
    let claimed = provided.name.as_deref().unwrap_or_default();
    let name = rules.name(claimed);
    if names::check("user", &name).is_err() {
        let shown: String = claimed.chars().filter(|c| !c.is_control()).take(80).collect();
        let detail = format!("the provider calls you `{shown}`, which is no name for a user here");
        let next = "an admin can choose another claim for names, or a domain to leave out: \
                    docs/operate/sign-in.md";
        return Err(no_access(detail).next(next));
    }
    Ok(name)
}

/// Whether a person may take a user who was there before, because the provider calls them so. People may
/// be free to choose their names there, so only a server whose operator trusts the names allows it, and
/// even then a name alone gives no role for the cluster.
async fn linkable(
    store: &Store,
    rules: &OidcRules,
    user: &UserRow,
    issuer: &str,
    given: &Given,
) -> Result<(), Fault> {
    untied(store, &user.name, issuer).await?;
    if !rules.link_by_name {
        let detail =
            format!("there is already a user `{}`, who is not linked to the provider", user.name);
        let next = "let the provider give you another name; if it gives names to the right people \
                    only, an admin can start the server with --oidc-link-by-name";
        return Err(no_access(detail).next(next));
    }
    let held = user.role.as_deref().and_then(role);
    if held.is_some() && given.cluster < held {
        let detail = format!("`{}` has a role for the cluster that no group gives", user.name);
        let next = "let a group give that role, or take it from the user first";
        return Err(no_access(detail).next(next));
    }
    Ok(())
}

/// People may be free to choose their names at a provider, and jobs run as the machine's account of their
/// user's name: a name must not give a person another one's files, or the server's account.
async fn leaves_accounts_alone(service: &Service, name: &str) -> Result<(), Fault> {
    let (host, user) = (service.host.clone(), name.to_owned());
    let taken = tokio::task::spawn_blocking(move || host.gives_account_of(&user)).await;
    match taken.unwrap_or(true) {
        true => {
            let detail = format!("`{name}` is an account of the machine that jobs run on");
            let next = "let the provider give you another name; if its names and the machine's accounts \
                        mean the same people, an admin can start the server with \
                        --oidc-machine-accounts";
            Err(no_access(detail).next(next))
        }
        false => Ok(()),
    }
}

/// No other person of the provider is that user.
async fn untied(store: &Store, user: &str, issuer: &str) -> Result<(), Fault> {
    let others = store.identities_of(user).await?;
    match others.iter().any(|other| other.issuer == issuer) {
        true => Err(no_access(format!("`{user}` is another person at the provider"))),
        false => Ok(()),
    }
}

/// What becomes of a person's roles.
struct Plan {
    role: Option<Role>,
    puts: Vec<(String, Role)>,
    takes: Vec<String>,
    /// Teams in which the role is what it was.
    stays: Vec<String>,
}

impl Plan {
    async fn new(
        service: &Service,
        rules: &OidcRules,
        given: &Given,
        user: Option<&UserRow>,
        members: &[MemberRow],
    ) -> Result<Plan, Fault> {
        let held = user.and_then(|user| user.role.as_deref()).and_then(role);
        let mut plan = Plan {
            role: if rules.governs_cluster() { given.cluster } else { held },
            puts: Vec::new(),
            takes: Vec::new(),
            stays: Vec::new(),
        };
        if held == Some(Role::Admin) && plan.role != held {
            let name = user.map(|user| user.name.as_str()).unwrap_or_default();
            if is_only_admin(&service.store, name).await? {
                tracing::warn!(
                    user = name,
                    "no group makes them an admin any more; the last one stays"
                );
                plan.role = held;
            }
        }
        let governed = rules.governed_teams();
        for member in members {
            let kept = !governed.contains(member.team.as_str());
            let same = given.teams.get(&member.team).map(|role| role.word()) == Some(&member.role);
            match (kept || same, given.teams.contains_key(&member.team)) {
                (true, _) => plan.stays.push(member.team.clone()),
                (false, true) => {}
                (false, false) => plan.takes.push(member.team.clone()),
            }
        }
        for (team, role) in &given.teams {
            if plan.stays.contains(team) {
                continue;
            }
            if service.store.get::<TeamRow>(team).await?.is_none() {
                tracing::warn!(team, "a group gives a role in a team that is not there");
                continue;
            }
            plan.puts.push((team.clone(), *role));
        }
        Ok(plan)
    }
}

async fn is_only_admin(store: &Store, name: &str) -> Result<bool, Fault> {
    let admin = |user: &UserRow| {
        user.disabled.is_none() && user.role.as_deref() == Some(Role::Admin.word())
    };
    let users = store.every::<UserRow>().await?;
    Ok(!users.iter().any(|user| admin(user) && user.name != name))
}

/// Writes what changes, with one audit row that tells all of it.
async fn write(
    service: &Service,
    name: &str,
    provided: &Provided,
    user: Option<UserRow>,
    plan: Plan,
    link: Option<IdentityRow>,
) -> Result<(), Fault> {
    let now = clock::now();
    let word = plan.role.map(|role| role.word().to_owned());
    let changed = user.as_ref().is_none_or(|user| user.role != word);
    if !changed && plan.puts.is_empty() && plan.takes.is_empty() && link.is_none() {
        return Ok(());
    }
    let mut documents = Batch::default();
    if changed {
        let before = user.clone();
        let created = before.as_ref().map_or(now, |before| before.created);
        let full_name = before.map_or_else(|| provided.full_name.clone(), |user| user.full_name);
        let role = word.clone();
        documents.put(&UserRow { name: name.to_owned(), full_name, role, created, disabled: None });
    }
    for (team, role) in &plan.puts {
        documents.put(&MemberRow {
            team: team.clone(),
            user: name.to_owned(),
            role: role.word().to_owned(),
            created: now,
        });
    }
    for team in &plan.takes {
        documents.delete::<MemberRow>((team, name));
    }
    if let Some(link) = &link {
        documents.put(link);
    }
    let puts: Vec<String> =
        plan.puts.iter().map(|(team, role)| format!("{team}:{}", role.word())).collect();
    let mut audit = server_audit("berth", "map_groups", format!("user {name}"));
    audit.detail = json!({
        "created": user.is_none(), "linked": link.is_some(), "cluster_role": word,
        "gave": puts, "took": plan.takes, "issuer": provided.issuer, "subject": provided.subject,
    })
    .to_string();
    let (name, teams) = (name.to_owned(), plan.puts);
    let write = Write::documents(documents, audit).only_if(async move |store| {
        checks::all(async {
            checks::same(&store, name.as_str(), user.as_ref()).await?;
            if let Some(link) = &link {
                // Two people may come with one name at the same moment, and one person twice.
                checks::same::<IdentityRow>(&store, link.id.as_str(), None).await?;
                untied(&store, &link.user, &link.issuer).await?;
            }
            for (team, _) in &teams {
                checks::team(&store, team).await?;
            }
            Ok(())
        })
        .await
    });
    service.engine.write(write).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_people_of_any_providers_have_one_identity() {
        assert_eq!(identity_id("https://a", "b"), identity_id("https://a", "b"));
        assert_ne!(identity_id("https://a", "b"), identity_id("https://ab", ""));
        assert_ne!(identity_id("https://a", "b"), identity_id("https://a", "c"));
        assert_eq!(identity_id("https://a", "b").len(), 32);
    }
}
