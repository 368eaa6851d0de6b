//! What the alert rules in deploy/prometheus look at beside the rest: nodes, GPUs out of use and
//! budgets.

use super::answer::Failure;
use super::metrics::{Page, of_team};
use crate::app::App;
use berth_model::{Health, NodeSnapshot, NodeState};
use berth_service::money;

const STATES: [&str; 6] = ["ready", "cordoned", "draining", "troubled", "failed", "leaving"];

impl Page {
    pub(super) fn nodes(&mut self, app: &App) {
        let nodes = app.service.engine.core().state.node_snapshots();
        let family = self.family("nodes", "Nodes by state");
        for state in STATES {
            // A state that no node is in is 0 and not missing: rules can compare it.
            let count = nodes.iter().filter(|node| word(node.spec.state) == state).count();
            family.get_or_create(&vec![("state", state.to_owned())]).set(count as f64);
        }
        let help = "GPUs that are out of use because they failed or left";
        let family = self.family("gpus_out_of_use", help);
        for node in &nodes {
            let labels = vec![("node", node.spec.name.to_string())];
            family.get_or_create(&labels).set(out_of_use(node) as f64);
        }
    }

    pub(super) async fn budgets(&mut self, app: &App) -> Result<(), Failure> {
        let limit = self.family("budget_dollars", "The budget of a queue for its period");
        let spent = self.family("budget_spent_dollars", "What is spent of a budget");
        let help = "What a period will have cost at its end, at the rate of the last day";
        let forecast = self.family("budget_forecast_dollars", help);
        for budget in money::budgets::all(&app.service).await? {
            let labels = of_team(&budget.queue);
            let dollars = |micros: i64| micros as f64 / 1e6;
            limit.get_or_create(&labels).set(dollars(budget.limit_micros));
            spent.get_or_create(&labels).set(dollars(budget.spent_micros));
            if let Some(micros) = budget.forecast_micros {
                forecast.get_or_create(&labels).set(dollars(micros));
            }
        }
        Ok(())
    }
}

fn out_of_use(node: &NodeSnapshot) -> usize {
    node.spec.gpus.iter().filter(|gpu| gpu.health != Health::Ok).count()
}

fn word(state: NodeState) -> &'static str {
    match state {
        NodeState::Ready => "ready",
        NodeState::Cordoned => "cordoned",
        NodeState::Draining => "draining",
        NodeState::Troubled => "troubled",
        NodeState::Failed => "failed",
        NodeState::Leaving { .. } => "leaving",
    }
}
