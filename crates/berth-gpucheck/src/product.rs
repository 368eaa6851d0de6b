//! A matrix product on the tensor cores: whether it is right, bit for bit, and how fast it is.
//!
//! All numbers are small integers, so that every sum on the way is exact in FP32 and there is one
//! right result, whatever the order of the additions. The first result is compared with what the
//! host works out: `C·r` and `A·(B·r)` for weights `r` that are not zero. One wrong element always
//! shows; several in one row go unseen once in about 59,000 times. Each further result is compared with the first on the GPU.

use crate::board::Board;
use crate::cuda::{Doing, Error, Gpu, Shape};
use crate::measured::Product;
use crate::memory::median;
use cudarc::driver::CudaSlice;
use std::time::{Duration, Instant};

const SHAPE: Shape = Shape { m: 8192, n: 8192, k: 4096 };
/// Numbers from -4 to 4: sums stay below 4 * 4 * 4096 = 2^16.
const RANGE: u64 = 9;
/// Long enough that a GPU which gets too hot slows down.
const LONG: Duration = Duration::from_secs(3);
/// Between two looks at the clock.
const BATCH: usize = 10;
const MOST_REPEATS: usize = 20_000;
const SLAB_ROWS: usize = 1024;

pub fn measure(gpu: &Gpu, board: Option<&Board>, step: &dyn Fn(&str)) -> Result<Product, Error> {
    step("making the matrices");
    let (a, b) = (numbers(SHAPE.m * SHAPE.k, 1), numbers(SHAPE.n * SHAPE.k, 2));
    let on_gpu = (send(gpu, &a)?, send(gpu, &b)?);
    let mut first = gpu.zeros::<u64>(SHAPE.m * SHAPE.n / 2)?;
    step("multiplying");
    gpu.product(&on_gpu.0, &on_gpu.1, &mut first, SHAPE)?;
    gpu.wait()?;
    step("working the result out on the host");
    let weights = weights(SHAPE.n);
    let right = expected(&a, &b, &weights, SHAPE);
    step("comparing the result");
    let mut wrong_words = wrong_rows(gpu, &first, &right, &weights)?;

    step("multiplying again and again");
    let mut again = gpu.zeros::<u64>(first.len())?;
    let mut wrong = gpu.zeros::<u64>(1)?;
    let (begun, mut times) = (Instant::now(), Vec::new());
    while begun.elapsed() < LONG && times.len() < MOST_REPEATS {
        let mut marks = Vec::new();
        for _ in 0..BATCH {
            let start = gpu.mark()?;
            gpu.product(&on_gpu.0, &on_gpu.1, &mut again, SHAPE)?;
            marks.push((start, gpu.mark()?));
            gpu.compare(&first, &again, &mut wrong)?;
        }
        gpu.wait()?;
        for (start, end) in marks {
            times.push(start.elapsed_ms(&end).doing("multiplying matrices")?);
        }
    }
    let state = board.map(Board::state).unwrap_or_default();
    step(&format!("multiplied {} times, at last at {state}", times.len()));
    let wrong = gpu.stream.clone_dtoh(&wrong).doing("reading the result")?;
    wrong_words += wrong.first().copied().unwrap_or(u64::MAX);
    let operations = 2.0 * SHAPE.m as f64 * SHAPE.n as f64 * SHAPE.k as f64;
    let repeats = times.len() as u64 + 1;
    let ms = f64::from(median(times));
    let gflops = if ms > 0.0 { (operations / ms / 1e6) as u64 } else { 0 };
    Ok(Product { gflops, repeats, wrong_words })
}

/// Numbers that look as if drawn by lot, the same ones every time.
fn numbers(count: usize, seed: u64) -> Vec<i8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ((state >> 33) % RANGE) as i8 - (RANGE / 2) as i8
    };
    (0..count).map(|_| next()).collect()
}

/// None of them is zero, or a wrong element would not show.
fn weights(count: usize) -> Vec<i64> {
    numbers(count * 5, 3)
        .chunks_exact(5)
        .map(|five| five.iter().fold(0, |sum, one| sum * 10 + i64::from(*one) + 5))
        .collect()
}

/// The upper half of the FP32 is the BF16, exact for small integers.
fn send(gpu: &Gpu, numbers: &[i8]) -> Result<CudaSlice<u8>, Error> {
    let bytes: Vec<u8> = numbers
        .iter()
        .flat_map(|number| {
            let [.., low, high] = f32::from(*number).to_le_bytes();
            [low, high]
        })
        .collect();
    gpu.stream.clone_htod(&bytes).doing("sending a matrix to the GPU")
}

