//! One series as it grows: the open chunk of each level, and what is still to be written.
//!
//! A raw chunk ends every quarter of an hour. Its minutes and hours are worked out then; until then
//! they are worked out for whoever looks.

use crate::points::{Points, Sample};
use crate::thin::{Level, floor, thin};
use berth_model::{Span, Time};

/// Raw chunks that wait to be written, where the database is away. The oldest go.
const MOST_WAITING: usize = 200;

/// A chunk to write. One with the same level and start takes its place later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    pub level: Level,
    pub start: Time,
    /// What was measured before then is in it.
    pub end: Time,
    pub points: Points,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recorder {
    raw: Points,
    minutes: Points,
    hours: Points,
    /// Chunks that will not change any more, or that have changed since they were written.
    waiting: Vec<Piece>,
    /// The raw chunk has changed since it was written.
    dirty: bool,
}

impl Recorder {
    /// Goes on where a server stopped: with the minutes and hours that are kept of the time, and the
    /// raw chunks that were not made into minutes yet, in their order.
    pub fn resumed(minutes: Points, hours: Points, raw: Vec<Points>) -> Recorder {
        let mut recorder = Recorder { minutes, hours, ..Recorder::default() };
        for chunk in raw {
            recorder.close();
            recorder.raw = chunk;
        }
        recorder
    }

    /// Adds a sample. One that is not later than the last is left out.
    pub fn push(&mut self, sample: &Sample) {
        let start = Level::Raw.chunk_start(sample.at);
        if self.raw.times.first().is_some_and(|first| Level::Raw.chunk_start(*first) < start) {
            self.close();
        }
        self.raw.push(sample);
        self.dirty = true;
    }

    /// Ends the raw chunk, and makes minutes and hours of it.
    pub fn close(&mut self) {
        let raw = std::mem::take(&mut self.raw);
        let (Some(first), Some(end)) = (raw.times.first().copied(), raw.end()) else { return };
        let start = Level::Raw.chunk_start(first);
        // A chunk that has not changed is written all the same: it is cheaper than to remember.
        self.wait(Piece { level: Level::Raw, start, end, points: raw.clone() });
        self.dirty = false;
        let minutes = joined(&self.minutes, &thin(&raw, Span::mins(1)), Level::Minutes);
        self.hours = hours(&self.hours, &minutes, first);
        self.minutes = minutes;
        for (level, points) in
            [(Level::Minutes, self.minutes.clone()), (Level::Hours, self.hours.clone())]
        {
            self.wait(Piece { level, start: level.chunk_start(first), end, points });
        }
    }

    fn wait(&mut self, piece: Piece) {
        self.waiting.retain(|old| (old.level, old.start) != (piece.level, piece.start));
        self.waiting.push(piece);
        let raw = |piece: &Piece| piece.level == Level::Raw;
        if self.waiting.iter().filter(|piece| raw(piece)).count() > MOST_WAITING {
            let oldest = self.waiting.iter().position(raw).expect("there are some");
            self.waiting.remove(oldest);
        }
    }

    /// What is to be written now; the open raw chunk is among it.
    pub fn pending(&self) -> Vec<Piece> {
        let mut all = self.waiting.clone();
        if let (true, Some(first), Some(end)) = (self.dirty, self.raw.times.first(), self.raw.end())
        {
            let start = Level::Raw.chunk_start(*first);
            all.push(Piece { level: Level::Raw, start, end, points: self.raw.clone() });
        }
        all
    }

    /// These were written.
    pub fn written(&mut self, pieces: &[Piece]) {
        self.waiting.retain(|waiting| !pieces.contains(waiting));
        let written_to = pieces.iter().filter(|piece| piece.level == Level::Raw);
        let written_to = written_to.map(|piece| piece.end).max();
        if self.raw.end() <= written_to {
            self.dirty = false;
        }
    }

    /// Nothing of it is left to write.
    pub fn is_written(&self) -> bool {
        self.waiting.is_empty() && !self.dirty
    }

    /// What is known here of a level, up to the last sample. Older points are in the database.
    pub fn view(&self, level: Level) -> Points {
        let waiting = self.waiting.iter().filter(|piece| piece.level == level);
        let mut old: Vec<&Piece> = waiting.collect();
        old.sort_by_key(|piece| piece.start);
        let mut all = Points::default();
        old.iter().for_each(|piece| all = all.overlaid(&piece.points));
        let open = match level {
            Level::Raw => self.raw.clone(),
            Level::Minutes => self.open_minutes(),
            Level::Hours => match self.raw.times.first() {
                Some(first) => hours(&self.hours, &self.open_minutes(), *first),
                None => self.hours.clone(),
            },
        };
        all.overlaid(&open)
    }

    fn open_minutes(&self) -> Points {
        joined(&self.minutes, &thin(&self.raw, Span::mins(1)), Level::Minutes)
    }

    /// The newest sample.
    pub fn last(&self) -> Option<Time> {
        self.raw.times.last().copied()
    }
}

/// The open chunk of a level with more points, which begins anew where they belong to a later one.
fn joined(open: &Points, more: &Points, level: Level) -> Points {
    let (Some(first), Some(next)) = (open.times.first(), more.times.first()) else {
        return if open.is_empty() { more.clone() } else { open.clone() };
    };
    if level.chunk_start(*first) < level.chunk_start(*next) {
        return more.clone();
    }
    // The last minute may have been kept in part.
    open.overlaid(more)
}

