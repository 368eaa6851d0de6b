//! The files that a hash of DVC stands for: itself, or those that the list of a folder names.

use crate::blobs::DVC;
use berth_blobs::{BlobId, Blobs};
use berth_model::DataHash;
use berth_store::{BlobNameRow, Store};
use futures_util::TryStreamExt;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// The longest list of a folder; a million files take about half of it.
const LONGEST_LIST: u64 = 256 << 20;
/// Names that are looked for at once.
const AT_ONCE: usize = 500;
/// The longest path of a file, and the longest part of one.
const LONGEST_PATH: usize = 3_072;
const LONGEST_PART: usize = 255;

#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    #[error("team {team} has not pushed {hash}")]
    Absent { team: String, hash: String },
    #[error("{missing} of {all} files of {hash} are not pushed, such as {example}")]
    Incomplete { hash: String, missing: usize, all: usize, example: String },
    #[error("{hash} is no list of files: {why}")]
    Odd { hash: String, why: String },
    #[error(transparent)]
    Store(#[from] berth_store::Error),
    #[error(transparent)]
    Blobs(#[from] berth_blobs::Error),
}

/// A file of data.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TreeFile {
    /// Below the folder; nothing where the data is one file.
    pub path: Option<String>,
    pub md5: String,
    pub id: BlobId,
    pub bytes: u64,
}

/// In the order of paths.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tree {
    pub files: Vec<TreeFile>,
}

