//! Removes what a team has pushed and no version, and no job that has not ended, names.

use super::of_tree;
use super::used::used_in;
use crate::artifacts::must_see;
use crate::blobs::{self, DVC};
use crate::caller::Caller;
use crate::data_tree;
use crate::fault::Fault;
use crate::service::Service;
use berth_api::access::Permission;
use berth_api::{Code, wire};
use berth_engine::clock;
use berth_model::{DataHash, Span, Time};
use berth_store::{BlobNameRow, NamesQuery};
use serde_json::json;
use std::collections::BTreeSet;

/// What is younger may belong to a push that is under way.
const LEAST_AGE: Span = Span::hours(1);
const USUAL_AGE: Span = Span::hours(30 * 24);
/// Names that are read, and taken away, at a time.
const PAGE: u32 = 1_000;

pub async fn clean(
    service: &Service,
    caller: &Caller,
    team: &str,
    wish: wire::DataClean,
) -> Result<wire::DataCleaned, Fault> {
    must_see(service, caller, Permission::DataRead, team, ("team", team)).await?;
    caller.must(Permission::DataClean, Some(team), None)?;
    let older = match &wish.older_than {
        None => USUAL_AGE,
        Some(text) => text
            .parse::<Span>()
            .map_err(|error| Fault::new(Code::BadRequest, format!("older_than: {error}")))?,
    };
    if older < LEAST_AGE && !wish.dry_run {
        let detail = "what was pushed within the last hour may belong to a push that is under way";
        return Err(Fault::new(Code::BadRequest, detail).next("name at least 1h"));
    }
    // Nothing is pushed or named meanwhile.
    let _placing = service.blobs.placing.write().await;
    let needed = needed(service, team).await?;
    let until = Time(clock::now().0.saturating_sub(older.0));
    let mut cleaned = wire::DataCleaned { objects: 0, bytes: 0, dry_run: wish.dry_run };
    let mut after: Option<String> = None;
    loop {
        let after_now = after.as_deref();
        let query = NamesQuery { team, kind: DVC, prefix: "", after: after_now, limit: PAGE };
        let rows = service.store.blob_names(query).await?;
        let is_last = rows.len() < PAGE as usize;
        after = rows.last().map(|row| row.name.clone());
        let is_old = |row: &BlobNameRow| row.created < until && !needed.contains(&row.name);
        let rows: Vec<BlobNameRow> = rows.into_iter().filter(is_old).collect();
        cleaned.objects += rows.len() as u64;
        cleaned.bytes += rows.iter().map(|row| row.bytes).sum::<u64>();
        if !wish.dry_run && !rows.is_empty() {
            let detail = json!({ "objects": rows.len() });
            let audit = caller.audit(format!("data of {team}"), detail);
            blobs::drop_names(service, audit, &rows).await?;
        }
        if is_last {
            return Ok(cleaned);
        }
    }
}

/// Everything that a version or a job needs.
async fn needed(service: &Service, team: &str) -> Result<BTreeSet<String>, Fault> {
    let mut roots = used_in(service, team);
    for row in service.store.data_versions(team, None).await? {
        roots.extend(row.hash.parse::<DataHash>());
    }
    let mut needed = BTreeSet::new();
    for root in roots {
        let sums = data_tree::sums(&service.store, &service.blobs.blobs, team, &root).await;
        needed.extend(sums.map_err(|error| of_tree(&error))?);
        needed.insert(root.to_string());
    }
    Ok(needed)
}
