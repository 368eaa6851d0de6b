//! Sending what is in the outbox: webhooks, and Slack's, which take the same shape.

use berth_engine::notices::{OPERATORS, setting};
use berth_engine::{Handle, Write, clock};
use berth_model::Span;
use berth_store::{Batch, NoticeRow, SettingRow, Store};
use std::time::Duration;
use tokio::task::JoinHandle;

const LOOK: Duration = Duration::from_secs(1);
const AT_ONCE: u32 = 50;
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// After that many tries a message is given up.
const MOST_TRIES: u32 = 12;
/// The target of messages that are not about the job of one user.
const ALERTS: &str = "alerts";

pub fn begin(engine: Handle, store: Store) -> JoinHandle<()> {
    tokio::spawn(async move {
        let client = reqwest::Client::builder().timeout(SEND_TIMEOUT).build();
        let Ok(client) = client else { return };
        loop {
            tokio::time::sleep(LOOK).await;
            let due = store.due_notices(clock::now(), AT_ONCE).await.unwrap_or_default();
            if due.is_empty() {
                continue;
            }
            let mut documents = Batch::default();
            for notice in due {
                documents.notices.push(deliver(&client, &store, notice).await);
            }
            let write = Write::unnoted(documents);
            // Until this is written nothing else may be sent: it would be sent twice.
            if engine.write_eventually(write).await.is_err() {
                return;
            }
        }
    })
}

/// Tries once; the row says how that went.
async fn deliver(client: &reqwest::Client, store: &Store, mut notice: NoticeRow) -> NoticeRow {
    let now = clock::now();
    let url = match address(store, &notice.target).await {
        Ok(url) => url,
        Err(error) => {
            tracing::warn!(%error, notice = notice.id, "where a message goes could not be read");
            notice.next_at = now + Span::secs(5);
            return notice;
        }
    };
    notice.attempts += 1;
    let sent = match url {
        // No address is set for it, so there is nothing to send.
        None => true,
        Some(url) => {
            let request = client.post(&url).header("content-type", "application/json");
            let answer = request.body(notice.body.clone()).send().await;
            answer.is_ok_and(|answer| answer.status().is_success())
        }
    };
    if sent || notice.attempts >= MOST_TRIES {
        notice.sent = Some(now);
        if !sent {
            tracing::warn!(notice = notice.id, "a message was given up");
        }
    } else {
        notice.next_at = now + Span::secs(5 << notice.attempts.min(10));
    }
    notice
}

/// The URL of a target: one that is named, or one that the settings give a name to.
async fn address(store: &Store, target: &str) -> berth_store::Result<Option<String>> {
    let to = target.split_once(':').map_or(target, |(_, to)| to);
    if to.starts_with("http://") || to.starts_with("https://") {
        return Ok(Some(to.to_owned()));
    }
    let name = setting(if target == OPERATORS { ALERTS } else { target });
    Ok(store.get::<SettingRow>(name.as_str()).await?.map(|row| row.value))
}
