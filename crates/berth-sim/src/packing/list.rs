//! The pods that arrive: a list, filled up from itself until it asks for enough, and shuffled.

use super::node::Pod;
use super::typical::Typical;
use crate::random::Rng;

/// Pods in the order of their arrival.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    pub pods: Vec<Pod>,
    /// The common shapes of the list before it was filled up: what a scheduler knows of old.
    pub typical: Typical,
}

pub fn demand(pods: &[Pod]) -> i64 {
    pods.iter().map(Pod::total_milli).sum()
}

/// All of `pods`, with more drawn from them until `wanted_milli` of GPUs are asked for; shuffled.
/// A list that asks for more than that is cut after it was shuffled.
pub fn list(pods: &[Pod], wanted_milli: i64, seed: u64) -> List {
    let typical = Typical::of(pods);
    let mut random = Rng::new(seed);
    let mut all = pods.to_vec();
    let mut asked = demand(pods);
    // Pods without GPUs alone would never get there.
    while asked > 0 && asked < wanted_milli {
        let pod = random.one_of(pods);
        asked += pod.total_milli();
        all.push(pod);
    }
    random.shuffle(&mut all);
    let arriving = prefix(&all, wanted_milli);
    all.truncate(arriving);
    List { pods: all, typical }
}

/// How many of the first pods arrive until so much is asked for.
pub fn prefix(pods: &[Pod], wanted_milli: i64) -> usize {
    let mut asked = 0;
    let reached = pods.iter().position(|pod| {
        asked += pod.total_milli();
        asked >= wanted_milli
    });
    reached.map_or(pods.len(), |last| last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(gpus: u32) -> Pod {
        Pod { gpus, gpu_milli: 1_000, cpu_milli: 1_000, memory_mib: 0, types: 0 }
    }

    #[test]
    fn a_list_is_filled_up_from_itself_and_keeps_all_it_had() {
        let pods = [whole(1), whole(2), whole(4)];
        let made = list(&pods, 20_000, 42);
        assert!(demand(&made.pods) >= 20_000);
        assert!(demand(&made.pods) < 24_000, "no more than the last pod too much");
        assert!(pods.iter().all(|pod| made.pods.contains(pod)));
    }

    #[test]
    fn the_same_seed_gives_the_same_list_and_another_seed_another() {
        let pods: Vec<Pod> = (1..=8).map(whole).collect();
        assert_eq!(list(&pods, 90_000, 1), list(&pods, 90_000, 1));
        assert_ne!(list(&pods, 90_000, 1).pods, list(&pods, 90_000, 2).pods);
    }

    #[test]
    fn a_list_that_asks_for_too_much_is_cut_where_it_asks_for_enough() {
        let made = list(&[whole(1); 10], 4_000, 7);
        assert_eq!(made.pods.len(), 4);
    }
}
