//! The largest clocks of GPUs, for exporters that do not tell them: as they come, they do not.

/// What the driver gives as the largest clock of the multiprocessors, by a part of the name that it
/// has for the model, in MHz. The first one that fits counts.
const CLOCKS: [(&str, i64); 10] = [
    ("H200 NVL", 1_785),
    ("H200", 1_980),
    ("H100 NVL", 1_785),
    ("H100 PCIe", 1_755),
    ("H100", 1_980),
    ("A100", 1_410),
    ("L40S", 2_520),
    ("L40", 2_490),
    ("L4", 2_040),
    ("T4", 1_590),
];

/// Nothing for a model that is not known.
pub fn of_model(name: &str) -> Option<i64> {
    CLOCKS.iter().find(|(part, _)| name.contains(part)).map(|(_, clock)| *clock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_told_apart_by_the_names_that_the_driver_has_for_them() {
        let of = |name: &str| of_model(name).unwrap_or(0);
        assert_eq!(of("NVIDIA H100 80GB HBM3"), 1_980);
        assert_eq!(of("NVIDIA H100 PCIe"), 1_755);
        assert_eq!(of("NVIDIA A100-SXM4-80GB"), 1_410);
        assert_eq!((of("NVIDIA L4"), of("NVIDIA L40S")), (2_040, 2_520));
        assert_eq!(of_model("NVIDIA GeForce RTX 4090"), None);
    }
}
