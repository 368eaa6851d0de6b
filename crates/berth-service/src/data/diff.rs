//! What is different between two versions.

use super::{named, shown, tree};
use crate::caller::Caller;
use crate::data_tree::Tree;
use crate::fault::Fault;
use crate::service::Service;
use berth_api::wire;
use std::collections::BTreeMap;

/// Files that are named of each kind of change.
const MOST_NAMED: usize = 1_000;

/// From the first version to the second.
pub async fn diff(
    service: &Service,
    caller: &Caller,
    team: &str,
    wanted: &str,
    query: wire::DataDiffQuery,
) -> Result<wire::DataDiff, Fault> {
    let from = named(service, caller, team, wanted).await?;
    let to = named(service, caller, team, &query.to).await?;
    let (before, after) = (tree(service, &from).await?, tree(service, &to).await?);
    Ok(compare(&before, &after, (&from.name, &to.name), (shown(from.clone()), shown(to.clone()))))
}

fn by_path<'t>(tree: &'t Tree, own: &'t str) -> BTreeMap<&'t str, (&'t str, u64)> {
    let line = |file: &'t crate::data_tree::TreeFile| {
        (file.path.as_deref().unwrap_or(own), (file.md5.as_str(), file.bytes))
    };
    tree.files.iter().map(line).collect()
}

fn compare(
    before: &Tree,
    after: &Tree,
    names: (&str, &str),
    (from, to): (wire::DataVersion, wire::DataVersion),
) -> wire::DataDiff {
    let (old, new) = (by_path(before, names.0), by_path(after, names.1));
    let mut added = wire::DataChanges::default();
    let (mut removed, mut changed) = (added.clone(), added.clone());
    let note = |changes: &mut wire::DataChanges, path: &str, bytes: u64| {
        changes.files += 1;
        changes.bytes += bytes;
        if changes.paths.len() < MOST_NAMED {
            changes.paths.push(path.to_owned());
        }
    };
    for (path, (md5, bytes)) in &new {
        match old.get(path) {
            None => note(&mut added, path, *bytes),
            Some((before, _)) if before != md5 => note(&mut changed, path, *bytes),
            Some(_) => {}
        }
    }
    for (path, (_, bytes)) in &old {
        if !new.contains_key(path) {
            note(&mut removed, path, *bytes);
        }
    }
    wire::DataDiff { from, to, added, removed, changed }
}
