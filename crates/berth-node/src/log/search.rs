//! Looking for lines in a log. Each look reads a bounded number of bytes and says where it stopped.

use super::LogReader;
use crate::error::Error;
use berth_model::Time;

const BLOCK: usize = 256 << 10;
/// A line that is longer is looked at in pieces.
pub const LONGEST_LINE: usize = 64 << 10;
/// Of a line that is found, so much is kept.
const SHOWN: usize = 4 << 10;

/// Where a look begins, and where the next one may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// The first byte of a line.
    pub position: u64,
    /// The number of that line, from 0 for the first one that is kept.
    pub line: u64,
    /// Lines found before it.
    pub found: u64,
}

/// A line that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    pub position: u64,
    pub line: u64,
    /// Without its end; the beginning of it where it is long.
    pub bytes: Vec<u8>,
}

/// What a look came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looked {
    pub hits: Vec<Hit>,
    /// After the last hit in the answer, or where the search stopped if the answer has all hits.
    pub next: Place,
    /// Lines found up to where the look stopped, those before it included.
    pub found: u64,
    pub bytes: u64,
    /// It came to the end of the log.
    pub whole: bool,
}

struct Look<'a> {
    wanted: &'a dyn Fn(&[u8]) -> bool,
    most: usize,
    at: Place,
    hits: Vec<Hit>,
    /// After the last hit that there was room for.
    full: Option<Place>,
}

impl Look<'_> {
    fn line(&mut self, line: &[u8], ends: bool) {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        let hit = (self.wanted)(text);
        if hit && self.hits.len() < self.most {
            let bytes = text[..text.len().min(SHOWN)].to_vec();
            self.hits.push(Hit { position: self.at.position, line: self.at.line, bytes });
        }
        self.at.position += line.len() as u64;
        self.at.line += u64::from(ends);
        self.at.found += u64::from(hit);
        if hit && self.most > 0 && self.hits.len() == self.most && self.full.is_none() {
            self.full = Some(self.at);
        }
    }
}

impl LogReader {
    /// Lines that are wanted, from a place on: so many of them at most, and all of them counted, for
    /// as long as there are bytes to be read and it is not enough. That is asked after each line.
    pub fn search(
        &self,
        from: Place,
        most_bytes: u64,
        most: usize,
        wanted: &dyn Fn(&[u8]) -> bool,
        enough: &dyn Fn() -> bool,
    ) -> Result<Looked, Error> {
        let begin = from.position.max(self.range()?.start);
        let at = Place { position: begin, ..from };
        let mut look = Look { wanted, most, at, hits: Vec::new(), full: None };
        let mut carry: Vec<u8> = Vec::new();
        let (mut read, mut whole, mut stopped) = (0, false, false);
        // One line at the least, so that the next look is at another place.
        while !stopped && (read < most_bytes || look.at.position == begin) {
            let next = look.at.position + carry.len() as u64;
            let chunk = self.read(next, BLOCK)?;
            if chunk.bytes.is_empty() {
                whole = true;
                break;
            }
            if chunk.position > next {
                // What lay between was dropped meanwhile.
                look.at.position = chunk.position;
                carry.clear();
            }
            read += chunk.bytes.len() as u64;
            carry.extend(chunk.bytes);
            let mut done = 0;
            while !stopped && let Some(length) = line_of(&carry[done..]) {
                let ends = carry[done + length - 1] == b'\n';
                look.line(&carry[done..done + length], ends);
                done += length;
                stopped = enough();
            }
            carry.drain(..done);
        }
        if whole && !carry.is_empty() {
            look.line(&carry, false);
        }
        let next = look.full.unwrap_or(look.at);
        Ok(Looked { hits: look.hits, next, found: look.at.found, bytes: read, whole })
    }

    /// Where a line begins, from 0 for the first one that is kept; the end where there are fewer.
    pub fn line_start(&self, line: u64) -> Result<u64, Error> {
        let mut position = self.range()?.start;
        let mut left = line;
        while left > 0 {
            let chunk = self.read(position, BLOCK)?;
            if chunk.bytes.is_empty() {
                return Ok(chunk.end());
            }
            for (at, _) in chunk.bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
                left -= 1;
                if left == 0 {
                    return Ok(chunk.position + at as u64 + 1);
                }
            }
            position = chunk.end();
        }
        Ok(position)
    }

    /// When the bytes at these positions were written, each to the second.
    pub fn times_of(&self, positions: &[u64]) -> Result<Vec<Option<Time>>, Error> {
        let parts = self.parts()?;
        let mut known: Option<(u64, Vec<super::Mark>)> = None;
        let mut times = Vec::with_capacity(positions.len());
        for position in positions {
            let part = parts.iter().rev().find(|part| part.base <= *position);
            let Some(part) = part else {
                times.push(None);
                continue;
            };
            if known.as_ref().is_none_or(|(base, _)| *base != part.base) {
                known = Some((part.base, self.marks(part.base)?));
            }
            let marks = known.as_ref().map_or(&[][..], |(_, marks)| marks);
            let after = marks.partition_point(|mark| mark.position <= *position);
            times.push(after.checked_sub(1).map(|last| marks[last].at));
        }
        Ok(times)
    }
}

/// The length of the first line with its end, or of a piece of one that is too long.
fn line_of(bytes: &[u8]) -> Option<usize> {
    let most = bytes.len().min(LONGEST_LINE);
    match bytes[..most].iter().position(|byte| *byte == b'\n') {
        Some(at) => Some(at + 1),
        None => (bytes.len() >= LONGEST_LINE).then_some(LONGEST_LINE),
    }
}
