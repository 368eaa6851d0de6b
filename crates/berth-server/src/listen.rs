//! Where requests come in: plain on loopback, encrypted everywhere else.

use crate::error::Error;
use crate::tls::{Certificate, EncryptError, Tls};
use axum::Router;
use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
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

/// Connections whose handshake is over. Handshakes run beside each other: one that hangs does not
/// delay the others.
pub struct Encrypted {
    ready: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    local: SocketAddr,
}

impl Encrypted {
    pub fn new(listener: TcpListener, tls: &Tls) -> Result<Encrypted, EncryptError> {
        let certificate = Certificate::read(tls.clone()).map_err(EncryptError::Tls)?;
        let local = listener.local_addr().map_err(EncryptError::Io)?;
        let (done, ready) = mpsc::channel(64);
        tokio::spawn(accept(listener, certificate, done));
        Ok(Encrypted { ready, local })
    }
}

async fn accept(
    mut listener: TcpListener,
    mut certificate: Certificate,
    done: mpsc::Sender<(TlsStream<TcpStream>, SocketAddr)>,
) {
    while !done.is_closed() {
        // axum's own listener waits and goes on when there are too many open files.
        let (stream, peer) = Listener::accept(&mut listener).await;
        let (acceptor, done) = (certificate.acceptor(), done.clone());
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

/// Where a server is reached, over all the times it stands by or leads.
pub struct Door {
    listener: std::net::TcpListener,
    tls: Option<Tls>,
}

impl Door {
    pub async fn open(address: SocketAddr, tls: Option<Tls>) -> Result<Door, Error> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => Error::PortInUse { address },
            _ => Error::Listen { address, source },
        };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let listener = listener.into_std().map_err(failed)?;
        Ok(Door { listener, tls })
    }

    pub fn url(&self) -> Result<String, Error> {
        let local = self.listener.local_addr().map_err(Error::Serve)?;
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        Ok(format!("{scheme}://{local}"))
    }

    /// Answers until `closes` is set; requests under way are finished first.
    pub fn accept(
        &self,
        router: Router,
        mut closes: watch::Receiver<bool>,
    ) -> Result<impl Future<Output = Result<(), Error>> + Send + 'static, Error> {
        let listener = self.listener.try_clone().map_err(Error::Serve)?;
        let listener = TcpListener::from_std(listener).map_err(Error::Serve)?;
        let encrypted = match &self.tls {
            None => Err(listener),
            Some(tls) => Ok(Encrypted::new(listener, tls).map_err(Error::Encrypt)?),
        };
        let service = router.into_make_service_with_connect_info::<Peer>();
        let closed = async move {
            let _ = closes.wait_for(|closes| *closes).await;
        };
        Ok(async move {
            match encrypted {
                Err(plain) => axum::serve(plain, service).with_graceful_shutdown(closed).await,
                Ok(tls) => axum::serve(tls, service).with_graceful_shutdown(closed).await,
            }
            .map_err(Error::Serve)
        })
    }
}
