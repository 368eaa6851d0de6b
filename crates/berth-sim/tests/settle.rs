//! Worlds that random ones have shown, settled.

use berth_sim::play::{Settle, settle};
use berth_sim::world::World;

/// A job without GPUs takes what is kept for free GPUs where others leave. Its plan once stopped a
/// job on a node where it got no place.
#[test]
fn nobody_is_stopped_for_a_job_that_fits_where_other_jobs_leave() {
    let world = World::parse(include_str!("worlds/kept-for-gpus.yaml")).unwrap();
    let report = settle(&world, &Settle::default()).unwrap();
    assert_eq!(report.set_aside, []);
    let starts: Vec<_> = report.decisions.iter().filter(|one| one.kind == "start").collect();
    assert!(starts.iter().any(|start| start.job.as_deref() == Some("j22")), "{starts:?}");
}
