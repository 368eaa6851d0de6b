//! The names of objects.

use std::fmt;
use std::str::FromStr;

const DIGITS: usize = 64;
const MD5_DIGITS: usize = 32;

/// The SHA-256 sum of an object, in hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobId(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an object is named by {DIGITS} hexadecimal digits in lower case")]
pub struct ParseBlobId;

impl BlobId {
    pub(crate) fn of_digest(digest: &[u8]) -> BlobId {
        BlobId(hex::encode(digest))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The folder and the file name. The folder has the first digits, so that no folder gets too large.
    pub(crate) fn parts(&self) -> (&str, &str) {
        self.0.split_at(2)
    }
}

fn are_digits(text: &str, count: usize) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.len() == count && text.bytes().all(is_digit)
}

/// Whether a text is an MD5 sum in DVC's format.
pub fn is_md5(text: &str) -> bool {
    are_digits(text, MD5_DIGITS)
}

impl FromStr for BlobId {
    type Err = ParseBlobId;

    fn from_str(text: &str) -> Result<BlobId, ParseBlobId> {
        match are_digits(text, DIGITS) {
            true => Ok(BlobId(text.to_owned())),
            false => Err(ParseBlobId),
        }
    }
}

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_sum_in_lower_case_names_an_object() {
        let text = "0a".repeat(32);
        assert_eq!(text.parse::<BlobId>().unwrap().to_string(), text);
        for wrong in ["", "zz", &text[1..], &text.to_uppercase(), &"../".repeat(22)[..64]] {
            assert_eq!(wrong.parse::<BlobId>(), Err(ParseBlobId), "{wrong}");
        }
        assert!(is_md5(&"0a".repeat(16)) && !is_md5("..") && !is_md5(&"0A".repeat(16)));
    }
}
