//! Sends what the server does not have of a folder or a file, and names it. Folders are listed as DVC
//! lists them, so that the same files have the same hash however they are pushed.

use super::storage::bytes;
use crate::fail::{Failure, Result};
use crate::show::{self, words};
use berth_api::Client;
use berth_api::wire::{DataAsk, DataMake, DataVersion};
use berth_blobs::Sums;
use berth_model::DataHash;
use futures_util::{StreamExt, TryStreamExt, stream};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Objects that one request asks about, and those that are sent at once.
const ASKED: usize = 5_000;
const AT_ONCE: usize = 8;
/// Bytes that are read at a time.
const PIECE: usize = 1 << 20;

pub struct Wish<'a> {
    pub name: &'a str,
    pub parent: Option<u64>,
    pub note: Option<String>,
}

/// A file with its sum.
struct Found {
    path: PathBuf,
    hash: DataHash,
    bytes: u64,
}

pub async fn push(client: &Client, team: &str, path: &Path, wish: Wish<'_>) -> Result<DataVersion> {
    let hash = match path.extension().is_some_and(|end| end == "dvc") && path.is_file() {
        true => pushed_by_dvc(path)?,
        false => send(client, team, path).await?,
    };
    let make = DataMake {
        version: wish.name.to_owned(),
        hash: hash.to_string(),
        parent: wish.parent,
        note: wish.note,
    };
    Ok(client.make_data(team, &make).await?)
}

/// What a file of DVC says of the data beside it.
fn pushed_by_dvc(path: &Path) -> Result<DataHash> {
    #[derive(Deserialize)]
    struct Dvc {
        outs: Vec<Out>,
    }
    #[derive(Deserialize)]
    struct Out {
        md5: String,
    }
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::io(format!("reading {}", path.display()), &error))?;
    let odd = |why: String| Failure::usage(format!("{}: {why}", path.display()));
    let read: Dvc = serde_saphyr::from_str(&text).map_err(|error| odd(error.to_string()))?;
    let [out] = &read.outs[..] else {
        return Err(odd(format!("it has {} outputs, expected one", read.outs.len())));
    };
    out.md5.parse().map_err(|error| odd(format!("{error}")))
}

async fn send(client: &Client, team: &str, path: &Path) -> Result<DataHash> {
    let metadata = fs::metadata(path)
        .map_err(|error| Failure::io(format!("reading {}", path.display()), &error))?;
    let (files, list) = if metadata.is_dir() {
        let paths = walk(path)?;
        let mut files = Vec::with_capacity(paths.len());
        let mut lines = BTreeMap::new();
        for (relative, path) in paths {
            let found = summed(path).await?;
            lines.insert(relative, found.hash.to_string());
            files.push(found);
        }
        (files, Some(list_of(&lines)))
    } else {
        (vec![summed(path.to_owned()).await?], None)
    };
    let (folder, whole) = match &list {
        Some(list) => {
            let (_, md5) = Sums::of(list.as_bytes());
            let hash: DataHash = format!("{md5}.dir").parse().expect("it is a sum");
            (Some(hash.clone()), hash)
        }
        None => (None, files[0].hash.clone()),
    };
    let missing = missing(client, team, &files, folder.as_ref()).await?;
    let mut seen = BTreeSet::new();
    let to_send: Vec<&Found> = files
        .iter()
        .filter(|file| missing.contains(file.hash.as_str()) && seen.insert(file.hash.clone()))
        .collect();
    if !to_send.is_empty() {
        let size: u64 = to_send.iter().map(|file| file.bytes).sum();
        let (count, all) = (to_send.len() as u64, words::count(files.len() as u64, "file"));
        show::note(&format!("Sending {} of {all}, {}", words::thousands(count), bytes(size)));
    }
    let sent = stream::iter(to_send).map(|file| async move {
        let opened = File::open(&file.path);
        let opened = opened
            .map_err(|error| Failure::io(format!("reading {}", file.path.display()), &error))?;
        client.put_object(team, &file.hash, opened, file.bytes).await.map_err(Failure::from)
    });
    sent.buffer_unordered(AT_ONCE).try_collect::<Vec<()>>().await?;
    // The list comes last: where it is, the files are.
    if let (Some(folder), Some(list)) = (&folder, list)
        && missing.contains(folder.as_str())
    {
        client.put_object_bytes(team, folder, list.into_bytes()).await?;
    }
    Ok(whole)
}

