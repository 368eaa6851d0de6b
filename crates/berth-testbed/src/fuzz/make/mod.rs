//! Draws worlds.

mod mixed;
mod nodes;
mod pods;
mod preempt;
mod rules;
mod traits;

use super::random::Random;
use super::world::{Kind, World};

/// Namespaces of all worlds, with the label that tells them apart.
pub const NAMESPACES: [(&str, &str); 2] = [("fuzz-a", "red"), ("fuzz-b", "blue")];

/// Values of the PriorityClasses of all worlds. Their names are `p` and the value.
pub const PRIORITIES: [i32; 6] = [100, 200, 300, 400, 1_000, 2_000];

/// A class of pods that preempt no other pod.
pub const POLITE: (&str, i32) = ("polite", 1_000);

pub fn world(seed: u64) -> World {
    let mut random = Random::new(seed);
    match seed % 10 {
        0..=4 => mixed::world(seed, &mut random),
        5 => mixed::late_nodes(seed, &mut random),
        6 | 7 => preempt::world(seed, &mut random, Kind::PreemptOne),
        _ => preempt::world(seed, &mut random, Kind::PreemptMany),
    }
}

#[cfg(test)]
mod tests {
    use super::world;

    #[test]
    fn the_same_seed_gives_the_same_world_and_another_one_another() {
        for seed in 0..20 {
            assert_eq!(format!("{:?}", world(seed)), format!("{:?}", world(seed)));
            let (one, other) = (world(seed), world(seed + 10));
            assert_ne!(format!("{:?}", one.phases), format!("{:?}", other.phases));
        }
    }
}
