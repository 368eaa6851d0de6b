//! What was measured and is not, or not wholly, in the database.

use berth_figures::{Level, Meter, Piece, Points, Recorder, Sample, Series};
use berth_model::{Bytes, LeaseId, Span, Time};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How long figures are kept, by how fine they are. For ever, and as many as there are, where left
/// out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepFigures {
    pub raw: Option<Span>,
    pub minutes: Option<Span>,
    pub hours: Option<Span>,
    /// Of all together; the finest and oldest go first.
    pub size: Option<Bytes>,
}

impl Default for KeepFigures {
    fn default() -> KeepFigures {
        KeepFigures {
            raw: Some(Span::days(2)),
            minutes: Some(Span::days(30)),
            hours: Some(Span::days(730)),
            size: Some(Bytes::gib(1)),
        }
    }
}

impl KeepFigures {
    pub fn age(&self, level: Level) -> Option<Span> {
        match level {
            Level::Raw => self.raw,
            Level::Minutes => self.minutes,
            Level::Hours => self.hours,
        }
    }
}

#[derive(Debug, Default)]
pub struct Book {
    pub keep: KeepFigures,
    entries: Mutex<BTreeMap<Series, Entry>>,
    meter: Mutex<Meter>,
}

#[derive(Debug, Default)]
struct Entry {
    recorder: Recorder,
    newest: Option<Sample>,
    /// Nothing will be added: it goes when it is written.
    over: bool,
}

impl Book {
    pub fn new(keep: KeepFigures) -> Book {
        Book { keep, ..Book::default() }
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<Series, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who uses how much energy.
    pub fn meter(&self) -> MutexGuard<'_, Meter> {
        self.meter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn push(&self, series: Series, sample: Sample) {
        let mut entries = self.entries();
        let entry = entries.entry(series).or_default();
        entry.recorder.push(&sample);
        (entry.newest, entry.over) = (Some(sample), false);
    }

    /// Goes on with a series that an earlier server began.
    pub fn resume(&self, series: Series, recorder: Recorder) {
        let mut entries = self.entries();
        entries.entry(series).or_insert(Entry { recorder, newest: None, over: false });
    }

    /// Ends the series of tasks that do not run any more.
    pub fn end_tasks(&self, runs: impl Fn(LeaseId) -> bool) {
        for (series, entry) in self.entries().iter_mut() {
            let Series::Task(lease) = series else { continue };
            if !entry.over && !runs(*lease) {
                entry.recorder.close();
                (entry.newest, entry.over) = (None, true);
            }
        }
    }

    /// Ends series that nothing was added to since then: a GPU that is gone, or a machine that has
    /// another name now.
    pub fn end_older(&self, than: Time) {
        for entry in self.entries().values_mut().filter(|entry| !entry.over) {
            if entry.recorder.last().is_some_and(|last| last < than) {
                entry.recorder.close();
                (entry.newest, entry.over) = (None, true);
            }
        }
    }

    /// A GPU that did not answer has no newest figures.
    pub fn forget_newest(&self, gone: impl Fn(&Series) -> bool) {
        for (series, entry) in self.entries().iter_mut() {
            if gone(series) {
                entry.newest = None;
            }
        }
    }

    /// The newest of each series that goes on.
    pub fn newest(&self) -> BTreeMap<Series, Sample> {
        let entries = self.entries();
        let newest = entries.iter();
        newest.filter_map(|(series, entry)| Some((series.clone(), entry.newest.clone()?))).collect()
    }

    /// What is known of a series that is not in the database, or is newer than there.
    pub fn view(&self, series: &Series, level: Level) -> Points {
        let entries = self.entries();
        entries.get(series).map_or_else(Points::default, |entry| entry.recorder.view(level))
    }

    pub(crate) fn pending(&self) -> Vec<(Series, Vec<Piece>)> {
        let entries = self.entries();
        let each = entries.iter().map(|(series, entry)| (series.clone(), entry.recorder.pending()));
        each.filter(|(_, pieces)| !pieces.is_empty()).collect()
    }

    pub(crate) fn written(&self, series: &Series, pieces: &[Piece]) {
        let mut entries = self.entries();
        let Some(entry) = entries.get_mut(series) else { return };
        entry.recorder.written(pieces);
        if entry.over && entry.recorder.is_written() {
            entries.remove(series);
        }
    }

    /// Lets go of what ended and has nothing left to write.
    pub(crate) fn forget_ended(&self) {
        self.entries().retain(|_, entry| !entry.over || !entry.recorder.is_written());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_figures::Figure;
    use berth_model::JobId;

    fn task(number: u64) -> Series {
        Series::Task(LeaseId { job: JobId::new(number), task: 0, attempt: 1 })
    }

    fn sample(at: i64) -> Sample {
        Sample { at: Time(at), values: [(Figure::Cpu, 7)].into() }
    }

    #[test]
    fn a_gpu_that_is_gone_ends_and_one_that_comes_back_goes_on() {
        let book = Book::default();
        let gpu = Series::Gpu { node: "box".into(), index: 0 };
        book.push(gpu.clone(), sample(1_000));
        book.end_older(Time(1_000));
        assert_eq!(book.newest().len(), 1);
        book.end_older(Time(1_001));
        assert_eq!((book.newest().len(), book.pending()[0].1.len()), (0, 3));
        book.push(gpu.clone(), sample(5_000));
        assert_eq!((book.newest().len(), book.view(&gpu, Level::Raw).len()), (1, 2));
    }

    #[test]
    fn a_task_that_ended_is_kept_until_it_is_written() {
        let book = Book::default();
        book.push(task(1), sample(1_000));
        book.push(task(2), sample(1_000));
        book.end_tasks(|lease| lease.job.number == 2);
        assert_eq!(book.newest().into_keys().collect::<Vec<_>>(), [task(2)]);
        assert_eq!(book.view(&task(1), Level::Raw).len(), 1);
        for (series, pieces) in book.pending() {
            // Raw, minutes and hours of what ended; what goes on has its open chunk.
            assert_eq!(pieces.len(), if series == task(1) { 3 } else { 1 });
            book.written(&series, &pieces);
        }
        assert!(book.pending().is_empty());
        assert!(book.view(&task(1), Level::Raw).is_empty(), "it is in the database");
        assert_eq!(book.view(&task(2), Level::Raw).len(), 1);
    }
}
