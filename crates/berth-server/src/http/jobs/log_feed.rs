//! What one process prints, in lines that are ready to be sent.

use super::log_cut::Cut;
use super::output::Source;
use crate::app::App;
use berth_api::wire;
use berth_model::{LeaseId, Time};
use berth_node::{LONGEST_LOG_LINE, LogFollower, LogReader, Piece};
use std::collections::VecDeque;

/// Bytes of a log that are read at once.
const CHUNK: usize = 64 << 10;
/// Looks without news after which the beginning of a line is sent without its end.
const PATIENT_LOOKS: u32 = 5;

/// Whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    pub lease: LeaseId,
    pub rank: u32,
    pub job_rank: u32,
}

/// A part of a log that is sent at once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Part {
    pub at: Option<Time>,
    pub position: u64,
    pub bytes: Vec<u8>,
    /// Bytes that are gone before it.
    pub dropped: u64,
}

/// The log of one process, read as it grows.
pub struct Feed {
    pub origin: Origin,
    source: Source,
    follower: Option<LogFollower>,
    cut: Cut,
    /// Parts that share no line with other processes.
    whole_lines: bool,
    pub ready: VecDeque<Part>,
    /// What has no end yet: of a line, or of a letter.
    held: Part,
    dropped: u64,
    quiet: u32,
    /// Nothing more was there at the last look.
    pub is_caught_up: bool,
    /// Nothing more will come of this request.
    pub is_over: bool,
    /// Nothing more will ever come.
    pub has_ended: bool,
}

impl Feed {
    pub fn new(origin: Origin, source: Source, query: &wire::LogQuery, whole_lines: bool) -> Feed {
        // Lines of several processes are counted where they come together.
        let lines = query.lines.filter(|_| !whole_lines);
        Feed {
            origin,
            source,
            follower: None,
            cut: Cut::new(query.search.clone(), lines),
            whole_lines,
            ready: VecDeque::new(),
            held: Part::default(),
            dropped: 0,
            quiet: 0,
            is_caught_up: false,
            is_over: false,
            has_ended: false,
        }
    }

    /// Nothing of it has been read yet.
    pub fn is_new(&self) -> bool {
        self.follower.is_none() && !self.is_over
    }

    /// Sees to it that what a pod has printed can be read here.
    pub async fn fetch(&self, app: &App, follow: bool) {
        let lease = self.origin.lease;
        self.source.fetch(app, lease, is_live(app, lease), follow).await;
    }

    /// Reads on. This blocks: it asks the disk.
    pub fn refill(&mut self, app: &App, query: &wire::LogQuery) {
        let Origin { lease, rank, .. } = self.origin;
        // Asked before reading: what is written until then is read below.
        let ended = !is_live(app, lease) && self.source.is_whole(app, lease);
        if self.follower.is_none() {
            let reader = self.source.read(app, lease, rank);
            let opened = reader.and_then(|reader| Some((start(&reader, query)?, reader)));
            self.follower = opened.map(|(from, reader)| reader.follow(from));
        }
        let Some(follower) = &mut self.follower else {
            // One that the machine could not begin has no log.
            self.is_over = ended || !query.follow;
            self.is_caught_up = true;
            return;
        };
        let from = follower.position();
        let Ok(pieces) = follower.read_pieces(CHUNK) else {
            self.is_over = true;
            return;
        };
        if let Some(first) = pieces.first() {
            self.dropped += first.position.saturating_sub(from);
            self.quiet = 0;
            pieces.into_iter().for_each(|piece| self.take(piece));
            if self.cut.is_over() {
                self.is_over = true;
            }
            return;
        }
        self.is_caught_up = true;
        self.quiet += 1;
        if ended || !query.follow {
            for (position, bytes) in self.cut.rest() {
                self.hold_back(position, &bytes, None, true);
            }
            self.release();
            let position = follower_end(&self.follower);
            self.push(Part { position, ..Part::default() });
            (self.is_over, self.has_ended) = (true, ended);
        } else if self.quiet >= PATIENT_LOOKS && self.whole_lines {
            self.release();
        }
    }

    fn take(&mut self, piece: Piece) {
        let Piece { position, bytes, at } = piece;
        for (position, bytes) in self.cut.take(position, &bytes) {
            self.hold_back(position, &bytes, at, false);
        }
    }

    /// Makes what has an end ready, and keeps the rest.
    fn hold_back(&mut self, position: u64, bytes: &[u8], at: Option<Time>, all: bool) {
        if self.held.position + self.held.bytes.len() as u64 != position {
            self.release();
        }
        let (mut position, mut bytes) = (position, bytes);
        if !self.held.bytes.is_empty() && self.whole_lines {
            // The line keeps the time of its beginning.
            let end = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
            self.held.bytes.extend_from_slice(&bytes[..end]);
            position += end as u64;
            bytes = &bytes[end..];
            if !self.held.bytes.ends_with(b"\n") && self.held.bytes.len() < LONGEST_LOG_LINE && !all
            {
                return;
            }
            self.release();
        }
        let mut whole = std::mem::take(&mut self.held.bytes);
        let begin = if whole.is_empty() { position } else { self.held.position };
        whole.extend_from_slice(bytes);
        let ready = match self.whole_lines {
            true => whole.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1),
            false => whole.len() - unfinished(&whole),
        };
        let ready =
            if all || whole.len() - ready >= LONGEST_LOG_LINE { whole.len() } else { ready };
        let rest = whole.split_off(ready);
        let after = begin + whole.len() as u64;
        self.held = Part { at, position: after, bytes: rest, dropped: 0 };
        if !whole.is_empty() {
            self.push(Part { at, position: begin, bytes: whole, dropped: 0 });
        }
    }

    fn release(&mut self) {
        let after = self.held.position + self.held.bytes.len() as u64;
        let held = std::mem::take(&mut self.held);
        self.held.position = after;
        if !held.bytes.is_empty() {
            self.push(held);
        }
    }

    fn push(&mut self, part: Part) {
        let dropped = std::mem::take(&mut self.dropped);
        self.ready.push_back(Part { dropped, ..part });
    }
}

