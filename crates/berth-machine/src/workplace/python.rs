//! The Python that a virtual environment is made from, which it needs and does not contain.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The virtual environments a job may use, each with what it was made from.
pub fn environments(directory: &Path, env: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let named = ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(|name| env.get(*name));
    let usual = [".venv", "venv"].map(|name| directory.join(name));
    let candidates = named.map(PathBuf::from).chain(usual);
    let mut found = Vec::new();
    for environment in candidates.filter(|path| path.is_absolute() && path.is_dir()) {
        found.extend(base(&environment));
        found.push(environment);
    }
    found
}

/// `pyvenv.cfg` says where the interpreter is: `home = /opt/python/bin`.
fn base(environment: &Path) -> Option<PathBuf> {
    let text = fs::read_to_string(environment.join("pyvenv.cfg")).ok()?;
    let line =
        text.lines().find_map(|line| line.split_once('=').filter(|l| l.0.trim() == "home"))?;
    let bin = PathBuf::from(line.1.trim());
    let is_bin = bin.is_absolute() && bin.file_name().is_some_and(|name| name == "bin");
    bin.parent().filter(|_| is_bin).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_is_found_with_the_python_it_was_made_from() {
        let dir = tempfile::tempdir().unwrap();
        let venv = dir.path().join(".venv");
        fs::create_dir(&venv).unwrap();
        let found = environments(dir.path(), &BTreeMap::new());
        assert_eq!(found, std::slice::from_ref(&venv));
        fs::write(venv.join("pyvenv.cfg"), "home = /opt/py/bin\nversion = 3.12\n").unwrap();
        let both = [PathBuf::from("/opt/py"), venv];
        assert_eq!(environments(dir.path(), &BTreeMap::new()), both);
        let env = BTreeMap::from([("VIRTUAL_ENV".to_owned(), "relative".to_owned())]);
        assert_eq!(environments(Path::new("/nowhere"), &env), Vec::<PathBuf>::new());
    }
}
