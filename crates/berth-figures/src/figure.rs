//! What is measured.

use serde::{Deserialize, Serialize};

/// One figure. The numbers are kept in databases: none is ever given to another figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Thousandths of the time in which any kernel ran. It says that a GPU lives, not how much of it
    /// is used.
    Utilization,
    /// Thousandths of time and of multiprocessors with at least one warp.
    SmActive,
    /// Thousandths of time in which tensor cores were busy.
    TensorActive,
    /// Thousandths of time in which the memory interface was busy.
    DramActive,
    /// Memory in use, in MiB.
    GpuMemory,
    /// Milliwatts.
    Power,
    /// Millijoules since the driver was loaded.
    Energy,
    /// Of the multiprocessors, in MHz.
    SmClock,
    /// Why the clock is lower than it could be, as bits of NVML.
    ClockReasons,
    /// Degrees Celsius.
    Temperature,
    /// The largest clock that the multiprocessors can have, in MHz.
    SmClockMax,
    /// Thousandths of a core.
    Cpu,
    /// Memory of the processes, in MiB.
    Memory,
    /// KiB a second from disks.
    Read,
    /// KiB a second to disks.
    Written,
    Processes,
    /// Which GPUs of its node a task has, a bit for each, where Berth did not choose them.
    Gpus,
}

/// How values of a figure are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A level at a moment: the mean and the largest count.
    Gauge,
    /// A sum that only grows, or begins anew: the last one counts.
    Counter,
    /// Flags: any that was set counts.
    Bits,
}

const ALL: [(Figure, u8, &str); 17] = [
    (Figure::Utilization, 1, "utilization"),
    (Figure::SmActive, 2, "sm_active"),
    (Figure::TensorActive, 3, "tensor_active"),
    (Figure::DramActive, 4, "dram_active"),
    (Figure::GpuMemory, 5, "gpu_memory"),
    (Figure::Power, 6, "power"),
    (Figure::Energy, 7, "energy"),
    (Figure::SmClock, 8, "sm_clock"),
    (Figure::ClockReasons, 9, "clock_reasons"),
    (Figure::Temperature, 10, "temperature"),
    (Figure::SmClockMax, 11, "sm_clock_max"),
    (Figure::Cpu, 32, "cpu"),
    (Figure::Memory, 33, "memory"),
    (Figure::Read, 34, "read"),
    (Figure::Written, 35, "written"),
    (Figure::Processes, 36, "processes"),
    (Figure::Gpus, 37, "gpus"),
];

impl Figure {
    pub fn all() -> impl Iterator<Item = Figure> {
        ALL.iter().map(|(figure, ..)| *figure)
    }

    pub fn number(self) -> u8 {
        self.row().1
    }

    pub fn of_number(number: u8) -> Option<Figure> {
        ALL.iter().find(|(_, n, _)| *n == number).map(|(figure, ..)| *figure)
    }

    /// As it is called in answers and on the command line.
    pub fn name(self) -> &'static str {
        self.row().2
    }

    pub fn of_name(name: &str) -> Option<Figure> {
        ALL.iter().find(|(_, _, n)| *n == name).map(|(figure, ..)| *figure)
    }

    fn row(self) -> &'static (Figure, u8, &'static str) {
        ALL.iter().find(|(figure, ..)| *figure == self).expect("all are in the list")
    }

    pub const fn kind(self) -> Kind {
        match self {
            Figure::Energy => Kind::Counter,
            Figure::ClockReasons | Figure::Gpus => Kind::Bits,
            _ => Kind::Gauge,
        }
    }

    /// What its numbers count.
    pub const fn unit(self) -> &'static str {
        match self {
            Figure::Utilization | Figure::SmActive | Figure::TensorActive | Figure::DramActive => {
                "thousandths"
            }
            Figure::GpuMemory | Figure::Memory => "MiB",
            Figure::Power => "mW",
            Figure::Energy => "mJ",
            Figure::SmClock | Figure::SmClockMax => "MHz",
            Figure::ClockReasons | Figure::Gpus => "bits",
            Figure::Temperature => "celsius",
            Figure::Cpu => "millicores",
            Figure::Read | Figure::Written => "KiB/s",
            Figure::Processes => "processes",
        }
    }

    /// Whether it is a figure of a GPU; the others are of tasks.
    pub fn is_of_gpu(self) -> bool {
        self.number() < 32
    }
}

/// Which value of a figure a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aspect {
    /// The value itself, or the mean over a span.
    Value,
    Max,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Column {
    pub figure: Figure,
    pub aspect: Aspect,
}

impl Column {
    pub const fn value(figure: Figure) -> Column {
        Column { figure, aspect: Aspect::Value }
    }

    pub const fn max(figure: Figure) -> Column {
        Column { figure, aspect: Aspect::Max }
    }

    pub(crate) fn code(self) -> u64 {
        u64::from(self.figure.number()) << 1 | u64::from(self.aspect == Aspect::Max)
    }

    pub(crate) fn of_code(code: u64) -> Option<Column> {
        let figure = Figure::of_number(u8::try_from(code >> 1).ok()?)?;
        Some(if code & 1 == 1 { Column::max(figure) } else { Column::value(figure) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_found_by_its_number_and_by_its_name() {
        for figure in Figure::all() {
            assert_eq!(Figure::of_number(figure.number()), Some(figure));
            assert_eq!(Figure::of_name(figure.name()), Some(figure));
            for column in [Column::value(figure), Column::max(figure)] {
                assert_eq!(Column::of_code(column.code()), Some(column));
            }
        }
        assert_eq!((Figure::of_number(0), Figure::of_name("speed")), (None, None));
    }
}
