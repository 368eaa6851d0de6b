//! `berth token`.

use crate::complete;
use crate::context::Context;
use crate::fail::Result;
use crate::show::{self, Cell, Format, Look, Page, Table, Tone};
use berth_api::Scope;
use berth_api::wire::{Items, Token as Row, TokenCreate};
use clap::{Args, Subcommand, ValueEnum};

#[derive(Subcommand, Debug)]
pub enum Token {
    /// Create a token; its secret is shown only once
    Create(Create),
    /// List your tokens, without their secrets
    List,
    /// Revoke a token at once
    Revoke {
        #[arg(value_name = "TOKEN", add = complete::tokens())]
        token: String,
    },
}

#[derive(Args, Debug)]
pub struct Create {
    /// A name for the token
    #[arg(value_name = "NAME")]
    name: String,
    /// What the token allows
    #[arg(long, value_enum, default_value = "jobs")]
    scope: TokenScope,
    /// When it expires, such as 30d (never)
    #[arg(long, value_name = "SPAN")]
    expires: Option<String>,
    /// For another user (admins only)
    #[arg(long, value_name = "USER", add = complete::users())]
    user: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TokenScope {
    /// Read only
    Read,
    /// Read, and run jobs
    Jobs,
    /// Everything its owner may do
    All,
}

pub async fn run(context: &Context, args: &Token) -> Result<()> {
    let client = context.client()?;
    match args {
        Token::Create(args) => create(context, args).await,
        Token::List => {
            let names = |all: &Items<Row>| all.items.iter().map(|token| token.id.clone()).collect();
            context.show(&Page::new(client.tokens().await?, list, names))
        }
        Token::Revoke { token } => {
            client.revoke_token(token).await?;
            context.gone(token, &format!("Revoked token {token}"))
        }
    }
}

/// Only the secret goes to standard output, so that it can be kept without being seen.
async fn create(context: &Context, args: &Create) -> Result<()> {
    let body = TokenCreate {
        name: args.name.clone(),
        user: args.user.clone(),
        scope: match args.scope {
            TokenScope::Read => Scope::Read,
            TokenScope::Jobs => Scope::Jobs,
            TokenScope::All => Scope::All,
        },
        expires_in: args.expires.clone(),
    };
    let created = context.client()?.create_token(&body).await?;
    if matches!(context.format, Format::Table | Format::Wide) {
        let until = created.token.expires.map(|at| format!(" until {}", context.look().at(at)));
        show::note(&format!(
            "Token {} of {}{}. Save it now; it is not shown again.",
            created.token.id,
            created.token.user,
            until.unwrap_or_default()
        ));
    }
    context.show(&Page::new(
        created,
        |created, _| created.secret.clone(),
        |created| vec![created.token.id.clone()],
    ))
}

fn list(all: &Items<Row>, look: &Look) -> String {
    let titles =
        ["ID", "NAME", "USER", "SCOPE", "CREATED", "EXPIRES", "LAST USED", "STATE", "MADE BY"];
    let mut table = Table::new(&titles);
    for token in &all.items {
        let scope = match token.scope {
            Scope::Read => "read",
            Scope::Jobs => "jobs",
            Scope::All => "all",
        };
        table.row(vec![
            token.id.as_str().into(),
            token.name.as_str().into(),
            token.user.as_str().into(),
            scope.into(),
            look.at(token.created).into(),
            token.expires.map_or_else(|| "never".to_owned(), |at| look.at(at)).into(),
            look.maybe_at(token.last_used).into(),
            state(token, look),
            made_by(token).into(),
        ]);
    }
    table.or(look, "No tokens.")
}

/// What it is revoked with: an id for `berth session revoke` or `berth token revoke`.
fn made_by(token: &Row) -> String {
    match (&token.session, &token.parent) {
        (Some(session), _) => format!("session {session}"),
        (None, Some(parent)) => format!("token {parent}"),
        (None, None) => "-".to_owned(),
    }
}

fn state(token: &Row, look: &Look) -> Cell {
    match (token.revoked, token.expires) {
        (Some(_), _) => Cell::toned("revoked", Tone::Quiet),
        (None, Some(end)) if end.0 <= look.now => Cell::toned("expired", Tone::Quiet),
        (None, _) => Cell::toned("good", Tone::Good),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_say_whether_they_are_still_good_and_what_they_are_revoked_with() {
        let token = |id: &str, expires: Option<&str>, revoked: Option<&str>| Row {
            id: id.into(),
            user: "kim".into(),
            name: "laptop".into(),
            scope: Scope::Jobs,
            created: "2026-11-15T08:00:00Z".parse().unwrap(),
            expires: expires.map(|at| at.parse().unwrap()),
            revoked: revoked.map(|at| at.parse().unwrap()),
            last_used: None,
            parent: None,
            session: None,
        };
        let made = |parent: Option<&str>, session: Option<&str>, token| Row {
            parent: parent.map(Into::into),
            session: session.map(Into::into),
            ..token
        };
        let all = Items {
            items: vec![
                token("t1", None, None),
                made(Some("t1"), None, token("t2", Some("2026-11-15T12:00:00Z"), None)),
                made(Some("t1"), Some("s1"), token("t3", None, Some("2026-11-15T12:00:00Z"))),
            ],
        };
        let expect = "\
ID  NAME    USER  SCOPE  CREATED  EXPIRES  LAST USED  STATE    MADE BY
t1  laptop  kim   jobs   09:00    never    -          good     -
t2  laptop  kim   jobs   09:00    13:00    -          expired  token t1
t3  laptop  kim   jobs   09:00    never    -          revoked  session s1
";
        assert_eq!(list(&all, &Look::fixed()), expect);
    }
}
