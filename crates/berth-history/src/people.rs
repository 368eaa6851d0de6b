//! Who is there: users with their roles, teams and tokens, made by requests as people make them.

use crate::DEFAULT_FROM;
use anyhow::{Context, Result, anyhow};
use berth_api::access::{Role, Scope};
use berth_api::{routes, wire};
use berth_engine::played::PlayedLoop;
use berth_engine::{DEFAULT_PROJECT, DEFAULT_TEAM};
use berth_model::Time;
use berth_service::caller::Credential;
use berth_service::{Caller, Fault, Service, apply, caller, identity, put_as_server, server_audit};
use berth_service::{templates, token};
use berth_store::{Batch, MemberRow, ProjectRow, TeamRow, TokenRow, UserRow};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;

/// Teams, queues, projects, budgets and the policy.
pub const DOCUMENTS: &str = include_str!("../data/teams.yaml");

/// The first one, who may do anything.
pub const ADMIN: &str = "ada";

pub struct Person {
    pub name: &'static str,
    /// For the whole cluster.
    pub cluster: Option<Role>,
    /// In which team, and as what.
    pub teams: &'static [(&'static str, Role)],
}

const fn in_team(name: &'static str, teams: &'static [(&'static str, Role)]) -> Person {
    Person { name, cluster: None, teams }
}

/// Everybody but the admin.
pub const PEOPLE: &[Person] = &[
    Person {
        name: "olivia",
        cluster: Some(Role::Operator),
        teams: &[("platform", Role::Researcher)],
    },
    Person { name: "victor", cluster: Some(Role::Viewer), teams: &[] },
    in_team("lena", &[("research", Role::TeamLead)]),
    in_team("kim", &[("vision", Role::TeamLead)]),
    in_team("mateo", &[("vision", Role::Researcher)]),
    in_team("yuki", &[("vision", Role::Researcher)]),
    in_team("noor", &[("nlp", Role::TeamLead)]),
    in_team("jonas", &[("nlp", Role::Researcher)]),
    in_team("amara", &[("nlp", Role::Researcher), ("speech", Role::Researcher)]),
    in_team("sven", &[("speech", Role::TeamLead)]),
    in_team("priya", &[("speech", Role::Researcher)]),
    in_team("chen", &[("platform", Role::TeamLead)]),
    in_team("zoe", &[("interns", Role::Researcher)]),
];

/// Who submits jobs of a team.
pub fn submitters(team: &str) -> Vec<&'static str> {
    let submits = |person: &&Person| {
        person.teams.iter().any(|(of, role)| *of == team && *role >= Role::Researcher)
    };
    PEOPLE.iter().filter(submits).map(|person| person.name).collect()
}

/// People as the service knows them, and the tokens by which it does.
pub struct People {
    callers: BTreeMap<&'static str, Caller>,
    pub tokens: BTreeMap<&'static str, String>,
}

/// A fault as an error of this program.
pub fn fault(fault: Fault) -> anyhow::Error {
    anyhow!("{}: {}", fault.0.code, fault.0.detail)
}

impl People {
    /// Sets everything up at a moment.
    pub async fn begin(turns: &mut PlayedLoop, service: &Service, at: Time) -> Result<People> {
        let admin = turns.during(at, first_admin(service)).await?;
        let tokens = BTreeMap::from([(ADMIN, admin?)]);
        let mut people = People { callers: BTreeMap::new(), tokens };
        people.sign_in(turns, service, ADMIN, at).await?;
        let made = turns.during(at, people.make(service)).await?;
        people.tokens.extend(made?);
        for person in PEOPLE {
            people.sign_in(turns, service, person.name, at).await?;
        }
        Ok(people)
    }

    /// Somebody's rights as they are at a moment. The token is noted as used.
    pub async fn sign_in(
        &mut self,
        turns: &mut PlayedLoop,
        service: &Service,
        who: &'static str,
        at: Time,
    ) -> Result<()> {
        let (token, route) = (self.tokens[who].clone(), route("me"));
        let asking = caller::identify(
            service,
            Some(Credential::Token(token)),
            DEFAULT_FROM.to_owned(),
            route,
        );
        let found = turns.during(at, asking).await?;
        let found = found.map_err(|why| fault(why.fault)).with_context(|| who.to_owned())?;
        self.callers.insert(who, found);
        Ok(())
    }

    /// Somebody who asks for something by a route.
    pub fn asking(&self, who: &str, id: &str) -> Caller {
        let mut caller = self.callers[who].clone();
        caller.route = route(id);
        caller
    }

    /// What the admin makes of an empty server.
    async fn make(&self, service: &Service) -> Result<Vec<(&'static str, String)>> {
        let request = wire::ApplyRequest { documents: DOCUMENTS.to_owned(), prune: false };
        apply::apply(service, &self.asking(ADMIN, "apply"), request).await.map_err(fault)?;
        let mut tokens = Vec::new();
        for Person { name, cluster, teams } in PEOPLE {
            let wish = wire::UserCreate { name: (*name).to_owned(), cluster_role: *cluster };
            let admin = self.asking(ADMIN, "create_user");
            identity::users::create(service, &admin, wish).await.map_err(fault)?;
            for (team, role) in *teams {
                let (wish, admin) =
                    (wire::MemberSet { role: *role }, self.asking(ADMIN, "set_member"));
                let set = identity::members::set(service, &admin, team, name, wish);
                set.await.map_err(fault)?;
            }
            let wish = wire::TokenCreate {
                name: "laptop".to_owned(),
                user: Some((*name).to_owned()),
                scope: Scope::All,
                expires_in: None,
            };
            let admin = self.asking(ADMIN, "create_token");
            let made = identity::tokens::create(service, &admin, wish).await.map_err(fault)?;
            tokens.push((*name, made.secret));
        }
        for (team, secret) in [("nlp", "hf-token"), ("vision", "wandb-api-key")] {
            let wish = wire::SecretSet { value: token::random::<16>() };
            let admin = self.asking(ADMIN, "set_secret");
            identity::secrets::set(service, &admin, team, secret, wish).await.map_err(fault)?;
        }
        for (team, name, file) in TEMPLATES {
            let wish =
                wire::TemplateSet { team: Some((*team).to_owned()), file: (*file).to_owned() };
            let admin = self.asking(ADMIN, "set_template");
            templates::set(service, &admin, name, wish).await.map_err(fault)?;
        }
        Ok(tokens)
    }

    /// Keeps the tokens in a file, for tests that sign in as one of them.
    pub fn keep_tokens(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(&self.tokens)? + "\n";
        berth_fs::write_private(path, text.as_bytes())
            .with_context(|| format!("writing {}", path.display()))
    }
}

const TEMPLATES: &[(&str, &str, &str)] = &[
    (
        "nlp",
        "sft",
        "gpus: H100:8\ntime: 24h\ncheckpoint: {path: ckpt, every: 30m, grace: 2m}\n\
         run: torchrun train.py --config sft.yaml\n",
    ),
    ("vision", "eval", "gpus: 1\ntime: 2h\npriority: low\nrun: python eval.py --split val\n"),
    ("speech", "notebook", "kind: notebook\ngpus: 0.5\ntime: 8h\n"),
];

fn route(id: &str) -> &'static routes::Route {
    routes::named(id).unwrap_or_else(|| panic!("there is no route {id}"))
}

