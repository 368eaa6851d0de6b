//! The first start: an admin, a team, and a token that the command line finds by itself.

use crate::error::FirstError;
use crate::tls::Tls;
use berth_api::access::{Role, Scope};
use berth_engine::{DEFAULT_TEAM, clock};
use berth_service::{Home, Service, credentials, put_as_server, server_audit, token};
use berth_store::{Batch, MemberRow, ProjectRow, TeamRow, TokenRow, UserRow};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

/// Sees that there is an admin with a token on this machine; where it lies.
pub async fn admin(service: &Service, name: &str) -> Result<PathBuf, FirstError> {
    let path = service.home.token();
    let users = service.store.page::<UserRow>(None, 1).await.map_err(FirstError::Store)?;
    if users.is_empty() {
        let audit = server_audit("berth", "create_user", format!("user {name}"));
        put_as_server(service, people(name), audit).await.map_err(FirstError::Refused)?;
    }
    if let Ok(kept) = fs::read_to_string(&path)
        && credentials::valid(&service.store, kept.trim()).await.is_ok()
    {
        return Ok(path);
    }
    let owner = admin_of(service, name).await.map_err(FirstError::Store)?;
    let minted = token::mint();
    let row = TokenRow {
        id: minted.id.clone(),
        user: owner.clone(),
        name: "this machine".to_owned(),
        hash: minted.hash,
        scopes: token::scope_word(Scope::All).to_owned(),
        created: clock::now(),
        expires: None,
        revoked: None,
        last_used: None,
        parent: None,
        session: None,
    };
    let mut documents = Batch::default();
    documents.put(&row);
    let audit = server_audit("berth", "create_token", format!("token {}", minted.id));
    put_as_server(service, documents, audit).await.map_err(FirstError::Refused)?;
    write_private(&path, &minted.token)?;
    Ok(path)
}

/// The admin of that name, or any other.
async fn admin_of(service: &Service, name: &str) -> berth_store::Result<String> {
    let admin = Role::Admin.word();
    let mut after: Option<String> = None;
    let mut any = None;
    loop {
        let page = service.store.page::<UserRow>(after.as_deref(), 1_000).await?;
        let Some(last) = page.last() else { return Ok(any.unwrap_or_else(|| name.to_owned())) };
        after = Some(last.name.clone());
        for user in page {
            if user.role.as_deref() == Some(admin) && user.disabled.is_none() {
                if user.name == name {
                    return Ok(user.name);
                }
                any.get_or_insert(user.name);
            }
        }
    }
}

fn people(name: &str) -> Batch {
    let created = clock::now();
    let mut documents = Batch::default();
    documents.put(&UserRow {
        name: name.to_owned(),
        full_name: String::new(),
        role: Some(Role::Admin.word().to_owned()),
        created,
        disabled: None,
    });
    documents.put(&TeamRow {
        name: DEFAULT_TEAM.to_owned(),
        queue: DEFAULT_TEAM.to_owned(),
        created,
        detail: "{}".to_owned(),
    });
    documents.put(&MemberRow {
        team: DEFAULT_TEAM.to_owned(),
        user: name.to_owned(),
        role: Role::TeamLead.word().to_owned(),
        created,
    });
    documents.put(&ProjectRow {
        team: DEFAULT_TEAM.to_owned(),
        name: "default".to_owned(),
        created,
    });
    documents
}

/// Writes a file that only its owner reads, in one piece.
fn write_private(path: &Path, text: &str) -> Result<(), FirstError> {
    let written = berth_fs::write_private(path, format!("{text}\n").as_bytes());
    written.map_err(|source| FirstError::Write { path: path.to_owned(), source })
}

/// Says where the server is, for the command line.
pub fn announce(
    home: &Home,
    url: &str,
    tls: Option<&Tls>,
    containers: bool,
) -> Result<(), FirstError> {
    let ca = tls.map(|tls| tls.certificate.display().to_string());
    let text = json!({
        "url": url, "pid": std::process::id(), "ca": ca, "containers": containers,
    });
    write_private(&home.address(), &text.to_string())
}

/// It is not there any more.
pub fn forget(home: &Home) {
    let _ = fs::remove_file(home.address());
}
