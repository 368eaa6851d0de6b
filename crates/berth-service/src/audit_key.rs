//! The file with the keys of the audit log. It lies outside the database, so that whoever owns the
//! database cannot sign rows of their own.

use berth_store::{AUDIT_KEY_LEN, AuditKeys};
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Why the keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("the audit keys in {} cannot be read: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("the audit keys in {} cannot be written: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error(
        "{}, line {line}: expected an id and 64 hexadecimal digits. Put the file back as it was; \
         without its keys old rows of the audit log cannot be checked",
        path.display()
    )]
    Malformed { path: PathBuf, line: usize },
    #[error("{} has the key {id} twice. Take one of the two lines out", path.display())]
    Twice { path: PathBuf, id: String },
    #[error("{} has no key. Put the file back as it was, or remove it", path.display())]
    Empty { path: PathBuf },
}

const ABOUT: &str = "\
# The keys of Berth's audit log, oldest first: an id and a key on each line. The last one signs.
# Keep all of them: rows are checked with the key that signed them. Keep a copy elsewhere.
";

/// The file, and the keys in it.
#[derive(Debug, Clone)]
pub struct KeyFile {
    path: PathBuf,
    keys: AuditKeys,
    /// Held while the file is changed.
    changing: Arc<Mutex<()>>,
}

impl KeyFile {
    /// Reads the file, which is made with a first key where it is not there.
    pub fn open(path: &Path) -> Result<KeyFile, KeyError> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => make(path)?,
            read => read.map_err(|source| KeyError::Read { path: path.to_owned(), source })?,
        };
        let keys = AuditKeys::new(parse(path, &text)?);
        Ok(KeyFile { path: path.to_owned(), keys, changing: Arc::default() })
    }

    pub fn keys(&self) -> &AuditKeys {
        &self.keys
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a key, which signs from now on; its id. The file has it before any row does.
    pub fn rotate(&self) -> Result<String, KeyError> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let path = || self.path.clone();
        let mut text = fs::read_to_string(&self.path)
            .map_err(|source| KeyError::Read { path: path(), source })?;
        parse(&self.path, &text)?;
        let (id, bytes) = mint().map_err(|source| KeyError::Write { path: path(), source })?;
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&line(&id, &bytes));
        // The file may be elsewhere and have a link here.
        let place = fs::canonicalize(&self.path)
            .map_err(|source| KeyError::Read { path: path(), source })?;
        berth_fs::write_private(&place, text.as_bytes())
            .map_err(|source| KeyError::Write { path: path(), source })?;
        self.keys.add(id.clone(), &bytes);
        Ok(id)
    }
}

/// The text of a new file with one key.
fn make(path: &Path) -> Result<String, KeyError> {
    let failed = |source| KeyError::Write { path: path.to_owned(), source };
    let (id, bytes) = mint().map_err(failed)?;
    let text = format!("{ABOUT}{}", line(&id, &bytes));
    match berth_fs::create_private(path, text.as_bytes()) {
        // Another replica was faster, and all use one file.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => fs::read_to_string(path)
            .map_err(|source| KeyError::Read { path: path.to_owned(), source }),
        made => made.map(|()| text).map_err(failed),
    }
}

fn mint() -> io::Result<(String, [u8; AUDIT_KEY_LEN])> {
    let (mut id, mut bytes) = ([0; 4], [0; AUDIT_KEY_LEN]);
    let random = SystemRandom::new();
    let filled = random.fill(&mut id).and_then(|()| random.fill(&mut bytes));
    filled.map_err(|_| io::Error::other("the system returns no random numbers"))?;
    Ok((hex::encode(id), bytes))
}

fn line(id: &str, bytes: &[u8]) -> String {
    let mut line = String::new();
    let _ = writeln!(line, "{id} {}", hex::encode(bytes));
    line
}

fn parse(path: &Path, text: &str) -> Result<Vec<(String, [u8; AUDIT_KEY_LEN])>, KeyError> {
    let mut keys: Vec<(String, [u8; AUDIT_KEY_LEN])> = Vec::new();
    for (at, text) in text.lines().enumerate() {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let malformed = || KeyError::Malformed { path: path.to_owned(), line: at + 1 };
        let (id, key) = text.split_once(char::is_whitespace).ok_or_else(malformed)?;
        let mut bytes = [0; AUDIT_KEY_LEN];
        hex::decode_to_slice(key.trim(), &mut bytes).map_err(|_| malformed())?;
        if keys.iter().any(|(known, _)| known == id) {
            return Err(KeyError::Twice { path: path.to_owned(), id: id.to_owned() });
        }
        keys.push((id.to_owned(), bytes));
    }
    if keys.is_empty() {
        return Err(KeyError::Empty { path: path.to_owned() });
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_key_is_made_once_and_only_its_owner_can_read_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.key");
        let first = KeyFile::open(&path).unwrap().keys().current();
        assert!(first.is_some());
        assert_eq!(KeyFile::open(&path).unwrap().keys().current(), first);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_new_key_signs_and_the_old_one_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.key");
        let file = KeyFile::open(&path).unwrap();
        let (old, new) = (file.keys().current().unwrap(), file.rotate().unwrap());
        assert_eq!(file.keys().current().as_deref(), Some(&*new));
        let again = KeyFile::open(&path).unwrap();
        assert_eq!(format!("{:?}", again.keys()), format!("[\"{old}\", \"{new}\"]"));
    }

    #[test]
    fn a_file_that_makes_no_sense_is_not_used_and_the_error_says_where_it_is_wrong() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.key");
        let key = "00".repeat(AUDIT_KEY_LEN);
        let cases = [
            ("# nothing\n".to_owned(), "has no key"),
            (format!("a {key}\nb 12\n"), "line 2"),
            (format!("a {key}\na {key}\n"), "the key a twice"),
        ];
        for (text, expected) in cases {
            fs::write(&path, text).unwrap();
            let error = KeyFile::open(&path).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains(&key), "{error}");
        }
    }
}
