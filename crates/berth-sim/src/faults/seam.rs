//! The seam between the core and the world, where a test puts a bug.

use crate::engine::Plan;
use berth_ledger::CostRow;
use berth_model::{JobId, Outcome, Stamped};

/// One event as the world sees it, with what it brought about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub stamped: Stamped,
    pub rows: Vec<CostRow>,
    pub ended: Vec<(JobId, Outcome)>,
}

/// What lies between the core and the world. An honest one lets everything through as it is; a
/// test puts a bug there.
pub trait Seam {
    fn to_core(&mut self, stamped: Stamped) -> Stamped {
        stamped
    }
    fn to_world(&mut self, record: Record) -> Record {
        record
    }
    fn planned(&mut self, plan: Plan) -> Plan {
        plan
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Honest;

impl Seam for Honest {}
