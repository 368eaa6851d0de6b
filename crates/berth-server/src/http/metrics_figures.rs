//! The newest figures of GPUs and jobs. Those of GPUs have the names and labels of NVIDIA's DCGM
//! exporter where they mean the same, so that boards made for it show them.

use super::metrics::{Labels, Page};
use crate::app::App;
use berth_engine::LiveJob;
use berth_figures::dcgm::{METRICS, Metric};
use berth_figures::{Figure, Sample, Series};
use berth_model::{JobId, LeaseId};
use berth_service::{figures, live};
use berth_store::LeaseRow;
use std::collections::BTreeMap;

impl Page {
    pub(super) fn newest_figures(&mut self, app: &App) {
        let Some(book) = app.service.host.figures() else { return };
        let newest = book.newest();
        let chosen = app.service.host.chooses_gpus();
        let gpus_of = |lease: &LeaseRow| match chosen {
            true => live::slices(&lease.slices).iter().map(|slice| slice.gpu).collect(),
            false => measured(&newest, lease.id),
        };
        let held = Held::of(app.service.engine.core().jobs.values(), gpus_of);
        let gpus: Vec<(Labels, &Sample)> = newest
            .iter()
            .filter_map(|(series, sample)| match series {
                Series::Gpu { node, index } => Some((gpu_labels(app, &held, node, *index), sample)),
                Series::Task(_) => None,
            })
            .collect();
        for Metric { name, help, figure, units, .. } in &METRICS {
            let family = self.foreign_family(name, help);
            for (labels, sample) in &gpus {
                if let Some(value) = sample.values.get(figure) {
                    family.get_or_create(labels).set(*value as f64 / *units as f64);
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
            if let Some(mib) = used.memory {
                memory.get_or_create(labels).set((mib << 20) as f64);
            }
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
    fn of<'a>(
        jobs: impl Iterator<Item = &'a LiveJob>,
        gpus_of: impl Fn(&LeaseRow) -> Vec<u32>,
    ) -> Held {
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
                for gpu in gpus_of(&lease.row) {
                    held.gpus.entry((lease.row.node.clone(), gpu)).or_default().push(row.id);
                }
            }
        }
        held
    }
}

fn gpu_labels(app: &App, held: &Held, node: &str, index: u32) -> Labels {
    let device = app.service.host.measured_gpu(node, index).unwrap_or_default();
    let mut labels = vec![
        ("gpu", index.to_string()),
        ("UUID", device.uuid.unwrap_or_default()),
        ("modelName", device.model.unwrap_or_default()),
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
    memory: Option<i64>,
}

/// The GPUs that the figures of a task name.
fn measured(newest: &BTreeMap<Series, Sample>, lease: LeaseId) -> Vec<u32> {
    let task = newest.get(&Series::Task(lease));
    let bits = task.and_then(|sample| sample.values.get(&Figure::Gpus)).copied();
    figures::numbers(bits.unwrap_or(0)).collect()
}

fn by_job(newest: &BTreeMap<Series, Sample>) -> BTreeMap<JobId, Used> {
    let mut jobs: BTreeMap<JobId, Used> = BTreeMap::new();
    for (series, sample) in newest {
        let Series::Task(lease) = series else { continue };
        let used = jobs.entry(lease.job).or_default();
        if let Some(cpu) = sample.values.get(&Figure::Cpu) {
            *used.cpu.get_or_insert(0) += cpu;
        }
        if let Some(memory) = sample.values.get(&Figure::Memory) {
            *used.memory.get_or_insert(0) += memory;
        }
    }
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::Time;

    #[test]
    fn what_the_tasks_of_a_job_use_is_summed_up() {
        let series = |job, task| Series::Task(LeaseId { job: JobId::new(job), task, attempt: 0 });
        let sample = |values: &[(Figure, i64)]| Sample {
            at: Time(0),
            values: values.iter().copied().collect(),
        };
        let gpu = Series::Gpu { node: "box".to_owned(), index: 0 };
        let gpus = (Figure::Gpus, figures::bits([2, 5]));
        let newest = BTreeMap::from([
            (series(1, 0), sample(&[(Figure::Cpu, 500), (Figure::Memory, 10)])),
            (series(1, 1), sample(&[(Figure::Cpu, 250), (Figure::Memory, 5)])),
            (series(2, 0), sample(&[(Figure::Memory, 7)])),
            (series(3, 0), sample(&[gpus])),
            (gpu, sample(&[(Figure::GpuMemory, 99)])),
        ]);
        let told: Vec<(u64, Option<i64>, Option<i64>)> = by_job(&newest)
            .into_iter()
            .map(|(job, used)| (job.number, used.cpu, used.memory))
            .collect();
        assert_eq!(told, [(1, Some(750), Some(15)), (2, None, Some(7)), (3, None, None)]);
        let of = |job| measured(&newest, LeaseId { job: JobId::new(job), task: 0, attempt: 0 });
        assert_eq!((of(3), of(1)), (vec![2, 5], vec![]));
    }
}
