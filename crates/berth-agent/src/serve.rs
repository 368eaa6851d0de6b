//! Looks every few seconds, and answers with what was seen last.

use crate::sampler::Sampler;
use berth_kube::{PodDevices, pod_devices};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{MissedTickBehavior, interval};

/// Connections at once. Whoever comes beyond waits.
const MOST_CONNECTIONS: usize = 32;
/// How long a connection may take to ask, and to be answered.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);
/// What was seen is no answer any more after so many looks that did not come.
const STALE_LOOKS: u32 = 4;
/// After a connection that could not be taken.
const PAUSE: Duration = Duration::from_millis(200);

/// How the agent runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// The first of these that can be listened on.
    pub listen: Vec<SocketAddr>,
    /// How often it looks.
    pub every: Duration,
    /// Where the kubelet answers; nobody is asked where left out.
    pub kubelet: Option<PathBuf>,
}

/// Why the agent could not begin.
#[derive(Debug, thiserror::Error)]
#[error("listening on {address}: {source}")]
pub struct Error {
    address: String,
    source: std::io::Error,
}

/// What was seen last, and when.
#[derive(Debug, Default)]
struct Seen(Mutex<Option<(Instant, Bytes)>>);

impl Seen {
    fn set(&self, page: String) {
        let now = Some((Instant::now(), Bytes::from(page)));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    fn get(&self, every: Duration) -> Option<Bytes> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, page) = seen.as_ref()?;
        (at.elapsed() < every * STALE_LOOKS).then(|| page.clone())
    }
}

/// Serves until the future is dropped. `ready` hears the address once it is listened on.
pub async fn serve(
    options: Options,
    sampler: Sampler,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), Error> {
    let wrong = |source| {
        let address = options.listen.iter().map(ToString::to_string).collect::<Vec<_>>();
        Error { address: address.join(" or "), source }
    };
    let listener = TcpListener::bind(&options.listen[..]).await.map_err(wrong)?;
    let address = listener.local_addr().map_err(wrong)?;
    let seen = Arc::new(Seen::default());
    ready(address);
    tokio::join!(look(&options, sampler, &seen), answer(&listener, options.every, &seen));
    Ok(())
}

async fn look(options: &Options, mut sampler: Sampler, seen: &Seen) {
    let mut ticks = interval(options.every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_silent = false;
    loop {
        ticks.tick().await;
        let pods = pods(options, &mut is_silent).await;
        // The driver waits for the device, and somebody may ask meanwhile.
        let looked = tokio::task::spawn_blocking(move || {
            let page = sampler.look(&pods);
            (sampler, page)
        });
        let Ok((back, page)) = looked.await else { return };
        seen.set(page);
        sampler = back;
    }
}

/// Figures are told all the same where the kubelet does not answer, which is logged once.
async fn pods(options: &Options, is_silent: &mut bool) -> Vec<PodDevices> {
    let Some(socket) = &options.kubelet else { return Vec::new() };
    let answer = pod_devices(socket).await;
    let was_silent = std::mem::replace(is_silent, answer.is_err());
    answer.unwrap_or_else(|error| {
        if !was_silent {
            let socket = socket.display();
            tracing::warn!(%socket, %error, "it is not known which pods have the GPUs");
        }
        Vec::new()
    })
}

async fn answer(listener: &TcpListener, every: Duration, seen: &Arc<Seen>) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let seen = seen.clone();
                tokio::spawn(async move {
                    let _ =
                        tokio::time::timeout(CONNECTION_TIMEOUT, one(stream, every, seen)).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be taken");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn one(stream: TcpStream, every: Duration, seen: Arc<Seen>) {
    let service = service_fn(move |request| {
        let response = respond(&request, every, &seen);
        std::future::ready(Ok::<_, Infallible>(response))
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    // Whoever asked has gone, or spoke something else.
    let _ = serving.await;
}

fn respond(request: &Request<Incoming>, every: Duration, seen: &Seen) -> Response<Full<Bytes>> {
    let (code, body) = match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/metrics") => match seen.get(every) {
            Some(page) => (StatusCode::OK, page),
            None => (StatusCode::SERVICE_UNAVAILABLE, "the GPUs do not answer\n".into()),
        },
        (&Method::GET | &Method::HEAD, "/healthz") => (StatusCode::OK, "ok\n".into()),
        _ => (StatusCode::NOT_FOUND, "there is /metrics and /healthz\n".into()),
    };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = code;
    let text = header::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, text);
    response
}
