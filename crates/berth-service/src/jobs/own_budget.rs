//! Jobs that Berth has paused because they have cost what their owner said they may.

use berth_engine::{Core, clock};
use berth_model::JobId;

/// What to say of a paused job that has spent its own budget. `berth resume` does not help: it would be
/// paused again at once.
pub(super) fn spent(core: &Core, id: JobId) -> Option<String> {
    let job = core.jobs.get(&id).filter(|job| job.detail.held)?;
    let budget = job.budget()?;
    let cost = core.cost(job, clock::now());
    (cost >= budget).then(|| {
        format!(
            "paused by its own budget: it has cost {} of {}; `berth clone {id} --budget AMOUNT` \
             submits it again with more",
            cost.money(),
            budget.money()
        )
    })
}
