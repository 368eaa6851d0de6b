//! What a task wrote, kept in a bounded number of files.
//!
//! The log of a rank is one stream of bytes; a position counts from its beginning, also over
//! what has been dropped since. It lies in files called `<rank>.<position of the first byte>`,
//! each with an index `….at` of moments: pairs of a position and the time it was written.

mod reader;
mod search;
mod writer;

pub use reader::{Chunk, LogFollower, LogReader, Piece};
pub use search::{Hit as LogHit, LONGEST_LINE as LONGEST_LOG_LINE, Looked, Place as LogPlace};
pub use writer::LogWriter;

use berth_model::Time;
use serde::{Deserialize, Serialize};

/// How much of a rank's log is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLimits {
    pub file_bytes: u64,
    pub files: u32,
}

impl Default for LogLimits {
    fn default() -> LogLimits {
        LogLimits { file_bytes: 16 << 20, files: 8 }
    }
}

/// A moment is noted after so many bytes, or after so long: lines a second apart have moments of
/// their own, however late they are read.
const MARK_BYTES: u64 = 64 << 10;
const MARK_MS: i64 = 200;
/// The same in logs of earlier versions.
const OLD_MARK_MS: i64 = 1_000;
/// An index of this size ends its file. Only a log of very short and slow lines gets there.
const INDEX_BYTES: u64 = 8 << 20;

/// What was written from `position` on was written at `at` or within [`MARK_MS`] after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    position: u64,
    at: Time,
}

const MARK_SIZE: usize = 16;

impl Mark {
    fn bytes(self) -> [u8; MARK_SIZE] {
        let mut bytes = [0; MARK_SIZE];
        bytes[..8].copy_from_slice(&self.position.to_le_bytes());
        bytes[8..].copy_from_slice(&self.at.0.to_le_bytes());
        bytes
    }

    fn parse(bytes: &[u8]) -> Option<Mark> {
        let position = u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?);
        let at = i64::from_le_bytes(bytes.get(8..16)?.try_into().ok()?);
        Some(Mark { position, at: Time(at) })
    }
}

fn file_name(rank: u32, base: u64) -> String {
    format!("{rank}.{base}")
}

fn index_name(rank: u32, base: u64) -> String {
    format!("{rank}.{base}.at")
}

/// The position of a rank's file by its name; nothing for other files.
fn base_of(name: &str, rank: u32) -> Option<u64> {
    let (owner, base) = name.split_once('.')?;
    (owner.parse() == Ok(rank)).then(|| base.parse().ok())?
}

#[cfg(test)]
mod tests;
