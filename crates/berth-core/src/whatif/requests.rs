//! Changes to the request: a shorter limit, other places and machines, fewer or smaller GPUs.

use crate::whatif::change::What;
use crate::whatif::spec::{each, leaves, levels, respec};
use crate::whatif::tries::{Tries, apply_event};
use berth_model::{
    Event, GpuAsk, GroupSpec, JobChange, JobSpec, Lifecycle, Milli, ModelAsk, Name, Span,
};
use std::collections::BTreeSet;

/// Parts of a GPU that are tried instead of a whole one, in thousandths.
const GPU_FRACTIONS: [i64; 5] = [750, 500, 333, 250, 125];

impl Tries {
    /// The longest time limit, in minutes, with which it gets by before what is reserved.
    pub(super) fn shorter(&mut self) {
        let of = self.base.jobs.get(self.ix).time_limit;
        // What is to run for ever is not proposed to be ended.
        if of.is_unlimited() {
            return;
        }
        let spec = self.spec();
        respec(&mut self.scratch, self.ix, spec);
        let (mut low, mut high) = (0, (of.0 - 1) / Span::mins(1).0);
        while low < high {
            let middle = (low + high + 1) / 2;
            let job = self.scratch.jobs.get(self.ix).estimate;
            self.limit_scratch(Span::mins(middle));
            let fits = self.fits_now();
            self.limit_scratch(of);
            self.scratch.jobs.get_mut(self.ix).estimate = job;
            if fits {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        if low == 0 {
            return;
        }
        let (job, limit) = (self.job, Span::mins(low));
        let change = JobChange::TimeLimit(limit);
        let starts = self.outcome(|copy| apply_event(copy, Event::JobChanged { job, change }));
        self.keep(What::TimeLimit { limit, of }, starts);
    }

    /// Only for a look at whether it fits: its place in line is that of the old limit.
    fn limit_scratch(&mut self, limit: Span) {
        let job = self.scratch.jobs.get_mut(self.ix);
        job.time_limit = limit;
        job.estimate = job.estimate.min(limit);
    }

    pub(super) fn places(&mut self, spec: &JobSpec) {
        for level in levels(&spec.groups) {
            let groups = each(&spec.groups, &|group| {
                if let Some(topology) = &mut group.topology {
                    topology.required.take_if(|required| *required == level);
                    topology.segment.take_if(|segment| segment.within == level);
                }
            });
            self.respecced(What::Apart { level }, JobSpec { groups, ..spec.clone() });
        }
        let spread: BTreeSet<Name> = leaves(&spec.groups)
            .iter()
            .filter_map(|group| group.spread.as_ref().map(|spread| spread.over.clone()))
            .collect();
        for level in spread {
            let groups = each(&spec.groups, &|group| {
                group.spread.take_if(|spread| spread.over == level);
            });
            self.respecced(What::Unspread { level }, JobSpec { groups, ..spec.clone() });
        }
        if leaves(&spec.groups).iter().any(|group| !group.near.is_empty()) {
            let groups = each(&spec.groups, &|group| group.near.clear());
            self.respecced(What::Anywhere, JobSpec { groups, ..spec.clone() });
        }
    }

    pub(super) fn machines(&mut self, spec: &JobSpec) {
        let mut present: BTreeSet<Name> = BTreeSet::new();
        let mut lifecycles: BTreeSet<Lifecycle> = BTreeSet::new();
        for (_, node) in self.base.cluster.live().filter(|(_, node)| node.open()) {
            present.extend(node.spec.gpus.iter().map(|gpu| gpu.model.clone()));
            lifecycles.insert(node.spec.lifecycle);
        }
        let asked: BTreeSet<Name> = leaves(&spec.groups)
            .iter()
            .flat_map(|group| group.models.iter().map(|ask| ask.model.clone()))
            .collect();
        if !asked.is_empty() {
            for model in present.difference(&asked).cloned() {
                let ask = ModelAsk { model: model.clone(), speed: Milli::ONE };
                let groups = each(&spec.groups, &|group| {
                    if group.gpus != GpuAsk::None {
                        group.models = vec![ask.clone()];
                    }
                });
                self.respecced(What::Model { model }, JobSpec { groups, ..spec.clone() });
            }
        }
        for lifecycle in lifecycles.into_iter().filter(|l| spec.lifecycle.is_some_and(|s| s != *l))
        {
            let other = JobSpec { lifecycle: Some(lifecycle), ..spec.clone() };
            self.respecced(What::Lifecycle { lifecycle }, other);
        }
    }

    /// The most tasks, fewer than it asks for, that would fit.
    pub(super) fn fewer(&mut self, spec: &JobSpec) {
        let [group] = spec.groups.as_slice() else { return };
        if !group.is_leaf() || group.min < 2 {
            return;
        }
        let segment = group.topology.as_ref().and_then(|topology| topology.segment.as_ref());
        let step = segment.map_or(1, |segment| segment.size.max(1));
        let with = |steps: u32| {
            let tasks = steps * step;
            let group = GroupSpec { count: tasks, min: tasks, ..group.clone() };
            JobSpec { groups: vec![group], ..spec.clone() }
        };
        let (mut low, mut high) = (0, (group.min - 1) / step);
        while low < high {
            let middle = (low + high).div_ceil(2);
            if self.fits(&with(middle)) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        if low > 0 {
            self.respecced(What::FewerTasks { tasks: low * step, of: group.min }, with(low));
        }
    }

    pub(super) fn part(&mut self, spec: &JobSpec) {
        let whole = GpuAsk::Whole { count: 1 };
        if !leaves(&spec.groups).iter().any(|group| group.gpus == whole) {
            return;
        }
        for part in GPU_FRACTIONS.map(Milli) {
            let groups = each(&spec.groups, &|group| {
                if group.gpus == whole {
                    group.gpus = GpuAsk::Fraction { milli: part, count: 1 };
                }
            });
            if self.respecced(What::PartOfGpu { part }, JobSpec { groups, ..spec.clone() }) {
                return;
            }
        }
    }
}
