//! A socket that has a seat: it is counted for as long as anybody has it open.

use super::connections::{Seat, UnderWay};
use super::traffic::Traffic;
use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream that notes what passes. A terminal keeps it when its HTTP connection is over.
pub struct Counted<S> {
    stream: S,
    seat: Arc<Seat>,
}

impl<S> Counted<S> {
    pub fn new(stream: S, seat: Arc<Seat>) -> Counted<S> {
        Counted { stream, seat }
    }

    fn wrote(&self, bytes: usize) {
        self.seat.traffic().written.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, into))?;
        let bytes = into.filled().len() - before;
        self.seat.traffic().read.fetch_add(bytes as u64, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let wrote = ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        self.wrote(wrote);
        Poll::Ready(Ok(wrote))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = ready!(Pin::new(&mut self.stream).poll_write_vectored(context, parts))?;
        self.wrote(wrote);
        Poll::Ready(Ok(wrote))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// How much of an answer is handed on at once. Whoever takes less than this in a minute takes
/// nothing.
const PIECE: usize = 16 << 10;

/// The body of an answer, which tells whether the client takes it. The request of somebody who is
/// known is under way until all of it has been taken. One without a token is over with the head of
/// its answer: whoever leaves the rest where it is could otherwise keep the connection for good.
pub struct Answering {
    body: Body,
    /// What the body has given and nobody has asked for.
    rest: Bytes,
    delivery: Arc<Delivery>,
}

/// An answer until the connection has let go of the last piece of it: a piece that was handed on
/// stays in memory for as long as the client leaves no room for it.
struct Delivery {
    id: u64,
    traffic: Arc<Traffic>,
    progress: Mutex<Progress>,
    _request: Option<UnderWay>,
}

#[derive(Default)]
struct Progress {
    moves: u64,
    /// Pieces in the hands of the connection.
    pieces: usize,
    /// The server has nothing to give.
    is_waiting: bool,
}

/// A piece of an answer in the hands of the connection.
struct Piece {
    bytes: Bytes,
    delivery: Arc<Delivery>,
}

impl Delivery {
    fn note(&self, change: impl FnOnce(&mut Progress)) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut progress);
        progress.moves += 1;
        match progress.is_waiting && progress.pieces == 0 {
            true => self.traffic.release(self.id),
            false => self.traffic.hold(self.id, progress.moves),
        }
    }
}

impl Answering {
    pub fn new(body: Body, traffic: Arc<Traffic>, request: UnderWay) -> Answering {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let request = request.is_known().then_some(request);
        let delivery = Delivery { id, traffic, progress: Mutex::default(), _request: request };
        let is_over = body.is_end_stream();
        delivery.note(|progress| progress.is_waiting = is_over);
        Answering { body, rest: Bytes::new(), delivery: Arc::new(delivery) }
    }

    /// The next piece of what there is.
    fn piece(&mut self) -> Frame<Bytes> {
        let bytes = self.rest.split_to(self.rest.len().min(PIECE));
        self.delivery.note(|progress| {
            progress.pieces += 1;
            progress.is_waiting = false;
        });
        Frame::data(Bytes::from_owner(Piece { bytes, delivery: self.delivery.clone() }))
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.delivery.note(|progress| progress.pieces -= 1);
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        self.traffic.release(self.id);
    }
}

impl HttpBody for Answering {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(self.piece())));
        }
        let frame = match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => frame,
            polled => {
                self.delivery.note(|progress| progress.is_waiting = true);
                return polled;
            }
        };
        match frame.into_data() {
            Ok(data) if data.is_empty() => Poll::Ready(Some(Ok(Frame::data(data)))),
            Ok(data) => {
                self.rest = data;
                Poll::Ready(Some(Ok(self.piece())))
            }
            Err(frame) => Poll::Ready(Some(Ok(frame))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, body) = (self.rest.len() as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(body.lower() + rest);
        if let Some(upper) = body.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}
