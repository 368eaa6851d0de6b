//! Runs a trace: the cluster state of Berth and the core beside an API server in miniature.

use super::api::{Api, PodObject};
use super::rules::{self, Placed};
use super::world::{Fate, Maker, Step, World};
use crate::state::device_claims::Claims;
use crate::state::observation::Observation;
use crate::state::orders::{ApiOrder, Bind, OrderOutcome};
use crate::state::{ClusterState, InitialObjects};
use crate::tenancy::ownership::QueueOwnership;
use berth_engine::testing::{LeaseOrder, TestLoop, Turned};
use berth_engine::{first_events, stop_message};
use berth_kube::WatchUpdate;
use berth_model::{Cause, LeaseId, Name, Outcome, Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Rounds in which a small world comes to rest.
const MOST_ROUNDS: usize = 200;
/// Longer than anything waits for another pod.
const LONG: i64 = 700_000;

/// An order that has not reached the API server.
struct Flying {
    order: ApiOrder,
    /// The leader that gave it is gone, and hears nothing of it.
    is_orphan: bool,
}

pub struct Run {
    api: Api,
    state: ClusterState,
    engine: TestLoop,
    now: Time,
    /// What the site has to say of its own orders, which the next turn takes in first.
    follow_ups: Vec<Observation>,
    inbox: Vec<Observation>,
    flying: Vec<Flying>,
    outcomes: Vec<OrderOutcome>,
    made_nodes: BTreeSet<usize>,
    made_pods: BTreeSet<usize>,
    /// Everything arrives at once, and no user does anything.
    is_settling: bool,
}

type Checked = Result<(), String>;

fn new_state() -> ClusterState {
    let queue = Name::new(berth_engine::DEFAULT_TEAM);
    ClusterState::new(queue, Claims::default(), QueueOwnership::default())
}

/// Plays a trace to its end, and says what was wrong first.
pub fn play(world: &World, steps: &[Step]) -> Checked {
    let mut run = Run {
        api: Api::new(world.clone()),
        state: new_state(),
        engine: TestLoop::default(),
        now: Time(1_000_000),
        follow_ups: Vec::new(),
        inbox: Vec::new(),
        flying: Vec::new(),
        outcomes: Vec::new(),
        made_nodes: BTreeSet::new(),
        made_pods: BTreeSet::new(),
        is_settling: false,
    };
    let now = run.now;
    run.engine.turn(now, |turn| {
        let outline = turn.core.state.outline();
        turn.all(first_events(&outline, &BTreeMap::new())).unwrap();
    });
    for step in steps {
        run.step(*step)?;
    }
    run.settle()?;
    run.nothing_waits_in_vain()?;
    run.clean_up()
}

impl Run {
    fn step(&mut self, step: Step) -> Checked {
        match step {
            Step::Node(at) => {
                if self.made_nodes.insert(at) {
                    self.api.make_node(at);
                }
            }
            Step::Pod(slot) => {
                if self.made_pods.insert(slot) {
                    self.api.make_pod(slot);
                }
            }
            Step::Delete(slot) => {
                if let Some(uid) = self.api.last(slot).map(|pod| pod.uid.clone()) {
                    self.api.delete(&uid);
                }
            }
            Step::DropNode(at) => self.api.drop_node(at),
            Step::Killed(slot) => {
                let dying = self.api.pods.values().find(|pod| pod.slot == slot && pod.leaves);
                if let Some(uid) = dying.map(|pod| pod.uid.clone()) {
                    self.api.gone(&uid);
                }
            }
            Step::Replace(slot) => {
                let was_there = self.made_pods.contains(&slot);
                self.api.replace(slot, was_there);
            }
            Step::Relabel(slot, app) => return self.relabel(slot, app),
            Step::SeeNodes(n) => self.see_nodes(n),
            Step::SeePods(n) => self.see_pods(n),
            Step::Act(at, fate) => {
                if !self.flying.is_empty() {
                    self.act(at % self.flying.len(), fate);
                }
            }
            Step::Hear(at) => {
                if !self.outcomes.is_empty() {
                    let heard = self.outcomes.remove(at % self.outcomes.len());
                    self.inbox.push(Observation::OrderDone(heard));
                }
            }
            Step::Turn => return self.turn(),
            Step::Tick(seconds) => {
                self.now = self.now + Span::secs(seconds);
                self.inbox.push(Observation::Tick);
            }
            Step::Restart(keeps) => return self.restart(keeps),
        }
        Ok(())
    }

    /// Labels change before Berth has decided anything, and Berth sees that before it does.
    fn relabel(&mut self, slot: usize, app: char) -> Checked {
        let free = self.api.last(slot).filter(|pod| pod.node.is_none() && pod.spec.gang.is_none());
        let Some(uid) = free.map(|pod| pod.uid.clone()) else { return Ok(()) };
        let is_flying =
            self.flying.iter().any(|one| bind_of(one).is_some_and(|b| b.pod.uid == uid));
        if is_flying {
            return Ok(());
        }
        self.api.relabel(&uid, app);
        self.see_pods(usize::MAX);
        self.turn()
    }

    fn see_nodes(&mut self, n: usize) {
        let n = n.min(self.api.node_changes.len());
        if n > 0 {
            let seen = self.api.node_changes.drain(..n).collect();
            self.inbox.push(Observation::Nodes(WatchUpdate::Changes(seen)));
        }
    }

    fn see_pods(&mut self, n: usize) {
        let n = n.min(self.api.pod_changes.len());
        if n > 0 {
            let seen = self.api.pod_changes.drain(..n).collect();
            self.inbox.push(Observation::Pods(WatchUpdate::Changes(seen)));
        }
    }

    /// An order reaches the API server.
    fn act(&mut self, at: usize, fate: Fate) {
        let Flying { order, is_orphan } = self.flying.remove(at);
        let bind = match order {
            ApiOrder::Bind(bind) => bind,
            ApiOrder::Evict { pod, .. } => return self.api.delete(&pod.uid),
            _ => return,
        };
        if bind.permit.is_revoked() {
            return;
        }
        // What an earlier leader has sent cannot be called back, so nothing else may be tried.
        let has_twin = self
            .flying
            .iter()
            .any(|one| bind_of(one).is_some_and(|other| other.pod.uid == bind.pod.uid));
        // What is refused is refused before the binding is sent, so not when it came through.
        let is_bound = self.api.pods.get(&bind.pod.uid).is_some_and(|pod| pod.node.is_some());
        let outcome = if fate == Fate::Infeasible && !has_twin && !is_orphan && !is_bound {
            self.api.has_lost = true;
            OrderOutcome::Infeasible(bind.lease, "refused".to_owned())
        } else {
            let node = index_of(&bind.node);
            let lost = |why: &str| OrderOutcome::Lost {
                lease: bind.lease,
                pod: bind.pod.clone(),
                why: why.to_owned(),
            };
            match self.api.bind(&bind.pod.uid, node) {
                Some(bound) if bound == node => OrderOutcome::Bound(bind.lease),
                Some(_) => lost("its pod was put elsewhere"),
                None => lost("its pod is gone"),
            }
        };
        if fate == Fate::Unanswered {
            return self.flying.push(Flying { order: ApiOrder::Bind(bind), is_orphan });
        }
        if !is_orphan {
            self.outcomes.push(outcome);
        }
    }

    fn turn(&mut self) -> Checked {
        let Run { state, engine, now, inbox, follow_ups, .. } = self;
        let all = follow_ups.drain(..).chain(inbox.drain(..));
        let turned = engine.run(*now, |turn| {
            turn.advance_clock();
            all.for_each(|observation| state.observe(turn, observation));
        });
        self.follow(turned)
    }

    fn start(&mut self, lease: LeaseId) -> Checked {
        let started = self.state.start(&self.engine.core, lease);
        if !matches!(started, Ok(false)) {
            return Err(format!("{lease} starts as {started:?}"));
        }
        for refused in self.state.take_refused_binds() {
            // Rules may come while a place is kept for a member of a gang that is yet to come.
            let is_alone = self.engine.core.jobs[&lease.job].detail.workload.pods().len() == 1;
            if is_alone {
                return Err(format!("a place was decided that a rule forbids: {refused:?}"));
            }
            self.api.has_lost = true;
            self.follow_ups.push(Observation::OrderDone(refused));
        }
        if self.state.has_waiting() && self.state.takes_turns(lease.job) {
            self.follow_ups.push(Observation::Release);
        }
        Ok(())
    }

    fn stop(&mut self, lease: LeaseId, cause: Cause, grace: Span) {
        if self.state.stop(lease, cause, grace) {
            self.follow_ups.push(Observation::EndedWithoutPod(lease));
        }
    }

    /// Carries out what a turn has brought about, as the loop and the site do.
    fn follow(&mut self, turned: Turned) -> Checked {
        for order in turned.orders {
            match order {
                LeaseOrder::Start(lease) => self.start(lease)?,
                LeaseOrder::Stop { lease, cause, grace } => self.stop(lease, cause, grace),
                LeaseOrder::Limit(_) => {}
                LeaseOrder::Acknowledge(lease) => self.state.acknowledge(lease),
            }
        }
        for (job, outcome) in turned.ended {
            if outcome == Outcome::Cancelled {
                self.state.cancelled(job);
            }
        }
        let before = self.flying.len();
        let acts = |order: &ApiOrder| matches!(order, ApiOrder::Bind(_) | ApiOrder::Evict { .. });
        let orders = self.state.take_orders().api.into_iter().filter(acts);
        self.flying.extend(orders.map(|order| Flying { order, is_orphan: false }));
        self.check(before)
    }

    /// Pods that are bound, and that will be: a binding that is under way may come through.
    fn placed(&self) -> Placed<'_> {
        let bound = self.api.pods.values().filter_map(|pod| Some((pod, pod.node?)));
        let mut placed: Placed<'_> = bound.collect();
        for bind in self.flying.iter().filter_map(bind_of).filter(|bind| !bind.permit.is_revoked())
        {
            let pod = self.api.pods.get(&bind.pod.uid).filter(|pod| pod.node.is_none());
            let is_known = placed.iter().any(|(known, _)| known.uid == bind.pod.uid);
            placed.extend(pod.filter(|_| !is_known).map(|pod| (pod, index_of(&bind.node))));
        }
        placed
    }

    /// Looks at orders from that one on, with all that is placed.
    fn check(&self, from: usize) -> Checked {
        let placed = self.placed();
        if let Some(why) = rules::over_capacity(&self.api, &placed) {
            return Err(why);
        }
        for one in &self.flying[from..] {
            match &one.order {
                ApiOrder::Bind(bind) => {
                    let Some(pod) = self.api.pods.get(&bind.pod.uid) else { continue };
                    let node = index_of(&bind.node);
                    if let Some(why) = rules::repelled(&self.api, pod, node, &placed) {
                        return Err(format!("{} goes to n{node}, but {why}", pod.uid));
                    }
                    // What it counted on may be gone meanwhile, and nodes that Berth has not seen
                    // are empty places.
                    let is_known = !self.api.has_lost && self.api.node_changes.is_empty();
                    let why = rules::unmet(&self.api, pod, node, &placed);
                    if let Some(why) = why.filter(|_| is_known) {
                        return Err(format!("{} goes to n{node}, but {why}", pod.uid));
                    }
                }
                ApiOrder::Evict { pod, why, .. } => {
                    let is_stale = *why == stop_message(Cause::Stale);
                    let pod = self.api.pods.get(&pod.uid).filter(|_| is_stale && self.is_settling);
                    if let Some(pod) = pod
                        && self.could_be_whole(pod, &placed)
                    {
                        return Err(format!("{} is evicted though its gang has a place", pod.uid));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The pods of the gang of a pod, if they are all there.
    fn gang_of<'a>(&'a self, pod: &'a PodObject) -> Option<Vec<&'a PodObject>> {
        let Some((gang, size)) = pod.spec.gang else { return Some(vec![pod]) };
        let is_of =
            |slot: &usize| self.api.world.pods[*slot].gang.is_some_and(|(other, _)| other == gang);
        let slots = (0..self.api.world.pods.len()).filter(is_of);
        let pods: Vec<&PodObject> = slots.filter_map(|slot| self.api.last(slot)).collect();
        let stays = pods.iter().filter(|pod| !pod.leaves).count();
        (stays == size).then_some(pods)
    }

    fn could_be_whole(&self, pod: &PodObject, placed: &Placed<'_>) -> bool {
        let Some(gang) = self.gang_of(pod) else { return false };
        let is_placed = |pod: &&PodObject| placed.iter().any(|(other, _)| other.uid == pod.uid);
        let missing: Vec<&PodObject> = gang.into_iter().filter(|pod| !is_placed(pod)).collect();
        rules::find_places(&self.api, &missing, placed).is_some()
    }

    /// Everything arrives, is carried out and is heard of, until nothing more happens.
    fn settle(&mut self) -> Checked {
        self.is_settling = true;
        // Shorter than a gang is kept together, longer, and longer than anything else takes.
        for seconds in [1, 35, 65, 65] {
            self.now = self.now + Span::secs(seconds);
            self.until_quiet()?;
        }
        Ok(())
    }

    fn until_quiet(&mut self) -> Checked {
        let mut quiet = 0;
        for _ in 0..MOST_ROUNDS {
            let is_busy = self.round()?;
            quiet = if is_busy { 0 } else { quiet + 1 };
            if quiet == 4 {
                return Ok(());
            }
        }
        Err("it does not come to rest".to_owned())
    }

    /// Returns whether anything was on its way.
    fn round(&mut self) -> Result<bool, String> {
        let dying = self.api.pods.values().filter(|pod| pod.leaves);
        let dying: Vec<String> = dying.map(|pod| pod.uid.clone()).collect();
        dying.iter().for_each(|uid| self.api.gone(uid));
        let slots: Vec<usize> = self.made_pods.iter().copied().collect();
        let replaced = slots.into_iter().filter(|slot| self.api.replace(*slot, true)).count();
        let is_busy = replaced > 0
            || !dying.is_empty()
            || !self.flying.is_empty()
            || !self.outcomes.is_empty()
            || !self.api.node_changes.is_empty()
            || !self.api.pod_changes.is_empty()
            || !self.follow_ups.is_empty();
        while !self.flying.is_empty() {
            self.act(0, Fate::Done);
        }
        self.see_nodes(usize::MAX);
        self.see_pods(usize::MAX);
        let heard = self.outcomes.drain(..).map(Observation::OrderDone);
        self.inbox.extend(heard);
        self.inbox.push(Observation::Tick);
        self.now = self.now + Span::secs(1);
        self.turn()?;
        Ok(is_busy)
    }

    /// Nothing ends by itself here, so no promise keeps a place free: a pod that fits somewhere has
    /// no reason to wait.
    fn nothing_waits_in_vain(&self) -> Checked {
        let placed = self.placed();
        for pod in self.api.pods.values().filter(|pod| pod.node.is_none()) {
            if self.could_be_whole(pod, &placed) {
                return Err(format!("{} waits though it has a place", pod.uid));
            }
        }
        Ok(())
    }

    /// When all pods are gone, and who makes them, nothing is kept of them.
    fn clean_up(&mut self) -> Checked {
        self.made_pods.clear();
        let owner = |pod: &PodObject| match pod.spec.gang {
            Some((gang, _)) => format!("job-{gang}"),
            None => format!("set-{}", pod.slot),
        };
        let made = self.api.pods.values().filter(|pod| pod.spec.maker != Maker::NoController);
        let gone: BTreeSet<String> = made.map(owner).collect();
        let all: Vec<String> = self.api.pods.keys().cloned().collect();
        all.iter().for_each(|uid| self.api.delete(uid));
        self.until_quiet()?;
        // Their owners go last.
        let gone = gone.into_iter().collect();
        self.inbox.push(Observation::QueuedJobs { queued: Vec::new(), gone });
        self.until_quiet()?;
        self.now = Time(self.now.0 + LONG);
        self.until_quiet()?;
        if let Some(pod) = self.api.pods.values().next() {
            return Err(format!("{} is still there", pod.uid));
        }
        let rest = self.state.leftovers();
        if !rest.is_empty() {
            return Err(format!("when all pods are gone there is left: {}", rest.join(", ")));
        }
        let jobs: Vec<String> = self.engine.core.jobs.keys().map(ToString::to_string).collect();
        if !jobs.is_empty() {
            return Err(format!("when all pods are gone there are jobs: {}", jobs.join(", ")));
        }
        Ok(())
    }

    /// Another leader lists all there is, and goes on with the log.
    fn restart(&mut self, keeps_orders: bool) -> Checked {
        self.api.has_lost = true;
        self.inbox.clear();
        self.follow_ups.clear();
        self.outcomes.clear();
        if keeps_orders {
            self.flying.iter_mut().for_each(|one| one.is_orphan = true);
        } else {
            self.flying.clear();
        }
        self.api.node_changes.clear();
        self.api.pod_changes.clear();
        self.state = new_state();
        let initial = InitialObjects {
            nodes: self.api.nodes.iter().map(|at| self.api.node_view(*at)).collect(),
            pods: self.api.pods.values().map(|pod| self.api.pod_view(pod)).collect(),
            ..InitialObjects::default()
        };
        let Run { state, engine, now, .. } = self;
        let turned = engine.run(*now, |turn| {
            turn.advance_clock();
            state.sync_all(turn, initial);
        });
        self.follow(turned)?;
        let from = self.flying.len();
        let leases = self.engine.core.jobs.values().flat_map(|job| &job.leases);
        let open: Vec<(LeaseId, bool, Option<Cause>)> = leases
            .map(|(lease, live)| (*lease, live.row.started.is_none(), live.stopping))
            .collect();
        for (lease, is_new, stopping) in open {
            if is_new {
                self.start(lease)?;
            }
            if let Some(cause) = stopping {
                self.stop(lease, cause, Span::ZERO);
            }
        }
        self.follow(Turned::default())?;
        self.check(from)
    }
}

fn bind_of(one: &Flying) -> Option<&Bind> {
    match &one.order {
        ApiOrder::Bind(bind) => Some(bind),
        _ => None,
    }
}

fn index_of(node: &Name) -> usize {
    node.as_str().trim_start_matches('n').parse().expect("we named it")
}
