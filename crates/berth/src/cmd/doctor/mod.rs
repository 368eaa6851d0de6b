//! `berth doctor`: what is wrong with a server, a machine or a cluster, and what to do about it.

mod cluster;
mod machine;
mod server;

use crate::context::Context;
use crate::fail::{Exit, Failure, Result};
use crate::show::{Look, Page, Tone};
use clap::Args;
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct Doctor {
    /// Check this machine even if the server runs on another one
    #[arg(long)]
    machine: bool,
    /// Check the Kubernetes cluster of the current context, with kubectl
    #[arg(long)]
    kube: bool,
    /// The kubeconfig of that cluster
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Ok,
    /// It works, and something could be better.
    Warning,
    Failed,
    /// It does not apply here.
    Skipped,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    name: &'static str,
    status: Status,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl Check {
    fn new(name: &'static str, status: Status, detail: impl Into<String>) -> Check {
        Check { name, status, detail: detail.into(), next: None }
    }

    pub fn ok(name: &'static str, detail: impl Into<String>) -> Check {
        Check::new(name, Status::Ok, detail)
    }

    pub fn skipped(name: &'static str, detail: impl Into<String>) -> Check {
        Check::new(name, Status::Skipped, detail)
    }

    pub fn warning(
        name: &'static str,
        detail: impl Into<String>,
        next: impl Into<String>,
    ) -> Check {
        Check { next: Some(next.into()), ..Check::new(name, Status::Warning, detail) }
    }

    pub fn failed(name: &'static str, detail: impl Into<String>, next: impl Into<String>) -> Check {
        Check { next: Some(next.into()), ..Check::new(name, Status::Failed, detail) }
    }
}

#[derive(Debug, Serialize)]
struct Report {
    ok: bool,
    checks: Vec<Check>,
}

pub async fn run(context: &Context, args: &Doctor) -> Result<()> {
    let mut checks = server::checks(context).await;
    let is_away =
        checks.iter().any(|check| check.name == "server" && check.status == Status::Failed);
    if args.machine || context.settings.runs_here || is_away {
        checks.extend(machine::checks());
    }
    if args.kube || args.kubeconfig.is_some() {
        checks.extend(cluster::checks(args.kubeconfig.as_deref()));
    }
    let ok = checks.iter().all(|check| check.status != Status::Failed);
    let names = |report: &Report| report.checks.iter().map(|check| check.name.to_owned()).collect();
    context.show(&Page::new(Report { ok, checks }, text, names))?;
    match ok {
        true => Ok(()),
        false => Err(Failure::silent(Exit::Failed)),
    }
}

fn text(report: &Report, look: &Look) -> String {
    let mut out = String::new();
    let width = report.checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    for Check { name, status, detail, next } in &report.checks {
        let (word, tone) = match status {
            Status::Ok => ("ok     ", Tone::Good),
            Status::Warning => ("warning", Tone::Busy),
            Status::Failed => ("failed ", Tone::Bad),
            Status::Skipped => ("skipped", Tone::Quiet),
        };
        let _ = writeln!(out, "{}  {name:<width$}  {detail}", look.paint(tone, word));
        if let Some(next) = next {
            let _ = writeln!(out, "{:>7}  {:<width$}  {next}", "next:", "");
        }
    }
    let count = |status| report.checks.iter().filter(|check| check.status == status).count();
    let (failed, warnings) = (count(Status::Failed), count(Status::Warning));
    let _ = match (failed, warnings) {
        (0, 0) => writeln!(out, "\nEverything is fine."),
        _ => writeln!(out, "\n{failed} failed, {warnings} to look at."),
    };
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_check_says_what_it_found_and_what_to_do() {
        let checks = vec![
            Check::ok("server", "berth 0.1.0 at http://127.0.0.1:7117"),
            Check::warning("clock", "3 s behind the server", "Start chronyd."),
            Check::failed("token", "it was revoked", "`berth login`."),
            Check::skipped("gpu", "no NVIDIA GPU on this machine"),
        ];
        let expect = "\
ok       server  berth 0.1.0 at http://127.0.0.1:7117
warning  clock   3 s behind the server
  next:          Start chronyd.
failed   token   it was revoked
  next:          `berth login`.
skipped  gpu     no NVIDIA GPU on this machine

1 failed, 1 to look at.
";
        let report = Report { ok: false, checks };
        assert_eq!(text(&report, &Look::fixed()), expect);
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["checks"][2]["status"], "failed");
        let fine = Report { ok: true, checks: vec![Check::ok("server", "there")] };
        assert!(text(&fine, &Look::fixed()).ends_with("\nEverything is fine.\n"));
    }
}
