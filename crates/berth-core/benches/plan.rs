//! What planning, applying and checking cost, on worlds made from a seed.

#[path = "../../berth-evidence/src/world.rs"]
#[allow(dead_code, reason = "the published figures use more of it")]
mod world;

use berth_core::State;
use berth_model::{Event, Snapshot, Span, Stamped};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::time::Duration;
use world::{Ask, START};

const SEED: u64 = 7;

fn load(world: &Snapshot) -> State {
    State::load(world).expect("the made world loads")
}

fn plan(c: &mut Criterion, name: &str, mut state: State) {
    // A plan leaves the state as it found it.
    c.bench_function(name, |b| b.iter(|| black_box(state.plan())));
}

fn fill(c: &mut Criterion) {
    plan(c, "plan_fill_singles", load(&world::fill(500, 4_000, Ask::new(1, 1))));
    plan(c, "plan_fill_gangs", load(&world::fill(500, 500, Ask::new(8, 1))));
}

fn refuse(c: &mut Criterion) {
    plan(c, "plan_refuse_rack_gang", load(&world::refuse(600, 0, Ask::new(64, 8))));
}

/// A busy cluster in which everything that could be done has been, and one job more.
fn busy(c: &mut Criterion) {
    let (world, mut load_of) = world::busy(1_000, SEED);
    let mut state = load(&world);
    let mut seq = 0;
    let mut apply = |state: &mut State, event| {
        seq += 1;
        let stamped = Stamped { seq, at: START, event };
        let _rows = state.apply(&stamped).expect("a planned decision applies");
    };
    let first = state.plan();
    for transaction in &first.transactions {
        let (job, decisions) = (transaction.job, transaction.decisions.clone());
        apply(&mut state, Event::Decided { job, decisions });
    }
    let spec = Box::new(load_of.submission(START));
    apply(&mut state, Event::JobSubmitted { spec });
    plan(c, "plan_one_event_in_large_cluster", state.clone());

    let spec = Box::new(load_of.submission(START));
    let next = Stamped {
        seq: state.seq() + 1,
        at: START + Span::secs(1),
        event: Event::JobSubmitted { spec },
    };
    c.bench_function("apply_event", |b| {
        b.iter_batched_ref(
            || state.clone(),
            |state| black_box(state.apply(&next).expect("a new job is taken")),
            BatchSize::LargeInput,
        );
    });
}

fn short() -> Criterion {
    Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
}

criterion_group! { name = benches; config = short(); targets = fill, refuse, busy }
criterion_main!(benches);
