//! The audit log, page by page, and whether it is whole.

use super::audit_watch::FOUND;
use crate::audit_end;
use crate::caller::Caller;
use crate::fault::Fault;
use crate::service::Service;
use berth_api::{Code, wire};
use berth_engine::Write;
use berth_store::{AuditCheck, AuditFilter, AuditRow, Batch};
use serde_json::json;

const LIMIT: u32 = 100;
const MOST: u32 = 1_000;
/// Earlier findings that are shown.
const MOST_WARNINGS: u32 = 20;

pub async fn list(service: &Service, query: wire::AuditQuery) -> Result<wire::AuditList, Fault> {
    let before = query.cursor.as_deref().map(cursor).transpose()?;
    let limit = query.limit.unwrap_or(LIMIT).clamp(1, MOST);
    let filter = AuditFilter {
        who: query.who,
        what: query.what,
        target: query.target,
        since: query.since.map(|at| at.0),
        until: None,
        refused: query.refused,
    };
    let rows = service.store.audit(&filter, before, limit).await?;
    let full = rows.len() == limit as usize;
    let next = rows.last().filter(|row| full && row.seq > 1).map(|row| row.seq.to_string());
    Ok(wire::AuditList { rows: rows.into_iter().map(shown).collect(), next })
}

/// The row that the page before ended with: rows are only ever added at the other end.
fn cursor(text: &str) -> Result<u64, Fault> {
    let seq = text.parse().ok().filter(|seq| *seq > 0);
    seq.ok_or_else(|| Fault::new(Code::BadCursor, format!("`{text}` is no cursor")))
}

/// A row as it goes over the wire, and into an export.
pub fn shown(row: AuditRow) -> wire::AuditRow {
    wire::AuditRow {
        seq: row.seq,
        at: row.at.into(),
        who: row.who,
        token: Some(row.token).filter(|token| !token.is_empty()),
        from: row.from,
        method: row.method,
        what: row.what,
        target: row.target,
        outcome: row.outcome,
        detail: row.detail,
        prev: row.prev,
        hash: row.hash,
        key: row.key,
        seals: row.seals,
    }
}

pub async fn verify(service: &Service) -> Result<wire::AuditVerified, Fault> {
    let noted = audit_end::noted(&service.home).map_err(|error| {
        let path = service.home.audit_end();
        let detail = format!("{} cannot be read: {error}", path.display());
        let next = "put the file back as it was; remove it if it is damaged, and look in the audit \
                    log for what is missing";
        Fault::new(Code::Internal, detail).next(next)
    })?;
    let warnings = earlier_findings(service).await?;
    let key = service.store.audit_keys().current();
    Ok(match service.store.verify_audit_with(noted.as_ref()).await? {
        AuditCheck::Whole(found) => {
            let rights: Vec<String> =
                found.rights.iter().map(|one| format!("{}: {}", one.what, one.why)).collect();
            if !rights.is_empty() {
                tracing::error!(?rights, "rights were changed without the server");
            }
            wire::AuditVerified {
                whole: rights.is_empty(),
                rows: found.rows,
                head: found.head,
                broken_at: None,
                why: None,
                keyed_from: found.keyed_from,
                key,
                rights,
                warnings,
            }
        }
        AuditCheck::Broken(broken) => {
            tracing::error!(seq = broken.seq, why = broken.why, "the audit log is not whole");
            wire::AuditVerified {
                whole: false,
                rows: broken.seq.saturating_sub(1),
                head: String::new(),
                broken_at: Some(broken.seq),
                why: Some(broken.why),
                keyed_from: None,
                key,
                rights: Vec::new(),
                warnings,
            }
        }
    })
}

/// What the server found earlier and wrote into the log, newest first.
async fn earlier_findings(service: &Service) -> Result<Vec<String>, Fault> {
    let mut rows = Vec::new();
    for what in FOUND {
        let filter = AuditFilter { what: Some((*what).to_owned()), ..AuditFilter::default() };
        rows.extend(service.store.audit(&filter, None, MOST_WARNINGS).await?);
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.seq));
    let words = |row: AuditRow| {
        format!("row {} of {}: {} {} {}", row.seq, row.at, row.what, row.target, row.detail)
    };
    Ok(rows.into_iter().take(MOST_WARNINGS as usize).map(words).collect())
}

/// Makes a new key, which signs from now on. Old rows stay verifiable with the old ones.
pub async fn rotate_key(
    service: &Service,
    caller: &Caller,
) -> Result<wire::AuditKeyRotated, Fault> {
    let old = service.store.audit_keys().current();
    let file = service.audit_keys.clone();
    let made = tokio::task::spawn_blocking(move || file.rotate()).await;
    let made = made.map_err(|panic| Fault::new(Code::Internal, panic.to_string()))?;
    let new = made.map_err(|error| {
        let next = "make the key file writable; or add a line with an id and 64 hexadecimal \
                    digits to it yourself, and start the server again";
        Fault::new(Code::NotHere, error.to_string()).next(next)
    })?;
    let audit = caller.audit(format!("key {new}"), json!({ "old": old, "new": new }));
    // The key is in the file and in use, whatever becomes of this row. At the next start the server
    // writes it if it is missing.
    service.engine.write(Write::documents(Batch::default(), audit)).await?;
    Ok(wire::AuditKeyRotated { old, new })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_the_number_of_a_row_and_nothing_else() {
        assert_eq!(cursor("17").unwrap(), 17);
        for text in ["", "0", "-1", "x", "99999999999999999999"] {
            assert_eq!(cursor(text).unwrap_err().0.known_code(), Some(Code::BadCursor), "{text}");
        }
    }
}
