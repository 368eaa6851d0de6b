//! The energy of leases, written down for the bill: a row for each lease and hour.

use crate::fault::Fault;
use crate::service::Service;
use berth_engine::Write;
use berth_figures::Used;
use berth_model::{LeaseId, Span};
use berth_store::{Batch, EnergyRow};
use std::collections::BTreeMap;

/// Rows that are written in one transaction.
const ROWS_PER_STEP: usize = 200;

/// Writes what leases have used. The row of an hour grows until the hour is over.
pub async fn flush_energy(service: &Service) -> Result<(), Fault> {
    let Some(book) = service.host.figures() else { return Ok(()) };
    let used = book.meter().used();
    for some in used.chunks(ROWS_PER_STEP) {
        let mut batch = Batch::default();
        some.iter().for_each(|used| batch.put(&row(used)));
        service.engine.write(Write::unnoted(batch)).await?;
        let closed =
            some.iter().filter(|used| used.is_over || hour(used.from.0) != hour(used.to.0));
        closed.for_each(|used| book.meter().written(used));
    }
    Ok(())
}

/// A lease has run while no server was there: what its GPUs gained since an earlier one wrote is its
/// own.
pub async fn adopt(service: &Service, lease: LeaseId) -> Result<(), Fault> {
    let Some(book) = service.host.figures() else { return Ok(()) };
    let Some(newest) = service.store.newest_energy(lease).await? else { return Ok(()) };
    // A row that cannot be read costs the energy of an outage, and nothing else.
    if let Ok(counters) = serde_json::from_str::<BTreeMap<u32, i64>>(&newest.counters) {
        book.meter().resume(lease, &counters);
    }
    Ok(())
}

fn row(used: &Used) -> EnergyRow {
    EnergyRow {
        lease: used.lease,
        start: used.from,
        end: used.to,
        energy_mj: used.energy_mj,
        counters: serde_json::to_string(&used.counters).expect("numbers can be written"),
    }
}

fn hour(ms: i64) -> i64 {
    ms.div_euclid(Span::hours(1).0)
}
