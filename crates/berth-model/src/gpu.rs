//! GPUs: what is asked of one, what is held of one, and what is known of each model.

use crate::mig::MigSlot;
use crate::{Bytes, Micros, Milli, Name};
use serde::{Deserialize, Serialize};

/// What one task asks of GPUs. Shares of the same kind may sit on one GPU together; whole GPUs,
/// MIG instances and each kind of share exclude one another on a GPU.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GpuAsk {
    #[default]
    None,
    /// That many whole GPUs of one node.
    Whole {
        count: u32,
    },
    /// `count` shares, each on a GPU of its own.
    Fraction {
        milli: Milli,
        count: u32,
    },
    /// A share as large as this much of the GPU's memory.
    Memory {
        bytes: Bytes,
        count: u32,
    },
    Mig {
        profile: Name,
        count: u32,
    },
    /// A percentage of the GPU's threads under MPS.
    Mps {
        percent: u32,
        count: u32,
    },
    /// One of `of` equal time slices.
    TimeSlice {
        of: u32,
        count: u32,
    },
}

impl GpuAsk {
    /// How many GPUs a task touches.
    pub const fn count(&self) -> u32 {
        match self {
            GpuAsk::None => 0,
            GpuAsk::Whole { count }
            | GpuAsk::Fraction { count, .. }
            | GpuAsk::Memory { count, .. }
            | GpuAsk::Mig { count, .. }
            | GpuAsk::Mps { count, .. }
            | GpuAsk::TimeSlice { count, .. } => *count,
        }
    }

    pub const fn is_whole(&self) -> bool {
        matches!(self, GpuAsk::Whole { .. })
    }
}

/// How much of one GPU is held, and in which way.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Share {
    Whole,
    Fraction(Milli),
    Mig(MigSlot),
    Mps(Milli),
    TimeSlice(Milli),
}

impl Share {
    /// How much of the GPU it is, in thousandths. Of a MIG instance the compute slices count, as
    /// many of seven as its profile begins with.
    pub fn milli(&self) -> i64 {
        match self {
            Share::Whole => 1_000,
            Share::Fraction(part) | Share::Mps(part) | Share::TimeSlice(part) => part.0,
            Share::Mig(slot) => {
                let count = slot.profile.split_once('g').and_then(|(n, _)| n.parse::<i64>().ok());
                count.unwrap_or(7).min(7) * 1_000 / 7
            }
        }
    }
}

/// A share of the GPU with that index on its node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Slice {
    pub gpu: u32,
    pub share: Share,
}

/// In which pieces a GPU is handed out where that is not ours to change, as with a device plugin:
/// these, and no others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Division {
    /// The whole, or fractions that nobody else knows of.
    Whole,
    /// The MIG instances that it has.
    Mig,
    /// So many shares, at the most; the same for time slices.
    Mps {
        shares: u32,
    },
    TimeSlice {
        shares: u32,
    },
}

impl Division {
    /// Whether a GPU that is handed out in the one way could be handed out in the other.
    pub const fn is_alike(self, other: Division) -> bool {
        matches!(
            (self, other),
            (Division::Whole, Division::Whole)
                | (Division::Mig, Division::Mig)
                | (Division::Mps { .. }, Division::Mps { .. })
                | (Division::TimeSlice { .. }, Division::TimeSlice { .. })
        )
    }
}

/// What is known of a GPU model when nobody says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuInfo {
    pub model: &'static str,
    pub memory: Bytes,
    /// Speed in thousandths of an H100.
    pub speed: i64,
    pub watts: i64,
    /// A market price for an hour of one GPU, used where no price is configured.
    pub price: Micros,
}

const fn info(model: &'static str, memory: i64, speed: i64, watts: i64, price: i64) -> GpuInfo {
    GpuInfo { model, memory: Bytes::gb(memory), speed, watts, price: Micros(price) }
}

const CATALOG: [GpuInfo; 16] = [
    info("B200-180GB", 180, 2_200, 1_000, 5_500_000),
    info("H200-141GB", 141, 1_150, 700, 3_500_000),
    info("GH200-96GB", 96, 1_050, 700, 2_900_000),
    info("H100-94GB", 94, 1_000, 700, 2_700_000),
    info("H100-80GB", 80, 1_000, 700, 2_500_000),
    info("A100-80GB", 80, 450, 400, 1_600_000),
    info("A100-40GB", 40, 420, 400, 1_300_000),
    info("L40S-48GB", 48, 380, 350, 1_000_000),
    info("L40-48GB", 48, 300, 300, 900_000),
    info("A40-48GB", 48, 200, 300, 500_000),
    info("RTX4090-24GB", 24, 300, 450, 450_000),
    info("A10-24GB", 24, 130, 150, 600_000),
    info("L4-24GB", 24, 120, 72, 500_000),
    info("V100-32GB", 32, 130, 300, 600_000),
    info("V100-16GB", 16, 125, 300, 500_000),
    info("T4-16GB", 16, 60, 70, 250_000),
];

/// The catalogue entry of a model; nothing is known of a model that is not in it.
pub fn catalog(model: &str) -> Option<&'static GpuInfo> {
    CATALOG.iter().find(|info| info.model == model)
}

/// Every model of the catalogue, the fastest first.
pub fn catalog_models() -> impl Iterator<Item = &'static GpuInfo> {
    CATALOG.iter()
}
