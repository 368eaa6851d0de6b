//! Plans of worlds made from a seed.

use crate::check::world::*;
use berth_core::{State, Transaction, check};
use berth_model::{
    After, Amount, ArraySpec, BackfillEnds, Bytes, Cpu, Dependency, Division, Effect, Event,
    GpuAsk, GroupSpec, Health, JobId, JobRef, JobSpec, JobTarget, LeaseId, LeaseOutcome, Lifecycle,
    MigSlot, Milli, ModelAsk, Name, Near, NodeSpec, NodeState, Pass, QueueSpec, Reservation,
    Segment, ShareGpus, Span, Spread, Stamped, Taint, Time, TopologyAsk,
};

/// Numbers from a seed, the same on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    /// Whether one in so many rolls hits.
    fn hits(&mut self, one_in: u64) -> bool {
        self.roll(one_in) == 0
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.roll(of.len() as u64) as usize].clone()
    }
}

fn any_node(dice: &mut Dice, n: u32) -> NodeSpec {
    let model = dice.pick(&["H100-80GB", "H100-80GB", "A100-80GB", "L4-24GB"]);
    let rack = dice.pick(&["r1", "r2", "r3"]);
    let mut node = node_of(&format!("n{n}"), dice.pick(&[4, 8]), model, rack);
    if dice.hits(3) {
        node.cpu = Some(Cpu::cores(dice.pick(&[16, 64])));
        node.memory = Some(Bytes::gib(256));
    }
    if dice.hits(4) {
        let half = node.gpus.len() as u32 / 2;
        node.nvlink = vec![(0..half).collect(), (half..2 * half).collect()];
    }
    if dice.hits(8) {
        let effect = dice.pick(&[Effect::NoSchedule, Effect::PreferNoSchedule]);
        node.taints = vec![Taint { key: name("k"), value: name("v"), effect }];
    }
    if dice.hits(8) {
        node.lifecycle = Lifecycle::Spot;
    }
    if dice.hits(8) {
        node.gpus[0].health = Health::Failed;
    }
    if model == "A100-80GB" && dice.hits(2) {
        node.gpus[1].mig = Some(vec![MigSlot { profile: name("3g.40gb"), start: 0 }]);
    }
    if dice.hits(4) {
        let shares = Division::TimeSlice { shares: 2 };
        for gpu in &mut node.gpus {
            gpu.division = Some(match gpu.mig {
                Some(_) => Division::Mig,
                None => dice.pick(&[Division::Whole, Division::Whole, shares]),
            });
        }
    }
    node
}

fn any_queues(dice: &mut Dice) -> Vec<QueueSpec> {
    let amount = |dice: &mut Dice, most| Some(Amount::Of(Milli::whole(dice.roll(most) as i64)));
    let mut parent = QueueSpec::new("p");
    if dice.hits(2) {
        parent.limit.gpu.total = amount(dice, 30);
    }
    let mut queues = vec![parent];
    for leaf in ["a", "b", "c", "d"] {
        let mut queue = QueueSpec::new(leaf);
        if !dice.hits(3) {
            queue.quota.gpu.total = amount(dice, 16);
        }
        if leaf < "c" {
            queue.parent = Some(name("p"));
        }
        queue.priority = dice.pick(&[0, 0, 0, 1]);
        queue.weight = Milli::whole(dice.pick(&[1, 1, 3]));
        if dice.hits(4) {
            queue.limit.gpu.total = amount(dice, 24);
        }
        if dice.hits(6) {
            queue.borrow.gpu.total = amount(dice, 8);
        }
        if dice.hits(6) {
            queue.lend.gpu.total = amount(dice, 8);
        }
        if dice.hits(6) {
            queue.user_limit.gpu.total = amount(dice, 16);
        }
        if dice.hits(6) {
            queue.time_sharing = Some(true);
        }
        if dice.hits(8) {
            queue.quota.cpu = Some(Amount::Of(Cpu::cores(dice.roll(60) as i64)));
        }
        queues.push(queue);
    }
    queues
}

fn any_share(dice: &mut Dice, kind: u64) -> GpuAsk {
    match kind {
        0 => GpuAsk::Fraction { milli: Milli(dice.pick(&[250, 500])), count: 1 },
        1 => GpuAsk::Mps { percent: dice.pick(&[25, 60]), count: 1 },
        2 => GpuAsk::TimeSlice { of: 3, count: 1 },
        3 => {
            let profile = name(dice.pick(&["1g.10gb", "3g.40gb", "4g.40gb"]));
            GpuAsk::Mig { profile, count: 1 }
        }
        _ => GpuAsk::Memory { bytes: Bytes::gb(dice.pick(&[10, 30])), count: 1 },
    }
}

