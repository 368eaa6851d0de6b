//! Taking connections, and answering what comes in on them.

use super::connections::{Connections, HEAD_TIMEOUT, IDLE_TIMEOUT, Refusal, Seat};
use super::counted::{Answering, Counted};
use super::load::STREAMED;
use crate::peer::Peer;
use crate::tls::Certificate;
use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Request, Response, StatusCode, Version};
use berth_api::problem::MEDIA_TYPE;
use berth_api::{Code, Problem};
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// How often connections are looked through for those that take too long.
const SWEEP: Duration = Duration::from_secs(1);
/// How long the listener rests when it cannot accept.
const PAUSE: Duration = Duration::from_millis(50);
/// How often it says so, at the most.
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);
/// The head of a request, and what is read ahead of a body.
const MOST_BUFFERED: usize = 128 << 10;
/// Of one connection of HTTP/2.
const MOST_STREAMS: u32 = 32;
const MOST_HEADERS: u32 = 64 << 10;
/// How often a client of HTTP/2 is asked whether it is still there, and how long it may take.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Takes connections until `closes` is set, then waits for those that are left.
pub async fn all(
    listener: TcpListener,
    mut certificate: Option<Certificate>,
    router: Router,
    connections: Connections,
    mut closes: watch::Receiver<bool>,
) {
    let mut tasks = JoinSet::new();
    let mut sweep = tokio::time::interval(SWEEP);
    let mut shortage = Shortage::default();
    let closing = closes.clone();
    loop {
        let accepted = tokio::select! {
            _ = closes.wait_for(|closes| *closes) => break,
            _ = sweep.tick() => {
                connections.sweep(Instant::now());
                continue;
            }
            Some(_) = tasks.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                shortage.wait(&error, &listener, &connections).await;
                continue;
            }
        };
        let seat = match connections.admit(peer.ip(), Instant::now()) {
            Ok(seat) => Arc::new(seat),
            Err(refusal) => {
                refuse(&stream, refusal, certificate.is_some());
                continue;
            }
        };
        // Small answers go at once.
        let _ = stream.set_nodelay(true);
        let acceptor = certificate.as_mut().map(Certificate::acceptor);
        let (router, connections, closing) = (router.clone(), connections.clone(), closing.clone());
        tasks.spawn(async move {
            let stream = Counted::new(stream, seat.clone());
            match acceptor {
                None => {
                    let peer = Peer { address: peer, is_encrypted: false };
                    serve(stream, seat, peer, router, closing).await;
                }
                Some(acceptor) => {
                    if let Some(stream) = shaken(acceptor, stream, &seat, &connections).await {
                        let peer = Peer { address: peer, is_encrypted: true };
                        serve(stream, seat, peer, router, closing).await;
                    }
                }
            }
        });
    }
    drop(listener);
    while tasks.join_next().await.is_some() {}
}

/// Agrees on the encryption; nothing where that takes too long, or the place is needed.
async fn shaken<S: AsyncRead + AsyncWrite + Unpin>(
    acceptor: TlsAcceptor,
    stream: S,
    seat: &Seat,
    connections: &Connections,
) -> Option<tokio_rustls::server::TlsStream<S>> {
    tokio::select! {
        () = seat.dismissed() => None,
        shaken = tokio::time::timeout(HEAD_TIMEOUT, acceptor.accept(stream)) => match shaken {
            Ok(shaken) => shaken.ok(),
            Err(_) => {
                connections.handshake_timed_out();
                None
            }
        },
    }
}

/// Answers one connection until it ends, or has to go.
async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    seat: Arc<Seat>,
    peer: Peer,
    router: Router,
    mut closes: watch::Receiver<bool>,
) {
    let routes = TowerToHyperService::new(router);
    let of_requests = seat.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        let under_way = of_requests.begin_request(request.version() == Version::HTTP_2);
        let answer = under_way.map(|under_way| {
            request.extensions_mut().insert(ConnectInfo(peer));
            request.extensions_mut().insert(under_way.clone());
            (routes.call(request), under_way)
        });
        let traffic = of_requests.traffic().clone();
        async move {
            let Some((answer, under_way)) = answer else { return Ok(displaced()) };
            let answer: Response<Body> = answer.await?;
            Ok::<_, Infallible>(
                answer.map(|body| Body::new(Answering::new(body, traffic, under_way))),
            )
        }
    });
    let builder = builder();
    let mut connection =
        pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), service));
    let mut closing = false;
    loop {
        tokio::select! {
            biased;
            () = seat.dismissed() => return,
            // An error is of no consequence: the client has gone, or sent what is no HTTP.
            _ = connection.as_mut() => break,
            _ = closes.wait_for(|closes| *closes), if !closing => {
                closing = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
    // Either the socket is closed and takes its seat along, or a terminal goes on with it.
    seat.hand_over();
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        // The sweep is stricter, and knows a connection that rests from one that sends half a head.
        .header_read_timeout(IDLE_TIMEOUT)
        .max_buf_size(MOST_BUFFERED);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIMEOUT)
        .max_concurrent_streams(MOST_STREAMS)
        .max_send_buf_size(STREAMED)
        .max_header_list_size(MOST_HEADERS);
    builder
}

/// What a request hears that came in the moment in which its connection had to go.
fn displaced() -> Response<Body> {
    let problem = Problem::new(Code::TooMany, "Berth closed this connection in favour of another");
    let body = serde_json::to_string(&problem).unwrap_or_default();
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    response
}

/// Tells a client that it is one too many, where that can be told in plain text.
fn refuse(stream: &TcpStream, refusal: Refusal, is_encrypted: bool) {
    if is_encrypted {
        return;
    }
    let detail = match refusal {
        Refusal::All => "the server has as many connections as it may, and all are busy",
        Refusal::Address => "your address has as many connections as it may, and all are busy",
    };
    let problem = Problem::new(Code::TooMany, detail);
    let Ok(body) = serde_json::to_string(&problem) else { return };
    let head = format!(
        "HTTP/1.1 429 Too Many Requests\r\ncontent-type: {MEDIA_TYPE}\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    // Nobody waits for a client that is not let in.
    let _ = stream.try_write(format!("{head}{body}").as_bytes());
}

/// What the listener does when there are no descriptors left.
struct Shortage {
    /// A descriptor that is given up to take a connection, and close it: one that is only left
    /// waiting would be told nothing.
    spare: Option<File>,
    complained: Option<Instant>,
}

impl Default for Shortage {
    fn default() -> Shortage {
        Shortage { spare: spare(), complained: None }
    }
}

impl Shortage {
    async fn wait(&mut self, error: &io::Error, listener: &TcpListener, connections: &Connections) {
        if is_of_connection(error) {
            return;
        }
        if self.complained.is_none_or(|at| at.elapsed() >= COMPLAIN_EVERY) {
            self.complained = Some(Instant::now());
            tracing::warn!(%error, "no connection can be taken; those that rest are closed");
        }
        connections.shed();
        if self.spare.take().is_some() {
            // It is there, so this does not wait; the time is for one that has gone meanwhile.
            let _ = tokio::time::timeout(PAUSE, listener.accept()).await;
        }
        tokio::time::sleep(PAUSE).await;
        self.spare = spare();
    }
}

fn spare() -> Option<File> {
    File::open("/dev/null").ok()
}

/// Whether only the one who came is concerned: they have gone already.
fn is_of_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    )
}

#[cfg(test)]
mod tests;
