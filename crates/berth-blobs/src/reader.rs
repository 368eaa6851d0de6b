//! Reads an object in blocking code, for example to unpack an archive.

use crate::read::Content;
use bytes::Bytes;
use futures_util::StreamExt;
use std::io::{self, Read};
use tokio::sync::mpsc;

/// Pieces that are read ahead.
const AHEAD: usize = 2;

/// Use it outside of the async threads: it blocks until the next piece is there.
pub struct Reader {
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    piece: Bytes,
}

impl Reader {
    /// Reads ahead until the reader is dropped.
    pub fn new(mut content: Content) -> Reader {
        let (pieces, received) = mpsc::channel(AHEAD);
        tokio::spawn(async move {
            while let Some(piece) = content.next().await {
                if pieces.send(piece).await.is_err() {
                    return;
                }
            }
        });
        Reader { pieces: received, piece: Bytes::new() }
    }
}

impl Read for Reader {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.pieces.blocking_recv() {
                Some(piece) => self.piece = piece?,
                None => return Ok(0),
            }
        }
        let count = bytes.len().min(self.piece.len());
        bytes[..count].copy_from_slice(&self.piece.split_to(count));
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;

    async fn read(content: Content) -> io::Result<String> {
        let mut reader = Reader::new(content);
        let read = tokio::task::spawn_blocking(move || {
            let mut text = String::new();
            reader.read_to_string(&mut text).map(|_| text)
        });
        read.await.unwrap()
    }

    #[tokio::test]
    async fn a_reader_gives_all_pieces_and_the_error_of_a_broken_one() {
        let pieces =
            ["one ", "", "two ", "three"].map(|text| Ok(Bytes::from_static(text.as_bytes())));
        let whole = stream::iter(pieces).boxed();
        assert_eq!(read(whole).await.unwrap(), "one two three");
        let broken = [Ok(Bytes::from_static(b"one")), Err(io::ErrorKind::ConnectionReset.into())];
        let error = read(stream::iter(broken).boxed()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }
}
