//! The loop of production, with machines that only pretend: append an event, apply it, plan, check,
//! append and apply what was decided, carry it out.
//!
//! It is driven by what happens next, never by ticks: a year with ten events costs ten steps. What
//! happens at one moment is taken in the order in which it was foreseen, so that a run repeats
//! exactly.

mod machines;
mod progress;

use crate::engine::{self, Applied, LoadError, Plan, State, Transaction};
use crate::world::{Action, DriverScript, JobScript};
use berth_model::{Decision, Event, JobId, Name, Rejected, Snapshot, Span, Stamped, Time};
use machines::{Machines, SimEvent};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Plans at one moment before the loop gives up on it. A sound core needs a handful: each plan
/// either changes something or is the last one.
const PLANS_AT_ONCE: u32 = 1_000;

/// Sees everything that goes through the log. All of it can be ignored.
pub trait Observer {
    fn applied(&mut self, _stamped: &Stamped, _applied: &Applied) {}
    fn rejected(&mut self, _at: Time, _event: &Event, _rejected: &Rejected) {}
    /// A plan that decides something; plans are counted from 1.
    fn planned(&mut self, _round: u32, _plan: &Plan) {}
    /// A gang's decisions were not carried out.
    fn put_aside(&mut self, _at: Time, _transaction: &Transaction, _finding: &str) {}
    /// The plans of one moment did not come to an end.
    fn gave_up(&mut self, _at: Time) {}
}

impl Observer for () {}

/// How the machines behave, and how far the loop may go.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    pub script: DriverScript,
    /// Stops end at once, whatever grace they have.
    pub at_once: bool,
    /// Plans that decide something, in all; without one, as many as there are.
    pub rounds: Option<u32>,
}

struct Due {
    at: Time,
    order: u64,
    what: SimEvent,
}

impl PartialEq for Due {
    fn eq(&self, other: &Due) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Due) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Due) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

pub struct Driver<O> {
    state: State,
    pub observer: O,
    settings: Settings,
    machines: Machines,
    agenda: BinaryHeap<Reverse<Due>>,
    order: u64,
    /// When the core wants to be asked again.
    wake: Option<Time>,
    begun: bool,
    rounds: u32,
}

