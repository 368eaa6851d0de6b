//! The page of metrics, as dcgm-exporter writes it.

use crate::gpu::Gpu;
use crate::owners::{Owners, Place, Pod};
use berth_figures::Figure;
use berth_figures::dcgm::{METRICS, Metric};
use berth_node::{GpuFigures, MigPart};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// What one GPU or instance tells.
pub struct Told<'a> {
    pub gpu: &'a Gpu,
    pub part: Option<&'a MigPart>,
    pub figures: &'a GpuFigures,
}

impl Told<'_> {
    fn place(&self) -> Place {
        match self.part {
            Some(part) => Place::Part { gpu: part.gpu, instance: part.instance },
            None => Place::Gpu(self.gpu.index),
        }
    }

    fn labels(&self, node: &str, pod: Option<&Pod>) -> String {
        let Gpu { index, uuid, minor, model } = self.gpu;
        let device = minor.map_or_else(String::new, |minor| format!("nvidia{minor}"));
        let mut labels = format!(
            "gpu=\"{index}\",UUID=\"{}\",device=\"{}\",modelName=\"{}\"",
            escaped(uuid),
            escaped(&device),
            escaped(model)
        );
        let mut add = |key: &str, value: &str| {
            let _ = write!(labels, ",{key}=\"{}\"", escaped(value));
        };
        if let Some(part) = self.part {
            add("GPU_I_ID", &part.instance.to_string());
        }
        add("hostname", node);
        if let Some((namespace, name)) = pod {
            add("namespace", namespace);
            add("pod", name);
        }
        labels
    }
}

/// A line for each figure of each GPU, and where several pods share it for each of these.
pub fn page(node: &str, all: &[Told<'_>], owners: &Owners) -> String {
    let nobody = BTreeSet::new();
    let rows: Vec<(Vec<String>, BTreeMap<Figure, i64>)> = all
        .iter()
        .map(|told| {
            let pods = owners.get(&told.place()).unwrap_or(&nobody);
            let labels = match pods.len() {
                0 => vec![told.labels(node, None)],
                _ => pods.iter().map(|pod| told.labels(node, Some(pod))).collect(),
            };
            (labels, values(told.figures))
        })
        .collect();
    let mut page = String::new();
    for Metric { name, help, figure, units, .. } in &METRICS {
        let kind = if *figure == Figure::Energy { "counter" } else { "gauge" };
        let _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, values) in &rows {
            let Some(value) = values.get(figure) else { continue };
            for labels in labels {
                let _ = writeln!(page, "{name}{{{labels}}} {}", amount(*value, *units));
            }
        }
    }
    page
}

fn values(figures: &GpuFigures) -> BTreeMap<Figure, i64> {
    let all = [
        (Figure::Utilization, figures.utilization_percent.map(|percent| i64::from(percent) * 10)),
        (Figure::SmActive, figures.sm_active),
        (Figure::TensorActive, figures.tensor_active),
        (Figure::DramActive, figures.dram_active),
        (Figure::GpuMemory, figures.memory_used.map(|bytes| bytes.0 >> 20)),
        (Figure::Power, figures.power_milliwatts.map(i64::from)),
        (Figure::Energy, figures.energy_millijoules.and_then(|energy| i64::try_from(energy).ok())),
        (Figure::SmClock, figures.sm_clock_mhz.map(i64::from)),
        (Figure::SmClockMax, figures.sm_clock_max_mhz.map(i64::from)),
        (Figure::ClockReasons, figures.clock_reasons.and_then(|bits| i64::try_from(bits).ok())),
        (Figure::Temperature, figures.temperature_celsius.map(i64::from)),
    ];
    all.into_iter().filter_map(|(figure, value)| Some((figure, value?))).collect()
}

/// In units of DCGM, of which one is so many of ours.
fn amount(value: i64, units: i64) -> String {
    match units {
        1 => value.to_string(),
        10 => format!("{}", value / 10),
        _ => format!("{}.{:03}", value / units, value % units),
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::Bytes;

    #[test]
    fn the_page_reads_as_that_of_nvidias_exporter() {
        let gpu = |index: u32| Gpu {
            index,
            uuid: format!("GPU-{index}"),
            minor: Some(index),
            model: "H100 \"80GB\"".to_owned(),
        };
        let (busy, divided) = (gpu(0), gpu(1));
        let figures = GpuFigures {
            utilization_percent: Some(97),
            tensor_active: Some(875),
            power_milliwatts: Some(652_381),
            energy_millijoules: Some(1_234_567_890_123),
            ..GpuFigures::default()
        };
        let part = MigPart { gpu: 1, instance: 7, uuid: "MIG-a".to_owned() };
        let of_part = GpuFigures { memory_used: Some(Bytes::mib(500)), ..GpuFigures::default() };
        let pod = |name: &str| ("ml".to_owned(), name.to_owned());
        let owners = Owners::from([
            (Place::Gpu(0), [pod("a"), pod("b")].into()),
            (Place::Part { gpu: 1, instance: 7 }, [pod("c")].into()),
        ]);
        let nothing = GpuFigures::default();
        let all = [
            Told { gpu: &busy, part: None, figures: &figures },
            Told { gpu: &divided, part: None, figures: &nothing },
            Told { gpu: &divided, part: Some(&part), figures: &of_part },
        ];
        let page = page("node-1", &all, &owners);
        let of = r#"gpu="0",UUID="GPU-0",device="nvidia0",modelName="H100 \"80GB\"",hostname="node-1",namespace="ml""#;
        for line in [
            "# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter",
            &format!("DCGM_FI_DEV_GPU_UTIL{{{of},pod=\"a\"}} 97"),
            &format!("DCGM_FI_DEV_GPU_UTIL{{{of},pod=\"b\"}} 97"),
            &format!("DCGM_FI_DEV_POWER_USAGE{{{of},pod=\"a\"}} 652.381"),
            &format!("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{{{of},pod=\"a\"}} 0.875"),
            &format!("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{{of},pod=\"a\"}} 1234567890123"),
            r#"DCGM_FI_DEV_FB_USED{gpu="1",UUID="GPU-1",device="nvidia1",modelName="H100 \"80GB\"",GPU_I_ID="7",hostname="node-1",namespace="ml",pod="c"} 500"#,
        ] {
            assert!(page.lines().any(|found| found == line), "no {line} in\n{page}");
        }
        let samples = page.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(samples, 9, "what is not measured has no line:\n{page}");
    }
}
