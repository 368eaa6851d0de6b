//! What is wrong with a file, and where.

use std::fmt;

/// A place in the text, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Why a file was refused. The message says what was found and what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {message}")]
pub struct Error {
    pub at: Position,
    pub message: String,
}

pub(crate) type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(at: Position, message: impl Into<String>) -> Error {
        Error { at, message: message.into() }
    }

    pub(crate) fn expected(at: Position, found: &str, expected: &str) -> Error {
        Error::new(at, format!("found {found}, expected {expected}"))
    }

    /// Says what was being read when it went wrong.
    pub(crate) fn within(mut self, what: &str) -> Error {
        self.message = format!("{what}: {}", self.message);
        self
    }
}

/// `; did you mean …?` with the nearest candidate, or nothing where none is near.
pub fn did_you_mean<'a>(found: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(found, candidates) {
        Some(near) => format!("; did you mean `{near}`?"),
        None => String::new(),
    }
}

/// The candidate that a slip of the hand turns into `found`: up to a third of its letters.
fn nearest<'a>(found: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (found.chars().count() / 3).max(1);
    candidates
        .into_iter()
        // Among equally near ones, a slip in the first letter is the least likely.
        .map(|candidate| {
            let other_start = candidate.chars().next() != found.chars().next();
            (distance(found, candidate), other_start, candidate)
        })
        .filter(|(distance, ..)| *distance <= limit)
        .min()
        .map(|(.., candidate)| candidate)
}

/// Insertions, deletions, replacements and swaps of neighbours from one word to the other, without
/// regard to case.
fn distance(from: &str, to: &str) -> usize {
    let lower = |word: &str| word.chars().flat_map(char::to_lowercase).collect::<String>();
    strsim::osa_distance(&lower(from), &lower(to))
}

/// `a, b or c`.
pub fn or_list<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<&str> = words.into_iter().collect();
    match words.split_last() {
        None => "nothing".to_owned(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_hand_is_recognised_and_another_word_is_not() {
        let keys = ["queue", "priority", "groups"];
        assert_eq!(nearest("queu", keys), Some("queue"));
        assert_eq!(nearest("prioritiy", keys), Some("priority"));
        assert_eq!(nearest("gropus", keys), Some("groups"));
        assert_eq!(nearest("Queue", keys), Some("queue"));
        assert_eq!(nearest("colour", keys), None);
    }
}
