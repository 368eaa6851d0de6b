//! The keys that sign the audit log. They are kept outside the database, so that whoever owns the
//! database cannot sign rows of their own.

use ring::hmac;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// How long a key is, in bytes.
pub const AUDIT_KEY_LEN: usize = 32;

/// Keys in the order in which they were made. The last one signs; the others verify what they have
/// signed. Cheap to clone: all clones see a key that is added.
#[derive(Clone, Default)]
pub struct AuditKeys(Arc<RwLock<Vec<Key>>>);

struct Key {
    id: String,
    key: hmac::Key,
}

impl AuditKeys {
    pub fn new(keys: impl IntoIterator<Item = (String, [u8; AUDIT_KEY_LEN])>) -> AuditKeys {
        let all = AuditKeys::default();
        keys.into_iter().for_each(|(id, bytes)| all.add(id, &bytes));
        all
    }

    /// Adds a key, which signs from now on.
    pub fn add(&self, id: String, bytes: &[u8; AUDIT_KEY_LEN]) {
        let key = hmac::Key::new(hmac::HMAC_SHA256, bytes);
        self.0.write().unwrap_or_else(PoisonError::into_inner).push(Key { id, key });
    }

    /// The key that signs; none where rows are not signed.
    pub fn current(&self) -> Option<String> {
        self.with(|keys| keys.last().map(|key| key.id.clone()))
    }

    pub fn has(&self, id: &str) -> bool {
        self.position(id).is_some()
    }

    /// Which of the keys it is, from the oldest on.
    pub(crate) fn position(&self, id: &str) -> Option<usize> {
        self.with(|keys| keys.iter().position(|key| key.id == id))
    }

    /// The signature, hexadecimal; none where there is no such key.
    pub(crate) fn sign(&self, id: &str, message: &[u8]) -> Option<String> {
        self.with(|keys| {
            let key = keys.iter().find(|key| key.id == id)?;
            Some(hex::encode(hmac::sign(&key.key, message).as_ref()))
        })
    }

    fn with<T>(&self, read: impl FnOnce(&[Key]) -> T) -> T {
        read(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Only the ids: keys must not reach a log.
impl fmt::Debug for AuditKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with(|keys| f.debug_list().entries(keys.iter().map(|key| &key.id)).finish())
    }
}
