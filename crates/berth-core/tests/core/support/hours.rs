//! Lets time pass: jobs arrive and end when they are said to, stops take their whole grace, and the
//! planner is asked whenever something happened or it wanted to be.

use super::drive::Run;
use berth_core::Plan;
use berth_model::*;
use std::collections::BTreeMap;

pub struct Hours {
    pub run: Run,
    /// Jobs to come, by time and id.
    arrivals: BTreeMap<(Time, u64), JobSpec>,
    /// How long each job runs if it is let; the others run into their time limit.
    pub takes: BTreeMap<u64, Span>,
    ends: BTreeMap<(Time, LeaseId), LeaseOutcome>,
    /// Whole GPUs that each lease holds, and for which queue.
    leases: BTreeMap<LeaseId, (Name, i64)>,
    queues: BTreeMap<u64, Name>,
    asked: Option<Time>,
    plans: usize,
    /// When each job first started.
    pub started: BTreeMap<JobId, Time>,
    /// The earliest time each job was promised, and when that was.
    pub promised: BTreeMap<JobId, (Time, Time)>,
}

impl Hours {
    pub fn new(run: Run) -> Hours {
        Hours {
            run,
            arrivals: BTreeMap::new(),
            takes: BTreeMap::new(),
            ends: BTreeMap::new(),
            leases: BTreeMap::new(),
            queues: BTreeMap::new(),
            asked: None,
            plans: 0,
            started: BTreeMap::new(),
            promised: BTreeMap::new(),
        }
    }

    /// A job that comes at that time and takes so long; into its limit where nothing is said.
    pub fn arrive(&mut self, at: Time, takes: Option<Span>, mut spec: JobSpec) {
        spec.submitted = at;
        if let Some(takes) = takes {
            self.takes.insert(spec.id.number, takes);
        }
        self.queues.insert(spec.id.number, spec.queue.clone());
        self.arrivals.insert((at, spec.id.number), spec);
    }

    /// GPUs that each queue holds now.
    pub fn held(&self) -> BTreeMap<Name, i64> {
        let mut held: BTreeMap<Name, i64> = BTreeMap::new();
        for (queue, gpus) in self.leases.values() {
            *held.entry(queue.clone()).or_default() += gpus;
        }
        held
    }

    /// Goes on to the next thing that happens, up to the given time; returns the plan made then.
    pub fn next(&mut self, until: Time) -> Option<Plan> {
        let next = [
            self.arrivals.keys().next().map(|(at, _)| *at),
            self.ends.keys().next().map(|(at, _)| *at),
            self.asked,
        ];
        let at = next.into_iter().flatten().min().filter(|at| *at <= until)?;
        self.run.now = self.run.now.max(at);
        let now = self.run.now;
        let mut happened = false;
        while let Some(entry) = self.arrivals.first_entry().filter(|e| e.key().0 <= now) {
            let spec = entry.remove();
            self.run.must(Event::JobSubmitted { spec: Box::new(spec) });
            happened = true;
        }
        while let Some(entry) = self.ends.first_entry().filter(|e| e.key().0 <= now) {
            let ((_, lease), outcome) = entry.remove_entry();
            self.run.must(Event::LeaseEnded { lease, outcome });
            self.leases.remove(&lease);
            happened = true;
        }
        if !happened {
            self.run.must(Event::Tick);
        }
        let plan = self.run.state.plan();
        self.plans += 1;
        assert!(self.plans < 50_000, "it does not come to an end");
        self.asked = plan.next;
        self.carry_out(&plan);
        Some(plan)
    }

    fn carry_out(&mut self, plan: &Plan) {
        let now = self.run.now;
        for transaction in &plan.transactions {
            let decisions = transaction.decisions.clone();
            self.run.must(Event::Decided { job: transaction.job, decisions });
        }
        for decision in plan.decisions() {
            match decision {
                Decision::Start { lease, slices, .. } => {
                    let queue = self.queues[&lease.job.number].clone();
                    self.leases.insert(*lease, (queue, slices.len() as i64));
                    self.run.must(Event::LeaseStarted { lease: *lease });
                    self.started.entry(lease.job).or_insert(now);
                    if let Some(takes) = self.takes.get(&lease.job.number) {
                        self.ends.insert((now + *takes, *lease), LeaseOutcome::Done);
                    }
                }
                Decision::Stop { lease, grace, .. } => {
                    self.ends.retain(|(_, other), _| other != lease);
                    self.ends.insert((now + *grace, *lease), LeaseOutcome::Stopped);
                }
                Decision::Reserve { job, at, .. } => {
                    let first = self.promised.entry(*job).or_insert((*at, now));
                    if *at < first.0 {
                        *first = (*at, now);
                    }
                }
                Decision::Unreserve { .. }
                | Decision::Claim { .. }
                | Decision::Return { .. }
                | Decision::SetAside { .. } => {}
            }
        }
        // Without a change of state nothing would be asked again at this very moment.
        if !plan.is_empty() && self.asked.is_none_or(|asked| asked > now) {
            self.asked = Some(now + Span::ms(1));
        }
    }
}
