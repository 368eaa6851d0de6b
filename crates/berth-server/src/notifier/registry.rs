//! Messages to webhooks of model registries. Berth reads the URL and the secret when it sends. With a
//! secret, it signs the message: the receiver computes the HMAC-SHA256 of the id, the time and the body, and
//! compares.

use super::send::{Answer, Client};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use berth_engine::clock;
use berth_model::Time;
use berth_service::Service;
use berth_service::vault::Vault;
use berth_store::NoticeRow;
use berth_tracker::{Code, Error, Event, Tried, Webhook, hook, hooks_of};
use berth_tracker_store::TrackingStore;
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use std::sync::Arc;

/// The prefix of the targets of such messages. Targets of users contain `://`, so they cannot collide.
const TARGET: &str = "registry://";
/// The maximum number of messages that wait for one webhook. Beyond it, Berth drops events.
const MOST_WAITING: u64 = 1_000;

pub type Headers = Vec<(&'static str, String)>;

/// The key of a secret in the vault. Names of other secrets contain no colon, so they cannot collide.
fn place(id: &str) -> String {
    format!("webhook:{id}")
}

pub fn seal(vault: &Vault, team: &str, id: &str, secret: &str) -> String {
    BASE64_STANDARD.encode(vault.seal(team, &place(id), secret))
}

/// The secret of a webhook, if any. Without the key that encrypted it, the secret is lost.
fn secret(vault: &Vault, team: &str, hook: &Webhook) -> Result<Option<String>, &'static str> {
    let Some(sealed) = &hook.sealed else { return Ok(None) };
    let opened = BASE64_STANDARD.decode(sealed).ok();
    let opened = opened.and_then(|sealed| vault.reveal(team, &place(&hook.id), &sealed));
    opened.map(Some).ok_or("its secret was sealed with another key; set it again")
}

fn signature(secret: &str, id: &str, seconds: i64, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let tag = hmac::sign(&key, format!("{id}.{seconds}.{body}").as_bytes());
    format!("v1,{}", BASE64_STANDARD.encode(tag))
}

fn headers(id: &str, secret: Option<&str>, at: Time, body: &str) -> Headers {
    let seconds = at.0.div_euclid(1_000);
    let mut headers =
        vec![("x-mlflow-delivery-id", id.to_owned()), ("x-mlflow-timestamp", seconds.to_string())];
    if let Some(secret) = secret {
        headers.push(("x-mlflow-signature", signature(secret, id, seconds, body)));
    }
    headers
}

/// The target and content of a message.
pub enum Found {
    To(String, Headers),
    /// The webhook was deleted or disabled.
    Gone,
    Refused(&'static str),
}

/// Finds the webhook of a message.
#[derive(Clone)]
pub struct Hooks {
    pub store: Arc<TrackingStore>,
    pub vault: Vault,
}

impl Hooks {
    pub fn are_meant(target: &str) -> bool {
        target.starts_with(TARGET)
    }

    pub async fn find(&self, notice: &NoticeRow) -> Result<Found, Error> {
        let id = notice.target.strip_prefix(TARGET).unwrap_or_default();
        let found = hook(&*self.store, id).await?;
        let Some((team, hook)) = found.filter(|(_, hook)| hook.active) else {
            return Ok(Found::Gone);
        };
        Ok(match secret(&self.vault, &team, &hook) {
            Err(why) => Found::Refused(why),
            Ok(secret) => {
                let headers = headers(&notice.id, secret.as_deref(), clock::now(), &notice.body);
                Found::To(hook.url, headers)
            }
        })
    }
}

fn fresh_id() -> Result<String, Error> {
    let mut bytes = [0; 16];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| Error::internal("the system returns no random numbers"))?;
    Ok(hex::encode(bytes))
}

/// The messages about an event, for the outbox.
pub async fn about(
    service: &Service,
    store: &TrackingStore,
    team: &str,
    event: &Event,
) -> Result<Vec<NoticeRow>, Error> {
    let at = clock::now();
    let body = event.body(&at.to_string());
    let mut notices = Vec::new();
    for hook in hooks_of(store, team, event).await? {
        let target = format!("{TARGET}{}", hook.id);
        let waiting = service.store.waiting_notices(&target).await;
        let waiting = waiting.map_err(|error| Error::new(Code::Unavailable, error.to_string()))?;
        if waiting >= MOST_WAITING {
            let event = event.name();
            tracing::warn!(webhook = hook.id, event, "an event was dropped: too many wait");
            continue;
        }
        notices.push(NoticeRow {
            id: fresh_id()?,
            at,
            target,
            body: body.clone(),
            attempts: 0,
            next_at: at,
            sent: None,
        });
    }
    Ok(notices)
}

/// Sends one message now. It returns only the status of the answer: the caller may not be allowed to read
/// from that address.
pub async fn test(
    service: &Service,
    team: &str,
    hook: &Webhook,
    event: &Event,
) -> Result<Tried, Error> {
    let failed = |why: String| Tried { status: None, error: Some(why) };
    let client = Client::new(service.notify_addresses.clone());
    let client = client.map_err(|error| Error::internal(error.to_string()))?;
    let url = match client.check(&hook.url) {
        Ok(url) => url,
        Err(why) => return Ok(failed(why.to_string())),
    };
    let secret = match secret(&service.vault, team, hook) {
        Ok(secret) => secret,
        Err(why) => return Ok(failed(why.to_owned())),
    };
    let (id, at) = (fresh_id()?, clock::now());
    let body = event.body(&at.to_string());
    let headers = headers(&id, secret.as_deref(), at, &body);
    Ok(match client.send(url, headers, body).await {
        Answer::Taken(status) => Tried { status: Some(status), error: None },
        Answer::Failed(status, why) => Tried { status: Some(status), error: Some(why) },
        Answer::Silent(why) | Answer::Refused(why) => failed(why),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_over_the_id_the_time_and_the_body() {
        let one = signature("key", "id", 17, "{}");
        assert!(one.starts_with("v1,") && one.len() == 3 + 44, "{one}");
        for other in [
            signature("other", "id", 17, "{}"),
            signature("key", "di", 17, "{}"),
            signature("key", "id", 18, "{}"),
            signature("key", "id", 17, "[]"),
        ] {
            assert_ne!(one, other);
        }
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"key");
        let tag = BASE64_STANDARD.decode(&one[3..]).unwrap();
        assert!(hmac::verify(&key, b"id.17.{}", &tag).is_ok());
        let plain = headers("id", None, Time(17_999), "{}");
        assert_eq!(plain[1], ("x-mlflow-timestamp", "17".to_owned()));
        assert!(plain.iter().all(|(name, _)| *name != "x-mlflow-signature"));
    }
}
