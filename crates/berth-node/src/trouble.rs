//! Trouble of the machine, told apart from faults of a job. A job whose command is not there fails;
//! a job that met a full disk is tried again once the machine can start something.

use std::fmt;
use std::io;

/// What the machine lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lack {
    /// Room on a disk, or what its quota allows.
    Room,
    Descriptors,
    Processes,
    Memory,
    /// A disk that reads and writes.
    Disk,
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Lack::Room => "there is no room on the disk",
            Lack::Descriptors => "there are no file descriptors left",
            Lack::Processes => "no more processes can be started",
            Lack::Memory => "there is no memory left",
            Lack::Disk => "the disk does not work",
        })
    }
}

/// Why this machine cannot start anything for now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{lack}: {detail}")]
pub struct Trouble {
    pub lack: Lack,
    /// What the operating system said, or what was found.
    pub detail: String,
}

/// The errors of the system that are trouble of the machine, with their numbers on Linux. A
/// supervisor that could not begin ends with the number as its exit code: on a full disk it could
/// write it nowhere.
const CODES: [(i32, Lack); 8] = [
    (5, Lack::Disk),         // EIO
    (11, Lack::Processes),   // EAGAIN
    (12, Lack::Memory),      // ENOMEM
    (23, Lack::Descriptors), // ENFILE
    (24, Lack::Descriptors), // EMFILE
    (28, Lack::Room),        // ENOSPC
    (30, Lack::Disk),        // EROFS
    (122, Lack::Room),       // EDQUOT
];

impl Trouble {
    pub fn new(lack: Lack, detail: impl Into<String>) -> Trouble {
        Trouble { lack, detail: detail.into() }
    }

    /// The trouble behind an error, if it is one.
    pub fn of(error: &io::Error) -> Option<Trouble> {
        let lack = lack(error.raw_os_error()?)?;
        Some(Trouble::new(lack, error.to_string()))
    }

    /// The trouble that a supervisor ended with.
    pub(crate) fn of_exit_code(code: i32) -> Option<Trouble> {
        Trouble::of(&io::Error::from_raw_os_error(code))
    }
}

/// What a supervisor ends with for an error before its task has begun.
pub(crate) fn exit_code(error: &io::Error) -> u8 {
    let trouble = error.raw_os_error().filter(|code| lack(*code).is_some());
    trouble.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

fn lack(code: i32) -> Option<Lack> {
    CODES.iter().find(|(number, _)| *number == code).map(|(_, lack)| *lack)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_of_the_machine_is_told_apart_from_faults_of_a_job() {
        let of = |code| Trouble::of(&io::Error::from_raw_os_error(code)).map(|found| found.lack);
        for (code, lack) in CODES {
            assert_eq!(of(code), Some(lack), "{code}");
        }
        // Not found, not permitted, not a folder, not a program.
        for code in [2, 13, 20, 8] {
            assert_eq!(of(code), None, "{code}");
        }
        assert_eq!(Trouble::of(&io::Error::other("the order is cut")), None);
    }

    #[test]
    fn the_message_has_the_operating_systems_own_error() {
        let trouble = Trouble::of(&io::Error::from_raw_os_error(28)).unwrap();
        let text = "there is no room on the disk: No space left on device (os error 28)";
        assert_eq!(trouble.to_string(), text);
    }

    #[test]
    fn an_exit_code_tells_the_trouble_and_nothing_else_is_taken_for_one() {
        for (code, lack) in CODES {
            let told = exit_code(&io::Error::from_raw_os_error(code));
            let found = Trouble::of_exit_code(i32::from(told)).unwrap();
            assert_eq!(found.lack, lack);
        }
        for error in [io::Error::from_raw_os_error(2), io::Error::other("cut")] {
            assert_eq!(exit_code(&error), 1);
        }
        assert_eq!([0, 1, 2].map(Trouble::of_exit_code), [None, None, None]);
    }
}
