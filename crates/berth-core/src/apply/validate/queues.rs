//! Events about queues.

use crate::apply::validate::limits::{MAX_SPAN, too_large};
use crate::state::State;
use berth_model::{Amount, Name, QueueSpec, Quota, Rejected};

pub(crate) fn queue(state: &State, spec: &QueueSpec) -> Result<(), Rejected> {
    amounts(spec)?;
    // Those below it that have a percentage of its quota would have one of nothing.
    let children = state.queues.find(&spec.name).into_iter();
    for child in children.flat_map(|ix| &state.queues.get(ix).children) {
        percentages(&state.queues.get(*child).spec, &spec.quota, &spec.name)?;
    }
    let Some(parent) = &spec.parent else {
        return Ok(());
    };
    let unknown = || Rejected::UnknownQueue { queue: parent.clone() };
    let parent_ix = state.queues.find(parent).ok_or_else(unknown)?;
    let own = state.queues.find(&spec.name);
    if *parent == spec.name
        || own.is_some_and(|own| state.queues.path(parent_ix).any(|up| up == own))
    {
        return Err(Rejected::QueueCycle { queue: spec.name.clone(), parent: parent.clone() });
    }
    let above = state.queues.get(parent_ix);
    if own.is_none_or(|own| state.queues.get(own).parent != Some(parent_ix))
        && above.children.is_empty()
        && state.jobs.iter().any(|(_, job)| job.queue == parent_ix)
    {
        return Err(Rejected::QueueInUse { queue: parent.clone() });
    }
    percentages(spec, &above.spec.quota, parent)
}

pub(crate) fn percentages(spec: &QueueSpec, above: &Quota, parent: &Name) -> Result<(), Rejected> {
    let share =
        |amount: Option<&Amount<berth_model::Milli>>| matches!(amount, Some(Amount::Share(_)));
    let quota = &spec.quota;
    let without =
        (share(quota.gpu.total.as_ref()) && above.gpu.total.is_none())
            || quota.gpu.models.iter().any(|(model, amount)| {
                share(Some(amount)) && !above.gpu.models.contains_key(model)
            })
            || (matches!(quota.cpu, Some(Amount::Share(_))) && above.cpu.is_none())
            || (matches!(quota.memory, Some(Amount::Share(_))) && above.memory.is_none());
    if without {
        return Err(Rejected::PercentOfNothing {
            queue: spec.name.clone(),
            parent: parent.clone(),
        });
    }
    Ok(())
}

fn amounts(spec: &QueueSpec) -> Result<(), Rejected> {
    fn negative<T: Copy>(amount: &Amount<T>, value: impl Fn(T) -> i64) -> bool {
        match amount {
            Amount::Of(amount) => value(*amount) < 0,
            Amount::Share(milli) => milli.0 < 0,
            Amount::Unlimited => false,
        }
    }
    let bad = |quota: &Quota| {
        quota.gpu.total.iter().chain(quota.gpu.models.values()).any(|a| negative(a, |m| m.0))
            || quota.cpu.iter().any(|a| negative(a, |c| c.0))
            || quota.memory.iter().any(|a| negative(a, |m| m.0))
    };
    let fields = [
        ("quota", &spec.quota),
        ("limit", &spec.limit),
        ("borrow", &spec.borrow),
        ("lend", &spec.lend),
        ("user_limit", &spec.user_limit),
    ];
    let field = fields.into_iter().find(|(_, quota)| bad(quota)).map(|(field, _)| field);
    let field = field.or((spec.weight.0 < 0).then_some("weight")).or(spec
        .budget
        .as_ref()
        .is_some_and(|b| b.limit.0 < 0)
        .then_some("budget"));
    if let Some(field) = field {
        return Err(Rejected::NegativeAmount { queue: spec.name.clone(), field });
    }
    fn huge<T: Copy>(amount: &Amount<T>, value: impl Fn(T) -> i64) -> bool {
        match amount {
            Amount::Of(amount) => too_large(value(*amount)),
            Amount::Share(milli) => milli.0 > 1_000_000,
            Amount::Unlimited => false,
        }
    }
    let huge = |quota: &Quota| {
        quota.gpu.total.iter().chain(quota.gpu.models.values()).any(|a| huge(a, |m| m.0))
            || quota.cpu.iter().any(|a| huge(a, |c| c.0))
            || quota.memory.iter().any(|a| huge(a, |m| m.0))
    };
    let field = fields.into_iter().find(|(_, quota)| huge(quota)).map(|(field, _)| field);
    let field = field.or(too_large(spec.weight.0).then_some("weight")).or(spec
        .budget
        .as_ref()
        .is_some_and(|b| too_large(b.limit.0))
        .then_some("budget"));
    let spans = [("min_runtime", spec.min_runtime), ("preempt_after", spec.preempt_after)];
    let mut spans = spans.into_iter().filter_map(|(name, span)| Some((name, span?)));
    let field = field.or(spans.find(|(_, span)| *span > MAX_SPAN).map(|(name, _)| name));
    match field {
        Some(field) => Err(Rejected::AmountTooLarge { queue: spec.name.clone(), field }),
        None => Ok(()),
    }
}

pub(super) fn removed(state: &State, queue: &Name) -> Result<(), Rejected> {
    let unknown = || Rejected::UnknownQueue { queue: queue.clone() };
    let ix = state.queues.find(queue).ok_or_else(unknown)?;
    let used = !state.queues.get(ix).children.is_empty()
        || state.jobs.iter().any(|(_, job)| job.queue == ix);
    if used { Err(Rejected::QueueInUse { queue: queue.clone() }) } else { Ok(()) }
}
