//! How people sign in to a server: flags that every server has.

use crate::fail::{Failure, Result};
use crate::kept::entry;
use berth_api::wire::ConfigEntry;
use berth_model::Span;
use berth_server::{GroupRule, OidcOptions, OidcRules, SessionLimits};
use clap::Args;
use std::path::PathBuf;
use url::Url;

const LASTS: &str = "12h";
const IDLE: &str = "1h";
const NAME: &str = "single sign-on";
const SCOPES: &str = "profile";
const USER_CLAIM: &str = "preferred_username";
const GROUPS_CLAIM: &str = "groups";
/// A use of a session is noted to the minute, so one that ends sooner would end while it is used.
const LEAST_IDLE: Span = Span::mins(2);
const MOST_LASTS: Span = Span::days(90);

#[derive(Args, Debug)]
#[command(next_help_heading = "Signing in")]
pub struct SignInFlags {
    /// The address of the server for browsers, such as https://gpus.example.com; required behind a
    /// proxy and with --oidc-issuer
    #[arg(long, value_name = "URL", env = "BERTH_PUBLIC_URL")]
    pub public_url: Option<String>,
    /// How long a browser stays signed in at most
    #[arg(long, value_name = "TIME", default_value = LASTS, env = "BERTH_SESSION_LASTS")]
    pub session_lasts: String,
    /// How long a browser stays signed in without being used
    #[arg(long, value_name = "TIME", default_value = IDLE, env = "BERTH_SESSION_IDLE")]
    pub session_idle: String,
    /// Let users sign in with this OpenID Connect provider; see docs/operate/sign-in.md
    #[arg(long, value_name = "URL", requires = "oidc_client_id", env = "BERTH_OIDC_ISSUER")]
    pub oidc_issuer: Option<String>,
    /// The client id of Berth at the provider
    #[arg(long, value_name = "ID", env = "BERTH_OIDC_CLIENT_ID")]
    pub oidc_client_id: Option<String>,
    /// A file with the client secret
    #[arg(long, value_name = "FILE", env = "BERTH_OIDC_CLIENT_SECRET")]
    pub oidc_client_secret: Option<PathBuf>,
    /// Scopes to request besides openid
    #[arg(long, value_name = "SCOPE", value_delimiter = ',', default_value = SCOPES,
        env = "BERTH_OIDC_SCOPES")]
    pub oidc_scopes: Vec<String>,
    /// The name of the provider on the portal's button
    #[arg(long, value_name = "NAME", default_value = NAME, env = "BERTH_OIDC_NAME")]
    pub oidc_name: String,
    /// The claim with the name of the user; users must not be able to choose it
    #[arg(long, value_name = "CLAIM", default_value = USER_CLAIM, env = "BERTH_OIDC_USER_CLAIM")]
    pub oidc_user_claim: String,
    /// The claim with the groups of a user
    #[arg(long, value_name = "CLAIM", default_value = GROUPS_CLAIM, env = "BERTH_OIDC_GROUPS_CLAIM")]
    pub oidc_groups_claim: String,
    /// Give a group a role in a team, GROUP=TEAM:ROLE, or for the whole cluster, GROUP=admin. Can be
    /// given several times
    #[arg(long, value_name = "RULE", value_delimiter = ';', env = "BERTH_OIDC_GROUPS")]
    pub oidc_group: Vec<GroupRule>,
    /// Create a user for everyone to whom a group gives a role
    #[arg(long, env = "BERTH_OIDC_CREATE_USERS")]
    pub oidc_create_users: bool,
    /// Link a person who signs in for the first time to the existing user of that name. Users must not
    /// be able to choose their names at the provider
    #[arg(long, env = "BERTH_OIDC_LINK_BY_NAME")]
    pub oidc_link_by_name: bool,
    /// Let names at the provider select accounts of this machine: jobs of a user run as the account of
    /// that name
    #[arg(long, env = "BERTH_OIDC_MACHINE_ACCOUNTS")]
    pub oidc_machine_accounts: bool,
    /// Strip this domain from names: kim@example.com becomes kim
    #[arg(long, value_name = "DOMAIN", env = "BERTH_OIDC_STRIP_DOMAIN")]
    pub oidc_strip_domain: Option<String>,
}

impl SignInFlags {
    pub fn public_url(&self) -> Result<Option<Url>> {
        let Some(text) = &self.public_url else { return Ok(None) };
        let wrong = || {
            let detail =
                format!("--public-url: `{text}` is no address such as https://gpus.example.com");
            Failure::usage(detail)
        };
        let url = Url::parse(text).map_err(|_| wrong())?;
        let is_plain = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        match matches!(url.scheme(), "http" | "https") && url.has_host() && is_plain {
            true => Ok(Some(url)),
            false => Err(wrong()),
        }
    }

