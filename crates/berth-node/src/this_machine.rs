//! Which machine this is, as far as processes can see each other: a client that finds the same as the
//! server is where the server's jobs run.

use fnv::FnvHasher;
use std::fs;
use std::hash::Hasher;

const BOOT: &str = "/proc/sys/kernel/random/boot_id";
const PROCESSES: &str = "/proc/self/ns/pid";

/// A name of this boot of this machine and of this process's namespace of processes, so that a
/// container is a machine of its own. It does not tell the boot.
pub fn this_machine() -> Option<String> {
    let boot = fs::read_to_string(BOOT).ok()?;
    let processes = fs::read_link(PROCESSES).ok()?;
    // This hash is the same in every version of Berth: client and server may be of two.
    let mut hasher = FnvHasher::default();
    hasher.write(format!("berth {} {}", boot.trim(), processes.display()).as_bytes());
    Some(format!("{:016x}", hasher.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_one_name_which_does_not_tell_its_boot() {
        let here = this_machine().unwrap();
        assert_eq!(Some(&here), this_machine().as_ref());
        let boot = fs::read_to_string(BOOT).unwrap().trim().replace('-', "");
        assert!(here.len() == 16 && !boot.contains(&here), "{here} in {boot}");
    }
}
