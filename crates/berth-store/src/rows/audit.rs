//! The audit log: a chain in which each row vouches for all before it. Rows are signed with a key
//! that is not in the database; those from before there were keys have a plain hash.

use super::seals::Seal;
use crate::audit_keys::AuditKeys;
use crate::table::table;
use berth_model::Time;
use ring::digest::{SHA256, digest};

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
    /// A signature (HMAC-SHA256) over all other fields, hexadecimal; without a key, SHA-256 over
    /// `prev` and all fields above.
    hash: String = "hash",
    /// The id of the key that signed it.
    key: String = "key",
    /// What rows that give rights are from now on, as JSON.
    seals: String = "seals",
}

/// Puts an entry after the row with the hash `prev`, and signs it with the newest key.
pub(crate) fn chain(
    seq: u64,
    prev: String,
    entry: AuditEntry,
    seals: &[Seal],
    keys: &AuditKeys,
) -> AuditRow {
    let AuditEntry { at, who, token, from, method, what, target, outcome, detail } = entry;
    let key = keys.current().unwrap_or_default();
    let mut row = AuditRow {
        seq,
        at,
        who,
        token,
        from,
        method,
        what,
        target,
        outcome,
        detail,
        prev,
        hash: String::new(),
        // A hash that anybody can compute vouches for no rights.
        seals: if key.is_empty() || seals.is_empty() { String::new() } else { encode(seals) },
        key,
    };
    row.hash = row.digest(keys).expect("the newest key is known");
    row
}

fn encode(seals: &[Seal]) -> String {
    serde_json::to_string(seals).expect("seals are plain data")
}

impl AuditRow {
    /// What `hash` must be; none where the key is not known. Every text is preceded by its length,
    /// so that no two rows have the same encoding.
    pub(crate) fn digest(&self, keys: &AuditKeys) -> Option<String> {
        let AuditRow { who, token, from, method, what, target, outcome, detail, .. } = self;
        let texts = [&self.prev, who, token, from, method, what, target, outcome, detail];
        let mut message = Vec::with_capacity(512);
        let is_keyed = !self.key.is_empty();
        message.extend(if is_keyed { b"berth audit 2\n" } else { b"berth audit 1\n" });
        message.extend(self.seq.to_be_bytes());
        message.extend(self.at.0.to_be_bytes());
        let more = [&self.key, &self.seals];
        for text in texts.into_iter().chain(more.into_iter().filter(|_| is_keyed)) {
            message.extend((text.len() as u64).to_be_bytes());
            message.extend(text.as_bytes());
        }
        match is_keyed {
            true => keys.sign(&self.key, &message),
            false => Some(hex::encode(digest(&SHA256, &message).as_ref())),
        }
    }

    /// What it says about rights; none where that makes no sense.
    pub(crate) fn seals(&self) -> Option<Vec<Seal>> {
        match self.seals.as_str() {
            "" => Some(Vec::new()),
            seals => serde_json::from_str(seals).ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> AuditKeys {
        AuditKeys::new([("k1".to_owned(), [7; 32])])
    }

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
        for keys in [AuditKeys::default(), key()] {
            let one = chain(1, GENESIS.into(), entry("ada", "t1"), &[], &keys);
            let other = chain(1, GENESIS.into(), entry("adat", "1"), &[], &keys);
            assert_ne!(one.hash, other.hash);
        }
    }

    /// Databases from before there were keys hold it.
    #[test]
    fn a_row_without_a_key_has_the_hash_that_it_always_had() {
        let row = chain(1, GENESIS.into(), entry("ada", "t1"), &[], &AuditKeys::default());
        assert_eq!(row.hash, "9a922f05bbc09608bd0d1fb4a1cd457fa648afb2645d5e4f231c611356e72307");
    }

    #[test]
    fn a_signature_takes_the_key_and_covers_the_seals() {
        let seals = [("users".into(), "ada".into(), String::new(), Some("c0ffee".into()))];
        let row = chain(1, GENESIS.into(), entry("ada", "t1"), &seals, &key());
        assert_eq!(row.digest(&key()).as_ref(), Some(&row.hash));
        assert_eq!(row.digest(&AuditKeys::default()), None);
        let other = AuditKeys::new([("k1".to_owned(), [8; 32])]);
        assert_ne!(row.digest(&other).as_ref(), Some(&row.hash));
        let forged = AuditRow { seals: row.seals.replace("ada", "eve"), ..row.clone() };
        assert_ne!(forged.digest(&key()).as_ref(), Some(&row.hash));
    }

    #[test]
    fn the_hash_depends_on_the_row_before_and_on_the_place() {
        let made = |seq, prev| chain(seq, prev, entry("ada", "t1"), &[], &key());
        let first = made(1, GENESIS.into());
        assert_ne!(first.hash, made(2, GENESIS.into()).hash);
        assert_ne!(first.hash, made(1, first.hash.clone()).hash);
    }
}
