//! A socket that has a seat: it is counted for as long as anybody has it open.

use super::connections::{Seat, UnderWay};
use super::traffic::Traffic;
use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
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

/// The body of an answer, which tells whether the client takes it. The request of somebody who is
/// known is under way until all of it has been handed on. One without a token is over with the head
/// of its answer: whoever leaves the rest where it is could otherwise keep the connection for good.
pub struct Answering {
    body: Body,
    traffic: Arc<Traffic>,
    is_held: bool,
    _request: Option<UnderWay>,
}

impl Answering {
    pub fn new(body: Body, traffic: Arc<Traffic>, request: UnderWay) -> Answering {
        let request = request.is_known().then_some(request);
        let is_over = body.is_end_stream();
        let mut answering = Answering { body, traffic, is_held: false, _request: request };
        answering.hold(!is_over);
        answering
    }

    fn hold(&mut self, is_held: bool) {
        match (self.is_held, is_held) {
            (false, true) => self.traffic.held.fetch_add(1, Ordering::Relaxed),
            (true, false) => self.traffic.held.fetch_sub(1, Ordering::Relaxed),
            _ => return,
        };
        self.is_held = is_held;
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.hold(false);
    }
}

impl HttpBody for Answering {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        let is_held = matches!(polled, Poll::Ready(Some(Ok(_))));
        if is_held {
            self.traffic.handed.fetch_add(1, Ordering::Relaxed);
        }
        self.hold(is_held);
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
