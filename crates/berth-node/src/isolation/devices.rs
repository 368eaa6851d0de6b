//! The devices of a task: those that every program needs, and those of its GPUs.

use berth_sandbox::{Mount, Source};
use std::path::{Path, PathBuf};

const EVERYBODY: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

pub(super) fn mounts(gpus: &[PathBuf]) -> Vec<Mount> {
    let dev = Path::new("/dev");
    let node = |path: PathBuf| Mount::new(&path, Source::Device { path: path.clone() });
    let link = |name: &str, to: &str| Mount::new(dev.join(name), Source::Link { to: to.into() });
    let mut all = vec![
        Mount::new("/dev/pts", Source::Terminals),
        Mount::new("/dev/shm", Source::Memory),
        link("ptmx", "pts/ptmx"),
        link("fd", "/proc/self/fd"),
        link("stdin", "/proc/self/fd/0"),
        link("stdout", "/proc/self/fd/1"),
        link("stderr", "/proc/self/fd/2"),
    ];
    all.extend(EVERYBODY.iter().map(|name| node(dev.join(name))));
    all.extend(gpus.iter().cloned().map(node));
    all
}
