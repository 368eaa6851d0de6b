//! Forecasts, made in the background: whoever asks gets the last one with its age.

use crate::engine::Handle;
use berth_core::forecast;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// A forecast should be younger than a minute when somebody looks.
const EVERY: Duration = Duration::from_secs(20);
/// One that takes long is made less often, but still often enough for that.
const REST: u32 = 4;

/// Makes one forecast after the other while there is something to foresee.
pub fn begin(engine: Handle) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut seen = 0;
        loop {
            let (state, seq) = {
                let core = engine.core();
                let waits = core.jobs.values().any(|job| job.leases.is_empty());
                (waits.then(|| core.state.clone()), core.state.seq())
            };
            let clock = Instant::now();
            if let Some(state) = state.filter(|_| seq != seen) {
                let runs = state.policy().forecast_runs;
                let made = tokio::task::spawn_blocking(move || forecast(&state, runs, seq)).await;
                if let Ok(made) = made {
                    engine.core().forecast = Some(Arc::new(made));
                    seen = seq;
                }
            }
            tokio::time::sleep(EVERY.max(clock.elapsed() * REST).min(EVERY * 2)).await;
        }
    })
}
