//! The server's side of a log.

use super::{MARK_SIZE, Mark, OLD_MARK_MS, base_of, file_name, index_name};
use crate::error::Error;
use berth_model::Time;
use rustix::fs::{Dir, Mode, OFlags, openat};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A piece of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Of the first byte. It lies behind the one that was asked for where that has been dropped.
    pub position: u64,
    pub bytes: Vec<u8>,
}

impl Chunk {
    /// Where the next one begins.
    pub fn end(&self) -> u64 {
        self.position + self.bytes.len() as u64
    }
}

/// Reads one rank's log while it is being written or after. It holds the folder open, so it goes
/// on when the folder of an ended task is moved.
#[derive(Debug)]
pub struct LogReader {
    dir: OwnedFd,
    path: PathBuf,
    rank: u32,
}

/// One file: where it begins in the log, and how long it is now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub base: u64,
    len: u64,
}

const BLOCK: u64 = 64 << 10;

impl LogReader {
    /// The log of a rank in the folder of a task.
    pub fn open(task_dir: &Path, rank: u32) -> Result<LogReader, Error> {
        let path = task_dir.join("logs");
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::open(&path, flags, Mode::empty()).map_err(|error| Error::NoLog {
            rank,
            path: path.clone(),
            source: error.into(),
        })?;
        Ok(LogReader { dir, path, rank })
    }

    /// The positions that are kept. What lies before was dropped.
    pub fn range(&self) -> Result<Range<u64>, Error> {
        let parts = self.parts()?;
        let start = parts.first().map_or(0, |part| part.base);
        let end = parts.last().map_or(0, |part| part.base + part.len);
        Ok(start..end)
    }

    /// What is there from a position on, up to `limit` bytes; empty at the end of the log.
    pub fn read(&self, position: u64, limit: usize) -> Result<Chunk, Error> {
        // The oldest file may be dropped between listing and opening it; then look again.
        loop {
            let parts = self.parts()?;
            let Some(part) = parts.iter().find(|part| position < part.base + part.len) else {
                let end = parts.last().map_or(0, |part| part.base + part.len);
                return Ok(Chunk { position: end.min(position), bytes: Vec::new() });
            };
            let from = position.max(part.base);
            let left = usize::try_from(part.base + part.len - from).unwrap_or(usize::MAX);
            let Some(file) = self.open_file(&file_name(self.rank, part.base))? else { continue };
            let mut bytes = vec![0; limit.min(left)];
            file.read_exact_at(&mut bytes, from - part.base).map_err(|e| self.failed(e))?;
            return Ok(Chunk { position: from, bytes });
        }
    }

    /// Where the last `lines` lines begin. An unfinished line counts as one.
    pub fn tail(&self, lines: usize) -> Result<u64, Error> {
        self.back(self.range()?.end, lines)
    }

    /// Where the last `lines` lines before a position begin.
    pub fn back(&self, position: u64, lines: usize) -> Result<u64, Error> {
        let range = self.range()?;
        let (mut end, mut missing) = (position.clamp(range.start, range.end), lines);
        if lines == 0 {
            return Ok(end);
        }
        // The newline that ends the last line begins no further one.
        if self.read(end.saturating_sub(1).max(range.start), 1)?.bytes == b"\n" {
            missing += 1;
        }
        while end > range.start {
            let from = end.saturating_sub(BLOCK).max(range.start);
            let bytes = self.read_exactly(from, end)?;
            for (at, byte) in bytes.iter().enumerate().rev() {
                if *byte == b'\n' {
                    missing -= 1;
                    if missing == 0 {
                        return Ok(from + at as u64 + 1);
                    }
                }
            }
            end = from;
        }
        Ok(range.start)
    }

