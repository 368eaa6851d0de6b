//! The audit log, page by page, and whether it is whole.

use crate::fault::Fault;
use crate::service::Service;
use berth_api::{Code, wire};
use berth_store::{AuditCheck, AuditFilter, AuditRow};

const LIMIT: u32 = 100;
const MOST: u32 = 1_000;

pub async fn list(service: &Service, query: wire::AuditQuery) -> Result<wire::AuditList, Fault> {
    let before = query.cursor.as_deref().map(cursor).transpose()?;
    let limit = query.limit.unwrap_or(LIMIT).clamp(1, MOST);
    let filter = AuditFilter {
        who: query.who,
        what: query.what,
        target: None,
        since: query.since.map(|at| at.0),
        until: None,
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

fn shown(row: AuditRow) -> wire::AuditRow {
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
    }
}

pub async fn verify(service: &Service) -> Result<wire::AuditVerified, Fault> {
    Ok(match service.store.verify_audit().await? {
        AuditCheck::Whole(found) => {
            wire::AuditVerified { whole: true, rows: found.rows, head: found.head, broken_at: None }
        }
        AuditCheck::Broken(broken) => {
            tracing::error!(seq = broken.seq, why = broken.why, "the audit log is not whole");
            wire::AuditVerified {
                whole: false,
                rows: broken.seq.saturating_sub(1),
                head: String::new(),
                broken_at: Some(broken.seq),
            }
        }
    })
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
