//! The certificate of the server. It is read again when its files change.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// How often the files of the certificate are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A certificate and its key, in PEM files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read {path}: {why}. It should be a PEM file")]
    Pem { path: PathBuf, why: String },
    #[error("the certificate and the key do not go together: {0}")]
    Pair(tokio_rustls::rustls::Error),
}

impl Tls {
    fn config(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let bad = |path: &Path, why: &dyn ToString| TlsError::Pem {
            path: path.to_owned(),
            why: why.to_string(),
        };
        let chain: Result<Vec<CertificateDer<'static>>, _> =
            CertificateDer::pem_file_iter(&self.certificate)
                .map_err(|why| bad(&self.certificate, &why))?
                .collect();
        let chain = chain.map_err(|why| bad(&self.certificate, &why))?;
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|why| bad(&self.key, &why))?;
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Pair)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(TlsError::Pair)?;
        Ok(Arc::new(config))
    }

    /// The files with a key: that of the certificate often has one, too.
    pub fn secrets(&self) -> Vec<PathBuf> {
        let text = fs::read(&self.certificate).unwrap_or_default();
        let has_key = String::from_utf8_lossy(&text).contains("PRIVATE KEY-----");
        let certificate = has_key.then(|| self.certificate.clone());
        certificate.into_iter().chain([self.key.clone()]).collect()
    }

    fn stamps(&self) -> [Option<Stamp>; 2] {
        [&self.certificate, &self.key].map(|path| {
            let found = fs::metadata(path).ok()?;
            Some((found.modified().ok()?, found.len(), found.ino()))
        })
    }
}

/// What is another one when a file was written anew.
type Stamp = (SystemTime, u64, u64);

/// The certificate as it is in its files now. Whoever renews it writes them anew, and a server that
/// had read them once would go on with the old one until it runs out.
pub struct Certificate {
    tls: Tls,
    seen: [Option<Stamp>; 2],
    looked: Instant,
    acceptor: TlsAcceptor,
}

impl Certificate {
    pub fn read(tls: Tls) -> Result<Certificate, TlsError> {
        // Before the files are read: what is written meanwhile is then found the next time.
        let seen = tls.stamps();
        let acceptor = TlsAcceptor::from(tls.config()?);
        Ok(Certificate { tls, seen, looked: Instant::now(), acceptor })
    }

    pub fn acceptor(&mut self) -> TlsAcceptor {
        if self.looked.elapsed() >= LOOK_EVERY {
            self.looked = Instant::now();
            self.look();
        }
        self.acceptor.clone()
    }

    fn look(&mut self) {
        let now = self.tls.stamps();
        if now == self.seen {
            return;
        }
        self.seen = now;
        match self.tls.config() {
            Ok(config) => self.acceptor = TlsAcceptor::from(config),
            // One of the two files may be written after the other.
            Err(error) => tracing::warn!(%error, "the certificate stays the one it was"),
        }
    }
}