fn any_group(dice: &mut Dice, kind: Option<u64>) -> GroupSpec {
    let ask = match dice.roll(9) {
        0 => GpuAsk::None,
        1..=3 => {
            let any = dice.roll(5);
            any_share(dice, kind.unwrap_or(any))
        }
        _ => whole(dice.pick(&[1, 1, 2, 4, 8])),
    };
    let mut group = group(ask, dice.pick(&[1, 1, 2, 3, 4]));
    if dice.hits(3) {
        group.min = 1 + dice.roll(u64::from(group.count)) as u32;
    }
    if dice.hits(3) {
        group.cpu = Cpu::cores(dice.pick(&[1, 8]));
        group.memory = Bytes::gib(8);
    }
    if dice.hits(6) {
        group.models = vec![ModelAsk { model: name("H100-80GB"), speed: Milli::ONE }];
    }
    if dice.hits(10) {
        group.labels.need.insert(name("rack"), name("r1"));
    }
    if dice.hits(3) {
        group.tolerations = vec![berth_model::Toleration { key: name("k"), value: None }];
    }
    group
}

fn any_job(dice: &mut Dice, kind: Option<u64>, id: u64, at: Time) -> JobSpec {
    let mut group = any_group(dice, kind);
    let whole = group.gpus.is_whole();
    match dice.roll(8) {
        0 => {
            let level = dice.pick(&["rack", "node"]);
            let required = Some(name(level));
            if kind.is_some() {
                group.min = group.count;
            }
            group.topology = Some(TopologyAsk { required, ..TopologyAsk::default() });
        }
        1 if whole => {
            let required = Some(name("nvlink"));
            group.min = group.count;
            group.topology = Some(TopologyAsk { required, ..TopologyAsk::default() });
        }
        2 if group.count == 4 && whole => {
            group.min = 4;
            let segment = Some(Segment { size: 2, within: name(dice.pick(&["rack", "node"])) });
            group.topology = Some(TopologyAsk { segment, ..TopologyAsk::default() });
        }
        3 => {
            group.min = group.count;
            group.spread = Some(Spread { over: name(dice.pick(&["rack", "node"])), at_most: 1 });
        }
        4 if id > 3 && kind.is_none() => {
            let target = JobTarget::Name(Name::from(format!("job-{}", 1 + dice.roll(id))));
            group.near = vec![Near { target, within: name("rack"), away: dice.hits(2) }];
        }
        _ => {}
    }
    let mut groups = vec![group];
    if dice.hits(8) {
        groups.push(any_group(dice, kind));
    }
    let mut spec = job_with(id, dice.pick(&["a", "b", "c", "d"]), groups);
    spec.submitted = at - Span::mins(dice.roll(90) as i64);
    spec.user = name(dice.pick(&["ada", "bob"]));
    spec.priority = dice.pick(&[10, 50, 50, 50, 100, 1_000]);
    spec.preemptible = !dice.hits(6);
    spec.time_limit = Some(Span::mins(dice.pick(&[20, 90, 240, 1_000])));
    spec.grace = dice.pick(&[None, None, Some(Span::secs(20))]);
    spec.min_runtime = dice.pick(&[None, None, None, Some(Span::mins(40))]);
    spec.hold = dice.hits(20);
    if dice.hits(12) {
        spec.begin = Some(at + Span::mins(30));
    }
    if dice.hits(12) && id > 1 {
        let job = JobRef::Id(JobId::new(1 + dice.roll(id - 1)));
        spec.after = vec![Dependency { after: dice.pick(&[After::Any, After::Start]), job }];
    }
    if dice.hits(16) {
        spec.array = Some(ArraySpec { elements: (0..4).collect(), at_most: Some(2) });
    }
    spec
}

/// A state driven by what a seed makes happen; every plan on the way must pass.
struct Drive {
    dice: Dice,
    state: State,
    now: Time,
    jobs: u64,
    /// The one kind of share its jobs ask for; in a wild world they ask for anything.
    kind: Option<u64>,
    seed: u64,
}

