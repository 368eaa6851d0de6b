//! The layout of the folders.

use crate::error::{Error, Result};
use crate::model::Pairs;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

pub const META: &str = "meta.yaml";
pub const TRASH: &str = ".trash";
pub const MODELS: &str = "models";
pub const ARTIFACTS: &str = "artifacts";
pub const METRICS: &str = "metrics";
pub const PARAMS: &str = "params";
pub const TAGS: &str = "tags";
pub const ALIASES: &str = "aliases";
pub const DATASETS: &str = "datasets";
pub const INPUTS: &str = "inputs";
pub const OUTPUTS: &str = "outputs";
/// Folders of an experiment that are not runs.
pub const NO_RUNS: &[&str] = &[TAGS, DATASETS, "traces", MODELS];

/// The longest param or tag that is read. Servers take far shorter ones.
const MOST_BYTES: u64 = 1 << 20;

/// The maximum depth of a metric, param or tag name.
const DEEPEST: usize = 32;

/// The folders in a folder, by name.
pub fn folders(inside: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let failed = |error| Error::file("reading", inside)(error);
    for entry in fs::read_dir(inside).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let hidden = path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
        if !hidden && path.is_dir() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The same; empty if the folder does not exist.
pub fn some_folders(inside: &Path) -> Result<Vec<PathBuf>> {
    if inside.is_dir() { folders(inside) } else { Ok(Vec::new()) }
}

pub fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The files below a folder. The relative path of each is its name.
pub fn named_files(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    walk(folder, "", 0, &mut found)?;
    found.sort();
    Ok(found)
}

fn walk(folder: &Path, above: &str, deep: usize, found: &mut Vec<(String, PathBuf)>) -> Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    if deep > DEEPEST {
        return Err(Error::odd(folder.display().to_string(), "it is too deep"));
    }
    let failed = |error| Error::file("reading", folder)(error);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = entry.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            return Err(Error::odd(path.display().to_string(), "its name is not UTF-8"));
        };
        let name = if above.is_empty() { name.to_owned() } else { format!("{above}/{name}") };
        match entry.file_type().map_err(failed)?.is_dir() {
            true => walk(&path, &name, deep + 1, found)?,
            false => found.push((name, path)),
        }
    }
    Ok(())
}

/// Reads texts that are stored in one file each.
pub fn pairs(folder: &Path, mut problem: impl FnMut(&str, String)) -> Result<Pairs> {
    let mut found = Vec::new();
    for (name, path) in named_files(folder)? {
        let size = fs::metadata(&path).map_or(0, |metadata| metadata.len());
        if size > MOST_BYTES {
            problem(&name, "it is larger than 1 MiB".to_owned());
            continue;
        }
        match fs::read_to_string(&path) {
            Ok(text) => found.push((name, text)),
            Err(error) => problem(&name, error.to_string()),
        }
    }
    Ok(found)
}

/// The maximum length of a file name.
const LONGEST: usize = 255;

/// The file for a name.
pub fn file_of(folder: &Path, name: &str) -> Result<PathBuf> {
    let plain = |part: &str| {
        let is_name = !part.is_empty() && part != "." && part != "..";
        is_name && part.len() <= LONGEST && !part.contains('\0')
    };
    if !name.split('/').all(plain) {
        return Err(refused(name, "a file cannot have this name"));
    }
    Ok(folder.join(name))
}

fn refused(name: &str, why: &str) -> Error {
    Error::Refused { what: format!("`{name}`"), why: why.to_owned() }
}

/// The files for several names, unless they conflict: if `a` is a file, `a/b` cannot be one.
/// The check comes before the first write.
pub fn files_of<'a>(
    folder: &Path,
    names: impl Iterator<Item = &'a str>,
) -> Result<Vec<(&'a str, PathBuf)>> {
    let names: BTreeSet<&str> = names.collect();
    let mut found = Vec::with_capacity(names.len());
    for name in &names {
        let path = file_of(folder, name)?;
        let mut above = name.match_indices('/').map(|(at, _)| &name[..at]);
        let is_below_file =
            above.any(|above| names.contains(above) || folder.join(above).is_file());
        if is_below_file || path.is_dir() {
            return Err(refused(name, "a file and a folder cannot have the same name"));
        }
        found.push((*name, path));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_leave_their_folder_are_refused() {
        let folder = Path::new("/f");
        assert_eq!(file_of(folder, "val/acc").unwrap(), Path::new("/f/val/acc"));
        for bad in ["../a", "/a", "a//b", ".", "", "a/../../b"] {
            assert!(file_of(folder, bad).unwrap_err().is_refusal(), "{bad}");
        }
    }

    #[test]
    fn a_name_that_is_a_folder_of_others_is_refused_before_anything_is_written() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("loss"), "").unwrap();
        fs::create_dir(folder.path().join("val")).unwrap();
        let refused = |names: &[&str]| files_of(folder.path(), names.iter().copied()).is_err();
        assert!(refused(&["loss/a"]) && refused(&["val"]) && refused(&["x", "x/y"]));
        assert!(!refused(&["loss", "val/loss", "x/y", "x/z"]));
    }

    #[test]
    fn names_are_paths_and_what_is_no_text_is_told() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("opt")).unwrap();
        fs::write(folder.path().join("opt/lr"), "0.1\n").unwrap();
        fs::write(folder.path().join("bad"), [0xff]).unwrap();
        let mut told = Vec::new();
        let found = pairs(folder.path(), |name, _| told.push(name.to_owned())).unwrap();
        assert_eq!(found, [("opt/lr".to_owned(), "0.1\n".to_owned())]);
        assert_eq!(told, ["bad"]);
    }
}
