//! Names of GPU models.

use berth_model::{Bytes, GpuInfo, Name, catalog_models};

/// The catalogue's name of a product such as `NVIDIA-H100-80GB-HBM3`, or else the product's own
/// name without its maker.
///
/// Several models of one family differ in memory only. The size in the name settles that, or else
/// the size that was measured; a card of neither size is not taken for one of them.
pub fn model(product: &str, memory: Option<Bytes>) -> Name {
    let words: Vec<&str> = product.split(['-', ' ', '_']).filter(|word| !word.is_empty()).collect();
    let family: Vec<&GpuInfo> =
        catalog_models().filter(|info| is_of(&words, family(info.model))).collect();
    let found = match family[..] {
        [] => None,
        [only] if memory.is_none_or(|memory| is_about(only, memory)) => Some(only),
        _ => {
            let named =
                family.iter().find(|info| words.iter().any(|word| size(info.model) == *word));
            let measured = || family.iter().find(|info| memory.is_some_and(|m| is_about(info, m)));
            named.or_else(measured).copied()
        }
    };
    found.map_or_else(|| cleaned(&words), |info| Name::new(info.model))
}

/// `H100` of `H100-80GB`.
fn family(model: &str) -> &str {
    model.rsplit_once('-').map_or(model, |(family, _)| family)
}

/// `80GB` of `H100-80GB`.
fn size(model: &str) -> &str {
    model.rsplit_once('-').map_or("", |(_, size)| size)
}

/// Whether one word, or two together (`RTX 4090`), is the family.
fn is_of(words: &[&str], family: &str) -> bool {
    let same = |text: &str| text.eq_ignore_ascii_case(family);
    words.iter().any(|word| same(word))
        || words.windows(2).any(|pair| same(&format!("{}{}", pair[0], pair[1])))
}

/// A card sold as 80 GB has close to 80 GiB, of which the driver keeps a little.
fn is_about(info: &GpuInfo, memory: Bytes) -> bool {
    let sold = info.memory.0 / 1_000_000_000 * 1_024;
    let found = memory.0 >> 20;
    (found - sold).abs() * 10 <= sold
}

fn cleaned(words: &[&str]) -> Name {
    let makers = ["NVIDIA", "Tesla", "GRID", "AMD", "Instinct", "GeForce"];
    let kept: Vec<&str> = words
        .iter()
        .copied()
        .filter(|word| !makers.iter().any(|maker| maker.eq_ignore_ascii_case(word)))
        .collect();
    Name::from(if kept.is_empty() { words.join("-") } else { kept.join("-") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_have_the_names_of_the_catalogue() {
        for (product, mib, expected) in [
            ("NVIDIA-H100-80GB-HBM3", Some(81_559), "H100-80GB"),
            ("NVIDIA-H100-NVL", Some(95_830), "H100-94GB"),
            ("NVIDIA-H100-PCIe", Some(81_559), "H100-80GB"),
            ("NVIDIA-H200", Some(143_771), "H200-141GB"),
            ("NVIDIA-B200", Some(183_359), "B200-180GB"),
            ("NVIDIA-GH200-480GB", Some(97_871), "GH200-96GB"),
            ("NVIDIA-A100-SXM4-40GB", None, "A100-40GB"),
            ("NVIDIA-A100-80GB-PCIe", Some(81_920), "A100-80GB"),
            ("A100-SXM4-80GB", None, "A100-80GB"),
            ("NVIDIA-L4", Some(23_034), "L4-24GB"),
            ("NVIDIA-L40S", Some(46_068), "L40S-48GB"),
            ("NVIDIA-L40", Some(46_068), "L40-48GB"),
            ("NVIDIA-A10", Some(23_028), "A10-24GB"),
            ("NVIDIA-GeForce-RTX-4090", Some(24_564), "RTX4090-24GB"),
            ("Tesla-T4", Some(15_360), "T4-16GB"),
            ("Tesla-V100-SXM2-16GB", Some(16_384), "V100-16GB"),
            ("Tesla-V100-PCIE-32GB", None, "V100-32GB"),
        ] {
            assert_eq!(&*model(product, mib.map(Bytes::mib)), expected, "{product}");
        }
    }

    #[test]
    fn a_product_that_is_not_in_the_catalogue_keeps_its_own_name() {
        for (product, mib, expected) in [
            ("NVIDIA-A10G", Some(23_028), "A10G"),
            ("NVIDIA-RTX-6000-Ada-Generation", Some(49_140), "RTX-6000-Ada-Generation"),
            ("NVIDIA-A100-SXM-64GB", Some(65_536), "A100-SXM-64GB"),
            ("AMD_Instinct_MI300X_OAM", None, "MI300X-OAM"),
            ("NVIDIA-A100", None, "A100"),
        ] {
            assert_eq!(&*model(product, mib.map(Bytes::mib)), expected, "{product}");
        }
    }
}
