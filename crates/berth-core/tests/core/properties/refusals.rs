//! Events that are refused.

use crate::properties::{fail, play};
use crate::support::cases;
use crate::support::draw::Bytes as Raw;
use crate::support::garbage;
use crate::support::world::tales;
use berth_core::State;
use berth_model::*;
use proptest::collection::vec;
use proptest::prelude::{any, proptest};

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn what_is_refused_changes_nothing_and_nothing_panics(
        tale in tales(6, 30),
        nonsense in vec(any::<Raw>(), 30),
    ) {
        play(&tale, |run, steps| {
            for (step, nonsense) in steps.iter().zip(&nonsense) {
                run.step(step);
                let event = garbage::event(nonsense, &run.state.snapshot(), run.next_job);
                run.next_job += 1;
                let before = run.state.hash();
                let sent = run.send(event.clone());
                if sent.is_err() && run.state.hash() != before {
                    return fail(format!("{sent:?} changed the state: {event:?}"));
                }
                let mut fresh = match State::load(&run.state.snapshot()) {
                    Ok(fresh) => fresh,
                    Err(why) => return fail(format!("its own snapshot was refused: {why}")),
                };
                let (kept, loaded) = (run.state.plan(), fresh.plan());
                if kept != loaded {
                    return fail(format!("plans differ: {kept:?}\n{loaded:?}"));
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn events_twice_early_or_out_of_order_are_refused(tale in tales(6, 15)) {
        play(&tale, |run, steps| {
            for step in steps {
                run.step(step);
                let last = run.log.last().expect("something happened").clone();
                let before = run.state.hash();
                let twice = run.state.apply(&last).map_err(|why| why.code());
                let early = Stamped { seq: last.seq + 2, ..last.clone() };
                let early = run.state.apply(&early).map_err(|why| why.code());
                let at = run.state.now() - Span::ms(1);
                let back = Stamped { seq: last.seq + 1, at, event: Event::Tick };
                let back = run.state.apply(&back).map_err(|why| why.code());
                if twice != Err("duplicate-event")
                    || early != Err("missing-events")
                    || back != Err("time-went-back")
                {
                    return fail(format!("{twice:?}, {early:?}, {back:?}"));
                }
                if run.state.hash() != before {
                    return fail("a refused event changed the state");
                }
            }
            Ok(())
        })?;
    }
}
