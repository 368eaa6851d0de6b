//! Fault mode: seeds that must be clean, and bugs that must be found.

use berth_sim::faults::{self, Size};

#[test]
fn two_hundred_seeds_are_clean() {
    let mut bad = Vec::new();
    let (mut events, mut starts, mut crashes, mut upsets) = (0, 0, 0, 0);
    for seed in 1..=200 {
        let verdict = faults::run(seed, Size::Small);
        events += verdict.events;
        starts += verdict.starts;
        crashes += verdict.crashes;
        upsets += verdict.faults;
        if let Some(broken) = &verdict.broken {
            bad.push(format!("{}: {broken:?}", verdict.command()));
        }
    }
    println!("{events} events, {starts} starts, {crashes} crashes, {upsets} faults");
    assert!(bad.is_empty(), "{} of 200:\n{}", bad.len(), bad.join("\n"));
    // A run in which nothing happens proves nothing.
    assert!(starts > 1_000 && crashes > 200 && upsets > 1_000, "{starts} {crashes} {upsets}");
}
