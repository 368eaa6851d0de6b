//! One look at all GPUs and tasks.

use berth_figures::{Figure, Sample, Series};
use berth_model::{Bytes, LeaseId, Span, Time};
use berth_node::{GpuFigures, MigPart, ReadGpus, TaskUse};
use berth_service::Book;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// What says nothing for so long has ended.
const STALE: Span = Span::mins(30);

pub struct Sampler {
    node: String,
    /// Nothing where there are no GPUs, or declared ones.
    gpus: Option<Box<dyn ReadGpus>>,
    /// What tasks had used at the last look.
    before: BTreeMap<LeaseId, (Instant, TaskUse)>,
}

impl Sampler {
    pub fn new(node: String, gpus: Option<Box<dyn ReadGpus>>) -> Sampler {
        Sampler { node, gpus, before: BTreeMap::new() }
    }

    /// A task with MIG instances has what they do among its own figures.
    pub fn look(
        &mut self,
        at: Time,
        used: &BTreeMap<LeaseId, TaskUse>,
        parts: &BTreeMap<LeaseId, Vec<MigPart>>,
        book: &Book,
    ) {
        let of_parts = self.look_at_parts(parts);
        self.tasks(at, used, &of_parts, Instant::now(), book);
        self.look_at_gpus(at, book);
        book.end_older(at - STALE);
    }

    fn look_at_parts(
        &mut self,
        parts: &BTreeMap<LeaseId, Vec<MigPart>>,
    ) -> BTreeMap<LeaseId, BTreeMap<Figure, i64>> {
        let Some(gpus) = self.gpus.as_mut().filter(|_| !parts.is_empty()) else {
            return BTreeMap::new();
        };
        let all: Vec<MigPart> = parts.values().flatten().cloned().collect();
        let mut read = gpus.read_parts(&all).into_iter();
        let each = parts.iter().map(|(lease, parts)| {
            let figures: Vec<GpuFigures> = read.by_ref().take(parts.len()).collect();
            (*lease, part_values(&figures))
        });
        each.collect()
    }

    fn tasks(
        &mut self,
        at: Time,
        used: &BTreeMap<LeaseId, TaskUse>,
        of_parts: &BTreeMap<LeaseId, BTreeMap<Figure, i64>>,
        now: Instant,
        book: &Book,
    ) {
        for (lease, used) in used {
            let before = self.before.get(lease);
            let mut values = task_values(used, before.map(|(then, used)| (now - *then, *used)));
            values.extend(of_parts.get(lease).into_iter().flatten());
            book.push(Series::Task(*lease), Sample { at, values });
        }
        book.end_tasks(|lease| used.contains_key(&lease));
        self.before = used.iter().map(|(lease, used)| (*lease, (now, *used))).collect();
    }

    fn look_at_gpus(&mut self, at: Time, book: &Book) {
        let Some(gpus) = &mut self.gpus else { return };
        let mut seen = BTreeSet::new();
        for figures in gpus.read() {
            let values = gpu_values(&figures);
            if !values.is_empty() {
                seen.insert(figures.index);
                let series = Series::Gpu { node: self.node.clone(), index: figures.index };
                if let Some(counter) = values.get(&Figure::Energy) {
                    book.meter().read(figures.index, *counter, at);
                }
                book.push(series, Sample { at, values });
            }
        }
        book.forget_newest(
            |series| matches!(series, Series::Gpu { index, .. } if !seen.contains(index)),
        );
    }
}

fn task_values(
    used: &TaskUse,
    before: Option<(std::time::Duration, TaskUse)>,
) -> BTreeMap<Figure, i64> {
    // A counter that fell has lost a process: nothing is known of the time in between.
    let grown = |now: fn(&TaskUse) -> Option<u64>| {
        let (time, before) = before?;
        let grown = now(used)?.checked_sub(now(&before)?)?;
        let ms = u64::try_from(time.as_millis()).ok().filter(|ms| *ms > 0)?;
        i64::try_from(u128::from(grown) * 1_000 / u128::from(ms)).ok()
    };
    let values = [
        (Figure::Cpu, grown(|used| used.cpu_ms)),
        (Figure::Memory, used.memory.map(mib)),
        (Figure::Read, grown(|used| used.read_bytes).map(|bytes| bytes >> 10)),
        (Figure::Written, grown(|used| used.written_bytes).map(|bytes| bytes >> 10)),
        (Figure::Processes, used.processes.map(i64::from)),
    ];
    there(values)
}

/// Of all parts of a task: memory in all, activity in the mean.
fn part_values(parts: &[GpuFigures]) -> BTreeMap<Figure, i64> {
    let mean = |of: fn(&GpuFigures) -> Option<i64>| {
        let known: Vec<i64> = parts.iter().filter_map(of).collect();
        (!known.is_empty()).then(|| known.iter().sum::<i64>() / known.len() as i64)
    };
    let memory: Vec<i64> = parts.iter().filter_map(|part| part.memory_used.map(mib)).collect();
    there([
        (Figure::SmActive, mean(|part| part.sm_active)),
        (Figure::TensorActive, mean(|part| part.tensor_active)),
        (Figure::DramActive, mean(|part| part.dram_active)),
        (Figure::GpuMemory, (!memory.is_empty()).then(|| memory.iter().sum())),
    ])
}