/// What the first start of a server makes; the token.
async fn first_admin(service: &Service) -> Result<String> {
    let created = berth_engine::clock::now();
    let mut documents = Batch::default();
    documents.put(&UserRow {
        name: ADMIN.to_owned(),
        full_name: String::new(),
        role: Some(Role::Admin.word().to_owned()),
        created,
        disabled: None,
    });
    let (name, queue) = (DEFAULT_TEAM.to_owned(), DEFAULT_TEAM.to_owned());
    documents.put(&TeamRow { name, queue, created, detail: json!({}).to_string() });
    documents.put(&MemberRow {
        team: DEFAULT_TEAM.to_owned(),
        user: ADMIN.to_owned(),
        role: Role::TeamLead.word().to_owned(),
        created,
    });
    let (team, name) = (DEFAULT_TEAM.to_owned(), DEFAULT_PROJECT.to_owned());
    documents.put(&ProjectRow { team, name, created });
    let audit = server_audit("berth", "create_user", format!("user {ADMIN}"));
    put_as_server(service, documents, audit).await?;
    let minted = token::mint();
    let mut documents = Batch::default();
    documents.put(&TokenRow {
        id: minted.id.clone(),
        user: ADMIN.to_owned(),
        name: "laptop".to_owned(),
        hash: minted.hash,
        scopes: token::scope_word(Scope::All).to_owned(),
        created,
        expires: None,
        revoked: None,
        last_used: None,
        parent: None,
        session: None,
    });
    let audit = server_audit("berth", "create_token", format!("token {}", minted.id));
    put_as_server(service, documents, audit).await?;
    Ok(minted.token)
}
