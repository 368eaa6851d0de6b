//! Which GPUs of the nodes are free.

use super::Pool;

/// Nodes as bits, to find the first of a kind quickly.
#[derive(Debug, Clone, Default)]
struct Bits {
    words: Vec<u64>,
    count: u32,
}

impl Bits {
    fn new(nodes: u32) -> Bits {
        Bits { words: vec![0; nodes.div_ceil(64) as usize], count: 0 }
    }

    fn insert(&mut self, node: u32) {
        self.words[node as usize / 64] |= 1 << (node % 64);
        self.count += 1;
    }

    fn remove(&mut self, node: u32) {
        self.words[node as usize / 64] &= !(1 << (node % 64));
        self.count -= 1;
    }

    fn first(&self) -> Option<u32> {
        let place = self.words.iter().position(|word| *word != 0)?;
        Some(place as u32 * 64 + self.words[place].trailing_zeros())
    }
}

/// GPUs of a job by node. Most jobs are on one node, and need no list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    One(u32, u32),
    Many(Vec<(u32, u32)>),
}

impl Place {
    pub(super) fn parts(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let (one, many) = match self {
            Place::One(node, gpus) => (Some((*node, *gpus)), [].as_slice()),
            Place::Many(parts) => (None, parts.as_slice()),
        };
        one.into_iter().chain(many.iter().copied())
    }
}

/// Free GPUs by node, and nodes by free GPUs.
#[derive(Debug, Clone)]
pub(super) struct Floor {
    per_node: u32,
    free: Vec<u32>,
    by_free: Vec<Bits>,
    total: u64,
}

impl Floor {
    pub(super) fn new(pool: Pool) -> Floor {
        let mut by_free = vec![Bits::new(pool.nodes); pool.gpus_per_node as usize + 1];
        for node in 0..pool.nodes {
            by_free[pool.gpus_per_node as usize].insert(node);
        }
        let free = vec![pool.gpus_per_node; pool.nodes as usize];
        Floor { per_node: pool.gpus_per_node, free, by_free, total: pool.gpus() }
    }

    /// Free GPUs on all nodes.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    pub(super) fn is_full(&self) -> bool {
        self.total == 0
    }

    pub(super) fn free_on(&self, node: u32) -> u32 {
        self.free[node as usize]
    }

    /// Whole nodes, and GPUs on one more.
    pub(super) fn parts_of(&self, gpus: u32) -> (u32, u32) {
        (gpus / self.per_node, gpus % self.per_node)
    }

    /// The fewest free GPUs on a node that has at least `gpus`.
    fn tightest(&self, gpus: u32) -> Option<u32> {
        (gpus..=self.per_node).find(|free| self.by_free[*free as usize].count > 0)
    }

    pub(super) fn fits(&self, gpus: u32) -> bool {
        if u64::from(gpus) > self.total {
            return false;
        }
        let (whole, rest) = self.parts_of(gpus);
        let empty = self.by_free[self.per_node as usize].count;
        match (whole, rest) {
            (_, 0) => empty >= whole,
            (0, _) => self.tightest(rest).is_some(),
            _ => match self.tightest(rest) {
                Some(free) if free < self.per_node => empty >= whole,
                _ => empty > whole,
            },
        }
    }

    /// Best fit: the rest goes where it leaves least, and among like nodes to the first.
    pub(super) fn take(&mut self, gpus: u32) -> Option<Place> {
        if !self.fits(gpus) {
            return None;
        }
        let (whole, rest) = self.parts_of(gpus);
        if whole == 0 {
            return Some(Place::One(self.take_part(rest), rest));
        }
        let mut parts = Vec::with_capacity(whole as usize + 1);
        for _ in 0..whole {
            parts.push((self.take_part(self.per_node), self.per_node));
        }
        if rest > 0 {
            parts.push((self.take_part(rest), rest));
        }
        Some(Place::Many(parts))
    }

    fn take_part(&mut self, gpus: u32) -> u32 {
        let free = self.tightest(gpus).expect("it was seen to fit");
        let node = self.by_free[free as usize].first().expect("the count is not 0");
        self.set(node, free - gpus);
        node
    }

    pub(super) fn take_at(&mut self, place: &Place) {
        for (node, gpus) in place.parts() {
            self.set(node, self.free[node as usize] - gpus);
        }
    }

    pub(super) fn give(&mut self, place: &Place) {
        for (node, gpus) in place.parts() {
            self.set(node, self.free[node as usize] + gpus);
        }
    }

    fn set(&mut self, node: u32, free: u32) {
        let before = std::mem::replace(&mut self.free[node as usize], free);
        self.by_free[before as usize].remove(node);
        self.by_free[free as usize].insert(node);
        self.total = self.total + u64::from(free) - u64::from(before);
    }

    /// Best fit among what is free here and in `later` too: GPUs that can be had now and kept.
    pub(super) fn find_lasting(&self, gpus: u32, later: &Floor) -> Option<Place> {
        let (whole, rest) = self.parts_of(gpus);
        let lasting = |node: &u32| self.free_on(*node).min(later.free_on(*node));
        let mut parts = Vec::new();
        if whole > 0 {
            let nodes = (0..self.free.len() as u32).filter(|node| lasting(node) == self.per_node);
            parts.extend(nodes.take(whole as usize).map(|node| (node, self.per_node)));
            if parts.len() < whole as usize {
                return None;
            }
        }
        if rest > 0 {
            let node = (0..self.free.len() as u32)
                .filter(|node| lasting(node) >= rest)
                .filter(|node| !parts.iter().any(|(taken, _)| taken == node))
                .min_by_key(|node| self.free_on(*node))?;
            if whole == 0 {
                return Some(Place::One(node, rest));
            }
            parts.push((node, rest));
        }
        Some(Place::Many(parts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floor(nodes: u32) -> Floor {
        Floor::new(Pool { nodes, gpus_per_node: 8 })
    }

    #[test]
    fn a_job_goes_where_it_leaves_least() {
        let mut floor = floor(2);
        floor.take(6);
        assert_eq!(floor.take(1), Some(Place::One(0, 1)));
        assert_eq!(floor.take(2), Some(Place::One(1, 2)));
    }

    #[test]
    fn a_job_that_fits_one_node_is_not_spread_over_two() {
        let mut floor = floor(2);
        floor.take(5);
        floor.take(5);
        assert!(!floor.fits(4));
        assert!(floor.fits(3));
    }

    #[test]
    fn a_large_job_takes_whole_nodes_and_the_rest_where_it_fits_best() {
        let mut floor = floor(3);
        floor.take(4);
        let place = floor.take(12).expect("one whole node and four GPUs");
        assert_eq!(place, Place::Many(vec![(1, 8), (0, 4)]));
        floor.give(&place);
        assert!(floor.fits(16) && floor.fits(20) && !floor.fits(21));
    }

    #[test]
    fn the_rest_of_a_large_job_may_need_another_whole_node() {
        let mut floor = floor(2);
        assert!(floor.fits(12));
        floor.take(5);
        assert!(!floor.fits(12), "three GPUs are left beside the whole node");
    }

    #[test]
    fn lasting_room_is_what_is_free_now_and_later() {
        let (mut now, mut later) = (floor(2), floor(2));
        now.take(8);
        later.take_at(&Place::One(1, 6));
        assert_eq!(now.find_lasting(2, &later), Some(Place::One(1, 2)));
        assert_eq!(now.find_lasting(3, &later), None);
    }
}
