//! The origin of a folder: its commit, and the changes since. It is in the first entries of an archive, so
//! that a reader can stop after them.

use crate::header::plain;
use flate2::read::GzDecoder;
use std::io::{self, Read, Write};
use std::path::Path;
use tar::{Archive, Builder, EntryType};

/// The files of the origin in an archive.
const COMMIT: &str = ".berth/commit";
const DIFF: &str = ".berth/code.diff";
/// The maximum size of a diff.
pub const MOST_DIFF: usize = 1 << 20;
/// How much of an archive to read for the origin.
const MOST_READ: u64 = 4 << 20;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Origin {
    pub commit: String,
    /// Whether files differ from the commit.
    pub dirty: bool,
    /// The diff, cut at [`MOST_DIFF`]; empty if there are only untracked files.
    pub diff: String,
}

impl Origin {
    /// Reads the origin from an archive; `None` if the folder was not a repository.
    pub fn of_archive(archive: impl Read) -> Option<Origin> {
        let mut archive = Archive::new(GzDecoder::new(archive).take(MOST_READ));
        let mut found: Option<Origin> = None;
        for entry in archive.entries().ok()? {
            let mut entry = entry.ok()?;
            let path = entry.path().ok()?.into_owned();
            let mut text = String::new();
            match path.to_str() {
                Some(COMMIT) => {
                    entry.by_ref().take(1_000).read_to_string(&mut text).ok()?;
                    found = Origin::read(&text);
                }
                Some(DIFF) => {
                    entry.by_ref().take(MOST_DIFF as u64 + 100).read_to_string(&mut text).ok()?;
                    found.as_mut()?.diff = text;
                }
                _ => break,
            }
        }
        found
    }

    fn read(text: &str) -> Option<Origin> {
        let mut lines = text.lines();
        let commit = lines.next()?.to_owned();
        let is_one = commit.len() >= 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        let dirty = lines.next() == Some("dirty");
        is_one.then(|| Origin { commit, dirty, diff: String::new() })
    }

    pub(crate) fn add(&self, archive: &mut Builder<impl Write>) -> io::Result<()> {
        let state = if self.dirty { "dirty" } else { "clean" };
        let commit = format!("{}\n{state}\n", self.commit);
        add(archive, COMMIT, &commit)?;
        match self.diff.as_str() {
            "" => Ok(()),
            diff => add(archive, DIFF, diff),
        }
    }

    /// Whether a file of the folder collides with these.
    pub(crate) fn is_its_own(path: &Path) -> bool {
        path == Path::new(COMMIT) || path == Path::new(DIFF)
    }
}

/// Truncates a diff at the end of a line.
pub fn cut_diff(mut diff: String) -> String {
    if diff.len() > MOST_DIFF {
        let mut end = MOST_DIFF;
        while !diff.is_char_boundary(end) {
            end -= 1;
        }
        let end = diff[..end].rfind('\n').map_or(end, |at| at + 1);
        diff.truncate(end);
        diff.push_str("# The rest was cut off.\n");
    }
    diff
}

fn add(archive: &mut Builder<impl Write>, path: &str, text: &str) -> io::Result<()> {
    let mut header = plain(EntryType::Regular, text.len() as u64, false);
    archive.append_data(&mut header, path, text.as_bytes())
}
