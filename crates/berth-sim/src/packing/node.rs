//! Nodes, pods, and whether one fits the other.

/// Thousandths of a whole GPU.
pub const WHOLE: i64 = 1_000;

/// A node with what is free on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Decides ties: nodes are kept in the order of their names.
    pub name: String,
    /// Thousandths that are free, GPU by GPU.
    pub free: Vec<i64>,
    /// Which of at most 64 types its GPUs are of.
    pub gpu_type: u8,
    pub cpu_milli: i64,
    pub memory_mib: i64,
    /// Pods on it by size class; clustering goes by these.
    pub by_size: [u32; Size::COUNT],
}

/// What a pod asks for: so many GPUs, and so many thousandths of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pod {
    pub gpus: u32,
    pub gpu_milli: i64,
    pub cpu_milli: i64,
    pub memory_mib: i64,
    /// A bit for each type of GPU that would do; none where any does.
    pub types: u64,
}

/// The classes in which what was dropped is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Size {
    NoGpu,
    Share,
    One,
    Two,
    Four,
    Eight,
    Other,
}

impl Size {
    pub const COUNT: usize = 7;
    pub const ALL: [Size; Size::COUNT] =
        [Size::NoGpu, Size::Share, Size::One, Size::Two, Size::Four, Size::Eight, Size::Other];

    pub const fn name(self) -> &'static str {
        match self {
            Size::NoGpu => "none",
            Size::Share => "share",
            Size::One => "1",
            Size::Two => "2",
            Size::Four => "4",
            Size::Eight => "8",
            Size::Other => "other",
        }
    }
}

impl Pod {
    /// All it asks for of GPUs, in thousandths.
    pub fn total_milli(&self) -> i64 {
        i64::from(self.gpus) * self.gpu_milli
    }

    pub fn is_share(&self) -> bool {
        self.gpus == 1 && self.gpu_milli < WHOLE
    }

    pub fn size(&self) -> Size {
        match self.gpus {
            0 => Size::NoGpu,
            1 if self.is_share() => Size::Share,
            1 => Size::One,
            2 => Size::Two,
            4 => Size::Four,
            8 => Size::Eight,
            _ => Size::Other,
        }
    }
}

impl Node {
    pub fn new(name: &str, gpus: usize, gpu_type: u8, cpu_milli: i64, memory_mib: i64) -> Node {
        Node {
            name: name.to_owned(),
            free: vec![WHOLE; gpus],
            gpu_type,
            cpu_milli,
            memory_mib,
            by_size: [0; Size::COUNT],
        }
    }

    pub fn free_milli(&self) -> i64 {
        self.free.iter().sum()
    }

    pub fn is_of(&self, types: u64) -> bool {
        types == 0 || types >> self.gpu_type & 1 == 1
    }

    /// GPUs with room for what the pod asks of each.
    pub fn roomy<'a>(&'a self, pod: &Pod) -> impl Iterator<Item = usize> + 'a {
        let asked = pod.gpu_milli;
        let free = self.free.iter().enumerate();
        free.filter(move |(_, milli)| **milli >= asked).map(|(at, _)| at)
    }

    pub fn fits(&self, pod: &Pod) -> bool {
        self.cpu_milli >= pod.cpu_milli
            && self.memory_mib >= pod.memory_mib
            && (pod.gpus == 0
                || self.is_of(pod.types) && self.roomy(pod).count() >= pod.gpus as usize)
    }

    /// The GPU with the least room that is enough, the first of those.
    pub fn tightest(&self, pod: &Pod) -> usize {
        let best = self.roomy(pod).min_by_key(|at| (self.free[*at], *at));
        best.expect("the pod fits")
    }

    /// Gives the pod its place; a share lies on the GPU `on`, whole GPUs on the first free ones.
    pub fn take(&mut self, pod: &Pod, on: usize) {
        assert!(self.fits(pod), "a pod is only put where it fits");
        self.cpu_milli -= pod.cpu_milli;
        self.memory_mib -= pod.memory_mib;
        self.by_size[pod.size() as usize] += 1;
        if pod.is_share() {
            self.free[on] -= pod.gpu_milli;
            assert!(self.free[on] >= 0, "the share fits the GPU it was given");
            return;
        }
        let taken: Vec<usize> = self.roomy(pod).take(pod.gpus as usize).collect();
        for at in taken {
            self.free[at] -= pod.gpu_milli;
        }
    }
}
