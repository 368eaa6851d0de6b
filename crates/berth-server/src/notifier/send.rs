//! One try to send a message.

use berth_service::notify_address::{AddressError, NotifyAddresses};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// How a try went. Texts name no address: it may be confidential.
#[derive(Debug)]
pub enum Answer {
    /// The status of the answer.
    Taken(u16),
    /// The receiver refused the message with this status.
    Failed(u16, String),
    /// It did not answer in time, or could not be reached.
    Silent(String),
    /// Its address is one that no message goes to.
    Refused(String),
}

#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    addresses: NotifyAddresses,
}

impl Client {
    pub fn new(addresses: NotifyAddresses) -> reqwest::Result<Client> {
        let http = reqwest::Client::builder()
            .user_agent("berth")
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(SEND_TIMEOUT)
            // A redirect could lead to an address that Berth has not checked.
            .redirect(Policy::none())
            // A proxy would look names up itself.
            .no_proxy()
            .referer(false)
            // An address is good for one message: the next one is looked up again.
            .pool_max_idle_per_host(0)
            .dns_resolver(Arc::new(CheckedNames(addresses.clone())))
            .build()?;
        Ok(Client { http, addresses })
    }

    pub fn check(&self, url: &str) -> Result<Url, AddressError> {
        self.addresses.check_url(url)
    }

    /// Sends it to an address that was checked.
    pub async fn send(
        &self,
        url: Url,
        headers: Vec<(&'static str, String)>,
        body: String,
    ) -> Answer {
        let mut request = self.http.post(url).header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        match request.body(body).send().await {
            Ok(answer) => {
                let status = answer.status();
                match (status.is_success(), status.is_redirection()) {
                    (true, _) => Answer::Taken(status.as_u16()),
                    (_, true) => {
                        let why = format!("it answered {status}, and no redirect is followed");
                        Answer::Failed(status.as_u16(), why)
                    }
                    _ => Answer::Failed(status.as_u16(), format!("it answered {status}")),
                }
            }
            Err(error) => match refusal(&error) {
                Some(why) => Answer::Refused(why),
                None => Answer::Silent(chain(&error.without_url())),
            },
        }
    }
}

/// Looks names up, and leaves out addresses that no message goes to. The connection is made to what
/// is left, so another answer of the name server a moment later changes nothing.
struct CheckedNames(NotifyAddresses);

impl Resolve for CheckedNames {
    fn resolve(&self, name: Name) -> Resolving {
        let addresses = self.0.clone();
        Box::pin(async move {
            let found: Vec<SocketAddr> =
                tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            Ok(allowed(&addresses, found)?)
        })
    }
}

fn allowed(addresses: &NotifyAddresses, found: Vec<SocketAddr>) -> Result<Addrs, AddressError> {
    let mut refused = None;
    let mut allowed = Vec::new();
    for address in found {
        match addresses.check(address.ip()) {
            Ok(()) => allowed.push(address),
            Err(why) => refused = Some(why),
        }
    }
    match refused {
        Some(why) if allowed.is_empty() => Err(why),
        _ => Ok(Box::new(allowed.into_iter())),
    }
}

/// Why the address was refused, if that is what happened.
fn refusal(error: &reqwest::Error) -> Option<String> {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(refused) = error.downcast_ref::<AddressError>() {
            return Some(refused.to_string());
        }
        cause = error.source();
    }
    None
}

fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sockets(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| SocketAddr::new(text.parse().unwrap(), 0)).collect()
    }

    /// A name server that answers with both would otherwise have a try at each.
    #[test]
    fn of_the_addresses_of_a_name_only_the_public_ones_are_connected_to() {
        let all = NotifyAddresses::new(Vec::new());
        let found =
            allowed(&all, sockets(&["127.0.0.1", "8.8.8.8", "fd00:ec2::254"])).ok().unwrap();
        assert_eq!(found.collect::<Vec<_>>(), sockets(&["8.8.8.8"]));
        assert!(allowed(&all, sockets(&["127.0.0.1", "::1"])).is_err());
    }

    /// The name is looked up by the client itself, so that what was checked is what is connected to.
    #[tokio::test]
    async fn a_name_that_leads_to_loopback_is_refused_before_anything_is_connected() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = Client::new(NotifyAddresses::new(Vec::new())).unwrap();
        let url = Url::parse(&format!("http://localhost:{port}/")).unwrap();
        let answer = client.send(url, Vec::new(), String::new()).await;
        assert!(matches!(answer, Answer::Refused(_)), "{answer:?}");
        assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    }
}
