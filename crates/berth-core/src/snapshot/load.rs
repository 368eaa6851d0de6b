//! Making a state of a snapshot.

use crate::apply::validate;
use crate::ix::QueueIx;
use crate::state::State;
use crate::state::history::PastRuns;
use crate::state::models::Models;
use berth_ledger::{BudgetMeter, NodeAccount, Spending};
use berth_model::{Micros, Name, Rejected, Snapshot};

/// Why a snapshot makes no sense, and which part of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {rejected}")]
pub struct LoadError {
    /// Such as `jobs[3].groups[0]`.
    pub path: String,
    pub rejected: Rejected,
}

pub(crate) fn at(path: String) -> impl FnOnce(Rejected) -> LoadError {
    move |rejected| LoadError { path, rejected }
}

impl State {
    pub fn load(snapshot: &Snapshot) -> Result<State, LoadError> {
        let mut state = State::new();
        state.now = snapshot.now;
        state.seq = snapshot.seq;
        validate::settings::policy(&snapshot.policy).map_err(at("policy".to_owned()))?;
        state.policy = snapshot.policy.clone();
        if !snapshot.classes.is_empty() {
            state.classes = snapshot.classes.clone();
        }
        state.models = Models {
            prices: snapshot.prices.clone(),
            speeds: snapshot.speeds.clone(),
            watts: snapshot.watts.clone(),
        };
        state.cluster.topologies =
            snapshot.topologies.iter().map(|(name, keys)| (name.clone(), keys.clone())).collect();
        state.load_nodes(snapshot)?;
        state.load_queues(snapshot)?;
        for (n, pool) in snapshot.pools.iter().enumerate() {
            let event = berth_model::Event::PoolSet { pool: Box::new(pool.clone()) };
            validate::event(&state, &event, state.now).map_err(at(format!("pools[{n}]")))?;
            state.pools.insert(pool.name.clone(), pool.clone());
        }
        state.claims =
            snapshot.claims.iter().map(|claim| (claim.name.clone(), claim.clone())).collect();
        state.claims_made = snapshot.claims_made;
        for past in &snapshot.history {
            let key = (past.user.clone(), past.name.clone());
            state.history.insert(key, PastRuns { runs: past.runs, ratio: past.ratio });
        }
        for (id, name, outcome) in &snapshot.outcomes {
            state.outcomes.insert(*id, (name.clone(), *outcome));
            state.outcome_order.push_back(*id);
        }
        for (n, reservation) in snapshot.reservations.iter().enumerate() {
            let event = berth_model::Event::ReservationSet { reservation: reservation.clone() };
            validate::event(&state, &event, state.now).map_err(at(format!("reservations[{n}]")))?;
            state.reservations.insert(reservation.name.clone(), reservation.clone());
        }
        let all: Vec<Name> = state.cluster.by_name.keys().cloned().collect();
        state.set_blocks_on(&all);
        state.load_jobs(snapshot)?;
        state.moves = snapshot.moves.iter().copied().collect();
        state.recent = snapshot.recent.iter().cloned().collect();
        // What was stopped before the snapshot is not in what was left then.
        for (budget, left) in &snapshot.disruptions {
            state.disruptions_set(budget, Some(*left));
        }
        Ok(state)
    }

    fn load_nodes(&mut self, snapshot: &Snapshot) -> Result<(), LoadError> {
        for (n, node) in snapshot.nodes.iter().enumerate() {
            let path = || format!("nodes[{n}]");
            validate::nodes::node(self, &node.spec).map_err(at(path()))?;
            if self.cluster.find(&node.spec.name).is_some() {
                let why = "another node has the same name".to_owned();
                let rejected = Rejected::BadNode { node: node.spec.name.clone(), why };
                return Err(LoadError { path: path(), rejected });
            }
            let kept = validate::nodes::kept_data(&node.spec.name, &node.data);
            kept.map_err(at(path()))?;
            let ix = self.cluster.add(node.spec.clone(), node.since);
            self.cluster.keep_data(ix, node.data.clone());
            let price = berth_ledger::cost::node_price(&node.spec, &self.models.prices);
            let account = NodeAccount {
                price,
                since: node.since,
                billed: node.billed,
                fragmented: Micros::ZERO,
            };
            self.ledger.restore_node(&node.spec.name, account);
            let prices = self.gpu_prices(&node.spec);
            let known = &mut self.cluster.nodes[ix.at()];
            known.gpu_prices = prices;
            known.idle_since = node.idle_since;
            if matches!(
                node.spec.state,
                berth_model::NodeState::Draining | berth_model::NodeState::Leaving { .. }
            ) {
                self.closing.insert(ix);
            }
        }
        Ok(())
    }

    fn load_queues(&mut self, snapshot: &Snapshot) -> Result<(), LoadError> {
        // Parents may come after their children: first all queues, then the tree.
        for (n, queue) in snapshot.queues.iter().enumerate() {
            let path = || format!("queues[{n}]");
            let alone = berth_model::QueueSpec { parent: None, ..queue.spec.clone() };
            validate::queues::queue(self, &alone).map_err(at(path()))?;
            if self.queues.find(&queue.spec.name).is_some() {
                let rejected = Rejected::QueueInUse { queue: queue.spec.name.clone() };
                return Err(LoadError { path: path(), rejected });
            }
            let ix = self.queues.add(queue.spec.clone(), None);
            let known = self.queues.get_mut(ix);
            known.credits = queue.credits;
            known.past_use = queue.past_use;
            known.spending = Spending::restore(&queue.daily);
            known.budget = queue.spec.budget.as_ref().map(|budget| {
                BudgetMeter::restore(queue.spec.name.clone(), budget.clone(), self.now, queue.spent)
            });
            // A snapshot of before, or a world, knows the sum alone.
            if let Some(meter) = known.budget.as_ref().filter(|_| queue.daily.is_empty()) {
                known.spending.add(meter.period_start, meter.spent);
            }
        }
        self.queues.roots.clear();
        for (n, queue) in snapshot.queues.iter().enumerate() {
            let path = || format!("queues[{n}]");
            let ix = QueueIx(n as u32);
            let Some(parent) = &queue.spec.parent else {
                self.queues.roots.push(ix);
                continue;
            };
            let unknown = Rejected::UnknownQueue { queue: parent.clone() };
            let up =
                self.queues.find(parent).ok_or(LoadError { path: path(), rejected: unknown })?;
            if self.queues.path(up).any(|other| other == ix) {
                let rejected =
                    Rejected::QueueCycle { queue: queue.spec.name.clone(), parent: parent.clone() };
                return Err(LoadError { path: path(), rejected });
            }
            let above = self.queues.get(up).spec.quota.clone();
            validate::queues::percentages(&queue.spec, &above, parent).map_err(at(path()))?;
            self.queues.get_mut(ix).parent = Some(up);
            self.queues.get_mut(up).children.push(ix);
        }
        Ok(())
    }

    fn set_blocks_on(&mut self, nodes: &[Name]) {
        if !self.reservations.is_empty() {
            self.set_blocks(nodes);
        }
    }
}
