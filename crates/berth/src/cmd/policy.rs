//! `berth policy`: how the scheduler behaves, and who changed it.

use super::apply::{self, Files};
use super::ps::from_one;
use crate::context::Context;
use crate::fail::Result;
use crate::show::{Look, Page, Table};
use berth_api::Client;
use berth_api::wire::{At, AuditQuery, AuditRow, Policy as Knobs};
use clap::{Args, Subcommand};
use serde::Serialize;
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub enum Policy {
    /// Show the policy, and which settings differ from the default
    Show {
        /// Only settings that differ from the default
        #[arg(long)]
        changed: bool,
    },
    /// Show what a policy file would change
    Diff(PolicyFiles),
    /// Show who changed the policy, newest first (from the audit log)
    History {
        /// How many changes to show
        #[arg(short = 'n', long, value_name = "N", default_value = "20", value_parser = from_one())]
        limit: u32,
    },
}

#[derive(Args, Debug)]
pub struct PolicyFiles {
    /// Files or folders of them (YAML); `-` reads standard input
    #[arg(short, long = "file", value_name = "FILE", required = true, num_args = 1..)]
    files: Vec<PathBuf>,
    /// Exit with 1 if something would change
    #[arg(long)]
    exit_code: bool,
}

pub async fn run(context: &Context, args: &Policy) -> Result<()> {
    match args {
        Policy::Show { changed } => {
            let mut policy = context.client()?.policy().await?;
            if *changed {
                let Knobs { knobs, changed, .. } = &mut policy;
                knobs.retain(|knob, _| changed.contains(knob));
            }
            let names = |policy: &Knobs| policy.knobs.keys().cloned().collect();
            let version = |policy: &Knobs| {
                vec![format!("version {}; docs/policy.md explains each setting", policy.version)]
            };
            context.show(&Page::new(policy, knobs, names).remarks(version))
        }
        Policy::Diff(args) => {
            let files = Files { files: args.files.clone(), prune: false };
            apply::show_diff(context, &files, args.exit_code).await
        }
        Policy::History { limit } => {
            let found = history(context.client()?, *limit as usize).await?;
            let names = |found: &History| {
                found.changes.iter().map(|change| change.seq.to_string()).collect()
            };
            context.show(&Page::new(found, changes, names))
        }
    }
}

fn knobs(policy: &Knobs, look: &Look) -> String {
    let mut table = Table::new(&["SETTING", "VALUE", "DEFAULT"]);
    for (knob, value) in &policy.knobs {
        let is_default = if policy.changed.contains(knob) { "no" } else { "yes" };
        table.row(vec![knob.as_str().into(), value.as_str().into(), is_default.into()]);
    }
    table.or(look, "All settings have their default.")
}

/// One setting that somebody changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Change {
    /// The row of the audit log.
    seq: u64,
    at: At,
    who: String,
    setting: String,
    value: String,
}

#[derive(Debug, Serialize)]
struct History {
    changes: Vec<Change>,
}

/// The policy is changed by `apply`, and the audit log has each setting of it.
async fn history(client: &Client, limit: usize) -> Result<History> {
    let mut query = AuditQuery {
        what: Some("apply".to_owned()),
        refused: Some(false),
        limit: Some(1_000),
        ..AuditQuery::default()
    };
    let mut found = Vec::new();
    loop {
        let page = client.audit(&query).await?;
        found.extend(page.rows.iter().flat_map(of_row));
        query.cursor = page.next;
        if found.len() >= limit || query.cursor.is_none() {
            found.truncate(limit);
            return Ok(History { changes: found });
        }
    }
}

/// What a row says of the policy: its detail has lines such as `~ policy policy grace 5m`.
fn of_row(row: &AuditRow) -> Vec<Change> {
    let detail: serde_json::Value = serde_json::from_str(&row.detail).unwrap_or_default();
    let lines = detail["changes"].as_array().cloned().unwrap_or_default();
    let change = |line: &serde_json::Value| {
        let mut words = line.as_str()?.splitn(5, ' ');
        let (_, kind) = (words.next()?, words.next()?);
        let (_, setting, value) = (words.next()?, words.next()?, words.next().unwrap_or_default());
        (kind == "policy").then(|| Change {
            seq: row.seq,
            at: row.at,
            who: row.who.clone(),
            setting: setting.to_owned(),
            value: value.to_owned(),
        })
    };
    lines.iter().filter_map(change).collect()
}

fn changes(found: &History, look: &Look) -> String {
    let mut table = Table::new(&["WHEN", "WHO", "SETTING", "NEW VALUE"]);
    for change in &found.changes {
        table.row(vec![
            look.at_second(change.at).into(),
            change.who.as_str().into(),
            change.setting.as_str().into(),
            change.value.as_str().into(),
        ]);
    }
    table.or(look, "No changes.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(detail: &str) -> AuditRow {
        AuditRow {
            seq: 7,
            at: "2026-11-15T13:00:00Z".parse().unwrap(),
            who: "ada".into(),
            token: None,
            from: "127.0.0.1".into(),
            method: "token".into(),
            what: "apply".into(),
            target: "documents".into(),
            outcome: "ok".into(),
            detail: detail.into(),
            prev: String::new(),
            hash: String::new(),
            key: String::new(),
            seals: String::new(),
        }
    }

    #[test]
    fn history_lists_settings_of_the_policy_and_no_other_change() {
        let detail = r#"{"changes":["+ team nlp","~ policy policy grace 5m",
                         "~ policy policy passes [place, backfill]"]}"#;
        let found = History { changes: of_row(&row(detail)) };
        let expect = "\
WHEN                 WHO  SETTING  NEW VALUE
2026-11-15 14:00:00  ada  grace    5m
2026-11-15 14:00:00  ada  passes   [place, backfill]
";
        assert_eq!(changes(&found, &Look::fixed()), expect);
        assert!(of_row(&row("nonsense")).is_empty());
    }

    #[test]
    fn the_policy_shows_which_settings_are_not_the_default() {
        let policy = Knobs {
            version: 3,
            knobs: [("grace".to_owned(), "5m".to_owned()), ("order".to_owned(), "fifo".to_owned())]
                .into(),
            changed: vec!["grace".into()],
        };
        let expect = "\
SETTING  VALUE  DEFAULT
grace    5m     no
order    fifo   yes
";
        assert_eq!(knobs(&policy, &Look::fixed()), expect);
    }
}
