//! Paths of artifacts, as they may be.

use crate::fault::Fault;
use berth_api::Code;
use percent_encoding::percent_decode_str;
use std::fmt;

/// The longest path, and the most parts.
const LONGEST: usize = 2_048;
const MOST_PARTS: usize = 64;
/// So often a path may have been encoded.
const MOST_ENCODINGS: usize = 5;

/// A path below a team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactPath {
    pub team: String,
    /// What follows, without a slash at either end.
    pub name: String,
}

impl fmt::Display for ArtifactPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.team, self.name)
    }
}

impl ArtifactPath {
    /// A file.
    pub fn file(text: &str) -> Result<ArtifactPath, Fault> {
        let path = ArtifactPath::folder(text)?;
        if path.name.is_empty() {
            return Err(bad(text));
        }
        Ok(path)
    }

    /// A folder, which may be that of the team.
    pub fn folder(text: &str) -> Result<ArtifactPath, Fault> {
        if !is_safe(text) {
            return Err(bad(text));
        }
        let text = text.trim_end_matches('/');
        let (team, name) = text.split_once('/').unwrap_or((text, ""));
        if team.is_empty() || name.split('/').count() > MOST_PARTS {
            return Err(bad(text));
        }
        Ok(ArtifactPath { team: team.to_owned(), name: name.to_owned() })
    }

    /// The folders it is in, below the team.
    pub fn above(&self) -> Vec<String> {
        let slashes = self.name.match_indices('/');
        slashes.map(|(at, _)| self.name[..at].to_owned()).collect()
    }
}

/// Clients match these words.
fn bad(text: &str) -> Fault {
    let shown: String = text.chars().take(200).flat_map(char::escape_default).collect();
    Fault::new(Code::BadRequest, format!("Invalid path: {shown}"))
        .next("name a path below a team, without `..`, `#`, backslashes and empty parts")
}

/// Whether it leads nowhere else, however often it is decoded.
fn is_safe(text: &str) -> bool {
    let mut text = text.to_owned();
    for _ in 0..MOST_ENCODINGS {
        if !is_plain(&text) {
            return false;
        }
        let Ok(decoded) = percent_decode_str(&text).decode_utf8() else { return false };
        if decoded == text {
            return true;
        }
        text = decoded.into_owned();
    }
    false
}

fn is_plain(text: &str) -> bool {
    let inner = text.trim_end_matches('/');
    let is_part = |part: &str| !matches!(part, "" | "." | "..");
    let has_drive = inner.as_bytes().get(1) == Some(&b':');
    let odd = |c: char| c.is_control() || matches!(c, '#' | '\\');
    text.len() <= LONGEST
        && !inner.is_empty()
        && !has_drive
        && !inner.starts_with("file:")
        && inner.split('/').all(is_part)
        && !text.chars().any(odd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_team_and_what_lies_below() {
        let path = ArtifactPath::file("nlp/1/abc/artifacts/model/MLmodel").unwrap();
        assert_eq!((&*path.team, &*path.name), ("nlp", "1/abc/artifacts/model/MLmodel"));
        assert_eq!(path.above(), ["1", "1/abc", "1/abc/artifacts", "1/abc/artifacts/model"]);
        assert_eq!(ArtifactPath::folder("nlp/1/").unwrap().to_string(), "nlp/1");
        assert!(ArtifactPath::file("nlp/1/50% done.txt").is_ok());
        assert!(ArtifactPath::file("nlp").is_err(), "a team is no file");
    }

    #[test]
    fn a_path_that_leads_elsewhere_is_refused_however_it_is_written() {
        for text in [
            "",
            "/",
            "/nlp/1",
            "nlp//1",
            "nlp/./1",
            "nlp/../vision/1",
            "..",
            "nlp/..",
            "nlp/%2e%2e/x",
            "nlp/%252e%252e/x",
            "nlp\\..\\x",
            "nlp/a#b",
            "nlp/a\nb",
            "nlp/a\0b",
            "file:///etc/passwd",
            "C:/x",
            "nlp/%00",
            "nlp/%2fetc/..",
        ] {
            let fault = ArtifactPath::folder(text).unwrap_err();
            assert_eq!(fault.0.known_code(), Some(Code::BadRequest), "{text}");
            assert!(fault.0.detail.starts_with("Invalid path: "), "{text}");
        }
    }
}
