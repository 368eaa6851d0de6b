//! The token of a login, in the user's own file. What else is in the file stays.

use super::files::{self, FoundFile};
use crate::fail::{Failure, Result};
use std::path::{Path, PathBuf};

/// The keys that a login sets.
const KEYS: [&str; 2] = ["url", "token"];

/// The user's own file.
#[derive(Debug, Clone)]
pub struct UserFile(PathBuf);

impl UserFile {
    pub fn new(path: PathBuf) -> UserFile {
        UserFile(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The token that is in it, and the server it is for.
    pub fn login(&self) -> Result<Option<(Option<String>, String)>> {
        let found = files::read(&self.0)?;
        Ok(found.and_then(|FoundFile { keys, .. }| Some((keys.url, keys.token?))))
    }

    pub fn set(&self, url: &str, token: &str) -> Result<()> {
        self.write(&[("url", url), ("token", token)])
    }

    /// Takes the token out.
    pub fn forget(&self) -> Result<()> {
        let url = files::read(&self.0)?.and_then(|found| found.keys.url);
        match url {
            Some(url) => self.write(&[("url", &url)]),
            None => self.write(&[]),
        }
    }

    fn write(&self, keys: &[(&str, &str)]) -> Result<()> {
        let path = &self.0;
        let failed = |error| Failure::io(format!("writing {}", path.display()), &error);
        let before = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(Failure::io(format!("reading {}", path.display()), &error)),
        };
        let text = changed(&before, keys);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        berth_fs::write_private(path, text.as_bytes()).map_err(failed)
    }
}

/// The text with these keys instead of those that were there. They stand before the rest, where no
/// table can have begun.
fn changed(before: &str, keys: &[(&str, &str)]) -> String {
    let is_ours = |line: &str| {
        let key = line.split('=').next().unwrap_or_default().trim().trim_matches('"');
        line.contains('=') && KEYS.contains(&key)
    };
    let set = keys.iter().map(|(key, value)| format!("{key} = {}\n", toml::Value::from(*value)));
    let rest = before.lines().filter(|line| !is_ours(line)).map(|line| format!("{line}\n"));
    set.chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_login_changes_its_own_keys_and_nobody_else_can_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = UserFile::new(folder.path().join("berth/config.toml"));
        assert_eq!(file.login().unwrap(), None);
        file.set("https://one", "brt_1_a").unwrap();
        let text = std::fs::read_to_string(file.path()).unwrap();
        std::fs::write(file.path(), format!("# mine\n{text}team = \"nlp\"\n")).unwrap();
        file.set("https://two", "brt_2_\"b").unwrap();
        let text = std::fs::read_to_string(file.path()).unwrap();
        assert!(text.contains("# mine\n") && text.contains("team = \"nlp\"\n"), "{text}");
        let expect = (Some("https://two".to_owned()), "brt_2_\"b".to_owned());
        assert_eq!(file.login().unwrap(), Some(expect));
        let mode = std::fs::metadata(file.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        file.forget().unwrap();
        assert_eq!(file.login().unwrap(), None);
        let text = std::fs::read_to_string(file.path()).unwrap();
        assert!(text.contains("https://two") && !text.contains("brt_"), "{text}");
    }
}
