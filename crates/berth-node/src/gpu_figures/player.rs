//! GPUs that answer what was recorded, for tests without any.

use super::{Activity, GpuFigures, GpuQuery, MigPart};
use berth_model::Bytes;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The answers of one GPU.
#[derive(Debug, Clone, Default)]
pub struct RecordedGpu {
    pub figures: GpuFigures,
    /// Of each look the activity since the one before; nothing where the device failed. The last one
    /// goes on.
    pub activity: Vec<Option<Activity>>,
}

#[derive(Debug, Default)]
pub struct Player {
    gpus: Vec<RecordedGpu>,
    /// How many GPUs are left, after how many looks.
    loses: Option<(usize, usize)>,
    looks: AtomicUsize,
}

impl Player {
    pub fn new(gpus: Vec<RecordedGpu>) -> Player {
        Player { gpus, ..Player::default() }
    }

    /// Only so many GPUs are left after so many looks.
    pub fn losing(self, left: usize, after: usize) -> Player {
        Player { loses: Some((left, after)), ..self }
    }

    fn look(&self) -> usize {
        self.looks.load(Ordering::Relaxed).saturating_sub(1)
    }
}

impl GpuQuery for Player {
    type Sample = Option<Activity>;

    fn count(&self) -> u32 {
        let look = self.looks.fetch_add(1, Ordering::Relaxed);
        let left = self.loses.filter(|(_, after)| look >= *after).map(|(left, _)| left);
        left.unwrap_or(self.gpus.len()) as u32
    }

    fn figures(&self, gpu: u32) -> GpuFigures {
        self.gpus[gpu as usize].figures.clone()
    }

    fn sample(&self, gpu: u32) -> Option<Option<Activity>> {
        let all = &self.gpus[gpu as usize].activity;
        let now = all.get(self.look()).or(all.last())?;
        now.map(Some)
    }

    fn part_sample(&self, part: &MigPart) -> Option<Option<Activity>> {
        self.sample(part.gpu)
    }

    fn part_memory(&self, part: &MigPart) -> Option<Bytes> {
        self.gpus[part.gpu as usize].figures.memory_used
    }

    fn activity(&self, _: &Option<Activity>, after: &Option<Activity>) -> Activity {
        after.unwrap_or_default()
    }
}
