//! Requests that the test process sends itself. A test asks the same question again and again
//! until the answer is what it waits for, and to start `kubectl` or `berth` for each question takes
//! more CPU time than the servers need to answer it.

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, ClientBuilder, Method};
use serde_json::Value;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// No answer takes longer, also while the machine is busy.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Longer than any test watches.
const ENDLESS: Duration = Duration::from_secs(6 * 3_600);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The debug form has the causes as well.
    #[error("{0:?}")]
    Connection(reqwest::Error),
    #[error("the request was dropped")]
    Dropped,
}

/// An answer of a server, whatever its status.
#[derive(Debug)]
pub(crate) struct Answer {
    pub status: u16,
    pub body: String,
}

impl Answer {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The body, or null where it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

/// A request to be sent.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    method: Method,
    url: String,
    accept: Option<&'static str>,
    body: Option<(&'static str, String)>,
}

impl Request {
    pub fn new(method: Method, url: String) -> Request {
        Request { method, url, accept: None, body: None }
    }

    pub fn get(url: String) -> Request {
        Request::new(Method::GET, url)
    }

    pub fn accept(mut self, media: &'static str) -> Request {
        self.accept = Some(media);
        self
    }

    pub fn body(mut self, media: &'static str, body: String) -> Request {
        self.body = Some((media, body));
        self
    }

    /// Sends it and waits. An error says that there is no answer, because the server is away.
    pub fn send(self, client: &Client) -> Result<Answer, Error> {
        let again = (self.method == Method::GET).then(|| self.clone());
        let answer = self.send_once(client);
        match (answer, again) {
            // A connection that was kept may be one to a server that has been restarted since.
            (Err(_), Some(again)) => again.send_once(client),
            (answer, _) => answer,
        }
    }

    fn send_once(self, client: &Client) -> Result<Answer, Error> {
        let mut request = client.request(self.method, self.url);
        if let Some(accept) = self.accept {
            request = request.header(ACCEPT, accept);
        }
        if let Some((media, body)) = self.body {
            request = request.header(CONTENT_TYPE, media).body(body);
        }
        let (sender, answer) = mpsc::channel();
        // Not `block_on`: a caller may be inside a runtime of its own.
        runtime().spawn(async move {
            let answer = async {
                let response = request.send().await?;
                Ok(Answer { status: response.status().as_u16(), body: response.text().await? })
            };
            let _ = sender.send(answer.await.map_err(Error::Connection));
        });
        answer.recv().unwrap_or(Err(Error::Dropped))
    }
}

/// The lines of an answer that goes on, until this is dropped.
#[derive(Debug)]
pub(crate) struct Lines {
    read: Arc<Mutex<Read>>,
    task: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Read {
    lines: Vec<String>,
    is_over: bool,
}

impl Lines {
    /// Those after so many, and whether there will be no more.
    pub fn since(&self, count: usize) -> (Vec<String>, bool) {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        (read.lines[count..].to_vec(), read.is_over)
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Reads an answer that has no end, line by line.
pub(crate) fn lines(client: &Client, url: String) -> Lines {
    let read = Arc::new(Mutex::new(Read::default()));
    let (into, request) = (read.clone(), client.get(url).timeout(ENDLESS));
    let task = runtime().spawn(async move {
        let mut rest = Vec::new();
        if let Ok(mut response) = request.send().await {
            while let Ok(Some(chunk)) = response.chunk().await {
                rest.extend_from_slice(&chunk);
                while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = rest.drain(..=end).collect();
                    let line = String::from_utf8_lossy(&line).into_owned();
                    into.lock().unwrap_or_else(PoisonError::into_inner).lines.push(line);
                }
            }
        }
        into.lock().unwrap_or_else(PoisonError::into_inner).is_over = true;
    });
    Lines { read, task }
}

/// A client whose requests carry this token.
pub(crate) fn client(token: &str) -> ClientBuilder {
    // An error says that there is a provider already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).expect("tokens are plain");
    value.set_sensitive(true);
    let headers = HeaderMap::from_iter([(AUTHORIZATION, value)]);
    Client::builder().default_headers(headers).timeout(TIMEOUT).no_proxy()
}

/// One thread for the requests of all tests of this process.
fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let start = || Builder::new_multi_thread().worker_threads(1).enable_all().build();
    RUNTIME.get_or_init(|| start().expect("a thread can be started"))
}
