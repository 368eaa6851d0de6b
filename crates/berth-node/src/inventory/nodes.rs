//! Device nodes of NVIDIA's driver. A program can use a GPU only through its node.

use std::fs;
use std::path::{Path, PathBuf};

/// What every program with a GPU opens, whichever GPU it has.
const COMMON: [&str; 4] = ["nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset"];

/// Those of the GPUs with these numbers; nothing for a task without GPUs. With MIG on, the nodes
/// of all instances of the machine come along: which one belongs to which instance is not known.
pub(super) fn of(minors: &[u32], mig: bool) -> Vec<PathBuf> {
    if minors.is_empty() {
        return Vec::new();
    }
    let dev = Path::new("/dev");
    let own = minors.iter().map(|minor| dev.join(format!("nvidia{minor}")));
    let mut all: Vec<PathBuf> = COMMON.iter().map(|name| dev.join(name)).chain(own).collect();
    if mig {
        all.extend(inside(&dev.join("nvidia-caps")));
    }
    all
}

/// All that there are.
pub(super) fn all() -> Vec<PathBuf> {
    let is_nvidia = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("nvidia") && !path.is_dir()
    };
    let mut all: Vec<PathBuf> = inside(Path::new("/dev")).into_iter().filter(is_nvidia).collect();
    all.extend(inside(Path::new("/dev/nvidia-caps")));
    all
}

fn inside(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_gets_the_nodes_of_its_own_gpus_and_none_without() {
        assert_eq!(of(&[], true), Vec::<PathBuf>::new());
        let nodes = of(&[2], false);
        assert!(nodes.contains(&PathBuf::from("/dev/nvidia2")));
        assert!(nodes.contains(&PathBuf::from("/dev/nvidiactl")));
        assert!(!nodes.contains(&PathBuf::from("/dev/nvidia0")));
    }
}
