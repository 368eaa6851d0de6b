//! Announces the end of pods that are about to reach their time limit.

use crate::shared::SharedState;
use crate::state::time_limits::{ComingEnd, coming_ends};
use berth_engine::{Handle, clock};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const INTERVAL: Duration = Duration::from_secs(2);

pub async fn run(engine: Handle, state: Arc<SharedState>) {
    let mut announced: BTreeSet<ComingEnd> = BTreeSet::new();
    loop {
        tokio::time::sleep(INTERVAL).await;
        let coming: BTreeSet<ComingEnd> =
            coming_ends(&engine.core(), clock::now()).into_iter().collect();
        let new: Vec<ComingEnd> = coming.difference(&announced).copied().collect();
        if !new.is_empty() {
            state.update(|state| new.into_iter().for_each(|end| state.announce_end(end)));
        }
        announced = coming;
    }
}
