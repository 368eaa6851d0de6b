//! Fetches a version into a folder that appears when it is whole. Each file is checked.

use crate::fail::{Exit, Failure, Result};
use berth_api::Client;
use berth_blobs::Sums;
use berth_model::DataHash;
use futures_util::{StreamExt, TryStreamExt, stream};
use serde::Deserialize;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Component, Path, PathBuf};

/// Files that are fetched at once.
const AT_ONCE: usize = 8;
/// The longest list of a folder.
const LONGEST_LIST: usize = 256 << 20;

pub struct Source<'a> {
    pub team: &'a str,
    pub hash: &'a str,
    /// What the file is called where the data is one file.
    pub name: &'a str,
}

#[derive(Deserialize)]
struct Line {
    md5: String,
    relpath: String,
}

/// Makes the folder.
pub async fn get(client: &Client, from: Source<'_>, to: &Path) -> Result<()> {
    let failed = |error| Failure::io(format!("making {}", to.display()), &error);
    if to.symlink_metadata().is_ok() {
        let what = format!("{} is there already", to.display());
        return Err(Failure::usage(what).next("Name a folder that is to be made."));
    }
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    let draft = to.with_file_name(format!(".{name}.new"));
    match fs::remove_dir_all(&draft) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    fs::create_dir(&draft).map_err(failed)?;
    fill(client, &from, &draft).await?;
    fs::rename(&draft, to).map_err(failed)
}

async fn fill(client: &Client, from: &Source<'_>, folder: &Path) -> Result<()> {
    let odd = |why: &str| Failure::internal(format!("{} cannot be fetched: {why}", from.hash));
    let hash: DataHash = from.hash.parse().map_err(|_| odd("it is no hash"))?;
    if !hash.is_folder() {
        return fetch(client, from.team, &hash, &folder.join(from.name)).await;
    }
    let mut list = Vec::new();
    let mut pieces = client.object(from.team, &hash).await?;
    while let Some(piece) = pieces.next().await? {
        list.extend_from_slice(&piece);
        if list.len() > LONGEST_LIST {
            return Err(odd("its list is too long"));
        }
    }
    if Sums::of(&list).1 != hash.md5() {
        return Err(odd("its list is not what its name says"));
    }
    let lines: Vec<Line> = serde_json::from_slice(&list).map_err(|_| odd("it has no list"))?;
    let mut files = Vec::with_capacity(lines.len());
    for Line { md5, relpath } in lines {
        let inside =
            Path::new(&relpath).components().all(|part| matches!(part, Component::Normal(_)));
        let hash: DataHash = md5.parse().map_err(|_| odd("its list has no sums"))?;
        if !inside || relpath.is_empty() {
            return Err(odd("its list names files outside of it"));
        }
        let place: PathBuf = folder.join(relpath);
        let above = place.parent().unwrap_or(folder);
        fs::create_dir_all(above)
            .map_err(|error| Failure::io(format!("making {}", above.display()), &error))?;
        files.push((hash, place));
    }
    let team = from.team;
    let fetched = stream::iter(files)
        .map(|(hash, place)| async move { fetch(client, team, &hash, &place).await });
    fetched.buffer_unordered(AT_ONCE).try_collect::<Vec<()>>().await.map(drop)
}

async fn fetch(client: &Client, team: &str, hash: &DataHash, to: &Path) -> Result<()> {
    let failed = |error| Failure::io(format!("writing {}", to.display()), &error);
    let mut pieces = client.object(team, hash).await?;
    let mut file = File::create(to).map_err(failed)?;
    let mut sums = Sums::default();
    while let Some(piece) = pieces.next().await? {
        sums.update(&piece);
        file.write_all(&piece).map_err(failed)?;
    }
    if sums.finish().1 == hash.md5() {
        return Ok(());
    }
    let what = format!("what came is not {hash}; it was cut off, or changed on the way");
    Err(Failure::new(Exit::Failed, what).next("Try again."))
}
