//! Where requests come in: plain on loopback, encrypted everywhere else.
//!
//! Whoever connects costs a descriptor and some memory before any token is seen, so connections
//! have limits of their own: how many there are, and how long each may take for a handshake, for
//! the head of a request, between requests and to take an answer.

mod accept;
mod connections;
mod counted;
mod load;
mod traffic;

pub use connections::{ConnectionLimits, Connections, UnderWay};

use crate::error::Error;
use crate::tls::{Certificate, Tls};
use axum::Router;
use std::io;
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Where a server is reached, over all the times it stands by or leads.
pub struct Door {
    listener: std::net::TcpListener,
    tls: Option<Tls>,
    connections: Connections,
}

impl Door {
    pub async fn open(
        address: SocketAddr,
        tls: Option<Tls>,
        limits: ConnectionLimits,
    ) -> Result<Door, Error> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => Error::PortInUse { address },
            _ => Error::Listen { address, source },
        };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let listener = listener.into_std().map_err(failed)?;
        Ok(Door { listener, tls, connections: Connections::new(limits) })
    }

    pub fn local_address(&self) -> Result<SocketAddr, Error> {
        self.listener.local_addr().map_err(Error::Serve)
    }

    pub fn url(&self) -> Result<String, Error> {
        let local = self.local_address()?;
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        Ok(format!("{scheme}://{local}"))
    }

    pub fn connections(&self) -> &Connections {
        &self.connections
    }

    /// Answers until `closes` is set; requests under way are finished first. Those that are left
    /// end with the future.
    pub fn accept(
        &self,
        router: Router,
        closes: watch::Receiver<bool>,
    ) -> Result<impl Future<Output = ()> + Send + 'static, Error> {
        let listener = self.listener.try_clone().map_err(Error::Serve)?;
        let listener = TcpListener::from_std(listener).map_err(Error::Serve)?;
        let certificate =
            self.tls.clone().map(Certificate::read).transpose().map_err(Error::Tls)?;
        let connections = self.connections.clone();
        Ok(accept::all(listener, certificate, router, connections, closes))
    }
}
