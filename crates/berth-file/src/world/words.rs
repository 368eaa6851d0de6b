//! The words of a world file for the model's enums, in one place for reading and writing.

use berth_model::{
    After, BackfillEnds, BudgetAction, BudgetPeriod, Cause, Effect, Health, Lifecycle, Outcome,
    Pass, QueueOrder, ShareGpus, Strategy,
};

pub(crate) const ORDERS: [(&str, QueueOrder); 4] = [
    ("response-ratio", QueueOrder::ResponseRatio),
    ("fifo", QueueOrder::Fifo),
    ("shortest", QueueOrder::Shortest),
    ("strict", QueueOrder::Strict),
];

pub(crate) const BACKFILLS: [(&str, BackfillEnds); 2] =
    [("limits", BackfillEnds::Limits), ("estimates", BackfillEnds::Estimates)];

pub(crate) const STRATEGIES: [(&str, Strategy); 2] =
    [("pack", Strategy::Pack), ("spread", Strategy::Spread)];

pub(crate) const SHARE_GPUS: [(&str, ShareGpus); 2] =
    [("team", ShareGpus::Team), ("anyone", ShareGpus::Anyone)];

pub(crate) const PASSES: [(&str, Pass); 10] = [
    ("settle", Pass::Settle),
    ("serve", Pass::Serve),
    ("share", Pass::Share),
    ("place", Pass::Place),
    ("backfill", Pass::Backfill),
    ("defragment", Pass::Defragment),
    ("reclaim", Pass::Reclaim),
    ("pools", Pass::Pools),
    ("preempt", Pass::Preempt),
    ("grow", Pass::Grow),
];

pub(crate) const LIFECYCLES: [(&str, Lifecycle); 3] = [
    ("spot", Lifecycle::Spot),
    ("on-demand", Lifecycle::OnDemand),
    ("reserved", Lifecycle::Reserved),
];

pub(crate) const HEALTHS: [(&str, Health); 2] = [("ok", Health::Ok), ("failed", Health::Failed)];

pub(crate) const EFFECTS: [(&str, Effect); 3] = [
    ("NoSchedule", Effect::NoSchedule),
    ("PreferNoSchedule", Effect::PreferNoSchedule),
    ("NoExecute", Effect::NoExecute),
];

pub(crate) const ACTIONS: [(&str, BudgetAction); 4] = [
    ("notify", BudgetAction::Notify),
    ("block", BudgetAction::Block),
    ("lower-priority", BudgetAction::LowerPriority),
    ("pause", BudgetAction::Pause),
];

pub(crate) const PERIODS: [(&str, BudgetPeriod); 4] = [
    ("day", BudgetPeriod::Day),
    ("week", BudgetPeriod::Week),
    ("month", BudgetPeriod::Month),
    ("once", BudgetPeriod::Once),
];

pub(crate) const AFTERS: [(&str, After); 4] =
    [("ok", After::Ok), ("any", After::Any), ("notok", After::NotOk), ("start", After::Start)];

pub(crate) const OUTCOMES: [(&str, Outcome); 3] =
    [("done", Outcome::Done), ("failed", Outcome::Failed), ("cancelled", Outcome::Cancelled)];

pub(crate) fn causes() -> Vec<(&'static str, Cause)> {
    Cause::ALL.iter().map(|cause| (cause.code(), *cause)).collect()
}

/// The word for a value. Every variant has one: the tests write and read each of them.
pub(crate) fn word<T: Copy + PartialEq>(words: &[(&'static str, T)], value: T) -> &'static str {
    words.iter().find(|(_, known)| *known == value).map(|(word, _)| *word).expect("a known word")
}
