//! Amounts by resource become quotas.

use super::Draft;
use crate::object::{Map, Raw};
use crate::quantity::{self, Quantity};
use berth_model::{Amount, Bytes, Cpu, Milli, Quota};

/// Which of a queue's quotas is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    Quota,
    Limit,
    Borrow,
    Lend,
}

impl Draft {
    pub(super) fn amounts(&mut self, which: Which) -> &mut Quota {
        match which {
            Which::Quota => &mut self.spec.quota,
            Which::Limit => &mut self.spec.limit,
            Which::Borrow => &mut self.spec.borrow,
            Which::Lend => &mut self.spec.lend,
        }
    }

    /// Adds an amount of a resource of Kubernetes. Unlimited stays unlimited.
    pub(super) fn add(&mut self, which: Which, field: &str, resource: &str, amount: Quantity) {
        let added = match resource {
            "cpu" => amount.milli().map(|milli| {
                sum(&mut self.amounts(which).cpu, Cpu(milli), |a, b| Cpu(a.0.saturating_add(b.0)));
            }),
            "memory" => amount.whole().map(|bytes| {
                let more = |a: Bytes, b: Bytes| Bytes(a.0.saturating_add(b.0));
                sum(&mut self.amounts(which).memory, Bytes(bytes), more);
            }),
            "nvidia.com/gpu" | "amd.com/gpu" => amount.milli().map(|milli| {
                sum(&mut self.amounts(which).gpu.total, Milli(milli), more_gpus);
            }),
            _ => {
                let what = "Berth counts GPUs, CPU and memory in queues; leave this one out";
                return self.unmappable(field, resource, what);
            }
        };
        if let Err(error) = added {
            self.unmappable(field, resource, &error.to_string());
        }
    }

    /// A list such as `{cpu: 4, nvidia.com/gpu: 8}`.
    pub(super) fn list(&mut self, which: Which, field: &str, amounts: &Map<Raw>) {
        for (resource, raw) in amounts.iter() {
            if let Some(amount) = self.quantity(field, raw) {
                self.add(which, field, resource, amount);
            }
        }
    }

    pub(super) fn quantity(&mut self, field: &str, raw: &Raw) -> Option<Quantity> {
        let negative = || quantity::Error::NotAQuantity { text: raw.to_string() };
        let amount = raw.as_str().parse::<Quantity>();
        match amount.and_then(|a| if a < Quantity::ZERO { Err(negative()) } else { Ok(a) }) {
            Ok(amount) => Some(amount),
            Err(error) => {
                self.unmappable(field, raw.as_str(), &error.to_string());
                None
            }
        }
    }
}

pub(super) fn more_gpus(a: Milli, b: Milli) -> Milli {
    Milli(a.0.saturating_add(b.0))
}

pub(super) fn sum<T: Copy>(field: &mut Option<Amount<T>>, amount: T, add: fn(T, T) -> T) {
    *field = Some(match field {
        None => Amount::Of(amount),
        Some(Amount::Of(before)) => Amount::Of(add(*before, amount)),
        Some(other) => *other,
    });
}
