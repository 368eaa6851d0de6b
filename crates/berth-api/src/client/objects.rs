//! Objects of data, sent and fetched piece by piece.

use super::Client;
use super::error::Result;
use super::stream::Pieces;
use berth_model::DataHash;
use futures_util::stream;
use std::fs::File;
use std::io::{self, Read};

/// Bytes that are read at a time.
const PIECE: usize = 256 << 10;

impl Client {
    /// Sends a file as the object that it is.
    pub async fn put_object(
        &self,
        team: &str,
        hash: &DataHash,
        file: File,
        bytes: u64,
    ) -> Result<()> {
        let body = reqwest::Body::wrap_stream(pieces(file));
        self.call("dvc_post", &[team, &hash.path()]).stream(body, bytes).await
    }

    /// The same for what is in memory.
    pub async fn put_object_bytes(
        &self,
        team: &str,
        hash: &DataHash,
        bytes: Vec<u8>,
    ) -> Result<()> {
        let length = bytes.len() as u64;
        self.call("dvc_post", &[team, &hash.path()]).stream(bytes.into(), length).await
    }

    /// An object, piece by piece.
    pub async fn object(&self, team: &str, hash: &DataHash) -> Result<Pieces> {
        self.call("dvc_get", &[team, &hash.path()]).pieces().await
    }
}

fn pieces(file: File) -> impl futures_util::Stream<Item = io::Result<Vec<u8>>> + Send {
    stream::unfold(Some(file), async |open| {
        let mut file = open?;
        let read = tokio::task::spawn_blocking(move || {
            let mut piece = vec![0; PIECE];
            let read = file.read(&mut piece)?;
            piece.truncate(read);
            Ok::<_, io::Error>((file, piece))
        });
        match read.await.unwrap_or_else(|panic| Err(io::Error::other(panic))) {
            Ok((_, piece)) if piece.is_empty() => None,
            Ok((file, piece)) => Some((Ok(piece), Some(file))),
            Err(error) => Some((Err(error), None)),
        }
    })
}
