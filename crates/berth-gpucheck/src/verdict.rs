//! What a check comes to: figures beside what is expected of the model, and whether the GPU passes.

use crate::measured::Measured;
use crate::models::{self, Bar};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a figure is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// A copy within the GPU's memory.
    Memory,
    /// A copy from the machine's memory, and to it.
    ToGpu,
    FromGpu,
    /// A matrix product.
    Product,
}

impl Quantity {
    pub const fn word(self) -> &'static str {
        match self {
            Quantity::Memory => "memory",
            Quantity::ToGpu => "to_gpu",
            Quantity::FromGpu => "from_gpu",
            Quantity::Product => "product",
        }
    }

    const fn what(self) -> &'static str {
        match self {
            Quantity::Memory => "its memory copies",
            Quantity::ToGpu => "the way to it carries",
            Quantity::FromGpu => "the way from it carries",
            Quantity::Product => "a matrix product reaches",
        }
    }

    /// What its figures count.
    pub const fn unit(self) -> &'static str {
        match self {
            Quantity::Memory | Quantity::ToGpu | Quantity::FromGpu => "MB/s",
            Quantity::Product => "GFLOPS",
        }
    }

    /// A value with a larger unit: `4012 GB/s`, `55.2 GB/s`, `612 TFLOPS`.
    pub fn shown(self, value: u64) -> String {
        let unit = match self {
            Quantity::Memory | Quantity::ToGpu | Quantity::FromGpu => "GB/s",
            Quantity::Product => "TFLOPS",
        };
        match value {
            0..100_000 => format!("{}.{} {unit}", value / 1_000, value % 1_000 / 100),
            _ => format!("{} {unit}", value / 1_000),
        }
    }
}

/// One figure: MB/s of a copy, GFLOPS of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figure {
    pub of: Quantity,
    pub measured: u64,
    /// What the model is said to do.
    pub nominal: Option<u64>,
    /// What it has to reach; nothing where it is not judged.
    pub least: Option<u64>,
}

impl Figure {
    pub fn passes(&self) -> bool {
        self.least.is_none_or(|least| self.measured >= least)
    }
}

/// What a check of a GPU came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub passed: bool,
    /// What is wrong, if it has not passed.
    pub why: Option<String>,
    /// Whether all results were right; nothing where the check did not come to it.
    pub correct: Option<bool>,
    pub figures: Vec<Figure>,
    /// What was not judged, and why.
    pub remarks: Vec<String>,
    pub took_ms: u64,
}

impl Check {
    /// One that came to nothing.
    pub(crate) fn failed(why: String) -> Check {
        Check {
            passed: false,
            why: Some(why),
            correct: None,
            figures: Vec::new(),
            remarks: Vec::new(),
            took_ms: 0,
        }
    }
}

/// `memory 4012 GB/s, to_gpu 55.2 GB/s`.
impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.figures.iter();
        let shown = all.map(|one| format!("{} {}", one.of.word(), one.of.shown(one.measured)));
        f.write_str(&shown.collect::<Vec<_>>().join(", "))
    }
}

/// Compares what was measured with what is expected of the model.
pub fn judge(model: &str, measured: &Measured) -> Check {
    let Measured { name, memory, link, product, power_cap_watts, remarks, error } = measured;
    let bars = models::bars(model, name.as_deref());
    let mut remarks = remarks.clone();
    let mut figures = Vec::new();
    let mut add = |of, measured, bar: Option<Bar>| {
        let (nominal, least) = (bar.map(|bar| bar.nominal), bar.map(|bar| bar.least));
        figures.push(Figure { of, measured, nominal, least });
    };
    if bars.is_none() && error.is_none() {
        remarks.push(format!("no figures of a {model} are known, so its speed is not judged"));
    }
    if let Some(memory) = memory {
        add(Quantity::Memory, memory.mb_per_s, bars.map(|bars| bars.memory));
    }
    if let Some(link) = link {
        let bar = link.best.and_then(models::link_bar);
        add(Quantity::ToGpu, link.to_gpu_mb_per_s, bar);
        add(Quantity::FromGpu, link.from_gpu_mb_per_s, bar);
        if let (Some(best), Some(used)) = (link.best, link.used)
            && best != used
        {
            let text = |(generation, lanes)| format!("PCIe {generation} x{lanes}");
            remarks.push(format!("{} of {} is in use", text(used), text(best)));
        }
    }
    if let Some(product) = product {
        let mut bar = bars.and_then(|bars| bars.product);
        if bars.is_some() && bar.is_none() {
            remarks.push(format!("the product of a {model} is not judged by its speed"));
        }
        if let Some((now, usual)) = power_cap_watts {
            remarks.push(format!(
                "its power is limited to {now} of {usual} W, so the speed of the product is not judged"
            ));
            bar = bar.map(|Bar { nominal, .. }| Bar { nominal, least: 0 });
        }
        add(Quantity::Product, product.gflops, bar);
    }
    let wrong =
        [memory.map(|memory| memory.wrong_words), product.map(|product| product.wrong_words)];
    let correct = wrong.iter().flatten().all(|count| *count == 0);
    let any = wrong.iter().any(Option::is_some);
    let why = why(measured, &figures);
    Check {
        passed: why.is_none(),
        why,
        correct: (any && (error.is_none() || !correct)).then_some(correct),
        figures,
        remarks,
        took_ms: 0,
    }
}

