//! Streams the bytes of an object.

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::{self, BoxStream, StreamExt};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// The size of one read.
pub const PIECE: u64 = 256 << 10;

/// Streams a range of an object. Reads lazily.
pub type Content = BoxStream<'static, io::Result<Bytes>>;

/// A range of an open file.
pub fn of_file(file: File, range: Range<u64>) -> Content {
    pieces(file, range).boxed()
}

fn pieces(file: File, range: Range<u64>) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let open = Some((Arc::new(file), range.start, range.end));
    stream::unfold(open, async |open| {
        let (file, at, to) = open?;
        let length = PIECE.min(to.saturating_sub(at));
        if length == 0 {
            return None;
        }
        let reading = file.clone();
        let read = tokio::task::spawn_blocking(move || {
            let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
            let read = reading.read_at(&mut bytes, at)?;
            bytes.truncate(read);
            Ok::<_, io::Error>(bytes)
        });
        match read.await.unwrap_or_else(|why| Err(io::Error::other(why))) {
            // The file was truncated. The client must not take fewer bytes than announced for the whole file.
            Ok(bytes) if bytes.is_empty() => Some((Err(io::ErrorKind::UnexpectedEof.into()), None)),
            Ok(bytes) => {
                let next = at + bytes.len() as u64;
                Some((Ok(Bytes::from(bytes)), Some((file, next, to))))
            }
            Err(error) => Some((Err(error), None)),
        }
    })
}