fn follower_end(follower: &Option<LogFollower>) -> u64 {
    follower.as_ref().map_or(0, LogFollower::position)
}

pub fn is_live(app: &App, lease: LeaseId) -> bool {
    let core = app.service.engine.core();
    core.jobs.get(&lease.job).is_some_and(|job| job.leases.contains_key(&lease))
}

/// Bytes at the end that are the beginning of a letter.
fn unfinished(bytes: &[u8]) -> usize {
    match std::str::from_utf8(&bytes[bytes.len().saturating_sub(3)..]) {
        Ok(_) => 0,
        Err(error) => match error.error_len() {
            None => bytes.len().min(3) - error.valid_up_to(),
            // It begins in the middle of a letter; what matters is how it ends.
            Some(_) => (1..=bytes.len().min(3))
                .find(|n| {
                    let tail = std::str::from_utf8(&bytes[bytes.len() - n..]);
                    tail.is_err_and(|error| error.error_len().is_none() && error.valid_up_to() == 0)
                })
                .unwrap_or(0),
        },
    }
}

fn start(reader: &LogReader, query: &wire::LogQuery) -> Option<u64> {
    let line = query.from_line.map(|line| reader.line_start(line)).transpose().ok()?;
    if let Some(from) = line.or(query.from) {
        let before = query.before.map(|lines| reader.back(from, lines as usize));
        return Some(before.transpose().ok()?.unwrap_or(from));
    }
    let since = query.since.map(|at| reader.since(at.0)).transpose().ok()?;
    let tail = query.tail.map(|lines| reader.tail(lines as usize)).transpose().ok()?;
    Some(since.unwrap_or(0).max(tail.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::JobId;

    fn feed(whole_lines: bool) -> Feed {
        let lease = LeaseId { job: JobId::new(1), task: 0, attempt: 0 };
        let origin = Origin { lease, rank: 0, job_rank: 0 };
        Feed::new(origin, Source::Here, &wire::LogQuery::default(), whole_lines)
    }

    fn told(feed: &mut Feed, pieces: &[(&[u8], i64)]) -> Vec<(u64, String, i64)> {
        let mut position = 0;
        for (bytes, at) in pieces {
            feed.take(Piece { position, bytes: bytes.to_vec(), at: Some(Time(*at)) });
            position += bytes.len() as u64;
        }
        let parts = feed.ready.drain(..);
        parts
            .map(|part| (part.position, String::from_utf8(part.bytes).unwrap(), part.at.unwrap().0))
            .collect()
    }

    #[test]
    fn a_line_that_came_in_parts_is_sent_whole_with_the_time_of_its_beginning() {
        let pieces: [(&[u8], i64); 3] = [(b"a\nb", 1), (b"c", 2), (b"d\ne\nf", 3)];
        let expect = [(0, "a\n", 1), (2, "bcd\n", 1), (6, "e\n", 3)];
        let mut feed = feed(true);
        assert_eq!(
            told(&mut feed, &pieces),
            expect.map(|(at, text, ms)| (at, text.to_owned(), ms))
        );
        feed.release();
        assert_eq!(feed.ready.pop_front().map(|part| part.bytes), Some(b"f".to_vec()));
    }

    #[test]
    fn one_process_alone_is_sent_as_it_prints_and_no_letter_is_cut() {
        let letter = "ü€".as_bytes();
        for cut in 1..letter.len() {
            let (first, rest) = letter.split_at(cut);
            let pieces: [(&[u8], i64); 4] = [(b"x", 1), (first, 1), (rest, 2), (b"\n", 3)];
            let parts = told(&mut feed(false), &pieces);
            let all: String = parts.iter().map(|(_, text, _)| text.as_str()).collect();
            assert_eq!(all, "xü€\n", "cut at {cut}");
            let mut position = 0;
            for (at, text, _) in parts {
                assert_eq!(at, position, "cut at {cut}");
                position += text.len() as u64;
            }
        }
    }

    #[test]
    fn bytes_that_are_no_letters_are_not_held_back() {
        assert_eq!(unfinished(b"abc"), 0);
        assert_eq!(unfinished(b"ab\xff"), 0);
        assert_eq!(unfinished("ü".as_bytes()), 0);
        assert_eq!(unfinished(&"ü".as_bytes()[..1]), 1);
        assert_eq!(unfinished(&"x€".as_bytes()[..3]), 2);
        assert_eq!(unfinished(&"€€".as_bytes()[..5]), 2);
        assert_eq!(unfinished(b""), 0);
    }
}
