//! Asks an exporter. It is a program that is not ours, so the time and the size of its answer have
//! limits.

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const PATH: &str = "/metrics";
/// For all of it: connecting, asking, and reading the answer.
const TIMEOUT: Duration = Duration::from_secs(4);
/// Sixteen GPUs in seven parts each, with many labels, take a quarter of this.
const LARGEST_ANSWER: usize = 4 << 20;

/// Why an exporter told nothing.
#[derive(Debug, thiserror::Error)]
pub enum ScrapeError {
    #[error("nothing answers at {address}: {source}")]
    Connect { address: SocketAddr, source: std::io::Error },
    #[error("{address} does not answer as a server of HTTP: {source}")]
    Http { address: SocketAddr, source: hyper::Error },
    #[error("{address} answers {code} for {PATH}")]
    Status { address: SocketAddr, code: StatusCode },
    #[error("the answer of {address} was cut off: {why}")]
    Body { address: SocketAddr, why: String },
    #[error("the answer of {address} is larger than {LARGEST_ANSWER} bytes")]
    TooLarge { address: SocketAddr },
    #[error("the answer of {address} is no text")]
    NoText { address: SocketAddr },
    #[error("{address} tells nothing of GPUs")]
    NothingOfGpus { address: SocketAddr },
    #[error("{address} did not answer within {timeout:?}")]
    Timeout { address: SocketAddr, timeout: Duration },
}

/// The metrics of an exporter, as text.
pub async fn scrape(address: SocketAddr) -> Result<String, ScrapeError> {
    within(TIMEOUT, address).await
}

async fn within(timeout: Duration, address: SocketAddr) -> Result<String, ScrapeError> {
    let answered = tokio::time::timeout(timeout, ask(address)).await;
    answered.unwrap_or(Err(ScrapeError::Timeout { address, timeout }))
}

async fn ask(address: SocketAddr) -> Result<String, ScrapeError> {
    let stream = TcpStream::connect(address).await;
    let stream = stream.map_err(|source| ScrapeError::Connect { address, source })?;
    let http = |source| ScrapeError::Http { address, source };
    let (mut sender, connection) =
        http1::handshake::<_, String>(TokioIo::new(stream)).await.map_err(http)?;
    // A set, because what is in it ends with it.
    let mut connections = JoinSet::new();
    connections.spawn(connection);
    let request = Request::get(PATH)
        .header(header::HOST, address.to_string())
        .header(header::ACCEPT, "text/plain;version=0.0.4")
        .header(header::USER_AGENT, "berth")
        .body(String::new())
        .expect("it has no part that could be wrong");
    let answer = sender.send_request(request).await.map_err(http)?;
    if answer.status() != StatusCode::OK {
        return Err(ScrapeError::Status { address, code: answer.status() });
    }
    let body = Limited::new(answer.into_body(), LARGEST_ANSWER).collect().await;
    let body: Bytes = match body {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            return Err(ScrapeError::TooLarge { address });
        }
        Err(why) => return Err(ScrapeError::Body { address, why: why.to_string() }),
    };
    String::from_utf8(body.into()).map_err(|_| ScrapeError::NoText { address })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// Asks a server that answers this, and then waits with its connection open.
    async fn ask_who_says(answer: Vec<u8>) -> Result<String, ScrapeError> {
        ask_within(TIMEOUT, answer).await
    }

    async fn ask_within(timeout: Duration, answer: Vec<u8>) -> Result<String, ScrapeError> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = [0; 512];
            let _ = stream.read(&mut asked).await;
            let _ = stream.write_all(&answer).await;
            let _ = stream.read(&mut asked).await;
        });
        let told = within(timeout, address).await;
        server.abort();
        told
    }

    fn ok(body: &[u8]) -> Vec<u8> {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        [head.as_bytes(), body].concat()
    }

    #[tokio::test]
    async fn an_answer_is_read_whole_and_one_that_is_none_says_what_it_is() {
        assert_eq!(ask_who_says(ok(b"a 1\n")).await.unwrap(), "a 1\n");
        let refused = ask_who_says(b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n".to_vec()).await;
        assert!(refused.unwrap_err().to_string().contains("answers 401"));
        let odd = ask_who_says(b"SSH-2.0-OpenSSH\r\n\r\n".to_vec()).await;
        assert!(matches!(odd, Err(ScrapeError::Http { .. })), "{odd:?}");
        assert!(matches!(ask_who_says(ok(&[0xff, 0xfe])).await, Err(ScrapeError::NoText { .. })));
        let cut = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".to_vec();
        assert!(matches!(ask_who_says(cut).await, Err(ScrapeError::Body { .. })));
    }

    #[tokio::test]
    async fn a_huge_answer_and_one_that_does_not_come_are_given_up() {
        let huge = ask_who_says(ok(&vec![b'x'; LARGEST_ANSWER + 1])).await;
        assert!(matches!(huge, Err(ScrapeError::TooLarge { .. })), "{:?}", huge.err());
        let begun = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na".to_vec();
        let slow = ask_within(Duration::from_millis(100), begun).await;
        assert!(matches!(slow, Err(ScrapeError::Timeout { .. })), "{slow:?}");
    }

    #[tokio::test]
    async fn nobody_there_is_told_at_once() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        assert!(matches!(scrape(address).await, Err(ScrapeError::Connect { .. })));
    }
}
