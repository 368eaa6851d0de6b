//! What each model is said to do, and the least that a GPU of it reaches in a check when it is well.

/// Figures of a data sheet.
struct Model {
    /// As Berth calls it.
    model: &'static str,
    /// A word in what the GPU calls itself, where boards of one model differ.
    called: Option<&'static str>,
    memory_gb_per_s: u64,
    /// Dense, BF16 with FP32 sums.
    tflops: u64,
    /// Percent of these that a GPU has to reach.
    least: Least,
}

struct Least {
    memory: u64,
    /// Nothing where the kernel tells nothing about the model.
    product: Option<u64>,
}

/// What an H200 in a virtual machine reached on 2026-11-18: 4,245,588 MB/s (0.885 of its data sheet)
/// of memory copies, 315,261 GFLOPS (0.319) of the product, 29,569 MB/s (0.47) to the GPU and 55,192
/// MB/s (0.876) from it over PCIe 5 x16, at 1980 MHz. Two runs agreed to a thousandth.
#[cfg(test)]
pub const H200: [u64; 4] = [4_245_588, 29_569, 55_192, 315_261];

/// What every GPU that is well reaches with these kernels, as a share of its data sheet. The kernel
/// of the product uses instructions that all of them have, and newer ones have faster ones: a good
/// share of their figure is out of its reach.
const LEAST: Least = Least { memory: 70, product: Some(25) };
/// Tensor cores of which these instructions tell little.
const MEMORY_ONLY: Least = Least { memory: 70, product: None };
/// The same of what a link of its generation and width carries. In a virtual machine one way may
/// carry half of it.
const LEAST_LINK: u64 = 35;

const fn model(
    model: &'static str,
    called: Option<&'static str>,
    memory_gb_per_s: u64,
    tflops: u64,
    least: Least,
) -> Model {
    Model { model, called, memory_gb_per_s, tflops, least }
}

/// Of one model the boards with a word of their own first.
const MODELS: [Model; 16] = [
    model("B200-180GB", None, 8_000, 2_250, MEMORY_ONLY),
    model("H200-141GB", Some("NVL"), 4_800, 835, LEAST),
    model("H200-141GB", None, 4_800, 989, LEAST),
    model("GH200-96GB", None, 4_000, 989, LEAST),
    model("H100-94GB", None, 3_900, 835, LEAST),
    model("H100-80GB", Some("PCIe"), 2_000, 756, LEAST),
    model("H100-80GB", None, 3_350, 989, LEAST),
    model("A100-80GB", Some("PCIe"), 1_935, 312, LEAST),
    model("A100-80GB", None, 2_039, 312, LEAST),
    model("A100-40GB", None, 1_555, 312, LEAST),
    model("L40S-48GB", None, 864, 362, LEAST),
    model("L40-48GB", None, 864, 181, LEAST),
    model("A40-48GB", None, 696, 149, LEAST),
    model("RTX4090-24GB", None, 1_008, 165, LEAST),
    model("A10-24GB", None, 600, 125, LEAST),
    model("L4-24GB", None, 300, 121, LEAST),
];

/// A figure that is expected, and the least of it that passes; in MB/s and GFLOPS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bar {
    pub nominal: u64,
    pub least: u64,
}

impl Bar {
    const fn of(nominal: u64, percent: u64) -> Bar {
        Bar { nominal, least: nominal * percent / 100 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bars {
    pub memory: Bar,
    pub product: Option<Bar>,
}

/// Nothing is expected of a model that is not known.
pub fn bars(model: &str, called: Option<&str>) -> Option<Bars> {
    let fits = |word: Option<&str>| {
        word.is_none_or(|word| called.is_some_and(|called| called.contains(word)))
    };
    let found = MODELS.iter().find(|known| known.model == model && fits(known.called))?;
    let product = |percent| Bar::of(found.tflops * 1_000, percent);
    Some(Bars {
        memory: Bar::of(found.memory_gb_per_s * 1_000, found.least.memory),
        product: found.least.product.map(product),
    })
}

/// Of one direction of PCIe, by generation and width. Nothing of a generation that is not known.
pub fn link_bar((generation, width): (u32, u32)) -> Option<Bar> {
    let per_lane_mb_per_s = match generation {
        1 => 250,
        2 => 500,
        3 => 985,
        4 => 1_969,
        5 => 3_938,
        6 => 7_563,
        _ => return None,
    };
    Some(Bar::of(per_lane_mb_per_s * u64::from(width), LEAST_LINK))
}
