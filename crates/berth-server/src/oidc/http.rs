//! Requests to the provider, by the HTTP client that everything else uses.

use openidconnect::http::Response;
use openidconnect::{AsyncHttpClient, HttpRequest, HttpResponse};
use reqwest::redirect::Policy;
use std::pin::Pin;
use std::time::Duration;

/// How long the provider may take for one answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The largest answer that is read.
const MOST_BYTES: usize = 1 << 20;

pub struct Http(reqwest::Client);

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the request failed")]
    Request(#[source] reqwest::Error),
    #[error("the answer is larger than {MOST_BYTES} bytes")]
    TooLarge,
    #[error("the answer makes no sense")]
    Odd(#[source] openidconnect::http::Error),
}

impl Http {
    pub fn new() -> Result<Http, reqwest::Error> {
        // A provider that sends us elsewhere could send us into our own network.
        let builder = reqwest::Client::builder().redirect(Policy::none()).timeout(TIMEOUT);
        // Sign-ins are rare. A connection that is kept between two of them may be closed by the
        // provider in the moment of the next, and a code that was sent once cannot be sent again.
        let builder = builder.pool_max_idle_per_host(0);
        builder.build().map(Http)
    }

    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, Error> {
        let (parts, body) = request.into_parts();
        let request =
            self.0.request(parts.method, parts.uri.to_string()).headers(parts.headers).body(body);
        let mut answer = request.send().await.map_err(Error::Request)?;
        let mut response = Response::builder().status(answer.status());
        for (name, value) in answer.headers() {
            response = response.header(name, value);
        }
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(Error::Request)? {
            if body.len() + chunk.len() > MOST_BYTES {
                return Err(Error::TooLarge);
            }
            body.extend_from_slice(&chunk);
        }
        response.body(body).map_err(Error::Odd)
    }
}

impl<'c> AsyncHttpClient<'c> for Http {
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, Error>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.send(request))
    }
}
