//! The server, and what it says of itself.

use super::Check;
use crate::context::Context;
use crate::fail::Failure;
use berth_api::Client;
use berth_api::wire::{Me, Node, NodeIsolation, NodeState};
use berth_model::Time;
use jiff::fmt::rfc2822;

/// A clock that is off by more makes times in tables wrong.
const SKEW_MS: i64 = 5_000;
/// By more, and tokens end too early or too late.
const MOST_SKEW_MS: i64 = 60_000;
/// A token that ends sooner is worth a word.
const SOON_MS: i64 = 3 * 86_400_000;

pub async fn checks(context: &Context) -> Vec<Check> {
    let client = match context.client() {
        Ok(client) => client,
        Err(failure) => return vec![of_failure("server", &failure)],
    };
    let url = context.settings.url.value.as_str();
    let before = crate::show::now();
    let date = client.date().await;
    let after = crate::show::now();
    let version = match client.version().await {
        Ok(version) => version.version,
        Err(error) => return vec![of_failure("server", &Failure::from(error))],
    };
    let mut checks = vec![of_version(&version, env!("CARGO_PKG_VERSION"), url)];
    if let Ok(Some(date)) = date {
        checks.push(clock(&date, Time(before.0 + (after.0 - before.0) / 2)));
    }
    checks.push(ready(client).await);
    match client.me().await {
        Ok(me) => {
            checks.push(token(&me, after));
            checks.push(rights(&me));
            checks.extend(nodes(client).await);
        }
        Err(error) => checks.push(of_failure("token", &Failure::from(error))),
    }
    checks
}

/// What a command would have said.
fn of_failure(name: &'static str, failure: &Failure) -> Check {
    let (detail, next) = failure.parts();
    Check::failed(name, detail, next.unwrap_or_else(|| "Look at the server's log.".to_owned()))
}

fn of_version(server: &str, own: &str, url: &str) -> Check {
    match server == own {
        true => Check::ok("server", format!("berth {server} at {url}")),
        false => Check::warning(
            "server",
            format!("berth {server} at {url}, and this program is {own}"),
            "Use the same version on both sides: some commands may not work.",
        ),
    }
}

/// The time that an answer has, against the middle of the time it took.
fn clock(date: &str, here: Time) -> Check {
    let Ok(server) = rfc2822::DateTimeParser::new().parse_timestamp(date) else {
        return Check::skipped("clock", format!("the server's time `{date}` cannot be read"));
    };
    // The header has whole seconds, and is half a second behind on average.
    let ahead_ms = here.0 - (server.as_millisecond() + 500);
    let way = if ahead_ms > 0 { "ahead of" } else { "behind" };
    let detail = format!("{} s {way} the server", (ahead_ms.abs() + 500) / 1_000);
    let next = "Set the clocks by NTP on both sides, such as with `timedatectl set-ntp true`.";
    match ahead_ms.abs() {
        ..SKEW_MS => Check::ok("clock", "as the server's"),
        SKEW_MS..MOST_SKEW_MS => Check::warning("clock", detail, next),
        _ => Check::failed("clock", detail, next),
    }
}

/// Whether the server takes requests, and its database answers.
async fn ready(client: &Client) -> Check {
    let health = match client.ready().await {
        Ok(health) => health,
        Err(error) => return of_failure("database", &Failure::from(error)),
    };
    let wrong: Vec<String> = health
        .parts
        .iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(part, text)| format!("{part}: {text}"))
        .collect();
    match wrong.is_empty() {
        true => Check::ok("database", "it takes changes"),
        false => Check::warning("database", wrong.join("; "), "Look at the server's log."),
    }
}

fn token(me: &Me, now: Time) -> Check {
    let named = format!("{} {} of {}", me.token.id, me.token.name, me.user);
    match me.token.expires {
        Some(end) if end.0.0 - now.0 < SOON_MS => Check::warning(
            "token",
            format!("{named} ends at {end}"),
            "Make another one with `berth token create NAME`, or sign in with `berth login`.",
        ),
        _ => Check::ok("token", named),
    }
}

