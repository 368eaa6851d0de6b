//! `berth session`: browsers that are signed in.

use crate::complete;
use crate::context::Context;
use crate::fail::Result;
use crate::show::{Look, Page, Table};
use berth_api::Scope;
use berth_api::wire::{Items, OpenSession};
use clap::Subcommand;

#[derive(Subcommand, Debug)]
pub enum Session {
    /// List the browsers you are signed in with
    List,
    /// Sign a browser out at once
    Revoke {
        #[arg(value_name = "SESSION", add = complete::sessions())]
        session: String,
    },
}

pub async fn run(context: &Context, args: &Session) -> Result<()> {
    let client = context.client()?;
    match args {
        Session::List => {
            let names =
                |all: &Items<OpenSession>| all.items.iter().map(|one| one.id.clone()).collect();
            context.show(&Page::new(client.sessions().await?, list, names))
        }
        Session::Revoke { session } => {
            client.revoke_session(session).await?;
            context.gone(session, &format!("Signed out session {session}"))
        }
    }
}

fn list(all: &Items<OpenSession>, look: &Look) -> String {
    let titles = ["ID", "USER", "BY", "SCOPE", "SINCE", "LAST USED", "ENDS", "FROM", "BROWSER"];
    let mut table = Table::new(&titles);
    for session in &all.items {
        let scope = match session.scope {
            Scope::Read => "read",
            Scope::Jobs => "jobs",
            Scope::All => "all",
        };
        table.row(vec![
            session.id.as_str().into(),
            session.user.as_str().into(),
            session.means.word().into(),
            scope.into(),
            look.at(session.created).into(),
            look.at(session.last_used).into(),
            look.at(session.expires).into(),
            session.from.as_str().into(),
            session.agent.chars().take(40).collect::<String>().into(),
        ]);
    }
    table.or(look, "No browser is signed in.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_api::wire::SignInMeans;

    #[test]
    fn sessions_say_whose_they_are_and_when_they_end() {
        let at = |text: &str| text.parse().expect("a moment");
        let session = OpenSession {
            id: "0a1b".into(),
            user: "kim".into(),
            means: SignInMeans::Oidc,
            scope: Scope::All,
            created: at("2026-11-15T08:00:00Z"),
            expires: at("2026-11-15T20:00:00Z"),
            last_used: at("2026-11-15T12:00:00Z"),
            from: "192.0.2.7".into(),
            agent: "Firefox".into(),
            current: false,
        };
        let expect = "\
ID    USER  BY    SCOPE  SINCE  LAST USED  ENDS   FROM       BROWSER
0a1b  kim   oidc  all    09:00  13:00      21:00  192.0.2.7  Firefox
";
        assert_eq!(list(&Items { items: vec![session] }, &Look::fixed()), expect);
    }
}