    pub fn sessions(&self) -> Result<SessionLimits> {
        let span = |flag: &str, text: &str, least: Span| {
            let span = text.parse::<Span>().ok();
            let span = span.filter(|span| (least..=MOST_LASTS).contains(span));
            let wrong = || format!("{flag}: found `{text}`, expected a time from {least} to 90d");
            span.ok_or_else(|| Failure::usage(wrong()))
        };
        Ok(SessionLimits {
            longest: span("--session-lasts", &self.session_lasts, LEAST_IDLE)?,
            idle: span("--session-idle", &self.session_idle, LEAST_IDLE)?,
            ..SessionLimits::default()
        })
    }

    pub fn oidc(&self) -> Option<OidcOptions> {
        Some(OidcOptions {
            issuer: self.oidc_issuer.clone()?,
            client_id: self.oidc_client_id.clone()?,
            client_secret: self.oidc_client_secret.clone(),
            scopes: self.oidc_scopes.clone(),
            name: self.oidc_name.clone(),
            name_claim: self.oidc_user_claim.clone(),
            groups_claim: self.oidc_groups_claim.clone(),
            rules: OidcRules {
                groups: self.oidc_group.clone(),
                create_users: self.oidc_create_users,
                link_by_name: self.oidc_link_by_name,
                machine_accounts: self.oidc_machine_accounts,
                strip_domain: self.oidc_strip_domain.clone(),
            },
        })
    }

    pub fn config(&self) -> Vec<ConfigEntry> {
        let named = |key: &str, value: &Option<String>| {
            let shown = value.clone().unwrap_or_else(|| "none".to_owned());
            entry(key, shown, value.is_none())
        };
        let kept =
            |key: &str, value: &String, usual: &str| entry(key, value.clone(), value == usual);
        let mut config = vec![
            named("public-url", &self.public_url),
            kept("session-lasts", &self.session_lasts, LASTS),
            kept("session-idle", &self.session_idle, IDLE),
            named("oidc-issuer", &self.oidc_issuer),
        ];
        if self.oidc_issuer.is_some() {
            let rules: Vec<String> = self.oidc_group.iter().map(ToString::to_string).collect();
            let (created, linked) = (self.oidc_create_users, self.oidc_link_by_name);
            let accounts = self.oidc_machine_accounts;
            config.extend([
                named("oidc-client-id", &self.oidc_client_id),
                kept("oidc-scopes", &self.oidc_scopes.join(","), SCOPES),
                kept("oidc-name", &self.oidc_name, NAME),
                kept("oidc-user-claim", &self.oidc_user_claim, USER_CLAIM),
                kept("oidc-groups-claim", &self.oidc_groups_claim, GROUPS_CLAIM),
                entry("oidc-group", rules.join("; "), rules.is_empty()),
                entry("oidc-create-users", created.to_string(), !created),
                entry("oidc-link-by-name", linked.to_string(), !linked),
                entry("oidc-machine-accounts", accounts.to_string(), !accounts),
                named("oidc-strip-domain", &self.oidc_strip_domain),
            ]);
        }
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: SignInFlags,
    }

    fn flags(words: &[&str]) -> SignInFlags {
        Line::parse_from(std::iter::once(&"berth").chain(words)).flags
    }

    #[test]
    fn an_address_of_the_portal_is_an_origin_and_nothing_more() {
        for good in ["https://gpus.example.com", "http://localhost:5173/"] {
            assert!(flags(&["--public-url", good]).public_url().unwrap().is_some(), "{good}");
        }
        for odd in ["gpus.example.com", "ftp://x", "https://x/berth", "https://x/?a=1"] {
            assert!(flags(&["--public-url", odd]).public_url().is_err(), "{odd}");
        }
    }

    #[test]
    fn times_of_sessions_have_bounds() {
        let limits = flags(&["--session-idle", "30m"]).sessions().unwrap();
        assert_eq!((limits.longest, limits.idle), (Span::hours(12), Span::mins(30)));
        for odd in ["1m", "0", "forever", "91d"] {
            assert!(flags(&["--session-idle", odd]).sessions().is_err(), "{odd}");
        }
    }

    #[test]
    fn a_provider_is_there_once_it_is_named_and_its_secret_is_not_shown() {
        assert!(flags(&[]).oidc().is_none());
        let flags = flags(&[
            "--oidc-issuer",
            "https://id.example",
            "--oidc-client-id",
            "berth",
            "--oidc-client-secret",
            "/etc/berth/oidc.secret",
            "--oidc-group",
            "ml=vision:researcher",
            "--oidc-group",
            "ops=admin",
        ]);
        let options = flags.oidc().unwrap();
        assert_eq!((options.rules.groups.len(), options.rules.create_users), (2, false));
        let OidcRules { machine_accounts, link_by_name, .. } = options.rules;
        assert!(!machine_accounts && !link_by_name, "only where the operator says so");
        let shown = format!("{:?}", flags.config());
        assert!(
            shown.contains("ml=vision:researcher; ops=admin") && !shown.contains("secret"),
            "{shown}"
        );
    }
}