/// The open chunk of hours, worked out anew from the hour of that moment on.
fn hours(open: &Points, minutes: &Points, from: Time) -> Points {
    let from = floor(from, Span::hours(1));
    let more = thin(&minutes.between(from, Time(i64::MAX)), Span::hours(1));
    joined(open, &more, Level::Hours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Column, Figure};

    const START: i64 = 1_700_000_000_000 / 86_400_000 * 86_400_000;

    fn sample(second: i64, value: i64) -> Sample {
        let at = Time(START + second * 1_000);
        Sample { at, values: [(Figure::Cpu, value)].into() }
    }

    fn fill(recorder: &mut Recorder, seconds: std::ops::Range<i64>) {
        for second in seconds.step_by(5) {
            recorder.push(&sample(second, second / 60));
        }
    }

    /// Level, minutes since the start of the day, and points.
    fn told(pieces: &[Piece]) -> Vec<(Level, i64, usize)> {
        let one = |piece: &Piece| {
            let chunk = piece.level.chunk_start(piece.points.times[0]);
            assert_eq!(chunk, piece.start);
            (piece.level, (piece.start.0 - START) / 60_000, piece.points.len())
        };
        pieces.iter().filter(|piece| piece.level != Level::Hours).map(one).collect()
    }

    #[test]
    fn a_raw_chunk_is_written_each_time_and_the_others_when_it_closes() {
        let mut recorder = Recorder::default();
        fill(&mut recorder, 0..60);
        let first = recorder.pending();
        assert_eq!(told(&first), [(Level::Raw, 0, 12)]);
        recorder.written(&first);
        assert!(recorder.is_written() && recorder.pending().is_empty());
        fill(&mut recorder, 60..960);
        let pieces = recorder.pending();
        let expect = [(Level::Raw, 0, 180), (Level::Minutes, 0, 15), (Level::Raw, 15, 12)];
        assert_eq!(told(&pieces), expect);
        // What came while it was written is not taken for written.
        fill(&mut recorder, 960..965);
        recorder.written(&pieces);
        assert_eq!(told(&recorder.pending()), [(Level::Raw, 15, 13)]);
    }

    #[test]
    fn every_level_can_be_looked_at_up_to_the_last_sample() {
        let mut recorder = Recorder::default();
        fill(&mut recorder, 0..2 * 3_600 + 90);
        let minutes = recorder.view(Level::Minutes);
        assert_eq!(minutes.len(), 122);
        let values: Vec<i64> = minutes.values(Figure::Cpu).map(|(_, value)| value).collect();
        assert_eq!(values, (0..122).collect::<Vec<i64>>());
        let hours = recorder.view(Level::Hours);
        assert_eq!(hours.columns[&Column::max(Figure::Cpu)], [Some(59), Some(119), Some(121)]);
        // The database may have an older answer for the same hour.
        let stored = recorder.pending();
        let stored = stored.iter().find(|piece| piece.level == Level::Hours).unwrap();
        assert_eq!(stored.points.overlaid(&hours), hours);
        assert_eq!(recorder.view(Level::Raw).len(), (2 * 720 + 18) as usize);
    }

    #[test]
    fn a_server_that_was_killed_goes_on_where_the_database_ends() {
        let mut whole = Recorder::default();
        let (mut kept, mut killed) = (std::collections::BTreeMap::new(), Recorder::default());
        for part in 0..40 {
            fill(&mut whole, part * 60..(part + 1) * 60);
            fill(&mut killed, part * 60..(part + 1) * 60);
            let pieces = killed.pending();
            // The last chunk that closed was not written.
            if part < 30 {
                killed.written(&pieces);
                kept.extend(pieces.into_iter().map(|p| ((p.level, p.start), p)));
            }
        }
        let level = |level| kept.values().filter(move |piece| piece.level == level);
        let minutes = level(Level::Minutes).next_back().unwrap();
        let raw = level(Level::Raw).filter(|piece| piece.end > minutes.end);
        let raw = raw.map(|piece| piece.points.clone()).collect();
        let hours = level(Level::Hours).next_back().unwrap().points.clone();
        let mut again = Recorder::resumed(minutes.points.clone(), hours, raw);
        fill(&mut again, 30 * 60..40 * 60);
        again.close();
        whole.close();
        for level in [Level::Minutes, Level::Hours] {
            assert_eq!(again.view(level), whole.view(level), "{level:?}");
        }
    }

    #[test]
    fn a_new_day_begins_a_new_chunk_of_minutes() {
        let mut recorder = Recorder::default();
        fill(&mut recorder, 86_400 - 600..86_400 + 1_200);
        let days: Vec<i64> = recorder
            .pending()
            .iter()
            .filter(|piece| piece.level == Level::Minutes)
            .map(|piece| (piece.start.0 - START) / 86_400_000)
            .collect();
        assert_eq!(days, [0, 1]);
        assert_eq!(recorder.view(Level::Minutes).len(), 30);
    }

    #[test]
    fn a_database_that_is_away_for_long_does_not_fill_the_memory() {
        let mut recorder = Recorder::default();
        for chunk in 0..300 {
            recorder.push(&sample(chunk * 900, 1));
        }
        let raw = recorder.pending().iter().filter(|piece| piece.level == Level::Raw).count();
        assert_eq!(raw, MOST_WAITING + 1);
    }
}