impl Drive {
    fn new(seed: u64, wild: bool) -> Drive {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let kind = Some(dice.roll(4)).filter(|_| !wild);
        let n = 3 + dice.roll(6) as u32;
        let nodes: Vec<NodeSpec> = (0..n).map(|n| any_node(&mut dice, n)).collect();
        let mut world = World::default().nodes(nodes).queues(any_queues(&mut dice));
        world.0.policy.reservations = 1 + dice.roll(3) as u32;
        if dice.hits(3) {
            world.0.policy.backfill = BackfillEnds::Estimates;
        }
        if dice.hits(4) {
            world.0.policy.aging_max = Span::hours(1);
        }
        if dice.hits(5) {
            world.0.policy.passes.remove(&Pass::Grow);
        }
        if dice.hits(3) {
            world.0.policy.share_gpus = ShareGpus::Anyone;
        }
        let state = State::load(&world.0).expect("the world makes sense");
        Drive { dice, state, now: NOW, jobs: 0, kind, seed }
    }

    fn apply(&mut self, event: Event) -> bool {
        let stamped = Stamped { seq: self.state.seq() + 1, at: self.now, event };
        self.state.apply(&stamped).is_ok()
    }

    /// Plans and carries out until nothing is left to decide.
    fn settle(&mut self) {
        for _ in 0..20 {
            let plan = self.state.plan();
            let findings = check(&self.state, &plan);
            assert_eq!(
                findings,
                [],
                "seed {} at {:?}: {:#?}\n{:#?}",
                self.seed,
                self.now,
                plan.transactions,
                self.state.snapshot()
            );
            if plan.is_empty() {
                return;
            }
            for Transaction { job, decisions } in plan.transactions {
                let event = Event::Decided { job, decisions };
                let stamped = Stamped { seq: self.state.seq() + 1, at: self.now, event };
                if let Err(rejected) = self.state.apply(&stamped) {
                    panic!("seed {}: {rejected}: {:?}", self.seed, stamped.event);
                }
            }
        }
    }

    /// Ends what is being stopped and what is over, and lets other things happen.
    fn step(&mut self) {
        self.now = self.now + Span::mins(1 + self.dice.roll(30) as i64);
        for _ in 0..self.dice.roll(5) {
            self.jobs += 1;
            let spec = any_job(&mut self.dice, self.kind, self.jobs, self.now);
            self.apply(Event::JobSubmitted { spec: Box::new(spec) });
        }
        let snapshot = self.state.snapshot();
        for job in &snapshot.jobs {
            let ends = self.dice.hits(8);
            let outcome =
                if self.dice.hits(12) { LeaseOutcome::Failed } else { LeaseOutcome::Done };
            if !job.leases.is_empty() && self.dice.hits(5) {
                self.apply(Event::LeaseSaved { job: job.id() });
            }
            for lease in &job.leases {
                let id = LeaseId { job: job.id(), task: lease.task, attempt: lease.attempt };
                let due = lease.stopping.as_ref().is_some_and(|stop| stop.until <= self.now);
                if due {
                    self.apply(Event::LeaseEnded { lease: id, outcome: LeaseOutcome::Stopped });
                } else if ends && lease.stopping.is_none() {
                    self.apply(Event::LeaseEnded { lease: id, outcome });
                }
            }
        }
        if self.dice.hits(8) {
            let node = self.dice.pick(&snapshot.nodes).spec.name;
            let leaving = NodeState::Leaving { at: self.now + Span::mins(40) };
            let states =
                [NodeState::Ready, NodeState::Ready, NodeState::Cordoned, NodeState::Draining];
            let state = self.dice.pick(&[&states[..], &[leaving, NodeState::Failed]].concat());
            self.apply(Event::NodeChanged { node, state });
        }
        if self.kind.is_none() && self.dice.hits(20) {
            let reservation = Reservation {
                name: Name::from(format!("r{}", self.dice.roll(3))),
                owner: name(self.dice.pick(&["a", "operators"])),
                nodes: vec![self.dice.pick(&snapshot.nodes).spec.name],
                from: self.now + Span::mins(self.dice.roll(90) as i64),
                to: self.now + Span::mins(120),
            };
            self.apply(Event::ReservationSet { reservation });
        }
    }
}

fn drive(seeds: std::ops::Range<u64>, wild: bool) {
    for seed in seeds {
        let mut drive = Drive::new(seed, wild);
        for _ in 0..25 {
            drive.step();
            drive.settle();
        }
    }
}

#[test]
fn plans_of_worlds_made_from_a_seed_are_right() {
    drive(0..60, false);
}