impl Tree {
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

/// As DVC writes it.
#[derive(Debug, Deserialize)]
struct Line {
    md5: String,
    relpath: String,
}

/// What a hash stands for, all of which is there.
pub async fn read(store: &Store, blobs: &Blobs, team: &str, hash: &str) -> Result<Tree, TreeError> {
    let absent = || TreeError::Absent { team: team.to_owned(), hash: hash.to_owned() };
    let parsed: DataHash = hash.parse().map_err(|_| absent())?;
    let row = store.get::<BlobNameRow>((team, DVC, hash)).await?.ok_or_else(absent)?;
    let id: BlobId = row.sha256.parse().map_err(|_| absent())?;
    if !parsed.is_folder() {
        let md5 = parsed.md5().to_owned();
        return Ok(Tree { files: vec![TreeFile { path: None, md5, id, bytes: row.bytes }] });
    }
    let lines = lines(blobs, hash, &id, row.bytes).await?;
    let all = lines.len();
    let known = known(store, team, &lines).await?;
    let mut files = Vec::with_capacity(all);
    let (mut missing, mut example) = (0, String::new());
    for (path, md5) in lines {
        match known.get(&md5) {
            Some((id, bytes)) => {
                files.push(TreeFile { path: Some(path), md5, id: id.clone(), bytes: *bytes });
            }
            None => {
                missing += 1;
                example = path;
            }
        }
    }
    if missing > 0 {
        return Err(TreeError::Incomplete { hash: hash.to_owned(), missing, all, example });
    }
    Ok(Tree { files })
}

/// The MD5 sums of the files of a folder, without a look at whether they are there.
pub async fn sums(
    store: &Store,
    blobs: &Blobs,
    team: &str,
    hash: &DataHash,
) -> Result<BTreeSet<String>, TreeError> {
    if !hash.is_folder() {
        return Ok(BTreeSet::new());
    }
    let row = store.get::<BlobNameRow>((team, DVC, hash.as_str())).await?;
    let Some((id, bytes)) = row.and_then(|row| Some((row.sha256.parse().ok()?, row.bytes))) else {
        return Ok(BTreeSet::new());
    };
    let lines = lines(blobs, hash.as_str(), &id, bytes).await?;
    Ok(lines.into_values().collect())
}

/// Paths with the MD5 sums of their files.
async fn lines(
    blobs: &Blobs,
    hash: &str,
    id: &BlobId,
    bytes: u64,
) -> Result<BTreeMap<String, String>, TreeError> {
    let odd = |why: String| TreeError::Odd { hash: hash.to_owned(), why };
    if bytes > LONGEST_LIST {
        return Err(odd(format!("it has more than {LONGEST_LIST} bytes")));
    }
    let content = blobs.read(id, 0..bytes).await?;
    let mut text = Vec::with_capacity(usize::try_from(bytes).unwrap_or_default());
    let read = content.try_for_each(|piece| {
        text.extend_from_slice(&piece);
        std::future::ready(Ok(()))
    });
    read.await.map_err(|error| odd(error.to_string()))?;
    let parsed: Vec<Line> =
        serde_json::from_slice(&text).map_err(|error| odd(error.to_string()))?;
    let mut lines = BTreeMap::new();
    for Line { md5, relpath } in parsed {
        if !berth_blobs::is_md5(&md5) || !is_inside(&relpath) {
            let shown: String = relpath.chars().take(200).collect();
            return Err(odd(format!("`{shown}` is no path of a file in it")));
        }
        if lines.insert(relpath.clone(), md5).is_some() {
            return Err(odd(format!("it names `{relpath}` twice")));
        }
    }
    // `a` and `a/b` cannot both be files.
    for path in lines.keys() {
        let mut above = path.as_str();
        while let Some((folder, _)) = above.rsplit_once('/') {
            if lines.contains_key(folder) {
                return Err(odd(format!("`{folder}` is a file and a folder")));
            }
            above = folder;
        }
    }
    Ok(lines)
}

/// Whether a path stays in its folder.
fn is_inside(path: &str) -> bool {
    let is_part = |part: &str| !matches!(part, "" | "." | "..") && part.len() <= LONGEST_PART;
    path.len() <= LONGEST_PATH && !path.contains('\0') && path.split('/').all(is_part)
}

async fn known(
    store: &Store,
    team: &str,
    lines: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, (BlobId, u64)>, TreeError> {
    let sums: BTreeSet<&String> = lines.values().collect();
    let sums: Vec<String> = sums.into_iter().cloned().collect();
    let mut known = BTreeMap::new();
    for some in sums.chunks(AT_ONCE) {
        for row in store.blob_names_among((team, DVC), some).await? {
            if let Ok(id) = row.sha256.parse() {
                known.insert(row.name, (id, row.bytes));
            }
        }
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_blobs::{Options, Sums};
    use bytes::Bytes;

    async fn kept(text: &str) -> (tempfile::TempDir, Blobs, BlobId) {
        let folder = tempfile::tempdir().unwrap();
        let options =
            Options { folder: folder.path().to_owned(), bucket: None, reserve: 0, most: 1 << 20 };
        let blobs = Blobs::open(&options).unwrap();
        let upload = blobs.begin(None, 1 << 20).await.unwrap();
        let upload = upload.write(Bytes::copy_from_slice(text.as_bytes())).await.unwrap();
        blobs.place(upload.finish().await.unwrap()).await.unwrap();
        (folder, blobs, Sums::of(text.as_bytes()).0)
    }

    async fn check(text: &str) -> Result<Vec<String>, String> {
        let (_folder, blobs, id) = kept(text).await;
        let lines = lines(&blobs, "x.dir", &id, text.len() as u64).await;
        lines.map(|lines| lines.into_keys().collect()).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn the_list_of_a_folder_names_files_in_it_and_nothing_outside() {
        let md5 = "0a".repeat(16);
        let list = |paths: &[&str]| {
            let lines = paths.iter().map(|path| serde_json::json!({"md5": md5, "relpath": path}));
            serde_json::Value::from_iter(lines).to_string()
        };
        assert_eq!(check(&list(&["b", "a/c"])).await.unwrap(), ["a/c", "b"]);
        assert_eq!(check("[]").await.unwrap(), [""; 0]);
        for (text, says) in [
            (list(&["../x"]), "no path"),
            (list(&["/etc/passwd"]), "no path"),
            (list(&["a//b"]), "no path"),
            (list(&["a", "a"]), "twice"),
            (list(&["a", "a/b"]), "a file and a folder"),
            ("{}".to_owned(), "no list of files"),
            ("[{\"md5\":\"zz\",\"relpath\":\"a\"}]".to_owned(), "no path"),
        ] {
            let error = check(&text).await.unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
