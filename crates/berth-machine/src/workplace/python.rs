//! The Python that a virtual environment is made from, which it needs and does not contain.

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Berth ignores a longer `pyvenv.cfg`.
const MOST_BYTES: u64 = 64 << 10;

/// The virtual environments a job may use.
pub fn environments(directory: &Path, env: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let named = ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(|name| env.get(*name));
    let usual = [".venv", "venv"].map(|name| directory.join(name));
    let candidates = named.map(PathBuf::from).chain(usual);
    candidates.filter(|path| path.is_absolute() && path.is_dir()).collect()
}

/// What an environment was made from: `pyvenv.cfg` says where the interpreter is, as in
/// `home = /opt/python/bin`. The path leads through no link.
pub fn base(environment: &Path) -> Option<PathBuf> {
    let text = read(&environment.join("pyvenv.cfg"))?;
    let line =
        text.lines().find_map(|line| line.split_once('=').filter(|l| l.0.trim() == "home"))?;
    let bin = PathBuf::from(line.1.trim());
    let is_bin = bin.is_absolute() && bin.file_name().is_some_and(|name| name == "bin");
    bin.parent().filter(|_| is_bin).map(Path::to_owned)
}

/// Reads only a short regular file. The job controls this path and may have put a symbolic link, a
/// FIFO without a writer or an endless device there.
fn read(path: &Path) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS).ok()?;
    let stat = fstat(&file).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return None;
    }
    let mut text = String::new();
    let read = File::from(file).take(MOST_BYTES).read_to_string(&mut text).ok()?;
    (u64::try_from(read).ok()? < MOST_BYTES).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn an_environment_is_found_with_the_python_it_was_made_from() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let venv = dir.join(".venv");
        fs::create_dir(&venv).unwrap();
        assert_eq!(environments(&dir, &BTreeMap::new()), std::slice::from_ref(&venv));
        assert_eq!(base(&venv), None);
        fs::write(venv.join("pyvenv.cfg"), "home = /opt/py/bin\nversion = 3.12\n").unwrap();
        assert_eq!(base(&venv), Some(PathBuf::from("/opt/py")));
        let env = BTreeMap::from([("VIRTUAL_ENV".to_owned(), "relative".to_owned())]);
        assert_eq!(environments(Path::new("/nowhere"), &env), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_configuration_that_is_no_short_file_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let config = dir.join("pyvenv.cfg");
        rustix::fs::mknodat(CWD, &config, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert_eq!(base(&dir), None);
        for target in ["/dev/zero", "real.cfg"] {
            fs::remove_file(&config).unwrap();
            fs::write(dir.join("real.cfg"), "home = /opt/py/bin\n").unwrap();
            std::os::unix::fs::symlink(target, &config).unwrap();
            assert_eq!(base(&dir), None, "{target}");
        }
        fs::remove_file(&config).unwrap();
        fs::write(&config, format!("home = /opt/py/bin\n{}", " ".repeat(100_000))).unwrap();
        assert_eq!(base(&dir), None);
    }
}
