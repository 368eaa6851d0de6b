//! Making changes and looking what comes of them.

use crate::amounts::{Amounts, Resource, UNBOUNDED};
use crate::ix::JobIx;
use crate::jobs::Parked;
use crate::plan::bounds::{bound, resource_name};
use crate::plan::fit::fit;
use crate::plan::planner::Planner;
use crate::state::State;
use crate::transaction::Plan;
use crate::whatif::spec::{each, leaves, levels, respec};
use crate::whatif::{Change, Starts, What};
use berth_model::{
    Amount, Bound, Decision, Event, GpuAsk, GroupSpec, JobChange, JobId, JobSpec, Lifecycle, Milli,
    ModelAsk, Name, QueueSpec, Quota, Span, Stamped,
};
use std::collections::BTreeSet;

/// Other queues that are tried, at the most.
const QUEUES: usize = 8;

/// Parts of a GPU that are tried instead of a whole one, in thousandths.
const PARTS: [i64; 5] = [750, 500, 333, 250, 125];

pub(super) struct Tries {
    /// The state to change copies of.
    pub base: State,
    /// A copy on which it is seen quickly whether the job would fit at all.
    pub scratch: State,
    pub job: JobId,
    pub ix: JobIx,
    pub found: Vec<Change>,
    /// Whether a start after others were stopped would be any better than what is there.
    pub later: bool,
}

impl Tries {
    fn spec(&self) -> JobSpec {
        (*self.base.jobs.get(self.ix).spec).clone()
    }

    /// What a plan would do for the job after that change.
    pub fn outcome(&self, change: impl FnOnce(&mut State) -> bool) -> Option<Starts> {
        let mut copy = self.base.clone();
        if !change(&mut copy) {
            return None;
        }
        let found = starts(&copy.plan_and_say(false), self.job)?;
        (found == Starts::Now || self.later).then_some(found)
    }

    fn keep(&mut self, what: What, starts: Option<Starts>) -> bool {
        let helps = starts.is_some();
        self.found.extend(starts.map(|starts| Change { what, starts }));
        helps
    }

    pub fn parked(&mut self, parked: &Parked) {
        let (job, ix) = (self.job, self.ix);
        let mut spec = self.spec();
        let what = match parked {
            Parked::Held => {
                let change = JobChange::Hold(false);
                let starts = self.outcome(|copy| tell(copy, Event::JobChanged { job, change }));
                self.keep(What::Release, starts);
                return;
            }
            Parked::Dependency | Parked::Never(_) => {
                spec.after.clear();
                What::NoDependencies
            }
            Parked::Begin(_) => {
                spec.begin = None;
                What::NoBeginTime
            }
            Parked::Singleton(_) | Parked::Array | Parked::SetAside => return,
        };
        let starts = self.outcome(|copy| {
            // It stands where its spec so far has put it.
            let before = copy.jobs.get(ix).spec.clone();
            copy.rouse(ix, job, &before);
            respec(copy, ix, spec);
            copy.reconsider(ix);
            true
        });
        self.keep(what, starts);
    }

    pub fn waiting(&mut self) {
        let spec = self.spec();
        if !spec.preemptible {
            self.respecced(What::Preemptible, JobSpec { preemptible: true, ..spec.clone() });
        }
        self.shorter();
        self.places(&spec);
        self.machines(&spec);
        self.fewer(&spec);
        self.part(&spec);
        self.raised();
        self.classes();
        self.queues();
    }

    /// Whether the job would fit now with that spec, whoever else waits.
    fn fits(&mut self, spec: &JobSpec) -> bool {
        respec(&mut self.scratch, self.ix, spec.clone());
        self.fits_now()
    }

    fn fits_now(&mut self) -> bool {
        let mut planner = Planner::new(&mut self.scratch);
        let who = planner.who(self.ix);
        let mark = planner.draft.mark();
        let fits = fit(&mut planner.draft, &planner.mix, self.ix, who).is_ok();
        planner.draft.roll_back(mark);
        fits
    }

    fn respecced(&mut self, what: What, spec: JobSpec) -> bool {
        if !self.fits(&spec) {
            return false;
        }
        let ix = self.ix;
        let starts = self.outcome(|copy| {
            respec(copy, ix, spec);
            true
        });
        self.keep(what, starts)
    }

    /// The longest time limit, in minutes, with which it gets by before what is reserved.
    fn shorter(&mut self) {
        let of = self.base.jobs.get(self.ix).time_limit;
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
        let starts = self.outcome(|copy| tell(copy, Event::JobChanged { job, change }));
        self.keep(What::TimeLimit { limit, of }, starts);
    }

    /// Only for a look at whether it fits: its place in line is that of the old limit.
    fn limit_scratch(&mut self, limit: Span) {
        let job = self.scratch.jobs.get_mut(self.ix);
        job.time_limit = limit;
        job.estimate = job.estimate.min(limit);
    }

    fn places(&mut self, spec: &JobSpec) {
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

    fn machines(&mut self, spec: &JobSpec) {
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
    fn fewer(&mut self, spec: &JobSpec) {
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

    fn part(&mut self, spec: &JobSpec) {
        let whole = GpuAsk::Whole { count: 1 };
        if !leaves(&spec.groups).iter().any(|group| group.gpus == whole) {
            return;
        }
        for part in PARTS.map(Milli) {
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

    /// The lowest class above its own with which it starts.
    fn classes(&mut self) {
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
            let starts = self.outcome(|copy| tell(copy, Event::JobChanged { job, change }));
            if self.keep(What::Class { class }, starts) {
                return;
            }
        }
    }

    /// Other queues whose bounds allow it and that have most of their share left.
    fn queues(&mut self) {
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
        for queue in names.into_iter().take(QUEUES) {
            let change = JobChange::Queue(queue.clone());
            let starts = self.outcome(|copy| tell(copy, Event::JobChanged { job, change }));
            self.keep(What::Queue { queue }, starts);
        }
    }

    /// Raising the one bound it would exceed.
    fn raised(&mut self) {
        if bound(&self.base, self.ix, false).len() != 1 {
            return;
        }
        let Some(short) = self.short_of() else { return };
        let (what, spec) = short;
        let starts = self.outcome(|copy| tell(copy, Event::QueueSet { queue: Box::new(spec) }));
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

/// What a plan does for a job.
fn starts(plan: &Plan, job: JobId) -> Option<Starts> {
    let begins = |decision: &Decision| match decision {
        Decision::Start { lease, .. } => lease.job == job,
        _ => false,
    };
    if plan.decisions().any(begins) {
        return Some(Starts::Now);
    }
    plan.transactions.iter().find_map(|made| {
        let at = made.decisions.iter().find_map(|decision| match decision {
            Decision::Reserve { job: of, at, firm: true, .. } if *of == job => Some(*at),
            _ => None,
        })?;
        let stopped: BTreeSet<JobId> = made
            .decisions
            .iter()
            .filter_map(|decision| match decision {
                Decision::Stop { lease, .. } => Some(lease.job),
                _ => None,
            })
            .collect();
        let stops = stopped.len() as u32;
        (stops > 0).then_some(Starts::By { at, stops })
    })
}

fn tell(state: &mut State, event: Event) -> bool {
    let stamped = Stamped { seq: state.seq + 1, at: state.now, event };
    state.apply(&stamped).is_ok()
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
