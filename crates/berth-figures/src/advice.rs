//! Less than a whole GPU, where that would do.

use crate::summary::Summary;
use berth_model::{Bytes, Micros, Span};
use serde::{Deserialize, Serialize};

/// Advice needs a time over which it was so: a job that has just begun says nothing.
const LEAST: Span = Span::hours(1);
/// Room above what was used, in percent.
const ROOM: i64 = 110;
/// The parts of a GPU under MPS that are suggested, in percent.
const MPS: [u32; 4] = [10, 25, 50, 75];

/// What a job held of each GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    pub span: Span,
    /// Of one whole GPU for an hour.
    pub price: Micros,
    /// Of one whole GPU.
    pub memory: Bytes,
    /// MIG profiles of the model: name, share of the multiprocessors in thousandths, and memory.
    pub profiles: Vec<(String, i64, Bytes)>,
}

/// A part of a GPU that would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Memory and compute of its own.
    Mig { profile: String },
    /// So many percent of the threads, beside other jobs of the same team.
    Mps { percent: u32 },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Advice {
    pub part: Part,
    /// The share of the GPU's price that the part has, in thousandths.
    pub share: i64,
    /// What the part would have saved in the time that was looked at.
    pub saves_micros: i64,
    pub sm_active_p95: i64,
    pub gpu_memory_p95: i64,
}

/// The smallest MIG instance and the smallest part under MPS in which the job would have had room for
/// 95 % of the time, the cheaper first. Nothing for a job that uses its GPU, or of which too little is
/// known.
pub fn advise(summary: &Summary, held: &Held) -> Vec<Advice> {
    let (Some(busy), Some(memory)) = (summary.sm_active_p95, summary.gpu_memory_p95) else {
        return Vec::new();
    };
    if held.span < LEAST {
        return Vec::new();
    }
    let (busy_room, memory_room) = (busy * ROOM / 100, memory * ROOM / 100);
    let advice = |part, share: i64| {
        let paid = i128::from(held.price.0) * i128::from(held.span.0) / 3_600_000;
        let saved = paid * i128::from(1_000 - share) / 1_000;
        let saves_micros = i64::try_from(saved).unwrap_or(i64::MAX);
        Advice { part, share, saves_micros, sm_active_p95: busy, gpu_memory_p95: memory }
    };
    let fits = |share: i64, mib: i64| share < 1_000 && busy_room <= share && memory_room <= mib;
    let mut profiles = held.profiles.clone();
    profiles.sort_by_key(|(_, share, bytes)| (*share, *bytes));
    let mig = profiles.into_iter().find(|(_, share, bytes)| fits(*share, bytes.0 >> 20));
    let mig = mig.map(|(profile, share, _)| advice(Part::Mig { profile }, share));
    let mps = MPS.into_iter().find(|percent| {
        let percent = i64::from(*percent);
        fits(percent * 10, (held.memory.0 >> 20) * percent / 100)
    });
    let mps = mps.map(|percent| advice(Part::Mps { percent }, i64::from(percent) * 10));
    let mut all: Vec<Advice> = mig.into_iter().chain(mps).collect();
    all.sort_by_key(|advice| advice.share);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(hours: i64) -> Held {
        Held {
            span: Span::hours(hours),
            price: Micros::dollars(3),
            memory: Bytes::gib(140),
            profiles: [("3g.71gb", 428, 69), ("1g.18gb", 142, 16), ("1g.35gb", 142, 32)]
                .into_iter()
                .map(|(name, share, gib)| (name.to_owned(), share, Bytes::gib(gib)))
                .collect(),
        }
    }

    fn used(busy: i64, mib: i64) -> Summary {
        Summary { sm_active_p95: Some(busy), gpu_memory_p95: Some(mib), ..Summary::default() }
    }

    #[test]
    fn a_job_that_uses_an_eighth_of_its_gpu_is_told_which_part_would_do_and_what_it_saves() {
        let advice = advise(&used(120, 12_000), &held(168));
        let parts: Vec<&Part> = advice.iter().map(|one| &one.part).collect();
        let mig = Part::Mig { profile: "1g.18gb".to_owned() };
        assert_eq!(parts, [&mig, &Part::Mps { percent: 25 }]);
        assert_eq!(advice[0].saves_micros, 3_000_000 * 168 * 858 / 1_000);
    }

    #[test]
    fn memory_counts_as_much_as_compute() {
        let part = |mib| advise(&used(50, mib), &held(2)).into_iter().map(|one| one.part).next();
        assert_eq!(part(20_000), Some(Part::Mig { profile: "1g.35gb".to_owned() }));
        assert_eq!(part(60_000), Some(Part::Mig { profile: "3g.71gb".to_owned() }));
        assert_eq!(part(120_000), None);
    }

    #[test]
    fn nothing_is_said_of_a_busy_gpu_or_a_job_that_has_just_begun() {
        assert_eq!(advise(&used(950, 12_000), &held(168)), []);
        let young = Held { span: Span::mins(59), ..held(1) };
        assert_eq!(advise(&used(10, 100), &young), []);
        assert_eq!(advise(&Summary::default(), &held(168)), []);
    }
}
