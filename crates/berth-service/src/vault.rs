//! Secrets: sealed with a key that lies beside the database, opened only for a task that starts.

use crate::job_token::JobTokens;
use berth_store::{Retry, SecretRow, Store};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const KEY_LEN: usize = 32;
/// Between two looks at a database that is away.
const PAUSE: Duration = Duration::from_millis(500);

/// Why secrets cannot be given to a task. People read the text as the reason that it did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("secret `{name}` cannot be read: {source}")]
    Read { name: String, source: berth_store::Error },
    #[error("secret `{name}` was sealed with another key; set it again")]
    OtherKey { name: String },
}

#[derive(Clone)]
pub struct Vault {
    key: Arc<LessSafeKey>,
    /// Signs the tokens of running jobs. It is derived from the key of secrets, so that replicas
    /// that share the one share the other.
    job_tokens: JobTokens,
    store: Store,
}

impl Vault {
    /// With the key in a file, which is made on the first start.
    pub fn open(path: &Path, store: Store) -> io::Result<Vault> {
        let bytes = match File::open(path) {
            Ok(file) => read_key(file)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => make_key(path)?,
            Err(error) => return Err(error),
        };
        let key = UnboundKey::new(&CHACHA20_POLY1305, &bytes).expect("it has the right length");
        let job_tokens = JobTokens::new(&bytes);
        Ok(Vault { key: Arc::new(LessSafeKey::new(key)), job_tokens, store })
    }

    pub fn job_tokens(&self) -> &JobTokens {
        &self.job_tokens
    }

    /// Seals a value. Where it belongs is part of the seal, so that it cannot be moved.
    pub fn seal(&self, team: &str, name: &str, value: &str) -> Vec<u8> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).expect("the system gives random numbers");
        let mut sealed = value.as_bytes().to_vec();
        self.key
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(place(team, name)),
                &mut sealed,
            )
            .expect("no secret is that long");
        [nonce.as_slice(), &sealed].concat()
    }

    fn unseal(&self, row: &SecretRow) -> Option<String> {
        self.reveal(&row.team, &row.name, &row.sealed)
    }

    /// What was sealed for that place; nothing where it was another one, or another key.
    pub fn reveal(&self, team: &str, name: &str, sealed: &[u8]) -> Option<String> {
        let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut value = sealed.to_vec();
        let open = self.key.open_in_place(nonce, Aad::from(place(team, name)), &mut value);
        String::from_utf8(open.ok()?.to_vec()).ok()
    }

    /// The values of some secrets of a team; those that are not there are left out. A database that
    /// is away is waited for: a job must not fail for that.
    pub async fn open_all(
        &self,
        team: &str,
        names: impl Iterator<Item = &str>,
    ) -> Result<BTreeMap<String, String>, Error> {
        let mut values = BTreeMap::new();
        for name in names {
            let row = loop {
                match self.store.get::<SecretRow>((team, name)).await {
                    Ok(row) => break row,
                    Err(source) if source.retry() == Retry::Never => {
                        return Err(Error::Read { name: name.to_owned(), source });
                    }
                    Err(error) => tracing::warn!(%error, "a secret cannot be read; trying again"),
                }
                tokio::time::sleep(PAUSE).await;
            };
            let Some(row) = row else { continue };
            let Some(value) = self.unseal(&row) else {
                return Err(Error::OtherKey { name: name.to_owned() });
            };
            values.insert(name.to_owned(), value);
        }
        Ok(values)
    }
}

/// No two places read alike: team names have no slash.
fn place(team: &str, name: &str) -> String {
    format!("{team}/{name}")
}

fn read_key(mut file: File) -> io::Result<[u8; KEY_LEN]> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    bytes.try_into().map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no key"))
}

fn make_key(path: &Path) -> io::Result<[u8; KEY_LEN]> {
    let mut bytes = [0; KEY_LEN];
    SystemRandom::new().fill(&mut bytes).map_err(|_| io::Error::other("no random numbers"))?;
    match berth_fs::create_private(path, &bytes) {
        // Another replica was faster, and all use one key.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read_key(File::open(path)?),
        made => made.map(|()| bytes),
    }
}
