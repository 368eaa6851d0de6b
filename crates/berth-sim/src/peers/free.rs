//! Which GPUs of the nodes are free.

use super::Ask;
use crate::fleet::Fleet;
use crate::outcome::Place;

/// Nodes as bits, to find the first of a kind quickly.
#[derive(Debug, Clone, Default)]
struct Bits {
    words: Vec<u64>,
    count: u32,
}

impl Bits {
    fn new(nodes: usize) -> Bits {
        Bits { words: vec![0; nodes.div_ceil(64)], count: 0 }
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

/// Free GPUs by node, and nodes by model and free GPUs.
#[derive(Debug, Clone)]
pub(crate) struct FreeGpus {
    /// GPUs of the largest node of each model.
    largest: Vec<u32>,
    model: Vec<u32>,
    free: Vec<u32>,
    by_free: Vec<Vec<Bits>>,
    /// Free GPUs of each model.
    totals: Vec<u64>,
    /// For each number of free GPUs, how many jobs of the mix could not use them; without one, the
    /// best fit is chosen.
    unfit: Option<Box<[i64]>>,
}

impl FreeGpus {
    pub(crate) fn new(fleet: &Fleet) -> FreeGpus {
        let models = fleet.models.len();
        let largest: Vec<u32> = (0..models).map(|model| fleet.largest(model)).collect();
        let empty = |most: &u32| vec![Bits::new(fleet.nodes.len()); *most as usize + 1];
        let mut free = FreeGpus {
            by_free: largest.iter().map(empty).collect(),
            largest,
            model: fleet.nodes.iter().map(|node| node.model).collect(),
            free: fleet.nodes.iter().map(|node| node.gpus).collect(),
            totals: vec![0; models],
            unfit: None,
        };
        for (number, node) in fleet.nodes.iter().enumerate() {
            free.by_free[node.model as usize][node.gpus as usize].insert(number as u32);
            free.totals[node.model as usize] += u64::from(node.gpus);
        }
        free
    }

    /// Places are chosen so that least becomes unusable for jobs like these: fragmentation
    /// gradient descent (Weng and others, ATC'23) with whole GPUs.
    pub(crate) fn with_mix(mut self, asks: impl Iterator<Item = Ask>) -> FreeGpus {
        let most = self.largest.iter().copied().max().unwrap_or(0);
        let mut unfit = vec![0_i64; most as usize + 1];
        for ask in asks {
            let part = ask.gpus.min(most);
            unfit[..part as usize].iter_mut().for_each(|jobs| *jobs += 1);
        }
        self.unfit = Some(unfit.into());
        self
    }

    fn models(&self, ask: Ask) -> impl Iterator<Item = usize> + Clone + use<> {
        (0..self.largest.len()).filter(move |model| ask.models >> model & 1 == 1)
    }

    /// Free GPUs on all nodes that the ask allows.
    pub(crate) fn total(&self, ask: Ask) -> u64 {
        self.models(ask).map(|model| self.totals[model]).sum()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.totals.iter().all(|total| *total == 0)
    }

    pub(crate) fn free_on(&self, node: u32) -> u32 {
        self.free[node as usize]
    }

    pub(crate) fn free_of(&self, model: usize) -> u64 {
        self.totals[model]
    }

    /// Whole nodes, GPUs on one more, and how many a whole node has.
    pub(crate) fn parts_of(&self, ask: Ask) -> (u32, u32, u32) {
        let most = self.models(ask).map(|model| self.largest[model]).max().unwrap_or(0);
        match most {
            0 => (u32::MAX, 0, 0),
            most => (ask.gpus / most, ask.gpus % most, most),
        }
    }

    fn with_free(&self, model: usize, free: u32) -> Option<&Bits> {
        self.by_free[model].get(free as usize).filter(|bits| bits.count > 0)
    }

    fn empty(&self, ask: Ask, most: u32) -> u32 {
        self.models(ask)
            .filter_map(|model| self.with_free(model, most))
            .map(|bits| bits.count)
            .sum()
    }

    /// The fewest free GPUs on a node that has at least `gpus`, and a model that has such a node.
    fn tightest(&self, ask: Ask, gpus: u32, most: u32) -> Option<(u32, usize)> {
        (gpus..=most).find_map(|free| {
            let model = self.models(ask).find(|model| self.with_free(*model, free).is_some())?;
            Some((free, model))
        })
    }

    /// The level of free GPUs to take from, by the rule of this floor.
    fn chosen(&self, ask: Ask, gpus: u32, most: u32) -> Option<(u32, usize)> {
        let Some(unfit) = &self.unfit else { return self.tightest(ask, gpus, most) };
        let worth = |free: u32| i64::from(free) * unfit[free as usize];
        let levels = (gpus..=most).filter_map(|free| {
            let model = self.models(ask).find(|model| self.with_free(*model, free).is_some())?;
            Some((worth(free - gpus) - worth(free), free, model))
        });
        levels.min().map(|(_, free, model)| (free, model))
    }

    pub(crate) fn fits(&self, ask: Ask) -> bool {
        if u64::from(ask.gpus) > self.total(ask) {
            return false;
        }
        let (whole, rest, most) = self.parts_of(ask);
        let empty = self.empty(ask, most);
        match (whole, rest) {
            (_, 0) => empty >= whole,
            (0, _) => self.tightest(ask, rest, most).is_some(),
            _ => match self.tightest(ask, rest, most) {
                Some((free, _)) if free < most => empty >= whole,
                _ => empty > whole,
            },
        }
    }

    /// Best fit, or by the mix: the rest goes where it leaves least, and among like nodes to the
    /// first.
    pub(crate) fn take(&mut self, ask: Ask) -> Option<Place> {
        if !self.fits(ask) {
            return None;
        }
        let (whole, rest, most) = self.parts_of(ask);
        if whole == 0 {
            return Some(Place::One(self.take_part(ask, rest, most), rest));
        }
        let mut parts = Vec::with_capacity(whole as usize + 1);
        for _ in 0..whole {
            parts.push((self.take_part(ask, most, most), most));
        }
        if rest > 0 {
            parts.push((self.take_part(ask, rest, most), rest));
        }
        Some(Place::Many(parts.into()))
    }

    fn take_part(&mut self, ask: Ask, gpus: u32, most: u32) -> u32 {
        let (free, model) = self.chosen(ask, gpus, most).expect("it was seen to fit");
        let node = self.by_free[model][free as usize].first().expect("the count is not 0");
        self.set(node, free - gpus);
        node
    }

    /// So many GPUs of whichever nodes have some, for those who are not placed on nodes.
    pub(crate) fn scatter(&mut self, ask: Ask) -> Place {
        let mut parts = Vec::new();
        let mut left = ask.gpus;
        for node in 0..self.free.len() as u32 {
            let allowed = ask.models >> self.model[node as usize] & 1 == 1;
            let some = self.free_on(node).min(left);
            if allowed && some > 0 {
                self.set(node, self.free_on(node) - some);
                parts.push((node, some));
                left -= some;
            }
        }
        Place::Many(parts.into())
    }

    pub(crate) fn take_at(&mut self, place: &Place) {
        for (node, gpus) in place.parts() {
            self.set(node, self.free[node as usize] - gpus);
        }
    }

    pub(crate) fn give(&mut self, place: &Place) {
        for (node, gpus) in place.parts() {
            self.set(node, self.free[node as usize] + gpus);
        }
    }

    fn set(&mut self, node: u32, free: u32) {
        let before = std::mem::replace(&mut self.free[node as usize], free);
        let model = self.model[node as usize] as usize;
        self.by_free[model][before as usize].remove(node);
        self.by_free[model][free as usize].insert(node);
        self.totals[model] = self.totals[model] + u64::from(free) - u64::from(before);
    }

    /// How many nodes have so many GPUs free, by number of free GPUs.
    pub(crate) fn levels(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        self.by_free
            .iter()
            .flat_map(|levels| levels.iter().enumerate().map(|(free, bits)| (free, bits.count)))
    }

    /// Best fit among what is free here and in `later` too: GPUs that can be had now and kept.
    pub(crate) fn find_lasting(&self, ask: Ask, later: &FreeGpus) -> Option<Place> {
        let (whole, rest, most) = self.parts_of(ask);
        let allowed = |node: &u32| ask.models >> self.model[*node as usize] & 1 == 1;
        let nodes = || (0..self.free.len() as u32).filter(allowed);
        let lasting = |node: &u32| self.free_on(*node).min(later.free_on(*node));
        let mut parts = Vec::new();
        if whole > 0 {
            let whole_ones = nodes().filter(|node| lasting(node) == most);
            parts.extend(whole_ones.take(whole as usize).map(|node| (node, most)));
            if parts.len() < whole as usize {
                return None;
            }
        }
        if rest > 0 {
            let node = nodes()
                .filter(|node| lasting(node) >= rest)
                .filter(|node| !parts.iter().any(|(taken, _)| taken == node))
                .min_by_key(|node| self.free_on(*node))?;
            if whole == 0 {
                return Some(Place::One(node, rest));
            }
            parts.push((node, rest));
        }
        Some(Place::Many(parts.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free(nodes: u32) -> FreeGpus {
        FreeGpus::new(&Fleet::like(nodes, 8, "A100"))
    }

    fn ask(gpus: u32) -> Ask {
        Ask::any(gpus)
    }

    #[test]
    fn a_job_goes_where_it_leaves_least() {
        let mut free = free(2);
        free.take(ask(6));
        assert_eq!(free.take(ask(1)), Some(Place::One(0, 1)));
        assert_eq!(free.take(ask(2)), Some(Place::One(1, 2)));
    }

    #[test]
    fn a_job_that_fits_one_node_is_not_spread_over_two() {
        let mut free = free(2);
        free.take(ask(5));
        free.take(ask(5));
        assert!(!free.fits(ask(4)));
        assert!(free.fits(ask(3)));
    }

    #[test]
    fn a_large_job_takes_whole_nodes_and_the_rest_where_it_fits_best() {
        let mut free = free(3);
        free.take(ask(4));
        let place = free.take(ask(12)).expect("one whole node and four GPUs");
        assert_eq!(place, Place::Many([(1, 8), (0, 4)].into()));
        free.give(&place);
        assert!(free.fits(ask(16)) && free.fits(ask(20)) && !free.fits(ask(21)));
    }

    #[test]
    fn the_rest_of_a_large_job_may_need_another_whole_node() {
        let mut free = free(2);
        assert!(free.fits(ask(12)));
        free.take(ask(5));
        assert!(!free.fits(ask(12)), "three GPUs are left beside the whole node");
    }

    #[test]
    fn lasting_room_is_what_is_free_now_and_later() {
        let (mut now, mut later) = (free(2), free(2));
        now.take(ask(8));
        later.take_at(&Place::One(1, 6));
        assert_eq!(now.find_lasting(ask(2), &later), Some(Place::One(1, 2)));
        assert_eq!(now.find_lasting(ask(3), &later), None);
    }

    #[test]
    fn a_job_that_names_models_runs_on_those_only() {
        let fleet = Fleet::new([(2, "T4"), (8, "A100"), (4, "T4")]).unwrap();
        let mut free = FreeGpus::new(&fleet);
        let t4 = |gpus| Ask { gpus, models: 1 };
        assert_eq!(free.take(t4(3)), Some(Place::One(2, 3)));
        assert!(!free.fits(t4(4)), "the A100 would have room");
        assert!(free.fits(ask(8)) && !free.fits(Ask { gpus: 1, models: 0 }));
    }

    #[test]
    fn by_the_mix_a_job_goes_where_it_makes_least_unusable() {
        let fleet = Fleet::like(2, 8, "A100");
        let best = |free: &mut FreeGpus| {
            free.take_at(&Place::One(0, 2));
            free.take(ask(1))
        };
        // Half of the jobs need six GPUs: taking one of the six that are left wastes five for them.
        let mix = || [1, 6].into_iter().map(Ask::any);
        assert_eq!(best(&mut FreeGpus::new(&fleet)), Some(Place::One(0, 1)));
        assert_eq!(best(&mut FreeGpus::new(&fleet).with_mix(mix())), Some(Place::One(1, 1)));
    }
}
