//! Reading a log as it grows.

use super::Mark;
use super::reader::{Chunk, LogReader};
use crate::error::Error;
use berth_model::Time;

/// A part of a log that was written at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Of the first byte.
    pub position: u64,
    pub bytes: Vec<u8>,
    /// When it was written, where that is known.
    pub at: Option<Time>,
}

/// A place in a log that moves on as it is read.
#[derive(Debug)]
pub struct LogFollower {
    reader: LogReader,
    position: u64,
    /// The file that was read last, and its moments as far as they were needed.
    base: Option<u64>,
    marks: Vec<Mark>,
}

impl LogFollower {
    pub(super) fn new(reader: LogReader, position: u64) -> LogFollower {
        LogFollower { reader, position, base: None, marks: Vec::new() }
    }

    pub fn position(&self) -> u64 {
        self.position
    }

    /// What was written since the last call, up to `limit` bytes; empty if nothing was. It never
    /// waits: whether more will come is for the driver to say.
    pub fn read_more(&mut self, limit: usize) -> Result<Chunk, Error> {
        let chunk = self.reader.read(self.position, limit)?;
        self.position = chunk.end();
        Ok(chunk)
    }

    /// The same, cut where the time changes.
    pub fn read_pieces(&mut self, limit: usize) -> Result<Vec<Piece>, Error> {
        let chunk = self.read_more(limit)?;
        if chunk.bytes.is_empty() {
            return Ok(Vec::new());
        }
        self.learn(&chunk)?;
        let (mut pieces, mut rest, mut position) = (Vec::new(), chunk.bytes, chunk.position);
        while !rest.is_empty() {
            let after = self.marks.partition_point(|mark| mark.position <= position);
            let at = after.checked_sub(1).map(|last| self.marks[last].at);
            let next = self.marks.get(after).map_or(u64::MAX, |mark| mark.position);
            let length = usize::try_from(next - position).unwrap_or(usize::MAX).min(rest.len());
            let later = rest.split_off(length);
            pieces.push(Piece { position, bytes: rest, at });
            position += length as u64;
            rest = later;
        }
        Ok(pieces)
    }

    /// Reads the moments of a chunk, which lies in one file.
    fn learn(&mut self, chunk: &Chunk) -> Result<(), Error> {
        let base = self.reader.base_at(chunk.position)?;
        if self.base != base {
            (self.base, self.marks) = (base, Vec::new());
        }
        if let Some(base) = base {
            self.marks.extend(self.reader.marks_after(base, self.marks.len())?);
        }
        Ok(())
    }
}