/// `A·(B·r)`, where a row of `b` is a column of the matrix.
fn expected(a: &[i8], b: &[i8], weights: &[i64], shape: Shape) -> Vec<i64> {
    let mut columns = vec![0i64; shape.k];
    for (row, weight) in b.chunks_exact(shape.k).zip(weights) {
        for (sum, number) in columns.iter_mut().zip(row) {
            *sum += i64::from(*number) * weight;
        }
    }
    let dot = |row: &[i8]| row.iter().zip(&columns).map(|(a, c)| i64::from(*a) * c).sum();
    a.chunks_exact(shape.k).map(dot).collect()
}

/// How many rows of the result are not what they have to be.
fn wrong_rows(
    gpu: &Gpu,
    result: &CudaSlice<u64>,
    right: &[i64],
    weights: &[i64],
) -> Result<u64, Error> {
    let words = SHAPE.n / 2;
    let mut wrong = 0;
    for (slab, right) in right.chunks(SLAB_ROWS).enumerate() {
        let from = slab * SLAB_ROWS * words;
        let rows = result.slice(from..from + right.len() * words);
        let rows = gpu.stream.clone_dtoh(&rows).doing("reading the result")?;
        gpu.wait()?;
        let sums = rows.chunks_exact(words).map(|row| weighed(row, weights));
        wrong += sums.zip(right).filter(|(sum, right)| *sum != Some(**right)).count() as u64;
    }
    Ok(wrong)
}

/// Nothing where an element is no integer.
fn weighed(row: &[u64], weights: &[i64]) -> Option<i64> {
    let mut sum = 0;
    for (word, pair) in row.iter().zip(weights.chunks_exact(2)) {
        for (bits, weight) in [*word as u32, (*word >> 32) as u32].into_iter().zip(pair) {
            let element = f32::from_bits(bits);
            if element.fract().abs() > 0.0 || element.abs() > 16_777_216.0 || element.is_nan() {
                return None;
            }
            sum += element as i64 * weight;
        }
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Shape = Shape { m: 4, n: 6, k: 8 };

    /// What a GPU has to answer, two numbers in a word.
    fn result(a: &[i8], b: &[i8]) -> Vec<u64> {
        let element = |row: &[i8], column: &[i8]| -> f32 {
            row.iter().zip(column).map(|(a, b)| f32::from(*a) * f32::from(*b)).sum()
        };
        let all: Vec<f32> = a
            .chunks_exact(SMALL.k)
            .flat_map(|row| b.chunks_exact(SMALL.k).map(move |column| element(row, column)))
            .collect();
        let word = |pair: &[f32]| u64::from(pair[0].to_bits()) | u64::from(pair[1].to_bits()) << 32;
        all.chunks_exact(2).map(word).collect()
    }

    #[test]
    fn any_single_wrong_bit_of_a_result_is_found() {
        let (a, b) = (numbers(SMALL.m * SMALL.k, 1), numbers(SMALL.n * SMALL.k, 2));
        let weights = weights(SMALL.n);
        let right = expected(&a, &b, &weights, SMALL);
        let result = result(&a, &b);
        let rows = |result: &[u64]| -> Vec<Option<i64>> {
            result.chunks_exact(SMALL.n / 2).map(|row| weighed(row, &weights)).collect()
        };
        let sums = rows(&result);
        assert_eq!(sums, right.iter().map(|sum| Some(*sum)).collect::<Vec<_>>());
        for at in 0..result.len() {
            for bit in 0..64 {
                let mut wrong = result.clone();
                wrong[at] ^= 1 << bit;
                // Zero with a sign is zero.
                let half = (wrong[at] >> (bit / 32 * 32)) as u32;
                if half == 0x8000_0000 || (half == 0 && bit % 32 == 31) {
                    continue;
                }
                assert_ne!(rows(&wrong), sums, "bit {bit} of word {at}");
            }
        }
    }

    #[test]
    fn the_numbers_are_small_and_differ_and_no_weight_is_zero() {
        let numbers = numbers(10_000, 1);
        for number in -4..=4 {
            assert!(numbers.iter().filter(|found| **found == number).count() > 900, "{number}");
        }
        assert!(weights(10_000).iter().all(|weight| (11_111..=99_999).contains(weight)));
    }
}