fn rights(me: &Me) -> Check {
    let cluster = me.cluster_role.map(|role| format!("{} of the cluster", role.word()));
    let teams = me.teams.iter().map(|of| format!("{} of {}", of.role.word(), of.team));
    let all: Vec<String> = cluster.into_iter().chain(teams).collect();
    match all.is_empty() {
        true => Check::failed(
            "rights",
            format!("{} is in no team and has no role", me.user),
            "Ask an admin: `berth member set TEAM USER researcher`.",
        ),
        false => Check::ok("rights", all.join(", ")),
    }
}

async fn nodes(client: &Client) -> Vec<Check> {
    match client.nodes().await {
        Ok(all) => vec![states(&all.items), isolation(&all.items), limits(&all.items)],
        Err(error) => vec![of_failure("nodes", &Failure::from(error))],
    }
}

fn names(nodes: &[&Node]) -> String {
    let some: Vec<&str> = nodes.iter().take(5).map(|node| node.name.as_str()).collect();
    let more = nodes.len().saturating_sub(some.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", some.join(", "))
}

fn states(nodes: &[Node]) -> Check {
    let bad = |node: &&Node| matches!(node.state, NodeState::Failed | NodeState::Troubled);
    let bad: Vec<&Node> = nodes.iter().filter(bad).collect();
    if nodes.is_empty() {
        return Check::failed("nodes", "there is no node", "Start one: `berth up`, or add nodes.");
    }
    match bad.first() {
        None => Check::ok("nodes", format!("{} in all, none failed", nodes.len())),
        Some(first) => {
            let trouble = first.trouble.as_deref().unwrap_or("failed");
            let detail = format!("{}: {trouble}", names(&bad));
            Check::failed("nodes", detail, "`berth nodes` and the server's log say more.")
        }
    }
}

fn isolation(nodes: &[Node]) -> Check {
    let open = |node: &&Node| node.isolation == Some(NodeIsolation::None);
    let open: Vec<&Node> = nodes.iter().filter(open).collect();
    let known = nodes.iter().any(|node| node.isolation.is_some());
    match (open.is_empty(), known) {
        (true, true) => Check::ok("isolation", "jobs are kept apart from each other"),
        (true, false) => Check::skipped("isolation", "Kubernetes keeps the pods apart"),
        (false, _) => Check::warning(
            "isolation",
            format!("jobs on {} reach whatever the server reaches", names(&open)),
            "Allow user namespaces and start the server again; docs/security.md says how.",
        ),
    }
}

fn limits(nodes: &[Node]) -> Check {
    let own = || nodes.iter().filter(|node| node.isolation.is_some());
    let free: Vec<&Node> = own().filter(|node| !node.cgroup).collect();
    match (free.is_empty(), own().next()) {
        (_, None) => Check::skipped("cgroups", "the kubelet holds pods to their limits"),
        (true, _) => Check::ok("cgroups", "jobs are held to their CPU and memory"),
        (false, _) => Check::warning(
            "cgroups",
            format!("jobs on {} may use more CPU and memory than they asked for", names(&free)),
            "Start the server where it may make cgroups (cgroup v2), such as by systemd with \
             Delegate=yes.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    #[test]
    fn a_clock_is_compared_with_the_servers() {
        let date = "Sun, 15 Nov 2026 14:00:00 GMT";
        let at = |text: &str| text.parse().unwrap();
        let check = |here: &str| clock(date, at(here));
        assert_eq!(check("2026-11-15T14:00:01Z").status, Status::Ok);
        let ahead = check("2026-11-15T14:00:30Z");
        assert_eq!(
            (ahead.status, ahead.detail.as_str()),
            (Status::Warning, "30 s ahead of the server")
        );
        let behind = check("2026-11-15T13:50:00Z");
        assert_eq!(behind.status, Status::Failed);
        assert!(behind.next.unwrap().contains("NTP"), "{}", behind.detail);
        assert_eq!(clock("soon", at("2026-11-15T14:00:00Z")).status, Status::Skipped);
    }

    #[test]
    fn another_version_is_worth_a_warning() {
        assert_eq!(of_version("1", "1", "http://x").status, Status::Ok);
        let other = of_version("2", "1", "http://x");
        assert_eq!(other.detail, "berth 2 at http://x, and this program is 1");
    }
}
