//! What is wrong with a trace, and where.

use std::fmt;

/// A column of a file: its number, counted from 1, and its name in the header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub number: usize,
    pub name: String,
}

/// Why a trace was refused: where, what was found and what was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub file: String,
    /// Counted from 1, the header included; nothing if the file as a whole is meant.
    pub line: Option<usize>,
    pub column: Option<Column>,
    pub message: String,
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        if let Some(Column { number, name }) = &self.column {
            write!(f, ", column {number} ({name})")?;
        }
        write!(f, ": {}", self.message)
    }
}

pub(super) type Result<T> = std::result::Result<T, Error>;

/// What was found and what was expected.
pub(super) fn expected(found: &str, expected: &str) -> String {
    match found {
        "" => format!("found nothing, expected {expected}"),
        found => format!("found `{found}`, expected {expected}"),
    }
}
