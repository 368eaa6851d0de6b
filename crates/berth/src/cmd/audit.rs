//! `berth audit`.

use super::ps::from_one;
use super::when;
use crate::complete;
use crate::context::Context;
use crate::fail::{Exit, Failure, Result};
use crate::show::{Look, Page, Table, words};
use berth_api::wire::{At, AuditKeyRotated, AuditList, AuditQuery, AuditVerified};
use clap::{Args, Subcommand};

#[derive(Subcommand, Debug)]
pub enum Audit {
    /// List changes and refused requests, newest first
    List(List),
    /// Verify the log and the permissions
    Verify,
    /// Sign the log with a new key from now on; old rows stay verifiable
    RotateKey,
}

#[derive(Args, Debug)]
pub struct List {
    /// By this user
    #[arg(long, value_name = "USER", add = complete::users())]
    who: Option<String>,
    /// Of this kind, such as submit_job
    #[arg(long, value_name = "WHAT")]
    what: Option<String>,
    /// Of this thing, such as "model nlp/chat"
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    /// Since: a time, or a time ago such as 2d
    #[arg(long, value_name = "WHEN", value_parser = when::past)]
    since: Option<At>,
    /// Only refused requests
    #[arg(long)]
    refused: bool,
    /// How many to show
    #[arg(short = 'n', long, value_name = "N", default_value = "100", value_parser = from_one())]
    limit: u32,
}

/// The most rows of one answer.
const PAGE: u32 = 1_000;

pub async fn run(context: &Context, args: &Audit) -> Result<()> {
    match args {
        Audit::List(args) => {
            let rows = list(context, args).await?;
            let names =
                |list: &AuditList| list.rows.iter().map(|row| row.seq.to_string()).collect();
            let older = |list: &AuditList| match list.next {
                Some(_) => vec!["older rows are left out; --limit shows more".to_owned()],
                None => Vec::new(),
            };
            context.show(&Page::new(rows, text, names).remarks(older))
        }
        Audit::Verify => verify(context).await,
        Audit::RotateKey => {
            let rotated = context.client()?.rotate_audit_key().await?;
            context.show(&Page::new(rotated, signs, |rotated| vec![rotated.new.clone()]))
        }
    }
}

async fn list(context: &Context, args: &List) -> Result<AuditList> {
    let client = context.client()?;
    let mut query = AuditQuery {
        who: args.who.clone(),
        what: args.what.clone(),
        target: args.target.clone(),
        since: args.since,
        refused: args.refused.then_some(true),
        limit: Some(args.limit.min(PAGE)),
        cursor: None,
    };
    let mut all = client.audit(&query).await?;
    loop {
        let have = u32::try_from(all.rows.len()).unwrap_or(u32::MAX);
        if all.next.is_none() || have >= args.limit {
            return Ok(all);
        }
        (query.cursor, query.limit) = (all.next.take(), Some((args.limit - have).min(PAGE)));
        let page = client.audit(&query).await?;
        all.rows.extend(page.rows);
        all.next = page.next;
    }
}

fn text(list: &AuditList, look: &Look) -> String {
    let mut titles = vec![">SEQ", "WHEN", "WHO", "FROM", "WHAT", "TARGET", "OUTCOME"];
    if look.wide {
        titles.extend(["TOKEN", "METHOD", "HASH"]);
    }
    titles.push("DETAIL");
    let mut table = Table::new(&titles);
    for row in &list.rows {
        let mut cells = vec![
            row.seq.into(),
            look.at_second(row.at).into(),
            row.who.as_str().into(),
            row.from.as_str().into(),
            row.what.as_str().into(),
            row.target.as_str().into(),
            row.outcome.as_str().into(),
        ];
        if look.wide {
            cells.extend([
                row.token.as_deref().into(),
                row.method.as_str().into(),
                row.hash.as_str().into(),
            ]);
        }
        cells.push(row.detail.as_str().into());
        table.row(cells);
    }
    table.or(look, "No entries.")
}

async fn verify(context: &Context) -> Result<()> {
    let verified = context.client()?.verify_audit().await?;
    let whole = verified.whole;
    context.show(&Page::new(verified, verdict, |verified| vec![verified.head.clone()]))?;
    match whole {
        true => Ok(()),
        false => Err(Failure::silent(Exit::Failed)),
    }
}

fn signs(rotated: &AuditKeyRotated, _: &Look) -> String {
    format!(
        "Key {} signs the audit log from now on. Keep a copy of the key file: old rows are checked \
         with the keys that signed them.",
        rotated.new
    )
}

fn verdict(verified: &AuditVerified, _: &Look) -> String {
    let rows = words::count(verified.rows, "row");
    let mut text = match (verified.whole, verified.broken_at) {
        (true, _) => {
            let signed = match (verified.keyed_from, &verified.key) {
                (Some(from), Some(key)) => format!(", signed from row {from} on (key {key})"),
                _ => String::new(),
            };
            format!(
                "The audit log is whole: {rows}{signed}. Keep the last hash elsewhere to notice a \
                 log that was cut off:\n{}",
                verified.head
            )
        }
        (false, Some(row)) => {
            let why = verified.why.as_deref().unwrap_or("it does not follow from the ones before");
            format!(
                "The audit log was changed: row {row}: {why} ({rows} before it are as they were). \
                 Compare it with a backup or an export."
            )
        }
        (false, None) if !verified.rights.is_empty() => format!(
            "The audit log is whole ({rows}), but rights were changed without the server. Set them \
             right with berth, and find out who can write to the database:"
        ),
        (false, None) => format!("The audit log is not whole ({rows}). Compare it with a backup."),
    };
    for one in &verified.rights {
        text.push_str(&format!("\n  {one}"));
    }
    if !verified.warnings.is_empty() {
        text.push_str("\nThe server found and noted earlier:");
    }
    for one in &verified.warnings {
        text.push_str(&format!("\n  {one}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole() -> AuditVerified {
        AuditVerified {
            whole: true,
            rows: 1,
            head: "ab".into(),
            broken_at: None,
            why: None,
            keyed_from: None,
            key: None,
            rights: Vec::new(),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn a_log_that_was_changed_names_the_row() {
        let why = Some("it is missing".to_owned());
        let broken = AuditVerified { whole: false, broken_at: Some(7), why, ..whole() };
        assert!(verdict(&broken, &Look::fixed()).contains("row 7: it is missing"));
        assert!(verdict(&whole(), &Look::fixed()).ends_with("cut off:\nab"));
    }

    #[test]
    fn rights_that_were_changed_without_the_server_are_named() {
        let rights = vec!["user eve: it was changed".to_owned()];
        let changed = AuditVerified { whole: false, rights, ..whole() };
        assert!(verdict(&changed, &Look::fixed()).ends_with("\n  user eve: it was changed"));
    }
}
