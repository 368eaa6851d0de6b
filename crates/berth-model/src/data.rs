//! Versions of data: what job files call them, and what DVC does.

use std::fmt;
use std::str::FromStr;

const SCHEME: &str = "dvc:";
const DIGITS: usize = 32;
const FOLDER: &str = ".dir";
const LONGEST_NAME: usize = 63;

/// What DVC knows a file or a folder by: an MD5 sum, with `.dir` after that of a folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataHash(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "data is known by {DIGITS} hexadecimal digits in lower case, with `{FOLDER}` after those of a \
     folder"
)]
pub struct ParseDataHash;

impl DataHash {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The MD5 sum alone.
    pub fn md5(&self) -> &str {
        &self.0[..DIGITS]
    }

    pub fn is_folder(&self) -> bool {
        self.0.len() > DIGITS
    }

    /// Where it is below the address of a remote of DVC.
    pub fn path(&self) -> String {
        format!("files/md5/{}/{}", &self.0[..2], &self.0[2..])
    }

    /// The other way round. DVC 2 had them at the address itself.
    pub fn of_path(path: &str) -> Option<DataHash> {
        let path = path.strip_prefix("files/md5/").unwrap_or(path);
        let (first, rest) = path.split_once('/')?;
        (first.len() == 2).then(|| format!("{first}{rest}").parse().ok())?
    }
}

impl FromStr for DataHash {
    type Err = ParseDataHash;

    fn from_str(text: &str) -> Result<DataHash, ParseDataHash> {
        let digits = text.strip_suffix(FOLDER).unwrap_or(text);
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        match digits.len() == DIGITS && digits.bytes().all(is_digit) {
            true => Ok(DataHash(text.to_owned())),
            false => Err(ParseDataHash),
        }
    }
}

impl fmt::Display for DataHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A version of data, such as `c4@v3`. Without a version it is the newest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DataVersion {
    pub name: String,
    pub version: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("data is named like c4 or c4@v3, in lowercase letters, digits, `-`, `_` and `.`")]
pub struct ParseDataVersion;

impl FromStr for DataVersion {
    type Err = ParseDataVersion;

    fn from_str(text: &str) -> Result<DataVersion, ParseDataVersion> {
        let (name, version) = match text.split_once('@') {
            None => (text, None),
            Some((name, version)) => {
                let digits = version.strip_prefix('v').ok_or(ParseDataVersion)?;
                let is_plain = !digits.is_empty() && !digits.starts_with('0');
                let number = digits.bytes().all(|byte| byte.is_ascii_digit()) && is_plain;
                let number = number.then(|| digits.parse::<u32>().ok()).flatten();
                (name, Some(u64::from(number.ok_or(ParseDataVersion)?)))
            }
        };
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
        let starts = name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
        if !starts || name.len() > LONGEST_NAME || !name.chars().all(is_plain) {
            return Err(ParseDataVersion);
        }
        Ok(DataVersion { name: name.to_owned(), version })
    }
}

impl fmt::Display for DataVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.version.map_or(Ok(()), |version| write!(f, "@v{version}"))
    }
}

/// What a job has of it: the version, and from its submission on the hash that this was then. As text
/// `dvc:c4@v3` and `dvc:c4@v3#9f86….dir`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DataRef {
    pub version: DataVersion,
    pub hash: Option<DataHash>,
}

impl DataRef {
    /// The name of the folder of a version where several are kept, if its hash is known. The file of a
    /// version that is one file has the name of the data.
    pub fn folder(&self) -> Option<String> {
        let hash = self.hash.as_ref()?;
        Some(match hash.is_folder() {
            true => hash.to_string(),
            false => format!("{hash}.{}", self.version.name),
        })
    }

    /// Whether the data of a job is kept by the server, and not a volume or a folder.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with(SCHEME)
    }
}

impl FromStr for DataRef {
    type Err = ParseDataVersion;

    fn from_str(text: &str) -> Result<DataRef, ParseDataVersion> {
        let rest = text.strip_prefix(SCHEME).ok_or(ParseDataVersion)?;
        let (version, hash) = match rest.split_once('#') {
            None => (rest, None),
            Some((version, hash)) => {
                (version, Some(hash.parse::<DataHash>().map_err(|_| ParseDataVersion)?))
            }
        };
        Ok(DataRef { version: version.parse()?, hash })
    }
}

impl fmt::Display for DataRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.version)?;
        self.hash.as_ref().map_or(Ok(()), |hash| write!(f, "#{hash}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_has_a_plain_name_and_a_number() {
        for text in ["dvc:c4", "dvc:c4@v3", "dvc:image.net-1_k@v12"] {
            assert_eq!(text.parse::<DataRef>().unwrap().to_string(), text);
        }
        for text in [
            "c4",
            "dvc:",
            "dvc:C4",
            "dvc:c4@3",
            "dvc:c4@v",
            "dvc:c4@v0",
            "dvc:c4@v03",
            "dvc:../x",
            "dvc:a/b",
            "dvc:c4@v1@v2",
            "dvc:c4@v99999999999",
            "dvc:c4@v1#zz",
        ] {
            assert_eq!(text.parse::<DataRef>(), Err(ParseDataVersion), "{text}");
        }
    }

    #[test]
    fn what_a_job_was_submitted_with_keeps_its_hash() {
        let hash = format!("{}.dir", "0a".repeat(16));
        let text = format!("dvc:c4@v3#{hash}");
        let data: DataRef = text.parse().unwrap();
        assert_eq!((data.version.version, data.to_string()), (Some(3), text));
        assert!(data.hash.unwrap().is_folder());
    }

    #[test]
    fn a_path_of_a_remote_is_a_hash_and_nothing_else() {
        let hash: DataHash = format!("{}.dir", "0a".repeat(16)).parse().unwrap();
        assert_eq!(DataHash::of_path(&hash.path()), Some(hash.clone()));
        assert_eq!(DataHash::of_path(&hash.path()["files/md5/".len()..]), Some(hash));
        for path in ["", "files/md5", "files/md5/..", "files/md5/0a/../x", "files/md5/0a0/a"] {
            assert_eq!(DataHash::of_path(path), None, "{path}");
        }
        assert_eq!(DataHash::of_path(&format!("0a/{}", "0A".repeat(15))), None);
    }
}
