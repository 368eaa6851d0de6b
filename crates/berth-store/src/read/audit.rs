//! The audit log.

use crate::error::Result;
use crate::rows::{AuditRow, GENESIS};
use crate::store::Store;
use crate::value::{Binds, Field, Reader, Value};
use berth_model::Time;

const PAGE: u32 = 1_000;

/// Which rows to read. What is left out does not matter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditFilter {
    pub who: Option<String>,
    pub what: Option<String>,
    pub target: Option<String>,
    pub since: Option<Time>,
    pub until: Option<Time>,
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
}

/// The first row that is missing, out of place or not what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    pub seq: u64,
    pub why: &'static str,
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

    /// Computes the whole chain anew.
    pub async fn verify_audit(&self) -> Result<AuditCheck> {
        let (rows, head) = self.audit_head().await?;
        let mut chain = Chain { seq: 0, hash: GENESIS.to_owned() };
        while chain.seq < rows {
            let page = self.page::<AuditRow>(Some(chain.seq), PAGE).await?;
            if page.is_empty() {
                return Ok(AuditCheck::Broken(chain.broken("it is missing")));
            }
            // Rows that were added after the head was read are for the next time.
            for row in page.into_iter().take_while(|row| row.seq <= rows) {
                if let Err(broken) = chain.follow(row) {
                    return Ok(AuditCheck::Broken(broken));
                }
            }
        }
        if chain.hash != head {
            let broken = Broken { seq: rows, why: "it is not the row that was written last" };
            return Ok(AuditCheck::Broken(broken));
        }
        Ok(AuditCheck::Whole(Verified { rows, head }))
    }

    /// Where the chain has to end, as the last commit left it.
    async fn audit_head(&self) -> Result<(u64, String)> {
        let sql = "SELECT audit_seq, audit_hash FROM log".to_owned();
        let rows = self.rows("audit", sql, Binds::default()).await?;
        let row = rows.first().ok_or_else(|| self.unreadable("the log", "its row is missing"))?;
        let from = &mut Reader::new(row);
        let seq = u64::read(from).map_err(|why| self.unreadable("the log", why))?;
        let hash = String::read(from).map_err(|why| self.unreadable("the log", why))?;
        Ok((seq, hash))
    }
}

/// As far as the chain was followed.
struct Chain {
    seq: u64,
    hash: String,
}

impl Chain {
    fn follow(&mut self, row: AuditRow) -> std::result::Result<(), Broken> {
        let why = if row.seq != self.seq + 1 {
            "it is missing"
        } else if row.prev != self.hash {
            "it does not follow the row before"
        } else if row.hash != row.digest() {
            "it is not what was written"
        } else {
            self.seq = row.seq;
            self.hash = row.hash;
            return Ok(());
        };
        Err(self.broken(why))
    }

    fn broken(&self, why: &'static str) -> Broken {
        Broken { seq: self.seq + 1, why }
    }
}
