//! Machines as they really are, and the wire between them and the scheduler, on which reports and
//! commands are lost, late and doubled. What is lost is told again by the next comparison of notes.

use super::case::{Case, Noise};
use crate::random::Rng;
use berth_model::{Event, JobId, LeaseId, LeaseOutcome, Lifecycle, Name, NodeSpec, Span, Time};
use fnv::FnvHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher;

/// What is due at some time. The debug form of what is sent seeds whether it is lost, late or
/// doubled (see `rng`): renaming a variant changes what happens under a seed.
#[derive(Debug, Clone)]
pub(super) enum Due {
    Arrives(usize),
    Strikes(usize),
    /// A report reaches the scheduler.
    Told(Event),
    /// A node is there again and says so.
    Back(Name),
    /// A node that has left is to be forgotten, and then to come again.
    Forget {
        node: Name,
        back: Span,
    },
    Joins(Name),
    /// Commands reach the machine.
    Start {
        lease: LeaseId,
        node: Name,
    },
    Stop {
        lease: LeaseId,
        grace: Span,
    },
    /// The task ends by itself.
    Ends {
        lease: LeaseId,
        outcome: LeaseOutcome,
    },
    Saves(LeaseId),
    /// An order reaches the seller of machines, and a machine its end.
    Buy {
        node: Box<NodeSpec>,
        boot: Span,
    },
    GiveBack(Name),
    /// A bought machine is there.
    Boots(Box<NodeSpec>),
    Calm,
}

struct Task {
    node: Name,
    up: bool,
    stopping: bool,
}

pub(super) struct Machines {
    seed: u64,
    noise: Noise,
    runs: BTreeMap<u64, (Span, bool)>,
    agenda: BTreeMap<(Time, u64), Due>,
    order: u64,
    tasks: BTreeMap<LeaseId, Task>,
    /// Leases that will never start here (again).
    over: BTreeSet<LeaseId>,
    /// Orders that arrived, whatever came of them.
    orders: BTreeSet<Name>,
    /// Bought machines that are there, whether the scheduler knows of them or not.
    bought: BTreeMap<Name, NodeSpec>,
    sent: u64,
    pub faults: usize,
}

impl Machines {
    pub fn new(case: &Case) -> Machines {
        let mut machines = Machines {
            seed: case.seed,
            noise: case.noise,
            runs: case.jobs.iter().map(|j| (j.spec.id.number, (j.runs, j.fails))).collect(),
            agenda: BTreeMap::new(),
            order: 0,
            tasks: BTreeMap::new(),
            over: BTreeSet::new(),
            orders: BTreeSet::new(),
            bought: BTreeMap::new(),
            sent: 0,
            faults: 0,
        };
        for (at, job) in case.jobs.iter().enumerate() {
            machines.at(job.at, Due::Arrives(at));
        }
        for (at, (when, _)) in case.faults.iter().enumerate() {
            machines.at(*when, Due::Strikes(at));
        }
        machines.at(case.calm, Due::Calm);
        machines
    }

    pub fn at(&mut self, at: Time, due: Due) {
        self.order += 1;
        self.agenda.insert((at, self.order), due);
    }

    pub fn next(&self) -> Option<Time> {
        self.agenda.keys().next().map(|(at, _)| *at)
    }

    pub fn pop(&mut self, now: Time) -> Option<Due> {
        self.agenda.first_entry().filter(|due| due.key().0 <= now).map(|due| due.remove())
    }

    pub fn quiet(&mut self) {
        self.noise = Noise { lost: 0, late: 0, doubled: 0, failing: 0 };
    }

    /// Random numbers that depend on what it is for and not on what happened elsewhere.
    fn rng(&self, purpose: &str) -> Rng {
        let mut hasher = FnvHasher::default();
        hasher.write(purpose.as_bytes());
        Rng::stream(self.seed, hasher.finish())
    }

    /// Puts something on the wire.
    pub fn send(&mut self, now: Time, due: Due) {
        self.sent += 1;
        let mut rng = self.rng(&format!("{due:?} {now}"));
        let mut hit = |often: u64| rng.below(1_000) < often;
        let (lost, late, doubled) =
            (hit(self.noise.lost), hit(self.noise.late), hit(self.noise.doubled));
        self.faults += usize::from(lost) + usize::from(late) + usize::from(doubled);
        let wait = if lost {
            Span::mins(10 + rng.below(20) as i64)
        } else if late {
            Span::secs(1 + rng.below(300) as i64)
        } else {
            Span::ms(rng.below(3) as i64 * 500)
        };
        if doubled {
            self.at(now + wait + Span::secs(rng.below(600) as i64), due.clone());
        }
        self.at(now + wait, due);
    }

    fn tell(&mut self, now: Time, event: Event) {
        self.send(now, Due::Told(event));
    }

    pub fn knows(&self, lease: LeaseId) -> bool {
        self.over.contains(&lease) || self.tasks.contains_key(&lease)
    }

