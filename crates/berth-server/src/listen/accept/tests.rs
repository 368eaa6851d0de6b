use super::*;
use crate::listen::connections::{ConnectionLimits, STALL_TIMEOUT};
use crate::listen::{Connections, UnderWay};
use axum::Extension;
use axum::body::Bytes;
use axum::routing::get;
use futures_util::stream;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const PATIENCE: Duration = Duration::from_secs(60);

/// A listener with room for four connections of this machine.
struct Bench {
    connections: Connections,
    address: SocketAddr,
    _closes: watch::Sender<bool>,
}

impl Bench {
    async fn start() -> Bench {
        let limits = ConnectionLimits { all: 100, per_address: 4, per_loopback: 4, per_user: 4 };
        let connections = Connections::new(limits);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new()
            .route("/public", get(async || "it is up"))
            .route("/endless-public", get(async || endless()))
            .route("/endless", get(known_endless))
            .route("/quiet", get(quiet));
        let (closes, closing) = watch::channel(false);
        tokio::spawn(all(listener, None, router, connections.clone(), closing));
        Bench { connections, address, _closes: closes }
    }

    /// Asks over HTTP/2 and lets nothing of the answer come but its head.
    async fn ask_and_take_nothing(&self, path: &str) -> TcpStream {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        socket.write_all(&request_without_a_window(path)).await.unwrap();
        loop {
            let mut head = [0; 9];
            socket.read_exact(&mut head).await.expect("it is answered");
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            socket.read_exact(&mut vec![0; length]).await.unwrap();
            if head[3] == HEADERS {
                return socket;
            }
        }
    }

    async fn ask(&self, asked: &str) -> TcpStream {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        socket.write_all(asked.as_bytes()).await.unwrap();
        socket
    }

    async fn status(&self) -> String {
        let mut socket = self.ask("GET /public HTTP/1.0\r\nhost: x\r\n\r\n").await;
        let mut answer = String::new();
        let read = tokio::time::timeout(PATIENCE, socket.read_to_string(&mut answer)).await;
        read.expect("it answers at once").unwrap();
        answer.lines().next().unwrap_or_default().to_owned()
    }

    /// Waits until the server waits for so many clients.
    async fn until_held(&self, count: usize) {
        let deadline = Instant::now() + PATIENCE;
        let mut before = Vec::new();
        loop {
            let now = self.connections.held();
            if now.len() == count && now == before {
                return;
            }
            assert!(Instant::now() < deadline, "{now:?}");
            before = now;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// As if that much time had passed, with a look before and one after.
    fn let_pass(&self, time: Duration) {
        let now = Instant::now();
        self.connections.sweep(now);
        self.connections.sweep(now + time);
    }

    fn open(&self) -> u64 {
        self.connections.figures().open
    }
}

async fn known_endless(Extension(under_way): Extension<UnderWay>) -> Body {
    assert!(under_way.identify("kim"));
    endless()
}

fn endless() -> Body {
    let part = Bytes::from_static(&[b'x'; 16 << 10]);
    Body::from_stream(stream::repeat_with(move || Ok::<_, Infallible>(part.clone())))
}

async fn quiet(Extension(under_way): Extension<UnderWay>) -> Body {
    assert!(under_way.identify("kim"));
    Body::from_stream(stream::pending::<Result<Bytes, Infallible>>())
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const WINDOW_UPDATE: u8 = 8;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

fn request(stream: u32, path: &str) -> Vec<u8> {
    let field = |name: &str, value: &str| {
        let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
        [vec![0], text(name), text(value)].concat()
    };
    let fields = [(":method", "GET"), (":scheme", "http"), (":authority", "x"), (":path", path)];
    let fields = fields.map(|(name, value)| field(name, value)).concat();
    frame(HEADERS, 5, stream, &fields)
}

/// A request whose client has no room for any byte of the answer.
fn request_without_a_window(path: &str) -> Vec<u8> {
    let no_window = [&[0, 4], &[0; 4][..]].concat();
    [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        frame(SETTINGS, 0, 0, &no_window),
        frame(SETTINGS, 1, 0, &[]),
        request(1, path),
    ]
    .concat()
}

#[tokio::test]
async fn clients_without_a_token_that_leave_no_window_keep_nobody_out() {
    let bench = Bench::start().await;
    let mut pinned = Vec::new();
    for _ in 0..12 {
        pinned.push(bench.ask_and_take_nothing("/public").await);
    }
    assert_eq!(bench.status().await, "HTTP/1.0 200 OK");
    bench.let_pass(STALL_TIMEOUT);
    assert!(bench.connections.figures().timeouts_stalled >= 3, "the last ones go, too");
}

#[tokio::test]
async fn clients_without_a_token_that_never_read_keep_nobody_out() {
    let bench = Bench::start().await;
    let mut pinned = Vec::new();
    for _ in 0..4 {
        pinned.push(bench.ask("GET /endless-public HTTP/1.1\r\nhost: x\r\n\r\n").await);
    }
    bench.until_held(4).await;
    assert_eq!(bench.status().await, "HTTP/1.0 200 OK");
    bench.let_pass(STALL_TIMEOUT);
    assert!(bench.connections.figures().timeouts_stalled >= 3, "the last ones go, too");
}

#[tokio::test]
async fn a_known_user_who_takes_nothing_for_a_minute_is_cut_off_and_one_who_waits_is_not() {
    let bench = Bench::start().await;
    let over_http2 = bench.ask_and_take_nothing("/endless").await;
    let over_http1 = bench.ask("GET /endless HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let waits = bench.ask("GET /quiet HTTP/1.1\r\nhost: x\r\n\r\n").await;
    bench.until_held(2).await;
    assert_eq!(bench.open(), 3);
    bench.let_pass(STALL_TIMEOUT - Duration::from_secs(5));
    assert_eq!(bench.connections.figures().timeouts_stalled, 0);
    bench.let_pass(STALL_TIMEOUT);
    assert_eq!(bench.connections.figures().timeouts_stalled, 2);
    let deadline = Instant::now() + PATIENCE;
    while bench.open() > 1 {
        assert!(Instant::now() < deadline, "their sockets are closed");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    bench.let_pass(STALL_TIMEOUT * 100);
    assert_eq!(bench.open(), 1, "a stream with nothing to tell lives on");
    drop((over_http2, over_http1, waits));
}

/// Leaves room for so many bytes of an answer, and takes them.
async fn take(socket: &mut TcpStream, stream: u32, bytes: u32) {
    for stream in [0, stream] {
        let room = frame(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes());
        socket.write_all(&room).await.unwrap();
    }
    let mut left = bytes as usize;
    while left > 0 {
        let mut head = [0; 9];
        socket.read_exact(&mut head).await.expect("it comes");
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        socket.read_exact(&mut vec![0; length]).await.unwrap();
        if head[3] == DATA {
            left -= length;
        }
    }
}

#[tokio::test]
async fn who_takes_one_answer_and_leaves_another_is_cut_off_all_the_same() {
    let bench = Bench::start().await;
    let mut socket = bench.ask_and_take_nothing("/endless").await;
    bench.until_held(1).await;
    socket.write_all(&request(3, "/endless")).await.unwrap();
    let begin = Instant::now();
    for third in 0..4 {
        assert_eq!(bench.connections.figures().timeouts_stalled, 0, "{third}");
        take(&mut socket, 3, 48 << 10).await;
        // The sweep has to meet a server that waits again.
        bench.until_held(1).await;
        bench.connections.sweep(begin + STALL_TIMEOUT * third / 3);
    }
    assert_eq!(bench.connections.figures().timeouts_stalled, 1);
}
