//! What GPUs cost and draw, by model.
//!
//! The built-in list is for orders of magnitude: dollars per GPU-hour are medians over the large
//! clouds' list prices of August 2026, rounded, spot likewise where there is any and 40 % of the
//! price where not. Watts are the rated power of the board when busy, and typical ones when idle.
//! Machines around the GPUs are in the prices and not in the watts.

use berth_model::{Micros, Name};
use serde::Serialize;
use std::collections::BTreeMap;

/// One GPU of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Rate {
    /// Dollars an hour.
    pub on_demand: Micros,
    pub spot: Micros,
    pub idle_watts: i64,
    pub busy_watts: i64,
}

/// Model, cents an hour on demand and spot, watts idle and busy. The longest name that a model
/// begins with counts.
const KNOWN: [(&str, i64, i64, i64, i64); 27] = [
    ("A10", 200, 80, 20, 150),
    ("A100", 305, 227, 55, 400),
    ("A100-80GB", 400, 287, 60, 400),
    ("A100-SXM4-80GB", 400, 287, 60, 400),
    ("A10G", 204, 87, 20, 300),
    ("A40", 120, 48, 30, 300),
    ("A6000", 109, 44, 25, 300),
    ("A800", 400, 287, 60, 400),
    ("B200", 700, 495, 140, 1_000),
    ("B300", 1_780, 555, 150, 1_400),
    ("GH200", 229, 92, 100, 900),
    ("H100", 1_000, 546, 70, 700),
    ("H20", 350, 140, 70, 400),
    ("H200", 1_000, 336, 75, 700),
    ("H800", 1_000, 546, 70, 700),
    ("K80", 57, 23, 25, 150),
    ("L4", 155, 66, 13, 72),
    ("L40", 300, 120, 35, 300),
    ("L40S", 350, 151, 35, 350),
    ("M60", 114, 46, 25, 150),
    ("MI300X", 600, 240, 140, 750),
    ("P100", 127, 51, 30, 250),
    ("RTX4090", 70, 28, 20, 450),
    ("T4", 120, 45, 10, 70),
    ("V100", 295, 118, 40, 300),
    ("V100-32GB", 390, 158, 40, 300),
    ("V100M32", 390, 158, 40, 300),
];
/// For a model that nobody knows.
const OTHER: (&str, i64, i64, i64, i64) = ("other", 200, 80, 40, 300);

/// Rates by model: the built-in ones, and over them those of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct PriceList {
    own: BTreeMap<Name, Rate>,
}

impl PriceList {
    pub fn set(&mut self, model: Name, rate: Rate) {
        self.own.insert(model, rate);
    }

    pub fn rate(&self, model: &str) -> Rate {
        self.own.get(model).copied().unwrap_or_else(|| built_in(model))
    }

    /// Whether anybody has said what this model costs.
    pub fn knows(&self, model: &str) -> bool {
        self.own.contains_key(model) || known(model).is_some()
    }
}

fn known(model: &str) -> Option<&'static (&'static str, i64, i64, i64, i64)> {
    let model = model.to_uppercase();
    let begins = |name: &str| {
        // A10 is not A100, but H100-80GB is an H100.
        model.strip_prefix(name).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
    };
    KNOWN.iter().filter(|(name, ..)| begins(name)).max_by_key(|(name, ..)| name.len())
}

fn built_in(model: &str) -> Rate {
    let (_, on_demand, spot, idle_watts, busy_watts) = *known(model).unwrap_or(&OTHER);
    let cents = |cents: i64| Micros(cents * 10_000);
    Rate { on_demand: cents(on_demand), spot: cents(spot), idle_watts, busy_watts }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_known_by_the_longest_name_it_begins_with() {
        let cents = |model: &str| PriceList::default().rate(model).on_demand.0 / 10_000;
        assert_eq!(["A100", "A100-80GB", "A100-PCIE-40GB"].map(cents), [305, 400, 305]);
        assert_eq!(["a10", "H100-80GB", "V100M32", "G2"].map(cents), [200, 1_000, 390, 200]);
        assert!(!PriceList::default().knows("G2") && PriceList::default().knows("T4"));
    }

    #[test]
    fn what_a_file_says_goes_over_what_is_built_in() {
        let mut list = PriceList::default();
        list.set("A100".into(), Rate { on_demand: Micros(1), ..built_in("A100") });
        assert_eq!(list.rate("A100").on_demand, Micros(1));
        assert_eq!(list.rate("A100").busy_watts, 400);
    }
}
