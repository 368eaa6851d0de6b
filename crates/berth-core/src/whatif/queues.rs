//! Changes of class, queue and quota.

use crate::amounts::{Amounts, Resource, UNBOUNDED};
use crate::plan::bounds::{bound, resource_name};
use crate::plan::planner::Planner;
use crate::state::State;
use crate::whatif::change::What;
use crate::whatif::spec::respec;
use crate::whatif::tries::{Tries, apply_event};
use berth_model::{Amount, Bound, Event, JobChange, Milli, Name, QueueSpec, Quota};

/// Other queues that are tried, at the most.
const MAX_OTHER_QUEUES: usize = 8;

impl Tries {
    /// The lowest class above its own with which it starts.
    pub(super) fn classes(&mut self) {
        let job = self.job;
        let priority = self.base.jobs.get(self.ix).priority;
        let mut higher: Vec<(i32, Name)> = self
            .base
            .classes
            .iter()
            .filter(|(_, class)| class.value > priority)
            .map(|(name, class)| (class.value, name.clone()))
            .collect();
        higher.sort();
        for (value, class) in higher {
            let change = JobChange::Priority(value);
            let starts = self.outcome(|copy| apply_event(copy, Event::JobChanged { job, change }));
            if self.keep(What::Class { class }, starts) {
                return;
            }
        }
    }

    /// Other queues whose bounds allow it and that have most of their share left.
    pub(super) fn queues(&mut self) {
        let (job, ix) = (self.job, self.ix);
        let spec = self.spec();
        respec(&mut self.scratch, ix, spec);
        let own = self.base.jobs.get(ix).queue;
        let planner = Planner::new(&mut self.scratch);
        let (state, shares) = (planner.draft.state, planner.shares);
        let mut others: Vec<_> = state.queues.leaves().filter(|leaf| *leaf != own).collect();
        others.sort_by(|a, b| {
            let name = |ix| &state.queues.get(ix).spec.name;
            shares.ratio(state, *a).cmp(shares.ratio(state, *b)).then(name(*a).cmp(name(*b)))
        });
        others.retain(|leaf| {
            state.jobs.get_mut(ix).queue = *leaf;
            bound(state, ix, false).is_empty()
        });
        state.jobs.get_mut(ix).queue = own;
        let names: Vec<Name> =
            others.iter().map(|leaf| state.queues.get(*leaf).spec.name.clone()).collect();
        for queue in names.into_iter().take(MAX_OTHER_QUEUES) {
            let change = JobChange::Queue(queue.clone());
            let starts = self.outcome(|copy| apply_event(copy, Event::JobChanged { job, change }));
            self.keep(What::Queue { queue }, starts);
        }
    }

    /// Raising the one bound it would exceed.
    pub(super) fn raised(&mut self) {
        if bound(&self.base, self.ix, false).len() != 1 {
            return;
        }
        let Some(short) = self.short_of() else { return };
        let (what, spec) = short;
        let starts =
            self.outcome(|copy| apply_event(copy, Event::QueueSet { queue: Box::new(spec) }));
        self.keep(what, starts);
    }

    /// The bound in the way, and its queue with enough more of it.
    fn short_of(&self) -> Option<(What, QueueSpec)> {
        let state = &self.base;
        let job = state.jobs.get(self.ix);
        let more = &state.shape_of(self.ix).amounts;
        for ix in state.queues.path(job.queue) {
            let queue = state.queues.get(ix);
            let nothing = Amounts::default();
            let own = if ix == job.queue { queue.users.get(&job.spec.user) } else { None };
            let user = own.unwrap_or(&nothing);
            let limits = queue.limit.named().map(|(r, n)| (Bound::Limit, r, n, n));
            let borrows = queue.borrow.named().map(|(r, n)| {
                let quota = queue.quota.get(r).unwrap_or(0);
                (Bound::Borrow, r, n, quota.saturating_add(n).min(UNBOUNDED))
            });
            let users = queue.user_limit.named().map(|(r, n)| (Bound::UserLimit, r, n, n));
            let users = users.filter(|_| ix == job.queue);
            for (bound, resource, amount, most) in limits.chain(borrows).chain(users) {
                let used = if bound == Bound::UserLimit { user } else { &queue.usage };
                let asks = more.get(resource);
                let missing = used.get(resource) + asks - most;
                if asks == 0 || missing <= 0 {
                    continue;
                }
                let mut spec = queue.spec.clone();
                let quota = match bound {
                    Bound::Limit => &mut spec.limit,
                    Bound::Borrow => &mut spec.borrow,
                    Bound::UserLimit => &mut spec.user_limit,
                };
                set(state, quota, resource, amount + missing);
                let what = What::Raise {
                    queue: queue.spec.name.clone(),
                    bound,
                    resource: resource_name(state, resource),
                    from: shown(resource, amount),
                    to: shown(resource, amount + missing),
                };
                return Some((what, spec));
            }
        }
        None
    }
}

fn set(state: &State, quota: &mut Quota, resource: Resource, amount: i64) {
    match resource {
        Resource::Gpu => quota.gpu.total = Some(Amount::Of(Milli(amount))),
        Resource::Cpu => quota.cpu = Some(Amount::Of(berth_model::Cpu(amount))),
        Resource::Memory => quota.memory = Some(Amount::Of(berth_model::Bytes(amount))),
        Resource::Model(model) => {
            let name = state.model_name(model).clone();
            quota.gpu.models.insert(name, Amount::Of(Milli(amount)));
        }
    }
}

/// Memory is shown in GiB.
fn shown(resource: Resource, amount: i64) -> Milli {
    match resource {
        Resource::Memory => Milli((i128::from(amount) * 1_000 / (1 << 30)) as i64),
        Resource::Gpu | Resource::Cpu | Resource::Model(_) => Milli(amount),
    }
}
