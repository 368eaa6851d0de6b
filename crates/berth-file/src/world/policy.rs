//! The policy: every knob once, for reading and for writing.

use super::words::{BACKFILLS, ORDERS, PASSES, SHARE_GPUS, STRATEGIES, word};
use crate::error::Result;
use crate::fields::{Fields, boolean, choice, int, list, unit_from_zero};
use crate::out::{Out, Record};
use crate::tree::Node;
use berth_model::{Pass, Policy};

macro_rules! knobs {
    ($($field:ident: $kind:ident),* $(,)?) => {
        const KEYS: &[&str] = &[$(stringify!($field)),*];

        /// Each knob with the kind of its value.
        pub(crate) const KINDS: &[(&str, &str)] =
            &[$((stringify!($field), stringify!($kind))),*];

        /// The policy with the keys of the map changed.
        pub(crate) fn read(node: &Node, mut policy: Policy) -> Result<Policy> {
            let fields = Fields::of(node, "the policy", KEYS)?;
            $(if let Some(value) = fields.read(stringify!($field), read_kind!($kind))? {
                policy.$field = value;
            })*
            Ok(policy)
        }

        /// The knobs that differ from their defaults.
        pub(crate) fn write(policy: &Policy) -> Record {
            let default = Policy::default();
            let mut out = Record::default();
            // Naming every field makes a new knob without a key an error of the compiler.
            let Policy { $($field),* } = policy;
            $(out.put_if(*$field != default.$field, stringify!($field), || {
                write_kind!($kind, $field)
            });)*
            out
        }
    };
}

macro_rules! read_kind {
    (number) => {
        int
    };
    (unit) => {
        unit_from_zero
    };
    (flag) => {
        boolean
    };
    (passes) => {
        passes
    };
    (strategy) => {
        |node| choice(node, &STRATEGIES)
    };
    (order) => {
        |node| choice(node, &ORDERS)
    };
    (backfill) => {
        |node| choice(node, &BACKFILLS)
    };
    (share_gpus) => {
        |node| choice(node, &SHARE_GPUS)
    };
}

macro_rules! write_kind {
    (passes, $value:ident) => {
        Out::list($value, |pass| Out::raw(word(&PASSES, *pass)))
    };
    (strategy, $value:ident) => {
        Out::raw(word(&STRATEGIES, *$value))
    };
    (order, $value:ident) => {
        Out::raw(word(&ORDERS, *$value))
    };
    (backfill, $value:ident) => {
        Out::raw(word(&BACKFILLS, *$value))
    };
    (share_gpus, $value:ident) => {
        Out::raw(word(&SHARE_GPUS, *$value))
    };
    ($kind:ident, $value:ident) => {
        Out::raw($value)
    };
}

fn passes(node: &Node) -> Result<std::collections::BTreeSet<Pass>> {
    list(node)?.iter().map(|item| choice(item, &PASSES)).collect()
}

knobs! {
    version: number,
    passes: passes,
    grace: unit,
    stale: unit,
    strategy: strategy,
    order: order,
    fragmentation: flag,
    share_gpus: share_gpus,
    gpu_reserve: unit,
    energy: unit,
    reservations: number,
    aging_max: unit,
    backfill: backfill,
    default_time_limit: unit,
    pod_time_limit: unit,
    service_pod_time_limit: unit,
    min_runtime: unit,
    preempt_after: unit,
    restart_cost: unit,
    time_sharing: flag,
    quantum: unit,
    pauses_per_day: number,
    half_life: unit,
    past_use: unit,
    credits: flag,
    credit_cap: unit,
    moves_per_hour: number,
    idle_after: unit,
    mix: number,
    search: number,
    forecast_runs: number,
    forecast_horizon: unit,
    outcomes: number,
}
