//! Names of GPU models: from the driver's and the user's words to Berth's.

use berth_model::{Bytes, Name, catalog};

/// The models of the catalogue; of several sizes of one family the usual one first.
const MODELS: [&str; 16] = [
    "B200-180GB",
    "H200-141GB",
    "GH200-96GB",
    "H100-80GB",
    "H100-94GB",
    "A100-80GB",
    "A100-40GB",
    "L40S-48GB",
    "L40-48GB",
    "A40-48GB",
    "RTX4090-24GB",
    "A10-24GB",
    "L4-24GB",
    "V100-32GB",
    "V100-16GB",
    "T4-16GB",
];

pub(super) fn families() -> Vec<&'static str> {
    let mut all: Vec<&str> = MODELS.iter().filter_map(|model| split(model)).map(|m| m.0).collect();
    all.dedup();
    all
}

/// `H100-80GB` is a family and a number of gigabytes.
fn split(model: &str) -> Option<(&str, i64)> {
    let (family, size) = model.rsplit_once('-')?;
    Some((family, size.strip_suffix("GB")?.parse().ok()?))
}

/// The model a user means by `H100`, `h100-80gb` or the full name of one we do not know.
pub(super) fn declared(word: &str) -> Option<(Name, Bytes)> {
    let word = word.to_ascii_uppercase();
    let known = MODELS
        .iter()
        .find(|model| **model == word || split(model).is_some_and(|(family, _)| family == word));
    if let Some(model) = known {
        return Some((Name::new(model), catalog(model)?.memory));
    }
    let (family, size) = split(&word)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let named = !family.is_empty() && family.chars().all(plain) && size > 0;
    named.then(|| (Name::new(&word), Bytes::gb(size)))
}

/// The model of a device that calls itself `NVIDIA H100 80GB HBM3` and has that much memory.
pub(super) fn observed(called: &str, memory: Bytes) -> Name {
    let family = family(called);
    // Gigabytes on the box are close to gibibytes in the device.
    let gib = (memory.0 + (1 << 29)) >> 30;
    let like = MODELS.iter().filter(|model| split(model).is_some_and(|(f, _)| f == family));
    let nearest = like.min_by_key(|model| split(model).map(|(_, size)| (size - gib).abs()));
    match nearest {
        Some(model) => Name::new(model),
        None => Name::from(format!("{family}-{gib}GB")),
    }
}

/// Without the maker, the series and the form: `NVIDIA A100-SXM4-40GB` is an `A100`, `NVIDIA
/// GeForce RTX 4090` an `RTX4090`.
fn family(called: &str) -> String {
    let words: Vec<String> = called
        .split([' ', '-', '_'])
        .filter(|word| !["NVIDIA", "Tesla", "GeForce", "Quadro", ""].contains(word))
        .map(str::to_ascii_uppercase)
        .collect();
    match words.as_slice() {
        [] => "GPU".to_owned(),
        [series, number, ..] if series == "RTX" || series == "GTX" => format!("{series}{number}"),
        [first, ..] => first.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_called_as_in_the_catalogue() {
        for (called, mib, expect) in [
            ("NVIDIA H100 80GB HBM3", 81_559, "H100-80GB"),
            ("NVIDIA H100 PCIe", 81_559, "H100-80GB"),
            ("NVIDIA H100 NVL", 95_830, "H100-94GB"),
            ("NVIDIA H200", 143_771, "H200-141GB"),
            ("NVIDIA GH200 480GB", 97_871, "GH200-96GB"),
            ("NVIDIA B200", 183_359, "B200-180GB"),
            ("NVIDIA A100-SXM4-40GB", 40_960, "A100-40GB"),
            ("NVIDIA A100 80GB PCIe", 81_920, "A100-80GB"),
            ("NVIDIA L40S", 46_068, "L40S-48GB"),
            ("NVIDIA L4", 23_034, "L4-24GB"),
            ("NVIDIA A10", 23_028, "A10-24GB"),
            ("Tesla T4", 15_360, "T4-16GB"),
            ("Tesla V100-SXM2-16GB", 16_384, "V100-16GB"),
            ("NVIDIA GeForce RTX 4090", 24_564, "RTX4090-24GB"),
            ("NVIDIA RTX A6000", 49_140, "RTXA6000-48GB"),
        ] {
            assert_eq!(observed(called, Bytes::mib(mib)).as_str(), expect, "{called}");
        }
    }

    #[test]
    fn every_model_here_is_in_the_catalogue() {
        for model in MODELS {
            assert!(catalog(model).is_some(), "{model}");
        }
    }

    #[test]
    fn a_user_may_name_a_family_a_model_or_one_that_is_new() {
        let name = |word| declared(word).map(|(name, _)| name.to_string());
        assert_eq!(name("H100").as_deref(), Some("H100-80GB"));
        assert_eq!(name("a100-40gb").as_deref(), Some("A100-40GB"));
        assert_eq!(name("MI300X-192GB").as_deref(), Some("MI300X-192GB"));
        assert_eq!(declared("MI300X-192GB").unwrap().1, Bytes::gb(192));
        assert_eq!((name("H1000"), name("-80GB"), name("X-0GB")), (None, None, None));
    }
}
