//! What has been spent up to now. The store has rows of whole hours and of what has changed; what
//! runs has cost more since, which only the loop knows.

use crate::fault::Fault;
use crate::service::Service;
use berth_engine::{Unbilled, clock};
use berth_store::{CostQuery, CostSum};

/// What the store does not have, and up to which of its rows it goes with the rest.
pub fn unbilled(service: &Service) -> Unbilled {
    service.engine.core().unbilled(clock::now())
}

/// Sums by group, in the order of their keys as texts.
pub async fn sums(service: &Service, query: &CostQuery) -> Result<Vec<CostSum>, Fault> {
    let Unbilled { upto, rows } = unbilled(service);
    let query = CostQuery { upto: Some(upto), ..query.clone() };
    let written = service.store.costs(&query).await?;
    Ok(query.add_rows(written, &rows))
}
