//! Why jobs wait, in the terms of the place where they run.

use crate::host::JobHost;
use berth_api::wire;
use berth_core::State as Sched;
use berth_engine::Core;
use berth_model::{Bytes, Cpu, GroupSpec, JobId, Name, Reason};
use std::collections::BTreeMap;

/// What reasons that are no matter of one job depend on: jobs that ask for the same are often many.
type Alike = (Vec<Reason>, Vec<(BTreeMap<Name, Name>, Cpu, Bytes, u32, u32)>);

/// The reasons of several jobs, in their order.
pub fn of(host: &dyn JobHost, core: &mut Core, jobs: &[JobId]) -> Vec<Vec<Reason>> {
    let reasons = core.state.reasons_of(jobs);
    let core = &*core;
    let mut known: BTreeMap<Alike, Vec<Reason>> = BTreeMap::new();
    let refined = jobs.iter().zip(reasons).map(|(job, reasons)| {
        let groups = core.state.asks_of(*job).unwrap_or_default();
        if reasons.iter().any(|reason| matches!(reason, Reason::Held | Reason::Next)) {
            return host.refine(core, Some(*job), groups, reasons);
        }
        let leaves = groups.iter().flat_map(GroupSpec::leaves);
        let asks = leaves
            .map(|leaf| (leaf.labels.need.clone(), leaf.cpu, leaf.memory, leaf.count, leaf.min));
        let alike = (reasons.clone(), asks.collect());
        known.entry(alike).or_insert_with(|| host.refine(core, Some(*job), groups, reasons)).clone()
    });
    refined.collect()
}

/// The reasons of a job that was only tried, on a copy of the state.
pub fn of_tried(
    host: &dyn JobHost,
    core: &Core,
    tried: &mut Sched,
    job: JobId,
    groups: &[GroupSpec],
) -> Vec<Reason> {
    let reasons = tried.reasons(job);
    host.refine(core, None, groups, reasons)
}

/// Whether a job that would wait for these waits for ever.
pub fn are_lasting(reasons: &[Reason]) -> bool {
    let passes = |reason: &Reason| match reason {
        Reason::HeldByOthers { .. } => true,
        Reason::NodesRuledOut { causes, .. } => causes.iter().any(|cause| cause.passes),
        _ => false,
    };
    !reasons.is_empty() && !reasons.iter().any(passes)
}

/// Everything in its way. The first is the most fundamental, and so the binding one.
pub fn blockers(reasons: &[Reason]) -> Vec<wire::Blocker> {
    let blocker = |(n, reason): (usize, &Reason)| wire::Blocker {
        code: reason.code().to_owned(),
        text: reason.to_string(),
        binding: n == 0,
    };
    reasons.iter().enumerate().map(blocker).collect()
}
