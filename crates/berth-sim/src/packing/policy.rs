//! The policies that are compared.

/// How a node is chosen for a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Policy {
    /// Any node where it fits.
    Random,
    /// The node whose free CPU and GPUs point the least in the direction of the request.
    DotProd,
    /// With pods of the same size, and there the fullest node.
    GpuClustering,
    /// GPUs in use first, then used nodes, then idle ones.
    GpuPacking,
    /// The node with the least left over.
    BestFit,
    /// Fragmentation gradient descent, with the published score of 0 to 100.
    Fgd,
    /// The same without rounding.
    FgdExact,
}

impl Policy {
    pub const ALL: [Policy; 7] = [
        Policy::Random,
        Policy::DotProd,
        Policy::GpuClustering,
        Policy::GpuPacking,
        Policy::BestFit,
        Policy::Fgd,
        Policy::FgdExact,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Policy::Random => "Random",
            Policy::DotProd => "DotProd",
            Policy::GpuClustering => "GpuClustering",
            Policy::GpuPacking => "GpuPacking",
            Policy::BestFit => "BestFit",
            Policy::Fgd => "FGD",
            Policy::FgdExact => "FGD exact",
        }
    }
}

/// Which of the nodes with the best score is taken. Published scores are small whole numbers, so
/// ties are common and the rule for them decides much of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ties {
    ByName,
    Random,
}
