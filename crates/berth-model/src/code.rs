//! By what a snapshot of code is known.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

const PREFIX: &str = "sha256:";
const DIGITS: usize = 64;

/// The SHA-256 of the packed files, as `sha256:` and its digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CodeId(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a snapshot of code is named by `sha256:` and {DIGITS} hexadecimal digits in lower case")]
pub struct ParseCodeId;

impl CodeId {
    /// The digits alone, which are safe as the name of a file.
    pub fn digits(&self) -> &str {
        &self.0
    }
}

impl FromStr for CodeId {
    type Err = ParseCodeId;

    fn from_str(text: &str) -> Result<CodeId, ParseCodeId> {
        let digits = text.strip_prefix(PREFIX).ok_or(ParseCodeId)?;
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        match digits.len() == DIGITS && digits.bytes().all(is_digit) {
            true => Ok(CodeId(digits.to_owned())),
            false => Err(ParseCodeId),
        }
    }
}

impl TryFrom<String> for CodeId {
    type Error = ParseCodeId;

    fn try_from(text: String) -> Result<CodeId, ParseCodeId> {
        text.parse()
    }
}

impl From<CodeId> for String {
    fn from(id: CodeId) -> String {
        id.to_string()
    }
}

impl fmt::Display for CodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_digest_names_a_snapshot() {
        let text = format!("sha256:{}", "0a".repeat(32));
        assert_eq!(text.parse::<CodeId>().unwrap().to_string(), text);
        for wrong in ["", "sha256:", "sha256:zz", &text[1..], &text.to_uppercase(), "../../etc"] {
            assert_eq!(wrong.parse::<CodeId>(), Err(ParseCodeId), "{wrong}");
        }
    }
}
