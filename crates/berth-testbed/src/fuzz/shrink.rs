//! Makes a world smaller that still has a finding.

use super::Both;
use super::describe::describe;
use super::finding::Finding;
use super::lab::Lab;
use super::world::{Key, World};

/// So often a smaller world is tried.
const TRIES: usize = 24;

/// A description of the smallest world found with a finding of the same kind.
pub fn shrink(lab: &Lab, world: &World, finding: &Finding) -> String {
    let mut smallest = (world.clone(), None);
    let mut tries = TRIES;
    let mut step = world.pods().count() / 2;
    while step > 0 && tries > 0 {
        let mut at = 0;
        while tries > 0 {
            let Some(smaller) = without(&smallest.0, at, step) else { break };
            tries -= 1;
            let both = Both::of(lab, &smaller);
            let found = both.unexplained().find(|one| one.what == finding.what).cloned();
            match found {
                // What was cut out is not needed; the next ones have its place now.
                Some(found) => smallest = (smaller, Some((found, both))),
                None => at += step,
            }
        }
        step /= 2;
    }
    match smallest {
        (world, Some((found, both))) => {
            format!("smaller: {}", describe(&world, &[&found], &both).concat())
        }
        (_, None) => format!("seed {}: no smaller world has it", world.seed),
    }
}

/// The world without so many pods from a place; a gang goes as a whole. None where none are left
/// there.
fn without(world: &World, from: usize, count: usize) -> Option<World> {
    let keys: Vec<Key> = world.pods().skip(from).take(count).map(Key::of).collect();
    if keys.is_empty() || world.pods().count() <= keys.len() {
        return None;
    }
    let gangs: Vec<_> = world.pods().filter(|pod| keys.contains(&Key::of(pod))).map(gang).collect();
    let mut smaller = world.clone();
    for phase in &mut smaller.phases {
        phase.pods.retain(|pod| {
            let gang = gang(pod);
            !keys.contains(&Key::of(pod)) && (gang.is_none() || !gangs.contains(&gang))
        });
        phase.leaving.retain(|key| !keys.contains(key));
    }
    Some(smaller)
}

fn gang(pod: &serde_json::Value) -> Option<String> {
    pod["metadata"]["annotations"]["berth.dev/gang"].as_str().map(str::to_owned)
}
