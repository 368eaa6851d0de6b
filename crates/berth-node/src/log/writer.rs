//! The supervisor's side of a log.

use super::{INDEX_BYTES, LogLimits, MARK_BYTES, MARK_MS, MARK_SIZE, Mark};
use super::{file_name, index_name};
use crate::home::private;
use berth_model::Time;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes one rank's log. Nothing here fails: what cannot be written is counted.
#[derive(Debug)]
pub struct LogWriter {
    dir: PathBuf,
    rank: u32,
    limits: LogLimits,
    /// The positions of the files there are, oldest first.
    bases: VecDeque<u64>,
    open: Option<OpenFile>,
    position: u64,
    lost: u64,
    /// Lost since the last byte that was written.
    gap: u64,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    index: File,
    base: u64,
    index_bytes: u64,
    last: Option<Mark>,
}

impl LogWriter {
    /// The folder must be there.
    pub fn new(dir: &Path, rank: u32, limits: LogLimits) -> LogWriter {
        LogWriter {
            dir: dir.to_owned(),
            rank,
            limits,
            bases: VecDeque::new(),
            open: None,
            position: 0,
            lost: 0,
            gap: 0,
        }
    }

    pub fn lost(&self) -> u64 {
        self.lost
    }

    pub fn write(&mut self, bytes: &[u8], now: Time) {
        if self.gap > 0 {
            let note = format!("\n[berth: {} bytes of log could not be written]\n", self.gap);
            if !self.append(note.as_bytes(), now) {
                self.lose(bytes.len());
                return;
            }
            self.gap = 0;
        }
        self.append(bytes, now);
    }

    /// Whether all of it was written; what was not is counted as lost.
    fn append(&mut self, bytes: &[u8], now: Time) -> bool {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.write_some(rest, now) {
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    self.lose(rest.len());
                    return false;
                }
            }
        }
        true
    }

    fn lose(&mut self, bytes: usize) {
        self.lost += bytes as u64;
        self.gap += bytes as u64;
    }

    fn write_some(&mut self, bytes: &[u8], now: Time) -> io::Result<usize> {
        let position = self.position;
        let room = {
            let (limit, file) = (self.limits.file_bytes.max(1), self.current()?);
            file.mark(position, now)?;
            usize::try_from(limit - (position - file.base)).unwrap_or(usize::MAX)
        };
        let part = &bytes[..bytes.len().min(room)];
        let written = self.current()?.file.write(part)?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.position += written as u64;
        Ok(written)
    }

    /// The file to write to: the open one, or the next when that is full.
    fn current(&mut self) -> io::Result<&mut OpenFile> {
        let full = |open: &OpenFile| {
            self.position - open.base >= self.limits.file_bytes.max(1)
                || open.index_bytes >= INDEX_BYTES
        };
        if self.open.as_ref().is_some_and(full) {
            self.open = None;
        }
        if self.open.is_none() {
            self.drop_oldest();
            self.open = Some(OpenFile::create(&self.dir, self.rank, self.position)?);
            if self.bases.back() != Some(&self.position) {
                self.bases.push_back(self.position);
            }
        }
        Ok(self.open.as_mut().expect("it was opened above"))
    }

    /// Before a new file is made, so that there are never more than allowed.
    fn drop_oldest(&mut self) {
        while self.bases.len() >= self.limits.files.max(1) as usize {
            let Some(base) = self.bases.pop_front() else { return };
            let _ = fs::remove_file(self.dir.join(file_name(self.rank, base)));
            let _ = fs::remove_file(self.dir.join(index_name(self.rank, base)));
        }
    }
}

impl OpenFile {
    fn create(dir: &Path, rank: u32, base: u64) -> io::Result<OpenFile> {
        let open = |name| private().create(true).append(true).open(dir.join(name));
        Ok(OpenFile {
            file: open(file_name(rank, base))?,
            index: open(index_name(rank, base))?,
            base,
            index_bytes: 0,
            last: None,
        })
    }

    /// Notes the moment if enough has been written, or enough time has passed, since the last.
    fn mark(&mut self, position: u64, at: Time) -> io::Result<()> {
        let due = self.last.is_none_or(|last| {
            position - last.position >= MARK_BYTES || at.0.abs_diff(last.at.0) >= MARK_MS as u64
        });
        if due {
            let mark = Mark { position, at };
            self.index.write_all(&mark.bytes())?;
            self.index_bytes += MARK_SIZE as u64;
            self.last = Some(mark);
        }
        Ok(())
    }
}
