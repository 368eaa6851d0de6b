//! Local files and folders.

use crate::error::{Error, Result};
use crate::model::{Content, FileInfo};
use futures_util::{StreamExt, stream};
use std::fs;
use std::path::{Path, PathBuf};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use url::Url;

const PIECE: usize = 256 << 10;
const DEEPEST: usize = 128;
const MOST_FILES: usize = 1_000_000;

/// The path of `file:///a/b`, `/a/b` or `./a/b`; `None` for other URIs.
pub fn path_of_uri(uri: &str) -> Option<PathBuf> {
    if let Some(rest) = uri.strip_prefix("file:") {
        let parsed = Url::parse(uri).ok().and_then(|url| url.to_file_path().ok());
        return Some(parsed.unwrap_or_else(|| PathBuf::from(rest)));
    }
    let has_scheme = uri.split_once(':').is_some_and(|(scheme, _)| {
        scheme.len() > 1 && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
    });
    (!uri.is_empty() && !has_scheme).then(|| PathBuf::from(uri))
}

pub fn uri_of_path(path: &Path) -> String {
    match Url::from_file_path(path) {
        Ok(url) => url.to_string(),
        Err(()) => path.display().to_string(),
    }
}

/// All files below a folder. Follows links to files, but not links to folders, which may form a cycle.
pub async fn files(folder: &Path) -> Result<Vec<FileInfo>> {
    let folder = folder.to_owned();
    blocking(move || {
        let mut found = Vec::new();
        if folder.is_dir() {
            walk(&folder, "", 0, &mut found)?;
        }
        Ok(found)
    })
    .await
}

/// Runs blocking file operations outside of the async threads.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(Error::odd("a task", error.to_string())),
    }
}

fn walk(folder: &Path, above: &str, deep: usize, found: &mut Vec<FileInfo>) -> Result<()> {
    if deep > DEEPEST || found.len() > MOST_FILES {
        let why =
            format!("it is deeper than {DEEPEST} folders, or has more than {MOST_FILES} files");
        return Err(Error::odd(folder.display().to_string(), why));
    }
    let failed = |error| Error::file("reading", folder)(error);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = entry.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            return Err(Error::odd(path.display().to_string(), "its name is not UTF-8"));
        };
        let name = if above.is_empty() { name.to_owned() } else { format!("{above}/{name}") };
        if entry.file_type().map_err(failed)?.is_dir() {
            walk(&path, &name, deep + 1, found)?;
            continue;
        }
        let metadata = fs::metadata(&path).map_err(Error::file("reading", &path))?;
        if metadata.is_file() {
            found.push(FileInfo { path: name, bytes: metadata.len() });
        }
    }
    Ok(())
}

pub async fn open(path: &Path) -> Result<Content> {
    let opened = File::open(path).await.map_err(Error::file("reading", path))?;
    let bytes = opened.metadata().await.map_err(Error::file("reading", path))?.len();
    let pieces = stream::unfold(Some(opened), async |open| {
        let mut file = open?;
        let mut piece = vec![0; PIECE];
        match file.read(&mut piece).await {
            Ok(0) => None,
            Ok(read) => {
                piece.truncate(read);
                Some((Ok(piece), Some(file)))
            }
            Err(error) => Some((Err(error), None)),
        }
    });
    Ok(Content { bytes: Some(bytes), pieces: pieces.boxed() })
}

/// Writes a file atomically.
pub async fn write(path: &Path, content: Content) -> Result<()> {
    if let Some(folder) = path.parent() {
        tokio::fs::create_dir_all(folder).await.map_err(Error::file("making", folder))?;
    }
    let part = part_of(path);
    let mut file = File::create(&part).await.map_err(Error::file("writing", &part))?;
    let mut pieces = content.pieces;
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(Error::file("reading what belongs into", path))?;
        file.write_all(&piece).await.map_err(Error::file("writing", &part))?;
    }
    file.flush().await.map_err(Error::file("writing", &part))?;
    drop(file);
    tokio::fs::rename(&part, path).await.map_err(Error::file("writing", path))
}

/// The same for a short text.
pub fn write_text(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(Error::file("making", folder))?;
    }
    let part = part_of(path);
    fs::write(&part, text).map_err(Error::file("writing", &part))?;
    fs::rename(&part, path).map_err(Error::file("writing", path))
}

fn part_of(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let short: String = name.chars().take(100).collect();
    path.with_file_name(format!(".{short}.berth-part"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_this_machine_is_told_from_others() {
        let path = |uri: &str| path_of_uri(uri).map(|path| path.display().to_string());
        assert_eq!(path("file:///a/b%20c").as_deref(), Some("/a/b c"));
        assert_eq!(path("/a/b").as_deref(), Some("/a/b"));
        assert_eq!(path("./mlruns/1").as_deref(), Some("./mlruns/1"));
        for elsewhere in ["s3://b/c", "mlflow-artifacts:/1", "dbfs:/x", ""] {
            assert_eq!(path(elsewhere), None, "{elsewhere}");
        }
    }
}