    /// The ranks that have a log here.
    pub fn ranks(&self) -> Result<Vec<u32>, Error> {
        let mut ranks = std::collections::BTreeSet::new();
        let entries = Dir::read_from(&self.dir).map_err(|e| self.failed(e.into()))?;
        for entry in entries {
            let entry = entry.map_err(|e| self.failed(e.into()))?;
            let name = entry.file_name().to_string_lossy();
            let parts = name.split_once('.').filter(|(_, base)| base.parse::<u64>().is_ok());
            ranks.extend(parts.and_then(|(rank, _)| rank.parse::<u32>().ok()));
        }
        Ok(ranks.into_iter().collect())
    }

    /// Where that begins which was written at that time or later; up to a second more may be
    /// in it, never less.
    pub fn since(&self, at: Time) -> Result<u64, Error> {
        for part in self.parts()? {
            let marks = self.marks(part.base)?;
            if let Some(mark) = marks.iter().find(|mark| mark.at.0 + OLD_MARK_MS > at.0) {
                return Ok(mark.position);
            }
        }
        Ok(self.range()?.end)
    }

    /// When the byte at that position was written, to a fifth of a second.
    pub fn time_of(&self, position: u64) -> Result<Option<Time>, Error> {
        let parts = self.parts()?;
        let Some(part) = parts.iter().rev().find(|part| part.base <= position) else {
            return Ok(None);
        };
        let marks = self.marks(part.base)?;
        let after = marks.partition_point(|mark| mark.position <= position);
        Ok(after.checked_sub(1).map(|last| marks[last].at))
    }

    /// Goes on reading from a position.
    pub fn follow(self, position: u64) -> LogFollower {
        LogFollower::new(self, position)
    }

    /// The file that has the byte at a position: where it begins.
    fn base_at(&self, position: u64) -> Result<Option<u64>, Error> {
        let parts = self.parts()?;
        Ok(parts.iter().rev().find(|part| part.base <= position).map(|part| part.base))
    }

    /// The moments of a file from the `known`th on.
    fn marks_after(&self, base: u64, known: usize) -> Result<Vec<Mark>, Error> {
        let Some(file) = self.open_file(&index_name(self.rank, base))? else {
            return Ok(Vec::new());
        };
        let from = (known * MARK_SIZE) as u64;
        let len = file.metadata().map_err(|e| self.failed(e))?.len().saturating_sub(from);
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(0) / MARK_SIZE * MARK_SIZE];
        file.read_exact_at(&mut bytes, from).map_err(|e| self.failed(e))?;
        Ok(bytes.chunks_exact(MARK_SIZE).filter_map(Mark::parse).collect())
    }

    fn read_exactly(&self, from: u64, to: u64) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        let mut position = from;
        while position < to {
            let limit = usize::try_from(to - position).unwrap_or(usize::MAX);
            let chunk = self.read(position, limit)?;
            if chunk.bytes.is_empty() {
                break;
            }
            position = chunk.end();
            bytes.extend(chunk.bytes);
        }
        Ok(bytes)
    }

    pub(super) fn parts(&self) -> Result<Vec<Part>, Error> {
        let mut parts = Vec::new();
        let entries = Dir::read_from(&self.dir).map_err(|e| self.failed(e.into()))?;
        for entry in entries {
            let entry = entry.map_err(|e| self.failed(e.into()))?;
            let name = entry.file_name().to_string_lossy();
            let Some(base) = base_of(&name, self.rank) else { continue };
            if let Some(file) = self.open_file(&name)? {
                let len = file.metadata().map_err(|e| self.failed(e))?.len();
                parts.push(Part { base, len });
            }
        }
        parts.sort_by_key(|part| part.base);
        Ok(parts)
    }

    pub(super) fn marks(&self, base: u64) -> Result<Vec<Mark>, Error> {
        self.marks_after(base, 0)
    }

    fn open_file(&self, name: &str) -> Result<Option<File>, Error> {
        match openat(&self.dir, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
            Ok(fd) => Ok(Some(File::from(fd))),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(error) => Err(self.failed(error.into())),
        }
    }

    fn failed(&self, source: io::Error) -> Error {
        Error::Read { path: self.path.clone(), source }
    }
}

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
    fn new(reader: LogReader, position: u64) -> LogFollower {
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
