//! Device nodes of NVIDIA's driver. A program can use a GPU only through its node.

use std::fs;
use std::path::{Path, PathBuf};

/// What every program with a GPU opens, whichever GPU it has.
const COMMON: [&str; 4] = ["nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset"];

/// Which capability belongs to which MIG instance.
const MINORS: &str = "/proc/driver/nvidia-caps/mig-minors";

/// Those of the GPUs with these numbers, and of these MIG instances, each given by the number of its
/// GPU and its own. Nothing for a task without GPUs.
pub(super) fn of(minors: &[u32], instances: &[(u32, u32)]) -> Vec<PathBuf> {
    if minors.is_empty() {
        return Vec::new();
    }
    let dev = Path::new("/dev");
    let own = minors.iter().map(|minor| dev.join(format!("nvidia{minor}")));
    let mut all: Vec<PathBuf> = COMMON.iter().map(|name| dev.join(name)).chain(own).collect();
    if !instances.is_empty() {
        let table = fs::read_to_string(MINORS).unwrap_or_default();
        let numbers = instances.iter().flat_map(|(gpu, id)| capabilities(&table, *gpu, *id));
        let caps = dev.join("nvidia-caps");
        all.extend(numbers.map(|number| caps.join(format!("nvidia-cap{number}"))));
    }
    all
}

/// The capabilities of a GPU instance and of its compute instance, which has the number 0.
fn capabilities(table: &str, gpu: u32, instance: u32) -> Vec<u32> {
    let paths =
        [format!("gpu{gpu}/gi{instance}/access"), format!("gpu{gpu}/gi{instance}/ci0/access")];
    let number = |path: &String| {
        let lines = table.lines().filter_map(|line| line.split_once(' '));
        lines.into_iter().find(|(name, _)| name == path)?.1.trim().parse().ok()
    };
    paths.iter().filter_map(number).collect()
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
        assert_eq!(of(&[], &[(0, 1)]), Vec::<PathBuf>::new());
        let nodes = of(&[2], &[]);
        assert!(nodes.contains(&PathBuf::from("/dev/nvidia2")));
        assert!(nodes.contains(&PathBuf::from("/dev/nvidiactl")));
        assert!(!nodes.contains(&PathBuf::from("/dev/nvidia0")));
    }
    #[test]
    fn an_instance_has_the_capabilities_of_its_own_and_of_no_other() {
        let table = "config 1\nmonitor 2\ngpu0/gi2/access 21\ngpu0/gi2/ci0/access 22\n\
                     gpu0/gi2/ci1/access 23\ngpu1/gi2/access 521\ngpu0/gi20/access 183\n";
        assert_eq!(capabilities(table, 0, 2), [21, 22]);
        assert_eq!(capabilities(table, 1, 2), [521]);
        assert_eq!(capabilities("", 0, 2), Vec::<u32>::new());
    }
}
