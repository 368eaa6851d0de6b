//! The GPU's own memory: whether it keeps what is written, and how fast it is copied.

use crate::cuda::{Doing, Error, Gpu};
use crate::measured::Memory;
use cudarc::driver::CudaSlice;

const SEED: u64 = 0x5eed_be27;
/// The least that tells anything.
const LEAST_BYTES: usize = 1 << 30;
const COPIES: usize = 5;

/// Takes most of what is free, as two halves. Both are written, with a pattern and with its
/// inverse, copied to the other and compared there.
pub fn measure(gpu: &Gpu, step: &dyn Fn(&str)) -> Result<Memory, Error> {
    let (free, _) = gpu.memory()?;
    let mut area = reserve(gpu, free, step)?;
    let half = area.len() / 2;
    let mut wrong = gpu.zeros::<u64>(1)?;
    let mut times = Vec::new();
    let (mut low, mut high) = area.split_at_mut(half);
    for flip in [0, u64::MAX] {
        step("writing a pattern into the memory");
        gpu.fill(&mut low, SEED, flip)?;
        gpu.wait()?;
        step("copying within the memory");
        for _ in 0..COPIES {
            let start = gpu.mark()?;
            gpu.stream.memcpy_dtod(&low, &mut high).doing("copying within the memory")?;
            let end = gpu.mark()?;
            times.push(start.elapsed_ms(&end).doing("copying within the memory")?);
        }
        step("comparing the memory");
        gpu.compare_fill(&high, SEED, flip, &mut wrong)?;
        gpu.wait()?;
        std::mem::swap(&mut low, &mut high);
    }
    let wrong = gpu.stream.clone_dtoh(&wrong).doing("reading the result")?;
    let bytes = half * 8;
    Ok(Memory {
        checked_bytes: 2 * bytes as u64,
        mb_per_s: mb_per_s(2 * bytes, median(times)),
        wrong_words: wrong.first().copied().unwrap_or(u64::MAX),
    })
}

fn reserve(gpu: &Gpu, free: usize, step: &dyn Fn(&str)) -> Result<CudaSlice<u64>, Error> {
    // The driver needs some for itself.
    let mut bytes = free / 10 * 9;
    loop {
        step(&format!(
            "reserving {} MiB on the GPU, of which {} are free",
            bytes >> 20,
            free >> 20
        ));
        match gpu.zeros(bytes / 16 * 2) {
            Err(_) if bytes / 2 >= LEAST_BYTES => bytes /= 2,
            reserved => return reserved,
        }
    }
}

/// Of bytes in milliseconds.
pub fn mb_per_s(bytes: usize, ms: f32) -> u64 {
    if ms > 0.0 { (bytes as f64 / f64::from(ms) / 1e3) as u64 } else { 0 }
}

pub fn median(mut times: Vec<f32>) -> f32 {
    times.sort_by(f32::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(0.0)
}
