//! What can go wrong, told by what the caller can do about it.

use std::io;
use std::path::PathBuf;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Whether doing the same again may succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Yes, at once: two transactions met.
    Now,
    /// Yes, once something outside has changed: a server is back, a disk has room.
    Later,
    /// No. The request, the database or the program has to be changed first.
    Never,
}

/// `database` is always the address without its password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(
        "`{address}` is not the address of a database: {why}. \
         Use sqlite:///folder/berth.db or postgres://user@host/database"
    )]
    Address { address: String, why: String },

    #[error("cannot {action} {}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },

    #[error(
        "{database} is not a database. Check the address; if the file was damaged, move it away \
         and restore a backup"
    )]
    NotDatabase { database: String },

    #[error(
        "{database} is damaged: {detail}. Keep a copy of it, move it away and restore a backup"
    )]
    Corrupt { database: String, detail: String },

    #[error(
        "{database} is lost: {why}. What was committed last may be lost with it. Keep what is \
         left, and restore a backup"
    )]
    Lost { database: String, why: String },

    #[error(
        "this process has no file descriptor left to {action}, so {database} cannot be opened. \
         Raise its limit of open files, or close what holds them"
    )]
    NoDescriptors { database: String, action: &'static str },

    #[error("the disk of {database} fails, and Berth needs to {action}. Check the disk")]
    Disk {
        database: String,
        action: &'static str,
        #[source]
        source: sqlx::Error,
    },

    #[error("{database} holds tables of something else. Name a database that is empty")]
    Foreign { database: String },

    #[error(
        "{database} was written by a newer version of Berth (schema {found}, this one knows up to \
         {known}). Run that version, or restore a backup made before the upgrade"
    )]
    Newer { database: String, found: i64, known: i64 },

    #[error(
        "step {version} of the schema of {database} is not the one this version of Berth made. \
         Restore a backup, or run the version that made it"
    )]
    Altered { database: String, version: i64 },

    #[error("{database} is in use by {holder}. Stop that server first, or use another database")]
    Locked { database: String, holder: String },

    #[error(
        "{database} has been taken over by {holder}; nothing was written. This server must stop"
    )]
    Fenced { database: String, holder: String },

    #[error(
        "the log of {database} goes on at {expected}, not at {found}; nothing was written. \
         This server's state is not the one that is stored: restart it"
    )]
    Sequence { database: String, expected: u64, found: u64 },

    #[error(
        "the log of {database} misses event {expected}: it goes on at {found}. Restore a backup"
    )]
    Gap { database: String, expected: u64, found: u64 },

    #[error("there is no room on the disk of {database} to {action}. Free some, then try again")]
    Full {
        database: String,
        action: &'static str,
        #[source]
        source: sqlx::Error,
    },

    #[error(
        "{database} cannot be written, and Berth needs to {action}. Check who owns the file and \
         its folder, and whether the disk is mounted read-only"
    )]
    ReadOnly {
        database: String,
        action: &'static str,
        #[source]
        source: sqlx::Error,
    },

    #[error("{database} cannot be reached to {action}. Check that its server runs")]
    Unreachable {
        database: String,
        action: &'static str,
        #[source]
        source: sqlx::Error,
    },

    #[error("{database} gave no answer in time to {action}. Check its server and the network")]
    Silent { database: String, action: &'static str },

    #[error("{database} is busy and could not {action}. Try again")]
    Busy {
        database: String,
        action: &'static str,
        #[source]
        source: sqlx::Error,
    },

    #[error("{database} refused to {action}, because it would contradict what is stored")]
    Conflict {
        database: String,
        action: &'static str,
        #[source]
        source: sqlx::Error,
    },

    #[error("{database} could not {action}")]
    Statement {
        database: String,
        action: &'static str,
        #[source]
        source: sqlx::Error,
    },

    #[error(
        "it is not known whether the last commit to {database} took place. Ask with `recover` \
         before writing again"
    )]
    Unresolved { database: String },

    #[error("{what} cannot be written: {why}")]
    Encode { what: &'static str, why: String },

    #[error("{what} of {database} cannot be read: {why}. Restore a backup")]
    Decode { database: String, what: String, why: String },

    #[error("{} exists. Choose another name: a backup overwrites nothing", path.display())]
    Exists { path: PathBuf },

    #[error("{} is no whole backup: {why}. Use another one", path.display())]
    BadBackup { path: PathBuf, why: String },

    #[error("{database} is not empty. Restore into a new database")]
    NotEmpty { database: String },

    #[error(
        "what {database} holds after restoring differs from the backup ({why}). \
         Nothing was kept; check the disk and try again"
    )]
    Differs { database: String, why: String },
}

impl Error {
    pub fn retry(&self) -> Retry {
        match self {
            Error::Busy { .. } => Retry::Now,
            Error::Locked { .. }
            | Error::NoDescriptors { .. }
            | Error::Full { .. }
            | Error::Unreachable { .. }
            | Error::Silent { .. }
            | Error::Unresolved { .. } => Retry::Later,
            Error::Address { .. }
            | Error::Io { .. }
            | Error::NotDatabase { .. }
            | Error::Corrupt { .. }
            | Error::Lost { .. }
            | Error::Disk { .. }
            | Error::Foreign { .. }
            | Error::Newer { .. }
            | Error::Altered { .. }
            | Error::Fenced { .. }
            | Error::Sequence { .. }
            | Error::Gap { .. }
            | Error::ReadOnly { .. }
            | Error::Conflict { .. }
            | Error::Statement { .. }
            | Error::Encode { .. }
            | Error::Decode { .. }
            | Error::Exists { .. }
            | Error::BadBackup { .. }
            | Error::NotEmpty { .. }
            | Error::Differs { .. } => Retry::Never,
        }
    }

    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Error {
        Error::Io { action, path: path.into(), source }
    }

