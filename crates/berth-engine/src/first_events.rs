//! What every server tells its core when it starts.

use berth_model::{Event, Micros, Name, QueueSpec, Snapshot, catalog_models};
use std::collections::BTreeMap;

/// The queue and team of jobs that name none.
pub const DEFAULT_TEAM: &str = "default";

/// The project of jobs that name none.
pub const DEFAULT_PROJECT: &str = "default";

/// Prices, and on the first start a queue to begin with.
pub fn first_events(snapshot: &Snapshot, prices: &BTreeMap<Name, Micros>) -> Vec<Event> {
    let mut events = Vec::new();
    if snapshot.seq == 0 || !prices.is_empty() {
        let mut all: BTreeMap<Name, Micros> = if snapshot.prices.is_empty() {
            catalog_models().map(|info| (Name::new(info.model), info.price)).collect()
        } else {
            snapshot.prices.clone()
        };
        all.extend(prices.iter().map(|(model, price)| (model.clone(), *price)));
        if all != snapshot.prices {
            let (speeds, watts) = (snapshot.speeds.clone(), snapshot.watts.clone());
            events.push(Event::ModelsSet { prices: all, speeds, watts });
        }
    }
    if snapshot.queues.is_empty() {
        let queue = Box::new(QueueSpec::new(DEFAULT_TEAM));
        events.push(Event::QueueSet { queue });
    }
    events
}
