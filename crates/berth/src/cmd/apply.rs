//! `berth apply` and `berth diff`: teams, queues, policies and budgets as files.

use super::documents::Documents;
use crate::context::{Context, read_file, someone_is_there};
use crate::fail::{Exit, Failure, Result};
use crate::prompt;
use crate::show::{self, Look, Page, Tone, words};
use berth_api::wire::{ApplyRequest, Change, ChangeKind, Diff as Changes};
use clap::Args;
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
pub struct Files {
    /// Files or folders of them (YAML); `-` reads standard input
    #[arg(short, long = "file", value_name = "FILE", required = true, num_args = 1..)]
    pub files: Vec<PathBuf>,
    /// Delete teams, queues and projects that no file has
    #[arg(long)]
    pub prune: bool,
}

#[derive(Args, Debug)]
pub struct Apply {
    #[command(flatten)]
    files: Files,
    /// Only show what would change, as `berth diff` does
    #[arg(long)]
    dry_run: bool,
    /// Do not ask before deleting
    #[arg(short, long)]
    yes: bool,
}

#[derive(Args, Debug)]
pub struct Diff {
    #[command(flatten)]
    files: Files,
    /// Exit with 1 if something would change
    #[arg(long)]
    exit_code: bool,
}

pub async fn apply(context: &Context, args: &Apply) -> Result<()> {
    let (request, files) = args.files.request()?;
    let client = context.client()?;
    let located = |error| files.located(error);
    if request.prune && !args.dry_run && !args.yes && someone_is_there() {
        confirm(context, client.diff(&request).await.map_err(located)?)?;
    }
    let changes = match args.dry_run {
        true => client.diff(&request).await,
        false => client.apply(&request).await,
    };
    context.show(&page(changes.map_err(located)?))
}

/// Shows what would be removed, and asks.
fn confirm(context: &Context, mut changes: Changes) -> Result<()> {
    changes.changes.retain(|change| change.change == ChangeKind::Remove && change.path.is_empty());
    if changes.changes.is_empty() {
        return Ok(());
    }
    let removed: Vec<String> =
        changes.changes.iter().map(|change| line(change, &context.look())).collect();
    show::note(&removed.join("\n"));
    let many = words::count(removed.len() as u64, "object");
    match prompt::is_sure(&format!("Delete {many}?"))? {
        true => Ok(()),
        false => Err(Failure::new(Exit::Failed, "nothing was changed")),
    }
}

pub async fn diff(context: &Context, args: &Diff) -> Result<()> {
    show_diff(context, &args.files, args.exit_code).await
}

pub async fn show_diff(context: &Context, files: &Files, exit_code: bool) -> Result<()> {
    let (request, files) = files.request()?;
    let changes = context.client()?.diff(&request).await;
    let changes = changes.map_err(|error| files.located(error))?;
    let drift = exit_code && !changes.changes.is_empty();
    context.show(&page(changes))?;
    match drift {
        true => Err(Failure::silent(Exit::Failed)),
        false => Ok(()),
    }
}

impl Files {
    fn request(&self) -> Result<(ApplyRequest, Documents)> {
        let mut documents = Documents::default();
        for path in &self.files {
            match path.is_dir() {
                true => {
                    for file in yaml_files(path)? {
                        documents.add(&file, &read_file(&file)?);
                    }
                }
                false => documents.add(path, &read_file(path)?),
            }
        }
        let request = ApplyRequest { documents: documents.text(), prune: self.prune };
        Ok((request, documents))
    }
}

/// In the order of their names, so that the outcome does not depend on the disk.
fn yaml_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |error| Failure::io(format!("listing {}", folder.display()), &error);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|end| end == "yaml" || end == "yml") {
            files.push(path);
        }
    }
    files.sort();
    match files.is_empty() {
        true => Err(Failure::usage(format!("there are no YAML files in {}", folder.display()))),
        false => Ok(files),
    }
}

fn page(changes: Changes) -> Page<Changes> {
    let names = |changes: &Changes| {
        changes
            .changes
            .iter()
            .map(|change| format!("{}/{}", change.kind.word(), change.name))
            .collect()
    };
    let warnings = |changes: &Changes| {
        changes.warnings.iter().map(|warning| format!("warning: {warning}")).collect()
    };
    Page::new(changes, text, names).remarks(warnings)
}

fn text(changes: &Changes, look: &Look) -> String {
    let lines: Vec<String> = changes.changes.iter().map(|change| line(change, look)).collect();
    match (lines.is_empty(), changes.applied) {
        (true, _) => "No changes: the cluster matches the files.\n".to_owned(),
        (false, true) => format!("{}\n\nApplied.\n", lines.join("\n")),
        (false, false) => format!("{}\n\nNothing was changed.\n", lines.join("\n")),
    }
}

fn line(change: &Change, look: &Look) -> String {
    let (sign, tone) = match change.change {
        ChangeKind::Add => ("+", Tone::Good),
        ChangeKind::Change => ("~", Tone::Busy),
        ChangeKind::Remove => ("-", Tone::Bad),
    };
    let kind = change.kind.word();
    // There is one policy, and one table of classes and of prices.
    let name = if change.name == kind { "" } else { &*change.name };
    let mut line = format!("{sign} {}", format!("{kind} {name}").trim_end());
    if !change.path.is_empty() {
        line.push_str(&format!(" {}", change.path));
    }
    match (&change.old, &change.new) {
        (Some(old), Some(new)) => line.push_str(&format!(": {old} -> {new}")),
        (Some(value), None) | (None, Some(value)) => line.push_str(&format!(": {value}")),
        (None, None) => {}
    }
    look.paint(tone, &line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_api::wire::DocumentKind;

    #[test]
    fn changes_are_lines_with_a_sign() {
        let change = |change, path: &str, old: Option<&str>, new: Option<&str>| Change {
            kind: DocumentKind::Queue,
            name: "nlp".into(),
            path: path.into(),
            change,
            old: old.map(str::to_owned),
            new: new.map(str::to_owned),
        };
        let changes = Changes {
            changes: vec![
                change(ChangeKind::Add, "", None, None),
                change(ChangeKind::Change, "quota.gpu", Some("64"), Some("96")),
                change(ChangeKind::Remove, "limit", Some("8"), None),
            ],
            warnings: Vec::new(),
            applied: false,
        };
        assert_eq!(
            text(&changes, &Look::fixed()),
            "+ queue nlp\n~ queue nlp quota.gpu: 64 -> 96\n- queue nlp limit: 8\n\n\
             Nothing was changed.\n"
        );
        let grace = Change {
            kind: DocumentKind::Policy,
            name: "policy".into(),
            ..change(ChangeKind::Change, "grace", Some("5m"), Some("10s"))
        };
        assert_eq!(line(&grace, &Look::fixed()), "~ policy grace: 5m -> 10s");
        let none = Changes { changes: Vec::new(), warnings: Vec::new(), applied: true };
        assert_eq!(text(&none, &Look::fixed()), "No changes: the cluster matches the files.\n");
    }
}