/// What is wrong, the worst first.
fn why(measured: &Measured, figures: &[Figure]) -> Option<String> {
    let Measured { memory, product, error, .. } = measured;
    if let Some(memory) = memory.filter(|memory| memory.wrong_words > 0) {
        let wrong = memory.wrong_words;
        return Some(format!("its memory does not keep what is written: {wrong} words are wrong"));
    }
    if let Some(product) = product.filter(|product| product.wrong_words > 0) {
        let wrong = product.wrong_words;
        return Some(format!("it calculates wrongly: {wrong} results of a matrix product"));
    }
    if let Some(error) = error {
        return Some(error.clone());
    }
    let slow = figures.iter().filter(|figure| !figure.passes()).map(|figure| {
        let Figure { of, measured, least, .. } = figure;
        let least = of.shown(least.unwrap_or_default());
        format!("{} {}, at least {least} expected", of.what(), of.shown(*measured))
    });
    let slow: Vec<String> = slow.collect();
    (!slow.is_empty()).then(|| format!("it is slow: {}", slow.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::{Link, Memory, Played, Product};

    fn check(model: &str, played: &str) -> String {
        let played: Played = serde_json::from_str(played).unwrap();
        let check = judge(model, &played.measured());
        let verdict = check.why.clone().unwrap_or_else(|| "passed".to_owned());
        let remarks = check.remarks.iter().map(|remark| format!("; {remark}"));
        format!("{verdict}{}", remarks.collect::<String>())
    }

    #[test]
    fn a_gpu_passes_that_reaches_what_its_model_does() {
        let well = r#"{"memory_gb_per_s": 4100, "tflops": 590, "to_gpu_gb_per_s": 55,
            "from_gpu_gb_per_s": 52}"#;
        assert_eq!(check("H200-141GB", well), "passed");
        assert_eq!(check("H200-141GB", "{}"), "passed", "what is not measured is not judged");
    }

    #[test]
    fn the_h200_that_was_measured_passes_and_one_at_two_thirds_of_its_speed_does_not() {
        let passes = |percent: u64| {
            let [mb_per_s, to, from, gflops] = models::H200.map(|figure| figure * percent / 100);
            let memory = Memory { checked_bytes: 0, mb_per_s, wrong_words: 0 };
            let (best, used) = (Some((5, 16)), Some((5, 16)));
            let link = Link { to_gpu_mb_per_s: to, from_gpu_mb_per_s: from, best, used };
            let product = Product { gflops, repeats: 1, wrong_words: 0 };
            let (memory, link, product) = (Some(memory), Some(link), Some(product));
            judge("H200-141GB", &Measured { memory, link, product, ..Measured::default() }).passed
        };
        assert!(passes(100) && passes(90));
        assert!(!passes(66));
    }

    #[test]
    fn a_slow_gpu_is_told_with_its_figures_and_what_was_expected() {
        let slow = r#"{"memory_gb_per_s": 2100, "tflops": 200}"#;
        assert_eq!(
            check("H200-141GB", slow),
            "it is slow: its memory copies 2100 GB/s, at least 3360 GB/s expected; a matrix \
             product reaches 200 TFLOPS, at least 247 TFLOPS expected"
        );
        let narrow_link = r#"{"to_gpu_gb_per_s": 15, "from_gpu_gb_per_s": 50}"#;
        assert_eq!(
            check("H200-141GB", narrow_link),
            "it is slow: the way to it carries 15.0 GB/s, at least 22.0 GB/s expected"
        );
    }

    #[test]
    fn a_wrong_result_fails_however_fast() {
        let wrong = r#"{"memory_gb_per_s": 4400, "tflops": 700, "correct": false}"#;
        assert_eq!(
            check("H200-141GB", wrong),
            "it calculates wrongly: 1 results of a matrix product"
        );
        assert_eq!(
            check("K80-12GB", r#"{"correct": false}"#).split(':').next(),
            Some("it calculates wrongly")
        );
    }

    #[test]
    fn a_model_that_is_not_known_is_judged_by_its_results_alone() {
        assert_eq!(
            check("K80-12GB", r#"{"memory_gb_per_s": 1, "tflops": 1, "correct": true}"#),
            "passed; no figures of a K80-12GB are known, so its speed is not judged"
        );
    }

    #[test]
    fn a_gpu_with_less_power_is_not_called_slow_for_that() {
        let played = Played { tflops: Some(100), ..Played::default() };
        let measured = Measured { power_cap_watts: Some((300, 700)), ..played.measured() };
        let check = judge("H200-141GB", &measured);
        assert!(check.passed, "{check:?}");
        assert_eq!(
            check.remarks,
            ["its power is limited to 300 of 700 W, so the speed of the product is not judged"]
        );
    }

    #[test]
    fn boards_of_one_model_have_figures_of_their_own() {
        let nominal = |name: &str| {
            let played = Played { memory_gb_per_s: Some(1_800), ..Played::default() };
            let measured = Measured { name: Some(name.to_owned()), ..played.measured() };
            judge("H100-80GB", &measured).figures[0].nominal
        };
        assert_eq!(nominal("NVIDIA H100 PCIe"), Some(2_000_000));
        assert_eq!(nominal("NVIDIA H100 80GB HBM3"), Some(3_350_000));
    }
}
