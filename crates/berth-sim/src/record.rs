//! What a run leaves behind for its reports.

use crate::driver::Observer;
use crate::engine::{Applied, Plan, Transaction};
use berth_ledger::Totals;
use berth_model::{
    Cause, Decision, Event, JobId, JobSpec, Name, Outcome, Rejected, Span, Stamped, Time,
};
use std::collections::BTreeMap;

/// A refusal of something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub at: Time,
    pub code: &'static str,
    pub text: String,
}

/// How long a queue held how many GPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
    pub queue: Name,
    pub from: Time,
    pub to: Time,
    /// Thousandths of GPU-milliseconds.
    pub gpu_time: i128,
}

/// Keeps what reports and expectations ask about.
#[derive(Debug, Default)]
pub struct Recorder {
    /// With the round they were decided in.
    pub decisions: Vec<(u32, Time, Decision)>,
    pub totals: Totals,
    /// Why each job was last stopped.
    pub causes: BTreeMap<JobId, Cause>,
    pub ended: BTreeMap<JobId, Outcome>,
    pub refusals: Vec<Refusal>,
    pub aside: Vec<(Time, Option<JobId>, String)>,
    pub gave_up: Option<Time>,
    pub holdings: Vec<Holding>,
    /// Jobs that were submitted on the way.
    pub submitted: Vec<JobSpec>,
    pub events: u64,
    round: u32,
}

impl Observer for Recorder {
    fn applied(&mut self, stamped: &Stamped, applied: &Applied) {
        self.events += 1;
        for row in &applied.rows {
            self.totals.add(row);
            if let Some(queue) = &row.queue {
                let span: Span = row.to - row.from;
                self.holdings.push(Holding {
                    queue: queue.clone(),
                    from: row.from,
                    to: row.to,
                    gpu_time: i128::from(row.gpus.0) * i128::from(span.0),
                });
            }
        }
        self.ended.extend(applied.ended.iter().copied());
        match &stamped.event {
            Event::Decided { decisions, .. } => {
                for decision in decisions {
                    if let Decision::Stop { lease, cause, .. } = decision {
                        self.causes.insert(lease.job, *cause);
                    }
                    self.decisions.push((self.round, stamped.at, decision.clone()));
                }
            }
            Event::JobSubmitted { spec } => self.submitted.push((**spec).clone()),
            _ => {}
        }
    }

    fn rejected(&mut self, at: Time, event: &Event, rejected: &Rejected) {
        // A gang whose decisions are refused is put aside, and reported as that.
        if !matches!(event, Event::Decided { .. }) {
            let (code, text) = (rejected.code(), rejected.to_string());
            self.refusals.push(Refusal { at, code, text });
        }
    }

    fn planned(&mut self, round: u32, _plan: &Plan) {
        self.round = round;
    }

    fn put_aside(&mut self, at: Time, transaction: &Transaction, finding: &str) {
        self.aside.push((at, transaction.job, finding.to_owned()));
    }

    fn gave_up(&mut self, at: Time) {
        self.gave_up = Some(at);
    }
}
