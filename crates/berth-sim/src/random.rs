//! Random numbers from a seed: the same numbers on every machine.
//!
//! The logarithms of the standard library are the platform's and may differ in the last digit, so
//! a synthetic world would depend on where it was made. Here only additions, multiplications,
//! divisions and square roots are used, which IEEE 754 defines to the last bit.

use berth_model::SplitMix64;

/// A stream of pseudo-random numbers, with what floats need besides [`SplitMix64`].
#[derive(Debug, Clone)]
pub struct Rng {
    whole: SplitMix64,
    /// The polar method makes two normal numbers at a time.
    spare: Option<f64>,
}

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng { whole: SplitMix64::new(seed), spare: None }
    }

    /// A stream of its own for one thing among many; see [`SplitMix64::stream`].
    pub fn stream(seed: u64, stream: u64) -> Rng {
        Rng { whole: SplitMix64::stream(seed, stream), spare: None }
    }

    pub fn next_u64(&mut self) -> u64 {
        self.whole.next_u64()
    }

    /// A whole number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.whole.below(bound)
    }

    /// One of the items, of which there is at least one.
    pub fn one_of<T: Copy>(&mut self, items: &[T]) -> T {
        *self.whole.choose(items)
    }

    /// Puts items in an order that is as likely as any other.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        self.whole.shuffle(items);
    }

    /// At least 0, below 1.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The place in `weights` that a draw in proportion to them hits.
    pub fn pick(&mut self, weights: &[u64]) -> usize {
        let mut left = self.below(weights.iter().sum());
        for (place, weight) in weights.iter().enumerate() {
            if left < *weight {
                return place;
            }
            left -= weight;
        }
        unreachable!("a draw is below the sum of the weights")
    }

    /// Normal with mean 0 and deviation 1, by Marsaglia's polar method.
    pub fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let (u, v) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let square = u * u + v * v;
            if square > 0.0 && square < 1.0 {
                let scale = (-2.0 * ln(square) / square).sqrt();
                self.spare = Some(v * scale);
                return u * scale;
            }
        }
    }
}

/// 1/1, 1/3, 1/5 and so on.
const ODD: [f64; 11] = {
    let mut parts = [0.0; 11];
    let mut n = 0;
    while n < 11 {
        parts[n] = 1.0 / (2 * n + 1) as f64;
        n += 1;
    }
    parts
};

/// 1/0!, 1/1!, 1/2! and so on.
const FACTORIAL: [f64; 17] = {
    let mut parts = [1.0; 17];
    let mut n = 1;
    while n < 17 {
        parts[n] = parts[n - 1] / n as f64;
        n += 1;
    }
    parts
};

/// The natural logarithm of a positive, normal number.
pub fn ln(x: f64) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1_023;
    let mut mantissa = f64::from_bits((bits & MANTISSA) | (1_023 << 52));
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    // ln m = 2 artanh((m − 1) / (m + 1)), and the argument is below 0.172.
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let square = t * t;
    let sum = ODD.iter().rev().fold(0.0, |sum, part| sum * square + part);
    2.0 * t * sum + exponent as f64 * std::f64::consts::LN_2
}

/// e to the power of `x`, for |x| below 700.
pub fn exp(x: f64) -> f64 {
    let x = x.clamp(-700.0, 700.0);
    let twos = (x / std::f64::consts::LN_2).round();
    let rest = x - twos * std::f64::consts::LN_2;
    let sum = FACTORIAL.iter().rev().fold(0.0, |sum, part| sum * rest + part);
    sum * f64::from_bits(((twos as i64 + 1_023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_everywhere() {
        let mut rng = Rng::new(7);
        let whole: Vec<u64> = (0..3).map(|_| rng.next_u64()).collect();
        assert_eq!(whole, [7191089600892374487, 309689372594955804, 16616101746815609346]);
        let normal: Vec<u64> = (0..2).map(|_| Rng::stream(7, 3).normal().to_bits()).collect();
        assert_eq!(normal[0], normal[1]);
    }

    #[test]
    fn logarithm_and_power_agree_with_the_library_to_twelve_digits() {
        for x in [1e-9, 0.3, 0.5, 1.0, 1.4, 2.0, 10.0, 12_345.678, 1e17] {
            assert!((ln(x) - x.ln()).abs() <= 1e-12 * x.ln().abs().max(1.0), "ln {x}");
        }
        for x in [-30.0, -1.0, -0.1, 0.0, 0.3, 1.0, 7.7, 42.0] {
            assert!((exp(x) - x.exp()).abs() <= 1e-12 * x.exp(), "exp {x}");
        }
    }

    #[test]
    fn normal_numbers_have_mean_nought_and_deviation_one() {
        let mut rng = Rng::new(1);
        let drawn: Vec<f64> = (0..100_000).map(|_| rng.normal()).collect();
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let square = drawn.iter().map(|z| z * z).sum::<f64>() / drawn.len() as f64;
        assert!(mean.abs() < 0.01, "{mean}");
        assert!((square - 1.0).abs() < 0.02, "{square}");
    }

    #[test]
    fn a_pick_follows_the_weights_and_never_takes_a_weight_of_nought() {
        let mut rng = Rng::new(1);
        let mut hits = [0u32; 3];
        for _ in 0..10_000 {
            hits[rng.pick(&[1, 0, 3])] += 1;
        }
        assert_eq!(hits[1], 0);
        assert!((7_200..7_800).contains(&hits[2]), "{hits:?}");
    }
}
