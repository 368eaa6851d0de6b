//! The audit log.

use crate::audit_keys::AuditKeys;
use crate::error::Result;
use crate::rows::seals::{self, Rights, SealKey, Unsealed};
use crate::rows::{AuditRow, GENESIS, IdentityRow, MemberRow, SessionRow, TokenRow, UserRow};
use crate::store::{AuditEnd, Store};
use crate::value::{Binds, Field, Reader, Value};
use berth_model::Time;
use std::collections::{BTreeMap, BTreeSet};

const PAGE: u32 = 1_000;

/// Which rows to read. What is left out does not matter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditFilter {
    pub who: Option<String>,
    pub what: Option<String>,
    pub target: Option<String>,
    pub since: Option<Time>,
    pub until: Option<Time>,
    /// Those whose outcome begins with the word, or all others.
    pub refused: Option<bool>,
}

/// What looking through the chain found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuditCheck {
    Whole(Verified),
    Broken(Broken),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    pub rows: u64,
    /// The hash of the last row. Who notes it elsewhere can tell later whether the log still
    /// holds what it held.
    pub head: String,
    /// The first row that is signed. Whoever owns the database could have rewritten those before
    /// it until it was written, and none since.
    pub keyed_from: Option<u64>,
    /// Users, members and tokens that are not what the log says they are, and what is wrong.
    pub rights: Vec<RightsFinding>,
}

/// A user, member or token that was changed without the server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RightsFinding {
    pub what: String,
    pub why: &'static str,
}

/// The first row that is missing, out of place or not what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    pub seq: u64,
    pub why: String,
}

impl Store {
    /// Up to `limit` rows, the newest first, from the one before `before` on.
    pub async fn audit(
        &self,
        filter: &AuditFilter,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<AuditRow>> {
        let mut binds = Binds::default();
        let mut terms = Vec::new();
        let texts = [("who", &filter.who), ("what", &filter.what), ("target", &filter.target)];
        for (column, text) in texts {
            if text.is_some() {
                terms.push(format!("{column} = {}", binds.mark(Value::Text(text.clone()))));
            }
        }
        if let Some(refused) = filter.refused {
            let not = if refused { "" } else { "NOT " };
            terms.push(format!("outcome {not}LIKE 'refused%'"));
        }
        let before = before.map(|seq| i64::try_from(seq).unwrap_or(i64::MAX));
        let since = filter.since.map(|time| time.0);
        let until = filter.until.map(|time| time.0);
        for (comparison, number) in [("at >=", since), ("at <", until), ("seq <", before)] {
            if number.is_some() {
                terms.push(format!("{comparison} {}", binds.mark(Value::Int(number))));
            }
        }
        let condition =
            if terms.is_empty() { String::new() } else { format!("WHERE {}", terms.join(" AND ")) };
        self.select(&format!("{condition} ORDER BY seq DESC LIMIT {limit}"), binds).await
    }

    /// Up to `limit` rows, the oldest first, from the one after `after` on.
    pub async fn audit_after(&self, after: u64, limit: u32) -> Result<Vec<AuditRow>> {
        self.page::<AuditRow>(Some(after), limit).await
    }

    /// Computes the whole chain anew, and compares the rights that people have with what it says.
    pub async fn verify_audit(&self) -> Result<AuditCheck> {
        self.verify_audit_with(None).await
    }

    /// The same, and the chain must hold the row that was once its last, as somebody noted it
    /// outside the database.
    pub async fn verify_audit_with(&self, noted: Option<&AuditEnd>) -> Result<AuditCheck> {
        AuditFollower::new(self.clone(), noted.cloned()).check().await
    }

    /// The digests of all rows that give rights.
    async fn rights(&self) -> Result<BTreeMap<SealKey, String>> {
        let mut rights = BTreeMap::new();
        rights.extend(seals::of_rows(&self.every::<UserRow>().await?));
        rights.extend(seals::of_rows(&self.every::<MemberRow>().await?));
        rights.extend(seals::of_rows(&self.every::<TokenRow>().await?));
        rights.extend(seals::of_rows(&self.every::<SessionRow>().await?));
        rights.extend(seals::of_rows(&self.every::<IdentityRow>().await?));
        Ok(rights)
    }

    /// Where the chain has to end, as the last commit left it.
    pub async fn audit_end(&self) -> Result<AuditEnd> {
        let sql = "SELECT audit_seq, audit_hash FROM log".to_owned();
        let rows = self.rows("audit", sql, Binds::default()).await?;
        let row = rows.first().ok_or_else(|| self.unreadable("the log", "its row is missing"))?;
        let from = &mut Reader::new(row);
        let seq = u64::read(from).map_err(|why| self.unreadable("the log", why))?;
        let hash = String::read(from).map_err(|why| self.unreadable("the log", why))?;
        Ok(AuditEnd { seq, hash })
    }
}

/// Looks through the chain, and goes on later where it left off.
pub struct AuditFollower {
    store: Store,
    chain: Chain,
}

impl AuditFollower {
    /// From the first row on. The chain must hold the row that was once its last, as somebody
    /// noted it outside the database.
    pub fn new(store: Store, noted: Option<AuditEnd>) -> AuditFollower {
        let chain = Chain::new(store.audit_keys().clone(), noted);
        AuditFollower { store, chain }
    }

