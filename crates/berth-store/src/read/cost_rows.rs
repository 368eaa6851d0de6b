//! Single rows of cost: what a sum was made of.

use super::costs::CostQuery;
use crate::error::Result;
use crate::rows::CostRecord;
use crate::store::Store;
use crate::value::{Binds, Value};

/// Which rows of cost.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CostRowQuery {
    /// Its keys do not matter.
    pub of: CostQuery,
    pub kind: Option<String>,
    pub node: Option<String>,
    /// Those before this one.
    pub before: Option<u64>,
}

impl Store {
    /// Up to `limit` rows, the newest first. Rows that have become part of a day's total are gone.
    pub async fn cost_rows(&self, query: &CostRowQuery, limit: u32) -> Result<Vec<CostRecord>> {
        let mut binds = Binds::default();
        let mut terms = query.of.overlaps(&mut binds);
        for (column, text) in [("kind", &query.kind), ("node", &query.node)] {
            if text.is_some() {
                terms.push(format!("{column} = {}", binds.mark(Value::Text(text.clone()))));
            }
        }
        if let Some(before) = query.before {
            let before = i64::try_from(before).unwrap_or(i64::MAX);
            terms.push(format!("id < {}", binds.mark(Value::Int(Some(before)))));
        }
        let rest = query.of.terms(&mut binds);
        let rest = rest.strip_prefix("WHERE ").map(str::to_owned);
        terms.extend(rest);
        let condition = super::costs::condition(&terms);
        self.select(&format!("{condition} ORDER BY id DESC LIMIT {limit}"), binds).await
    }
}
