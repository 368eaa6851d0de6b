//! What declared GPUs tell after the history, for `berth up --gpu-recording`: all kinds of work, and
//! some that are held and idle.

use anyhow::{Context, Result};
use berth_sim::random::Rng;
use serde_json::{Value, json};
use std::path::Path;

/// One moment of so many GPUs.
pub fn moment(gpus: u32, seed: u64, step: u64) -> Value {
    let one = |gpu: u32| {
        // What a GPU is used for stays; how much of it is used does not.
        let kind = Rng::stream(seed, u64::from(gpu / 4)).below(100);
        let mut rng = Rng::stream(seed ^ step << 20, u64::from(gpu) + 1);
        let about = |middle: u64, spread: u64, rng: &mut Rng| {
            (middle + rng.below(2 * spread + 1)).saturating_sub(spread).min(1_000)
        };
        let (sm, memory) = match kind {
            0..55 => (about(910, 60, &mut rng), 64_000 + rng.below(9_000)),
            55..72 => (about(430, 180, &mut rng), 41_000 + rng.below(9_000)),
            72..86 => (about(180, 170, &mut rng), 22_000 + rng.below(20_000)),
            _ => (rng.below(4), 5_200 + rng.below(300)),
        };
        let watts = 72 + 600 * sm / 1_000 + rng.below(12);
        json!({
            "utilization_percent": (sm / 10).min(100),
            "sm_active": sm,
            "tensor_active": sm * 58 / 100,
            "dram_active": sm * 47 / 100,
            "memory_used_mib": memory,
            "power_watts": watts,
            "sm_clock_mhz": 1_980 - sm / 8,
            "sm_clock_max_mhz": 1_980,
            "temperature_celsius": 28 + watts / 14,
        })
    };
    Value::Array((0..gpus).map(one).collect())
}

/// Writes it in one piece: the server may read at any time.
pub fn write(path: &Path, gpus: u32, seed: u64, step: u64) -> Result<()> {
    let text = serde_json::to_string_pretty(&moment(gpus, seed, step))? + "\n";
    berth_fs::write_output(path, text.as_bytes())
        .with_context(|| format!("writing {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_gpus_work_hard_and_some_do_nothing() {
        let Value::Array(all) = moment(64, 1, 0) else { panic!("a list") };
        assert_eq!(all.len(), 64);
        let busy = |gpu: &&Value| gpu["sm_active"].as_u64() > Some(800);
        let idle = |gpu: &&Value| gpu["sm_active"].as_u64() < Some(10);
        assert!(all.iter().filter(busy).count() > 16);
        assert!(all.iter().filter(idle).count() > 3);
        assert_ne!(moment(64, 1, 0), moment(64, 1, 1));
    }
}