    pub fn stops(&self, lease: LeaseId) -> bool {
        self.over.contains(&lease) || self.tasks.get(&lease).is_some_and(|task| task.stopping)
    }

    pub fn start(&mut self, now: Time, lease: LeaseId, node: Name, down: bool) {
        // A command that comes twice, or after its stop.
        if self.knows(lease) {
            return;
        }
        let mut rng = self.rng(&format!("start {lease}"));
        if down {
            // A dead machine says nothing; whoever asks it gives up after a while.
            self.over.insert(lease);
            let ended = Event::LeaseEnded { lease, outcome: LeaseOutcome::Lost };
            return self.tell(now + Span::mins(1), ended);
        }
        if rng.below(1_000) < self.noise.failing {
            self.faults += 1;
            self.over.insert(lease);
            let outcome = [LeaseOutcome::Lost, LeaseOutcome::Failed][rng.below(2) as usize];
            return self.tell(now, Event::LeaseEnded { lease, outcome });
        }
        self.tasks.insert(lease, Task { node, up: true, stopping: false });
        self.tell(now, Event::LeaseStarted { lease });
        let (runs, fails) =
            self.runs.get(&lease.job.number).copied().unwrap_or((Span::mins(1), false));
        let outcome = if fails { LeaseOutcome::Failed } else { LeaseOutcome::Done };
        if lease.task == 0 {
            self.at(now + Span(runs.0 / 2), Due::Saves(lease));
        }
        let skew = Span::secs(rng.below(20) as i64);
        self.at(now + runs + skew, Due::Ends { lease, outcome });
    }

    pub fn stop(&mut self, now: Time, lease: LeaseId, grace: Span) {
        if self.over.contains(&lease) {
            return;
        }
        let Some(task) = self.tasks.get_mut(&lease) else {
            // It never came up, and now it never will.
            self.over.insert(lease);
            return self.tell(now, Event::LeaseEnded { lease, outcome: LeaseOutcome::Stopped });
        };
        if task.stopping {
            return;
        }
        task.stopping = true;
        let mut rng = self.rng(&format!("stop {lease}"));
        let takes = Span(rng.below(grace.0.max(0) as u64 + 1) as i64);
        let outcome = match rng.below(6) {
            0 => LeaseOutcome::Failed,
            _ => LeaseOutcome::Stopped,
        };
        self.at(now + takes, Due::Ends { lease, outcome });
    }

    pub fn ends(&mut self, now: Time, lease: LeaseId, outcome: LeaseOutcome) {
        if self.tasks.remove(&lease).is_some_and(|task| task.up) {
            self.over.insert(lease);
            self.tell(now, Event::LeaseEnded { lease, outcome });
        }
    }

    pub fn saves(&mut self, now: Time, lease: LeaseId) {
        if self.tasks.contains_key(&lease) {
            let job: JobId = lease.job;
            self.tell(now, Event::LeaseSaved { job });
        }
    }

    pub fn ordered(&self, claim: &Name) -> bool {
        self.orders.contains(claim)
    }

    /// The seller takes an order: the machine comes, comes late, or cannot be had.
    pub fn buy(&mut self, now: Time, node: Box<NodeSpec>, boot: Span) {
        if !self.orders.insert(node.name.clone()) {
            return;
        }
        let mut rng = self.rng(&format!("buy {}", node.name));
        let often = self.noise.failing * 3;
        if rng.below(1_000) < often {
            self.faults += 1;
            let retry_at = now + Span::mins(1 + rng.below(60) as i64);
            return self.tell(now, Event::ClaimFailed { claim: node.name, retry_at });
        }
        let late = rng.below(1_000) < often;
        self.faults += usize::from(late);
        let wait = if late { Span::mins(rng.below(90) as i64) } else { Span::ZERO };
        self.at(now + boot + wait, Due::Boots(node));
    }

    pub fn boots(&mut self, now: Time, node: Box<NodeSpec>) {
        self.bought.insert(node.name.clone(), (*node).clone());
        self.tell(now, Event::ClaimReady { claim: node.name.clone(), node });
    }

    /// Whether a machine that was bought is gone; says so once.
    pub fn hand_over(&mut self, name: &Name) -> bool {
        self.bought.remove(name).is_some()
    }

    /// Bought spot machines of a zone.
    pub fn spot_in(&self, zone: &Name) -> Vec<Name> {
        let there = self.bought.values().filter(|node| {
            node.lifecycle == Lifecycle::Spot && node.labels.get("zone") == Some(zone)
        });
        there.map(|node| node.name.clone()).collect()
    }

    /// Everything on the node dies at once.
    pub fn down(&mut self, now: Time, node: &Name) {
        let there = self.tasks.iter().filter(|(_, task)| task.node == *node);
        let there: Vec<LeaseId> = there.map(|(lease, _)| *lease).collect();
        for lease in there {
            self.ends(now, lease, LeaseOutcome::Lost);
        }
    }
}