fn gpu_values(found: &GpuFigures) -> BTreeMap<Figure, i64> {
    let values = [
        (Figure::Utilization, found.utilization_percent.map(|percent| i64::from(percent) * 10)),
        (Figure::SmActive, found.sm_active),
        (Figure::TensorActive, found.tensor_active),
        (Figure::DramActive, found.dram_active),
        (Figure::GpuMemory, found.memory_used.map(mib)),
        (Figure::Power, found.power_milliwatts.map(i64::from)),
        (Figure::Energy, found.energy_millijoules.and_then(|energy| i64::try_from(energy).ok())),
        (Figure::SmClock, found.sm_clock_mhz.map(i64::from)),
        (Figure::SmClockMax, found.sm_clock_max_mhz.map(i64::from)),
        (Figure::ClockReasons, found.clock_reasons.and_then(|bits| i64::try_from(bits).ok())),
        (Figure::Temperature, found.temperature_celsius.map(i64::from)),
    ];
    there(values)
}

fn there<const N: usize>(values: [(Figure, Option<i64>); N]) -> BTreeMap<Figure, i64> {
    values.into_iter().filter_map(|(figure, value)| Some((figure, value?))).collect()
}

/// To the next larger one: a process that is there has some memory.
fn mib(bytes: Bytes) -> i64 {
    bytes.0.saturating_add((1 << 20) - 1) >> 20
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_figures::Level;
    use berth_model::JobId;
    use berth_node::{Activity, GpuReader, Player, RecordedGpu};
    use std::time::Duration;

    fn lease(job: u64) -> LeaseId {
        LeaseId { job: JobId::new(job), task: 0, attempt: 1 }
    }

    fn used(cpu_ms: u64, written: u64) -> TaskUse {
        TaskUse {
            cpu_ms: Some(cpu_ms),
            memory: Some(Bytes::mib(300)),
            read_bytes: None,
            written_bytes: Some(written),
            processes: Some(4),
        }
    }

    #[test]
    fn rates_are_taken_between_two_looks_and_a_task_that_is_gone_has_ended() {
        let (book, mut sampler) = (Book::default(), Sampler::new("box".into(), None));
        let begun = Instant::now();
        let mut look = |second: u64, tasks: &[(LeaseId, TaskUse)]| {
            let at = Time(1_700_000_000_000 + second as i64 * 1_000);
            let now = begun + Duration::from_secs(second);
            sampler.tasks(at, &tasks.iter().copied().collect(), &BTreeMap::new(), now, &book);
        };
        look(0, &[(lease(1), used(100, 0)), (lease(2), used(0, 0))]);
        look(5, &[(lease(1), used(10_100, 5 << 20)), (lease(2), used(0, 0))]);
        look(10, &[(lease(1), used(9_000, 6 << 20))]);
        let points = book.view(&Series::Task(lease(1)), Level::Raw);
        let values = |figure| points.values(figure).map(|(_, value)| value).collect::<Vec<_>>();
        assert_eq!(values(Figure::Cpu), [2_000], "two cores, and then a counter that fell");
        assert_eq!(values(Figure::Written), [1_024, 204]);
        assert_eq!(values(Figure::Read), [0; 0]);
        assert_eq!((values(Figure::Memory), values(Figure::Processes)), (vec![300; 3], vec![4; 3]));
        let goes_on: Vec<Series> = book.newest().into_keys().collect();
        assert_eq!(goes_on, [Series::Task(lease(1))]);
    }

    #[test]
    fn gpus_tell_what_they_do_and_one_that_vanishes_has_no_newest_figures() {
        let gpu = RecordedGpu {
            figures: GpuFigures {
                utilization_percent: Some(99),
                memory_used: Some(Bytes::mib(71_424)),
                energy_millijoules: Some(5_000),
                sm_clock_max_mhz: Some(1_980),
                ..GpuFigures::default()
            },
            activity: vec![Some(Activity { tensor: Some(64.0), ..Activity::default() })],
        };
        let player = Player::new(vec![gpu.clone(), gpu]).losing(1, 2);
        let mut sampler = Sampler::new("box".into(), Some(Box::new(GpuReader::new(player))));
        let book = Book::default();
        for second in 0..3 {
            sampler.look(Time(second * 1_000), &BTreeMap::new(), &BTreeMap::new(), &book);
        }
        let of = |index| Series::Gpu { node: "box".into(), index };
        let newest = book.newest();
        assert_eq!(newest.keys().cloned().collect::<Vec<_>>(), [of(0)]);
        let expect = [
            (Figure::Utilization, 990),
            (Figure::TensorActive, 640),
            (Figure::GpuMemory, 71_424),
            (Figure::Energy, 5_000),
            (Figure::SmClockMax, 1_980),
        ];
        assert_eq!(newest[&of(0)].values, expect.into());
        assert_eq!(book.view(&of(1), Level::Raw).len(), 2, "what it did before is kept");
    }

    #[test]
    fn a_task_with_mig_instances_has_what_they_do_among_its_figures() {
        let gpu = RecordedGpu {
            figures: GpuFigures { memory_used: Some(Bytes::mib(9_000)), ..GpuFigures::default() },
            activity: vec![Some(Activity { sm: Some(30.0), ..Activity::default() })],
        };
        let reader = GpuReader::new(Player::new(vec![gpu]));
        let mut sampler = Sampler::new("box".into(), Some(Box::new(reader)));
        let part = |instance| MigPart { gpu: 0, instance, uuid: format!("MIG-{instance}") };
        let parts = BTreeMap::from([(lease(1), vec![part(1), part(2)])]);
        let tasks = [(lease(1), used(0, 0)), (lease(2), used(0, 0))].into();
        let book = Book::default();
        for second in 0..2 {
            sampler.look(Time(second * 1_000), &tasks, &parts, &book);
        }
        let newest = book.newest();
        let of = |job, figure| newest[&Series::Task(lease(job))].values.get(&figure).copied();
        assert_eq!(of(1, Figure::SmActive), Some(300));
        assert_eq!(of(1, Figure::GpuMemory), Some(18_000));
        assert_eq!((of(1, Figure::Memory), of(2, Figure::SmActive)), (Some(300), None));
    }
}