    /// Looks at all rows that were not looked at before, and at what rights people have now.
    pub async fn check(&mut self) -> Result<AuditCheck> {
        if let Err(broken) = self.follow().await? {
            return Ok(AuditCheck::Broken(broken));
        }
        let rights = match self.chain.keyed_from {
            Some(_) => match self.compare_rights().await? {
                Ok(rights) => rights,
                Err(broken) => return Ok(AuditCheck::Broken(broken)),
            },
            // Nobody vouches for them.
            None => Vec::new(),
        };
        let Chain { seq: rows, hash: head, keyed_from, .. } = &self.chain;
        let (rows, head, keyed_from) = (*rows, head.clone(), *keyed_from);
        Ok(AuditCheck::Whole(Verified { rows, head, keyed_from, rights }))
    }

    /// Whether a signed row that says this was among those looked at.
    pub fn has_signed(&self, what: &str) -> bool {
        self.chain.signed.contains(what)
    }

    /// Follows the chain to its end.
    async fn follow(&mut self) -> Result<std::result::Result<(), Broken>> {
        let AuditFollower { store, chain } = self;
        loop {
            let end = store.audit_end().await?;
            while chain.seq < end.seq {
                let before = chain.seq;
                let page = store.audit_after(before, PAGE).await?;
                // Rows that were added after the end was read are for the next round.
                for row in page.into_iter().take_while(|row| row.seq <= end.seq) {
                    if let Err(broken) = chain.follow(row) {
                        return Ok(Err(broken));
                    }
                }
                // No row up to the end: whoever put one far past it would be read for ever.
                if chain.seq == before {
                    return Ok(Err(chain.broken("it is missing")));
                }
            }
            if chain.seq != end.seq || chain.hash != end.hash {
                let why = "it is not the row that was written last".to_owned();
                return Ok(Err(Broken { seq: end.seq, why }));
            }
            if let Some(noted) = chain.noted.as_ref().filter(|noted| noted.seq > chain.seq) {
                let why = format!("it was cut off: there were {} rows", noted.seq);
                return Ok(Err(Broken { seq: chain.seq + 1, why }));
            }
            // A row and the end that counts it are written together. So if there is a row beyond,
            // the end has moved on, or the row was put there by somebody else.
            let Some(beyond) = store.audit_after(chain.seq, 1).await?.pop() else {
                return Ok(Ok(()));
            };
            if store.audit_end().await?.seq < beyond.seq {
                let why = "it lies past the end of the log".to_owned();
                return Ok(Err(Broken { seq: beyond.seq, why }));
            }
        }
    }

    /// Rights that are not what the log says. The tables and the log are not read in one moment,
    /// so only what is found twice in the same form counts.
    async fn compare_rights(&mut self) -> Result<std::result::Result<Vec<RightsFinding>, Broken>> {
        let mut before: Option<Vec<Unsealed>> = None;
        loop {
            let found = self.store.rights().await?;
            if let Err(broken) = self.follow().await? {
                return Ok(Err(broken));
            }
            let mut now = self.chain.rights.compare(&found);
            if let Some(before) = &before {
                now.retain(|wrong| before.contains(wrong));
            }
            if now.is_empty() || before.is_some() {
                let finding =
                    |wrong: Unsealed| RightsFinding { what: wrong.key.shown(), why: wrong.why };
                return Ok(Ok(now.into_iter().map(finding).collect()));
            }
            before = Some(now);
        }
    }
}

/// As far as the chain was followed.
struct Chain {
    keys: AuditKeys,
    /// Where the chain ended once, as somebody noted it.
    noted: Option<AuditEnd>,
    seq: u64,
    hash: String,
    keyed_from: Option<u64>,
    /// Which key signed the last row.
    key: Option<usize>,
    /// What signed rows say was done, each once. The server has only so many words for that.
    signed: BTreeSet<String>,
    rights: Rights,
}

impl Chain {
    fn new(keys: AuditKeys, noted: Option<AuditEnd>) -> Chain {
        let (seq, hash) = (0, GENESIS.to_owned());
        let (signed, rights) = (BTreeSet::new(), Rights::default());
        Chain { keys, noted, seq, hash, keyed_from: None, key: None, signed, rights }
    }

    fn follow(&mut self, row: AuditRow) -> std::result::Result<(), Broken> {
        let broken = |chain: &Chain, why: &str| Err(chain.broken(why));
        if row.seq != self.seq + 1 {
            return broken(self, "it is missing");
        }
        if row.prev != self.hash {
            return broken(self, "it does not follow the row before");
        }
        let key = self.keys.position(&row.key);
        if row.key.is_empty() {
            if self.keyed_from.is_some() {
                return broken(self, "it is not signed, and rows before it are");
            }
        } else if key.is_none() {
            let why = format!("it was signed with key {}, which is not in the key file", row.key);
            return Err(self.broken(&why));
        } else if key < self.key {
            return broken(self, "it was signed with a key that was out of use");
        }
        let Some(seals) =
            row.seals().filter(|_| row.digest(&self.keys).as_ref() == Some(&row.hash))
        else {
            return broken(self, "it is not what was written");
        };
        if self.noted.as_ref().is_some_and(|end| end.seq == row.seq && end.hash != row.hash) {
            return broken(self, "it is not the row that the server noted outside the database");
        }
        if !row.key.is_empty() {
            self.keyed_from.get_or_insert(row.seq);
            self.key = key;
            self.rights.follow(seals);
            self.signed.insert(row.what);
        }
        self.seq = row.seq;
        self.hash = row.hash;
        Ok(())
    }

    fn broken(&self, why: &str) -> Broken {
        Broken { seq: self.seq + 1, why: why.to_owned() }
    }
}
