//! What an exporter tells of the GPUs of its node, as figures.

use super::exposition::{self, Metric};
use super::max_clock;
use berth_figures::{Figure, Kind, dcgm};
use std::collections::{BTreeMap, BTreeSet};

/// Metrics that one answer may have: more than any node has GPUs and instances for.
const MOST_METRICS: usize = 20_000;
/// Numbers that GPUs of one node may have.
const MOST_GPUS: u32 = 63;

/// Labels, by what exporters called them at one time or another. The ones with `exported_` come
/// from exporters that are read through something else.
const POD: [&str; 3] = ["pod", "pod_name", "exported_pod"];
const NAMESPACE: [&str; 3] = ["namespace", "pod_namespace", "exported_namespace"];
const UUID: [&str; 2] = ["UUID", "uuid"];
const MODEL: [&str; 2] = ["modelName", "model_name"];
const INSTANCE: &str = "GPU_I_ID";

/// A pod as exporters name it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodName {
    pub namespace: String,
    pub name: String,
}

/// The figures of one node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    pub gpus: BTreeMap<u32, Gpu>,
    /// MIG instances, by GPU and by their number on it.
    pub parts: BTreeMap<(u32, u32), Part>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Gpu {
    pub uuid: Option<String>,
    pub model: Option<String>,
    pub values: BTreeMap<Figure, i64>,
    /// Those that have it, or a part of it.
    pub pods: BTreeSet<PodName>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Part {
    pub values: BTreeMap<Figure, i64>,
    pub pods: BTreeSet<PodName>,
}

impl Reading {
    pub fn of(text: &str) -> Reading {
        let is_wanted = |name: &str| dcgm::Metric::of_name(name).is_some();
        let mut reading = Reading::default();
        // What stands in for another metric counts where that is missing.
        let mut stand_ins = Vec::new();
        for metric in exposition::metrics(text, is_wanted).flatten().take(MOST_METRICS) {
            match dcgm::Metric::of_name(metric.name) {
                Some(known) if known.is_stand_in() => stand_ins.push((metric, known)),
                Some(known) => reading.take(&metric, known),
                None => {}
            }
        }
        stand_ins.iter().for_each(|(metric, known)| reading.take(metric, known));
        reading.complete();
        reading
    }

    /// Whether it says of any GPU who has it.
    pub fn names_pods(&self) -> bool {
        self.gpus.values().any(|gpu| !gpu.pods.is_empty())
    }

    fn take(&mut self, metric: &Metric<'_>, known: &dcgm::Metric) {
        let Some((index, instance)) = place(metric) else { return };
        let gpu = self.gpus.entry(index).or_default();
        let label = |names: &[&str]| metric.label(names).map(str::to_owned);
        gpu.uuid = gpu.uuid.take().or_else(|| label(&UUID));
        gpu.model = gpu.model.take().or_else(|| label(&MODEL));
        let pod = label(&NAMESPACE).zip(label(&POD));
        let pod = pod.map(|(namespace, name)| PodName { namespace, name });
        gpu.pods.extend(pod.clone());
        let mut values = &mut gpu.values;
        if let Some(instance) = instance {
            let part = self.parts.entry((index, instance)).or_default();
            part.pods.extend(pod);
            // Of an instance the rest is repeated from its GPU.
            if is_of_part(known.figure) {
                values = &mut part.values;
            }
        }
        let Some(value) = amount(metric.value, known) else { return };
        let value = match values.get(&known.figure) {
            Some(_) if known.is_stand_in() => return,
            Some(before) => combine(known.figure, *before, value),
            None => value,
        };
        values.insert(known.figure, value);
    }

    /// Adds what follows from the rest.
    fn complete(&mut self) {
        for ((index, _), part) in &self.parts {
            let (Some(gpu), Some(mib)) =
                (self.gpus.get_mut(index), part.values.get(&Figure::GpuMemory))
            else {
                continue;
            };
            *gpu.values.entry(Figure::GpuMemory).or_insert(0) += mib;
        }
        for gpu in self.gpus.values_mut() {
            if let Some(clock) = gpu.model.as_deref().and_then(max_clock::of_model)
                && gpu.values.contains_key(&Figure::SmClock)
            {
                gpu.values.entry(Figure::SmClockMax).or_insert(clock);
            }
        }
    }
}

/// The GPU that a metric is of, and the instance on it.
fn place(metric: &Metric<'_>) -> Option<(u32, Option<u32>)> {
    let index = metric.label(&["gpu"])?.parse().ok().filter(|index| *index < MOST_GPUS)?;
    match metric.label(&[INSTANCE]) {
        Some(instance) => Some((index, Some(instance.parse().ok()?))),
        None => Some((index, None)),
    }
}

fn is_of_part(figure: Figure) -> bool {
    matches!(
        figure,
        Figure::Utilization
            | Figure::SmActive
            | Figure::TensorActive
            | Figure::DramActive
            | Figure::GpuMemory
    )
}

/// Two values of the same. One for each pod that shares a GPU repeats that of the GPU or is a part
/// of it.
fn combine(figure: Figure, one: i64, other: i64) -> i64 {
    match figure.kind() {
        Kind::Bits => one | other,
        Kind::Gauge | Kind::Counter => one.max(other),
    }
}

/// In the unit of the figure. Exporters have told what is no number, less than nothing, and the
/// mark that DCGM has for what it does not know; shares are cut off at the whole.
fn amount(value: f64, known: &dcgm::Metric) -> Option<i64> {
    let value = value * known.units as f64;
    let most = match known.figure {
        Figure::Utilization | Figure::SmActive | Figure::TensorActive | Figure::DramActive => {
            return (0.0..=2e3).contains(&value).then(|| value.min(1e3).round() as i64);
        }
        Figure::Energy => 1e17,
        Figure::ClockReasons => 4e9,
        _ => 1e9,
    };
    (0.0..=most).contains(&value).then(|| value.round() as i64)
}

#[cfg(test)]
mod tests;
