//! Pseudo-random numbers from a seed.

/// The SplitMix64 generator (Steele, Lea and Flood, OOPSLA 2014).
///
/// The same seed gives the same numbers on every machine and in every version: forecasts, synthetic
/// traces and fault runs are repeated by their seed alone.
#[derive(Debug, Clone)]
pub struct SplitMix64 {
    state: u64,
}

/// The golden ratio as a 64-bit fraction: states a step apart share no pattern.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl SplitMix64 {
    pub fn new(seed: u64) -> SplitMix64 {
        SplitMix64 { state: seed }
    }

    /// The generator of one stream among many, so that what it draws does not depend on how many
    /// streams there are or in which order they draw.
    pub fn stream(seed: u64, stream: u64) -> SplitMix64 {
        SplitMix64::new(mix(seed) ^ mix(stream.wrapping_add(STEP)))
    }

    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// One of the items, of which there is at least one.
    pub fn choose<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }

    /// Puts items in an order that is as likely as any other (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at as u64 + 1) as usize);
        }
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_everywhere() {
        let mut random = SplitMix64::new(7);
        let drawn: Vec<u64> = (0..3).map(|_| random.next_u64()).collect();
        assert_eq!(drawn, [7191089600892374487, 309689372594955804, 16616101746815609346]);
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..100).collect();
        SplitMix64::new(1).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