    /// Sorts an error of the driver by what can be done about it.
    pub(crate) fn sql(database: &str, action: &'static str, source: sqlx::Error) -> Error {
        let database = database.to_owned();
        match Cause::of(&source) {
            Cause::NotDatabase => Error::NotDatabase { database },
            Cause::Corrupt => Error::Corrupt { database, detail: source.to_string() },
            Cause::Missing => Error::Lost { database, why: source.to_string() },
            Cause::Disk => Error::Disk { database, action, source },
            Cause::CannotOpen if has_no_descriptors() => Error::NoDescriptors { database, action },
            Cause::Full => Error::Full { database, action, source },
            Cause::ReadOnly | Cause::CannotOpen => Error::ReadOnly { database, action, source },
            Cause::Unreachable => Error::Unreachable { database, action, source },
            Cause::Busy => Error::Busy { database, action, source },
            Cause::Conflict => Error::Conflict { database, action, source },
            Cause::Other => Error::Statement { database, action, source },
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    NotDatabase,
    Corrupt,
    /// What was there once is not there any more.
    Missing,
    Disk,
    Full,
    ReadOnly,
    /// Either nobody may, or this process has too many files open.
    CannotOpen,
    Unreachable,
    Busy,
    Conflict,
    Other,
}

impl Cause {
    fn of(error: &sqlx::Error) -> Cause {
        match error {
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed
            // What the driver calls a violated protocol is, in practice, a server that went
            // away in the middle of an answer.
            | sqlx::Error::Protocol(_) => Cause::Unreachable,
            sqlx::Error::Database(error) => {
                let code = error.code().unwrap_or_default().into_owned();
                match code.parse::<u32>() {
                    // SQLSTATEs have five characters, SQLite's codes at most four digits.
                    Ok(number) if code.len() < 5 => Cause::of_sqlite(number),
                    _ => Cause::of_sqlstate(&code),
                }
            }
            _ => Cause::Other,
        }
    }

    /// The low byte is the kind of error, the rest a detail.
    fn of_sqlite(code: u32) -> Cause {
        match code & 0xff {
            // The file was moved away.
            _ if code == 1032 => Cause::Missing,
            5 | 6 => Cause::Busy,
            8 => Cause::ReadOnly,
            // Of these errors two are about memory.
            10 if !matches!(code, 3082 | 5386) => Cause::Disk,
            14 => Cause::CannotOpen,
            11 => Cause::Corrupt,
            13 => Cause::Full,
            19 => Cause::Conflict,
            26 => Cause::NotDatabase,
            _ => Cause::Other,
        }
    }

    fn of_sqlstate(code: &str) -> Cause {
        match code {
            // Too many connections; shutting down, crashed, starting; a standby that is not
            // the primary (yet).
            "53300" | "57P01" | "57P02" | "57P03" | "25006" => Cause::Unreachable,
            "53100" => Cause::Full,
            "40001" | "40P01" | "55P03" => Cause::Busy,
            "XX001" | "XX002" => Cause::Corrupt,
            // The database, the schema or a table was dropped.
            "3D000" | "3F000" | "42P01" => Cause::Missing,
            _ if code.starts_with("08") => Cause::Unreachable,
            _ if code.starts_with("23") => Cause::Conflict,
            _ => Cause::Other,
        }
    }
}

/// Whether this process can open no more files. SQLite says only that it could not open one.
fn has_no_descriptors() -> bool {
    // EMFILE and ENFILE: this process, or the whole machine.
    let code = std::fs::File::open("/dev/null").err().and_then(|error| error.raw_os_error());
    matches!(code, Some(23 | 24))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_told_apart_by_the_codes_of_both_databases() {
        let sqlite = [
            (5, Cause::Busy),
            (517, Cause::Busy),
            (11, Cause::Corrupt),
            (13, Cause::Full),
            (1544, Cause::ReadOnly),
            (14, Cause::CannotOpen),
            (522, Cause::Disk),
            (1032, Cause::Missing),
            (26, Cause::NotDatabase),
            (1555, Cause::Conflict),
            (1, Cause::Other),
        ];
        for (code, cause) in sqlite {
            assert_eq!(Cause::of_sqlite(code), cause, "{code}");
        }
        let postgres = [
            ("57P01", Cause::Unreachable),
            ("08006", Cause::Unreachable),
            ("53100", Cause::Full),
            ("40P01", Cause::Busy),
            ("23505", Cause::Conflict),
            ("3D000", Cause::Missing),
            ("42P01", Cause::Missing),
            ("28P01", Cause::Other),
        ];
        for (code, cause) in postgres {
            assert_eq!(Cause::of_sqlstate(code), cause, "{code}");
        }
    }

    #[test]
    fn a_server_that_is_away_is_worth_another_try_and_a_takeover_is_not() {
        let away = Error::sql("db", "read jobs", sqlx::Error::PoolTimedOut);
        assert_eq!(away.retry(), Retry::Later);
        let fenced = Error::Fenced { database: "db".into(), holder: "b".into() };
        assert_eq!(fenced.retry(), Retry::Never);
    }
}
