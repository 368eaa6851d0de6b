//! What a helper measures, and what a played one tells.

use serde::{Deserialize, Serialize};

/// What was found out about one GPU. What could not be measured is missing, and `remarks` say why.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Measured {
    /// What the GPU calls itself, such as `NVIDIA H200`.
    pub name: Option<String>,
    pub memory: Option<Memory>,
    pub link: Option<Link>,
    pub product: Option<Product>,
    /// The most power it may take and its usual limit, where the first is lower.
    pub power_cap_watts: Option<(u32, u32)>,
    pub remarks: Vec<String>,
    /// What ended the check early.
    pub error: Option<String>,
}

/// The memory of the GPU: written with a pattern, copied and compared, then with the inverse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    pub checked_bytes: u64,
    /// Of a copy within the GPU; both what is read and what is written counts.
    pub mb_per_s: u64,
    pub wrong_words: u64,
}

/// The way between the memory of the machine and that of the GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    pub to_gpu_mb_per_s: u64,
    pub from_gpu_mb_per_s: u64,
    /// The best PCIe generation and width that GPU and machine have together.
    pub best: Option<(u32, u32)>,
    /// And what was in use during the copies.
    pub used: Option<(u32, u32)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Product {
    /// Billions of operations a second, two for each product of two numbers.
    pub gflops: u64,
    pub repeats: u64,
    /// Results that are not what they have to be.
    pub wrong_words: u64,
}

/// What a recording says of a check of a declared GPU.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Played {
    pub memory_gb_per_s: Option<u64>,
    pub to_gpu_gb_per_s: Option<u64>,
    pub from_gpu_gb_per_s: Option<u64>,
    pub tflops: Option<u64>,
    /// Whether results are right; they are where nothing is said.
    pub correct: Option<bool>,
    /// The helper never ends by itself.
    pub hangs: bool,
    /// How long the check may take, where it is not to be as long as for a real GPU.
    pub limit_ms: Option<u64>,
    /// The helper ends without an answer.
    pub crashes: bool,
}

impl Played {
    pub(crate) fn measured(&self) -> Measured {
        let wrong_words = u64::from(self.correct == Some(false));
        let thousand = |value: u64| value.saturating_mul(1_000);
        let memory = self.memory_gb_per_s.map(|speed| Memory {
            checked_bytes: 0,
            mb_per_s: thousand(speed),
            wrong_words: 0,
        });
        let link = self.to_gpu_gb_per_s.zip(self.from_gpu_gb_per_s);
        let link = link.map(|(to, from)| Link {
            to_gpu_mb_per_s: thousand(to),
            from_gpu_mb_per_s: thousand(from),
            best: Some((5, 16)),
            used: Some((5, 16)),
        });
        let gflops = self.tflops.map(thousand);
        let product = gflops.or((wrong_words > 0).then_some(0));
        let product = product.map(|gflops| Product { gflops, repeats: 1, wrong_words });
        Measured { memory, link, product, ..Measured::default() }
    }
}