impl<O: Observer> Driver<O> {
    pub fn new(
        snapshot: &Snapshot,
        scripts: &BTreeMap<JobId, JobScript>,
        settings: Settings,
        observer: O,
    ) -> Result<Driver<O>, LoadError> {
        let mut driver = Driver {
            state: State::load(snapshot)?,
            observer,
            settings,
            machines: Machines::new(scripts),
            agenda: BinaryHeap::new(),
            order: 0,
            wake: None,
            begun: false,
            rounds: 0,
        };
        driver.take_over(snapshot);
        Ok(driver)
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    /// For questions that try something out on the state, and leave it as it was.
    pub fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    pub fn now(&self) -> Time {
        self.state.now()
    }

    /// Plans that decided something so far.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Whether nothing is going to happen by itself any more.
    pub fn is_idle(&self) -> bool {
        self.agenda.is_empty() && self.wake.is_none()
    }

    /// Whether machines or scripts, rather than the core, have something to come.
    pub fn has_agenda(&self) -> bool {
        !self.agenda.is_empty()
    }

    /// Something that will happen.
    pub fn schedule(&mut self, at: Time, action: Action) {
        self.foresee(at, SimEvent::Scripted(action));
    }

    fn foresee(&mut self, at: Time, what: SimEvent) {
        // What is overdue happens now: the log never goes back.
        let at = at.max(self.now());
        self.order += 1;
        self.agenda.push(Reverse(Due { at, order: self.order, what }));
    }

    /// When something happens next; the first plan is made at once.
    pub fn next_time(&self) -> Option<Time> {
        if !self.begun {
            return Some(self.now());
        }
        let due = self.agenda.peek().map(|Reverse(due)| due.at);
        [due, self.wake].into_iter().flatten().min()
    }

    /// Everything that happens at the next moment, with all that is decided then.
    pub fn step(&mut self) -> Option<Time> {
        let at = self.next_time()?;
        self.begun = true;
        if self.wake.is_some_and(|wake| wake <= at) {
            self.wake = None;
            self.pass(at);
        }
        self.happen(at);
        self.decide(at);
        Some(at)
    }

    /// Goes on until that time, which then is now.
    pub fn run_until(&mut self, end: Time) {
        while self.next_time().is_some_and(|next| next <= end) {
            self.step();
        }
        self.bring_to(end);
    }

    /// Lets time pass, with a row of the bill for it, though nothing happens.
    pub fn bring_to(&mut self, at: Time) {
        if at >= self.now() {
            self.pass(at);
        }
    }

    fn pass(&mut self, at: Time) {
        // Time passes whatever else is refused.
        let _ = self.append(at, Event::Tick);
    }

    fn happen(&mut self, at: Time) {
        while self.agenda.peek().is_some_and(|Reverse(due)| due.at <= at) {
            if let Some(Reverse(due)) = self.agenda.pop() {
                self.occur(at, due.what);
            }
        }
    }

    fn append(&mut self, at: Time, event: Event) -> Result<(), Rejected> {
        let stamped = Stamped { seq: self.state.seq() + 1, at, event };
        match self.state.apply(&stamped) {
            Ok(applied) => {
                self.observer.applied(&stamped, &applied);
                self.react(at, &stamped.event, &applied);
                Ok(())
            }
            Err(rejected) => {
                self.observer.rejected(at, &stamped.event, &rejected);
                Err(rejected)
            }
        }
    }

    /// Plans until nothing more follows at this moment.
    fn decide(&mut self, at: Time) {
        for _ in 0..PLANS_AT_ONCE {
            let plan = self.state.plan();
            self.wake = plan.next.filter(|next| *next > at);
            if plan.is_empty() || self.settings.rounds.is_some_and(|most| self.rounds >= most) {
                return;
            }
            self.rounds += 1;
            self.observer.planned(self.rounds, &plan);
            let taken = self.commit(at, &plan);
            self.happen(at);
            if !taken {
                return;
            }
        }
        self.observer.gave_up(at);
    }

    /// Decides without carrying anything out, once.
    pub fn plan_only(&mut self) -> Plan {
        let at = self.now();
        self.begun = true;
        self.happen(at);
        let plan = self.state.plan();
        self.rounds = 1;
        self.observer.planned(1, &plan);
        self.commit(at, &plan);
        plan
    }

    /// Puts each gang's decisions into the log, or puts the gang aside. Whether anything was
    /// taken: if not, the next plan would be the same.
    fn commit(&mut self, at: Time, plan: &Plan) -> bool {
        let (transactions, findings) = engine::vetted(&self.state, plan);
        for finding in findings {
            let transaction = &plan.transactions[finding.transaction];
            self.observer.put_aside(at, transaction, &finding.to_string());
        }
        let mut taken = false;
        for transaction in transactions {
            let Transaction { job, decisions } = transaction.clone();
            let Err(rejected) = self.append(at, Event::Decided { job, decisions }) else {
                taken = true;
                continue;
            };
            // It depended on one that was put aside.
            let finding = rejected.to_string();
            self.observer.put_aside(at, &transaction, &finding);
            if let Some(job) = job {
                let decisions = vec![Decision::SetAside { job, finding }];
                taken |= self.append(at, Event::Decided { job: Some(job), decisions }).is_ok();
            }
        }
        taken
    }

    /// How long a task takes to stop.
    fn stop_after(&self, job: JobId, grace: Span) -> Span {
        if self.settings.at_once {
            return Span::ZERO;
        }
        let own = self.machines.script(job).and_then(|script| script.stop_after);
        own.or(self.settings.script.stop_after).map_or(grace, |after| after.min(grace))
    }

    fn start_after(&self) -> Span {
        self.settings.script.start_after
    }

    /// The node that a claim delivers, or nothing where nothing is known of it.
    fn delivered(&self, claim: &Name) -> Option<Box<berth_model::NodeSpec>> {
        self.machines.delivered(claim).map(Box::new)
    }
}
