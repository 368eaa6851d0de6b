//! The newest figures of GPUs and jobs. Those of GPUs have the names and labels of NVIDIA's DCGM
//! exporter where they mean the same, so that boards made for it show them.

use super::metrics::{Labels, Page};
use crate::app::App;
use berth_engine::LiveJob;
use berth_figures::{Figure, Sample, Series};
use berth_model::JobId;
use berth_service::live;
use std::collections::BTreeMap;

/// Name, what it says, the figure, and how many of its units make one of DCGM's.
const GPU: [(&str, &str, Figure, f64); 9] = [
    ("DCGM_FI_DEV_GPU_UTIL", "GPU utilization in percent", Figure::Utilization, 10.0),
    ("DCGM_FI_DEV_FB_USED", "Memory in use in MiB", Figure::GpuMemory, 1.0),
    ("DCGM_FI_DEV_POWER_USAGE", "Power in watts", Figure::Power, 1_000.0),
    (
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
        "Energy since the driver was loaded in mJ",
        Figure::Energy,
        1.0,
    ),
    ("DCGM_FI_DEV_SM_CLOCK", "Clock of the multiprocessors in MHz", Figure::SmClock, 1.0),
    ("DCGM_FI_DEV_GPU_TEMP", "Temperature in degrees Celsius", Figure::Temperature, 1.0),
    (
        "DCGM_FI_PROF_SM_ACTIVE",
        "Share of time in which multiprocessors had work",
        Figure::SmActive,
        1_000.0,
    ),
    (
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
        "Share of time in which tensor cores were busy",
        Figure::TensorActive,
        1_000.0,
    ),
    (
        "DCGM_FI_PROF_DRAM_ACTIVE",
        "Share of time in which the memory interface was busy",
        Figure::DramActive,
        1_000.0,
    ),
];

impl Page {
    pub(super) fn newest_figures(&mut self, app: &App) {
        let Some(book) = app.service.host.figures() else { return };
        let newest = book.newest();
        let held = Held::of(app.service.engine.core().jobs.values());
        let gpus: Vec<(Labels, &Sample)> = newest
            .iter()
            .filter_map(|(series, sample)| match series {
                Series::Gpu { node, index } => Some((gpu_labels(app, &held, node, *index), sample)),
                Series::Task(_) => None,
            })
            .collect();
        for (name, help, figure, units) in GPU {
            let family = self.foreign_family(name, help);
            for (labels, sample) in &gpus {
                if let Some(value) = sample.values.get(&figure) {
                    family.get_or_create(labels).set(*value as f64 / units);
                }
            }
        }
        let jobs = by_job(&newest);
        let cores = self.family("job_cpu_cores", "CPU cores that a running job uses");
        let memory = self.family("job_memory_bytes", "Memory of the processes of a running job");
        for (job, used) in jobs {
            let Some(labels) = held.jobs.get(&job) else { continue };
            if let Some(cpu) = used.cpu {
                cores.get_or_create(labels).set(cpu as f64 / 1e3);
            }
            memory.get_or_create(labels).set((used.memory << 20) as f64);
        }
    }
}

/// Who holds what.
struct Held {
    jobs: BTreeMap<JobId, Labels>,
    /// The jobs on each GPU.
    gpus: BTreeMap<(String, u32), Vec<JobId>>,
}

impl Held {
    fn of<'a>(jobs: impl Iterator<Item = &'a LiveJob>) -> Held {
        let mut held = Held { jobs: BTreeMap::new(), gpus: BTreeMap::new() };
        for job in jobs.filter(|job| !job.leases.is_empty()) {
            let row = &job.row;
            let labels = vec![
                ("job", row.id.to_string()),
                ("team", row.team.clone()),
                ("project", row.project.clone()),
            ];
            held.jobs.insert(row.id, labels);
            for lease in job.leases.values() {
                for slice in live::slices(&lease.row.slices) {
                    let on = held.gpus.entry((lease.row.node.clone(), slice.gpu)).or_default();
                    on.push(row.id);
                }
            }
        }
        held
    }
}

fn gpu_labels(app: &App, held: &Held, node: &str, index: u32) -> Labels {
    let facts = app.service.host.gpu(node, index);
    let machine = app.machine.as_ref();
    let devices = machine.map_or(&[][..], |machine| &machine.inventory.devices);
    let device = devices.iter().find(|device| device.index == index);
    let mut labels = vec![
        ("gpu", index.to_string()),
        ("UUID", facts.and_then(|facts| facts.uuid).unwrap_or_default()),
        ("modelName", device.map_or_else(String::new, |device| device.model.to_string())),
        ("node", node.to_owned()),
    ];
    // Of a GPU that several jobs share nobody can say whose the figures are.
    if let Some([job]) = held.gpus.get(&(node.to_owned(), index)).map(Vec::as_slice) {
        labels.extend(held.jobs.get(job).into_iter().flatten().cloned());
    }
    labels
}

#[derive(Default)]
struct Used {
    /// Thousandths of a core.
    cpu: Option<i64>,
    /// MiB.
    memory: i64,
}

fn by_job(newest: &BTreeMap<Series, Sample>) -> BTreeMap<JobId, Used> {
    let mut jobs: BTreeMap<JobId, Used> = BTreeMap::new();
    for (series, sample) in newest {
        let Series::Task(lease) = series else { continue };
        let used = jobs.entry(lease.job).or_default();
        if let Some(cpu) = sample.values.get(&Figure::Cpu) {
            *used.cpu.get_or_insert(0) += cpu;
        }
        used.memory += sample.values.get(&Figure::Memory).copied().unwrap_or(0);
    }
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::{LeaseId, Time};

    #[test]
    fn what_the_tasks_of_a_job_use_is_summed_up() {
        let series = |job, task| Series::Task(LeaseId { job: JobId::new(job), task, attempt: 0 });
        let sample = |values: &[(Figure, i64)]| Sample {
            at: Time(0),
            values: values.iter().copied().collect(),
        };
        let gpu = Series::Gpu { node: "box".to_owned(), index: 0 };
        let newest = BTreeMap::from([
            (series(1, 0), sample(&[(Figure::Cpu, 500), (Figure::Memory, 10)])),
            (series(1, 1), sample(&[(Figure::Cpu, 250), (Figure::Memory, 5)])),
            (series(2, 0), sample(&[(Figure::Memory, 7)])),
            (gpu, sample(&[(Figure::GpuMemory, 99)])),
        ]);
        let told: Vec<(u64, Option<i64>, i64)> = by_job(&newest)
            .into_iter()
            .map(|(job, used)| (job.number, used.cpu, used.memory))
            .collect();
        assert_eq!(told, [(1, Some(750), 15), (2, None, 7)]);
    }

    #[test]
    fn all_that_has_a_name_of_dcgm_is_a_figure_of_a_gpu() {
        for (name, _, figure, _) in GPU {
            assert!(figure.is_of_gpu() && name.starts_with("DCGM_FI_"), "{name}");
        }
    }
}
