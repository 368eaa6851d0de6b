//! Where requests come in: plain on loopback, encrypted everywhere else.

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

/// A handshake that takes longer is none.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Who is at the other end.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub SocketAddr);

impl Connected<IncomingStream<'_, TcpListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, TcpListener>) -> Peer {
        Peer(*stream.remote_addr())
    }
}

impl Connected<IncomingStream<'_, Encrypted>> for Peer {
    fn connect_info(stream: IncomingStream<'_, Encrypted>) -> Peer {
        Peer(*stream.remote_addr())
    }
}

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
}

/// Connections whose handshake is over. Handshakes run beside each other: one that hangs keeps
/// nobody else waiting.
pub struct Encrypted {
    ready: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    local: SocketAddr,
}

impl Encrypted {
    pub fn new(listener: TcpListener, tls: &Tls) -> Result<Encrypted, EncryptError> {
        let acceptor = TlsAcceptor::from(tls.config().map_err(EncryptError::Tls)?);
        let local = listener.local_addr().map_err(EncryptError::Io)?;
        let (done, ready) = mpsc::channel(64);
        tokio::spawn(accept(listener, acceptor, done));
        Ok(Encrypted { ready, local })
    }
}

#[derive(Debug, thiserror::Error)]
pub enum EncryptError {
    #[error(transparent)]
    Tls(TlsError),
    #[error(transparent)]
    Io(io::Error),
}

async fn accept(
    mut listener: TcpListener,
    acceptor: TlsAcceptor,
    done: mpsc::Sender<(TlsStream<TcpStream>, SocketAddr)>,
) {
    while !done.is_closed() {
        // axum's own listener waits and goes on when there are too many open files.
        let (stream, peer) = Listener::accept(&mut listener).await;
        let (acceptor, done) = (acceptor.clone(), done.clone());
        tokio::spawn(async move {
            let shaken = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await;
            if let Ok(Ok(stream)) = shaken {
                let _ = done.send((stream, peer)).await;
            }
        });
    }
}

impl Listener for Encrypted {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.ready.recv().await {
            Some(ready) => ready,
            // The task that accepts ends only with this listener.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.local)
    }
}