async fn missing(
    client: &Client,
    team: &str,
    files: &[Found],
    folder: Option<&DataHash>,
) -> Result<BTreeSet<String>> {
    let all: BTreeSet<&DataHash> = files.iter().map(|file| &file.hash).chain(folder).collect();
    let all: Vec<String> = all.into_iter().map(ToString::to_string).collect();
    let mut missing = BTreeSet::new();
    for some in all.chunks(ASKED) {
        let ask = DataAsk { hashes: some.to_vec() };
        missing.extend(client.missing_data(team, &ask).await?.missing);
    }
    Ok(missing)
}

async fn summed(path: PathBuf) -> Result<Found> {
    let shown = path.display().to_string();
    let read = tokio::task::spawn_blocking(move || {
        let mut file = File::open(&path)?;
        let (mut sums, mut bytes, mut piece) = (Sums::default(), 0, vec![0; PIECE]);
        loop {
            let read = file.read(&mut piece)?;
            if read == 0 {
                let (_, md5) = sums.finish();
                let hash = md5.parse().expect("it is a sum");
                return Ok::<_, io::Error>(Found { path, hash, bytes });
            }
            sums.update(&piece[..read]);
            bytes += read as u64;
        }
    });
    let read = read.await.unwrap_or_else(|panic| Err(io::Error::other(panic)));
    read.map_err(|error| Failure::io(format!("reading {shown}"), &error))
}

/// All files below a folder by their paths in it. Links to files are files, as for DVC.
fn walk(folder: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let mut found = BTreeMap::new();
    let mut left = vec![folder.to_owned()];
    while let Some(here) = left.pop() {
        let failed = |error| Failure::io(format!("reading {}", here.display()), &error);
        for entry in fs::read_dir(&here).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let kind = fs::metadata(&path).map_err(failed)?;
            let is_link = path.symlink_metadata().map_err(failed)?.is_symlink();
            if kind.is_dir() && is_link {
                let what = format!("{} is a link to a folder", path.display());
                return Err(
                    Failure::usage(what).next("Push the folder that it leads to, or remove it.")
                );
            }
            if kind.is_dir() {
                left.push(path);
                continue;
            }
            if !kind.is_file() {
                return Err(Failure::usage(format!("{} is no file", path.display())));
            }
            let relative = path.strip_prefix(folder).unwrap_or(&path).to_str();
            let Some(relative) = relative else {
                let what = format!("the name of {} is no text", path.display());
                return Err(Failure::usage(what));
            };
            found.insert(relative.to_owned(), path.clone());
        }
    }
    Ok(found)
}

/// The list of a folder, letter by letter as DVC writes it: its sum is the name of the folder.
fn list_of(lines: &BTreeMap<String, String>) -> String {
    let mut list = String::from("[");
    for (at, (path, md5)) in lines.iter().enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        let _ = write!(list, "{comma}{{\"md5\": \"{md5}\", \"relpath\": \"");
        for letter in path.chars() {
            match letter {
                '"' => list.push_str("\\\""),
                '\\' => list.push_str("\\\\"),
                '\n' => list.push_str("\\n"),
                '\r' => list.push_str("\\r"),
                '\t' => list.push_str("\\t"),
                '\u{8}' => list.push_str("\\b"),
                '\u{c}' => list.push_str("\\f"),
                ' '..='~' => list.push(letter),
                other => {
                    for unit in other.encode_utf16(&mut [0; 2]) {
                        let _ = write!(list, "\\u{unit:04x}");
                    }
                }
            }
        }
        list.push_str("\"}");
    }
    list.push(']');
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_listed_as_dvc_lists_it() {
        let lines = [("a/b", "1"), ("grün \"x\"", "2"), ("😀", "3")];
        let lines = lines.map(|(path, md5)| (path.to_owned(), md5.to_owned()));
        let expect = r#"[{"md5": "1", "relpath": "a/b"}, {"md5": "2", "relpath": "gr\u00fcn \"x\""}, {"md5": "3", "relpath": "\ud83d\ude00"}]"#;
        assert_eq!(list_of(&BTreeMap::from(lines)), expect);
        assert_eq!(list_of(&BTreeMap::new()), "[]");
    }

    #[test]
    fn files_of_a_folder_are_found_and_a_link_to_a_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        fs::write(folder.path().join("a/b/c"), "").unwrap();
        fs::write(folder.path().join("d"), "").unwrap();
        std::os::unix::fs::symlink("d", folder.path().join("e")).unwrap();
        let found: Vec<String> = walk(folder.path()).unwrap().into_keys().collect();
        assert_eq!(found, ["a/b/c", "d", "e"]);
        std::os::unix::fs::symlink("a", folder.path().join("f")).unwrap();
        assert!(walk(folder.path()).is_err());
    }
}
