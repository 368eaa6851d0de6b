//! The audit log: a chain in which each row vouches for all before it.

use crate::table::table;
use berth_model::Time;
use ring::digest::{Context, SHA256};

/// What the first row names as the one before it.
pub(crate) const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Something that was done or refused, by whom, and from where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    pub at: Time,
    pub who: String,
    /// The id of the token, not the token.
    pub token: String,
    pub from: String,
    pub method: String,
    pub what: String,
    pub target: String,
    pub outcome: String,
    /// JSON.
    pub detail: String,
}

table! {
    #[derive(Debug)]
    AuditRow in "audit", 1 of the columns are its key: u64;
    seq: u64 = "seq",
    at: Time = "at",
    who: String = "who",
    token: String = "token",
    from: String = "from",
    method: String = "method",
    what: String = "what",
    target: String = "target",
    outcome: String = "outcome",
    detail: String = "detail",
    /// The hash of the row before.
    prev: String = "prev",
    /// SHA-256 over `prev` and all fields above, hexadecimal.
    hash: String = "hash",
}

/// Puts an entry after the row with the hash `prev`.
pub(crate) fn chain(seq: u64, prev: String, entry: AuditEntry) -> AuditRow {
    let AuditEntry { at, who, token, from, method, what, target, outcome, detail } = entry;
    let hash = String::new();
    let mut row =
        AuditRow { seq, at, who, token, from, method, what, target, outcome, detail, prev, hash };
    row.hash = row.digest();
    row
}

impl AuditRow {
    /// What `hash` must be. Every text is preceded by its length, so that no two rows have the
    /// same encoding.
    pub(crate) fn digest(&self) -> String {
        let mut context = Context::new(&SHA256);
        context.update(b"berth audit 1\n");
        context.update(&self.seq.to_be_bytes());
        context.update(&self.at.0.to_be_bytes());
        let AuditRow { who, token, from, method, what, target, outcome, detail, prev, .. } = self;
        for text in [prev, who, token, from, method, what, target, outcome, detail] {
            context.update(&(text.len() as u64).to_be_bytes());
            context.update(text.as_bytes());
        }
        hex::encode(context.finish().as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(who: &str, token: &str) -> AuditEntry {
        AuditEntry {
            at: Time(7),
            who: who.into(),
            token: token.into(),
            from: "127.0.0.1".into(),
            method: "POST".into(),
            what: "submit".into(),
            target: "job 1".into(),
            outcome: "ok".into(),
            detail: "{}".into(),
        }
    }

    #[test]
    fn text_cannot_move_from_one_field_to_the_next_unnoticed() {
        let one = chain(1, GENESIS.into(), entry("ada", "t1"));
        let other = chain(1, GENESIS.into(), entry("adat", "1"));
        assert_ne!(one.hash, other.hash);
    }

    #[test]
    fn the_hash_depends_on_the_row_before_and_on_the_place() {
        let first = chain(1, GENESIS.into(), entry("ada", "t1"));
        assert_ne!(first.hash, chain(2, GENESIS.into(), entry("ada", "t1")).hash);
        assert_ne!(first.hash, chain(1, first.hash.clone(), entry("ada", "t1")).hash);
        assert_eq!(first.hash, first.digest());
    }
}
