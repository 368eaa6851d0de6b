//! Worlds in which queues take from each other: quotas of several resources and of single models,
//! and jobs that take one of several models.

use super::draw::{Bytes as Raw, Draw};
use super::drive::Run;
use super::world::{MODELS, name, plain_group, plain_job, plain_node};
use berth_model::*;

/// A cluster of two models with queues, and no job yet.
pub fn set_up(bytes: &Raw) -> Run {
    let mut d = Draw::new(bytes);
    let mut run = Run::new();
    let policy = Policy {
        grace: Span::ZERO,
        past_use: d.pick(&[Milli(0), Milli(1_000)]),
        credits: d.one_in(4),
        ..Policy::default()
    };
    run.must(Event::PolicySet { policy: Box::new(policy) });
    for at in 0..1 + d.below(3) {
        let mut node = plain_node(&name("n", at), d.pick(&[8, 4, 2, 5]), MODELS[at % 2]);
        node.cpu = d.maybe(2, &[Cpu::cores(16), Cpu::cores(8)]);
        run.must(Event::NodeAdded { node: Box::new(node) });
    }
    let roof = d.one_in(4);
    if roof {
        run.must(Event::QueueSet { queue: Box::new(queue("roof", &mut d)) });
    }
    for at in 0..2 + d.below(2) {
        let mut spec = queue(&name("q", at), &mut d);
        spec.parent = (roof && at < 2).then(|| Name::new("roof"));
        run.must(Event::QueueSet { queue: Box::new(spec) });
    }
    run
}

fn queue(name: &str, d: &mut Draw<'_>) -> QueueSpec {
    let mut spec = QueueSpec::new(name);
    let mut gpus = || Amount::Of(Milli::whole(d.pick(&[2, 0, 1, 3, 4, 5])));
    let (total, first, second) = (gpus(), gpus(), gpus());
    match d.below(4) {
        0 => spec.quota.gpu.total = Some(total),
        1 => spec.quota.gpu.models = [(Name::new(MODELS[0]), first)].into(),
        2 => {
            let both = [(Name::new(MODELS[0]), first), (Name::new(MODELS[1]), second)];
            spec.quota.gpu.models = both.into();
        }
        _ => {}
    }
    spec.quota.cpu = d.maybe(2, &[4, 0, 8, 12]).map(|cores| Amount::Of(Cpu::cores(cores)));
    spec.weight = d.pick(&[Milli(1_000), Milli(3_000), Milli(500)]);
    spec
}

/// The job with that number, in one of the queues that jobs wait in.
pub fn job(number: u64, bytes: &Raw, queues: &[Name], now: Time) -> JobSpec {
    let mut d = Draw::new(bytes);
    let mut group = plain_group(d.pick(&[1, 1, 1, 2]), GpuAsk::Whole { count: 1 });
    group.gpus = match d.below(5) {
        0 => GpuAsk::None,
        n => GpuAsk::Whole { count: n as u32 },
    };
    let model = |at: usize| ModelAsk { model: Name::new(MODELS[at]), speed: Milli::ONE };
    group.models = match d.below(4) {
        _ if group.gpus == GpuAsk::None => Vec::new(),
        0 => Vec::new(),
        1 => vec![model(0)],
        2 => vec![model(1)],
        _ => vec![model(0), model(1)],
    };
    let least = if group.gpus == GpuAsk::None { 1 } else { 0 };
    group.cpu = Cpu::cores(d.pick(&[0, 1, 2, 4, 6]).max(least));
    let mut spec = plain_job(number, &d.pick(queues), vec![group]);
    spec.submitted = now;
    spec
}
