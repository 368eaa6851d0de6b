//! Sending what is in the outbox: webhooks, and Slack's, which take the same shape.
//!
//! Many messages are on their way at once, few to each host, so that a host that does not answer
//! delays nobody else. Where they may go, `NotifyAddresses` says; what a name leads to is looked at
//! again for each connection, and the connection goes to the address that was looked at.

mod desk;
pub mod registry;
mod send;

pub use desk::NoticeFigures;

use berth_engine::notices::{OPERATORS, setting};
use berth_engine::{Handle, Write, clock};
use berth_model::{Span, Time};
use berth_service::notify_address::NotifyAddresses;
use berth_store::{Batch, DueNotices, NoticeRow, SettingRow, Store};
use desk::{Desk, Host};
use registry::{Found, Headers, Hooks};
use send::{Answer, Client};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinHandle, JoinSet};
use url::Url;

const LOOK: Duration = Duration::from_secs(1);
/// Notices that are read at a time.
const PAGE: u32 = 100;
/// Reads of one look, at the most: what is left is for the next look.
const PAGES: usize = 16;
/// After that many tries a message is given up.
const MOST_TRIES: u32 = 12;
/// The target of messages that are not about the job of one user.
const ALERTS: &str = "alerts";

pub fn begin(
    engine: Handle,
    store: Store,
    addresses: NotifyAddresses,
    hooks: Hooks,
    figures: Arc<NoticeFigures>,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        let client = match Client::new(addresses) {
            Ok(client) => client,
            Err(error) => {
                tracing::error!(%error, "no message can be sent");
                return;
            }
        };
        let mut post = Post { engine, store, client, hooks, figures, desk: Desk::default() };
        let mut sending = JoinSet::new();
        loop {
            post.start_due(&mut sending).await;
            let mut done = Vec::new();
            tokio::select! {
                Some(sent) = sending.join_next() => done.extend(sent.ok()),
                () = tokio::time::sleep(LOOK) => {}
            }
            while let Some(sent) = sending.try_join_next() {
                done.extend(sent.ok());
            }
            if !post.finish(done).await {
                return;
            }
        }
    })
}

/// A try that is over.
struct Sent {
    notice: NoticeRow,
    host: Host,
    answer: Answer,
}

/// What is to be done with a notice.
enum Step {
    Send(Url, Host, Headers),
    /// There is nothing to send.
    Drop,
    /// It must not be sent.
    Refuse(String),
}

struct Post {
    engine: Handle,
    store: Store,
    client: Client,
    hooks: Hooks,
    figures: Arc<NoticeFigures>,
    desk: Desk,
}

impl Post {
    /// Starts what is due and has a place. Targets that an operator has named come first: no
    /// number of messages to addresses that users name delays them.
    async fn start_due(&mut self, sending: &mut JoinSet<Sent>) {
        let mut settled = Vec::new();
        for named in [true, false] {
            // Targets whose host has no place at the moment.
            let mut skip = BTreeSet::new();
            for _ in 0..PAGES {
                let due = DueNotices {
                    named,
                    skip: &self.desk.under_way(),
                    skip_targets: &skip,
                    limit: PAGE,
                };
                let page = match self.store.due_notices(clock::now(), due).await {
                    Ok(page) => page,
                    Err(error) => {
                        tracing::warn!(%error, "messages that are due could not be read");
                        break;
                    }
                };
                if page.is_empty() || !self.desk.has_place() {
                    break;
                }
                for notice in page {
                    if skip.contains(&notice.target) {
                        continue;
                    }
                    match self.step(&notice, named).await {
                        Err(error) => {
                            tracing::warn!(%error, "where a message goes could not be read");
                            skip.insert(notice.target);
                        }
                        Ok(Step::Send(url, host, headers)) => {
                            if !self.desk.take(&notice.id, &host) {
                                skip.insert(notice.target);
                                continue;
                            }
                            let client = self.client.clone();
                            sending.spawn(async move {
                                let answer = client.send(url, headers, notice.body.clone()).await;
                                Sent { notice, host, answer }
                            });
                        }
                        Ok(Step::Drop) => {
                            self.desk.hold(&notice.id);
                            settled.push(over(notice, clock::now()));
                        }
                        Ok(Step::Refuse(why)) => {
                            self.desk.hold(&notice.id);
                            settled.push(self.refused(notice, &why));
                        }
                    }
                }
            }
        }
        self.write(settled).await;
    }

    async fn step(&self, notice: &NoticeRow, named: bool) -> Result<Step, String> {
        let (url, headers) = match Hooks::are_meant(&notice.target) {
            true => match self.hooks.find(notice).await.map_err(|error| error.to_string())? {
                Found::To(url, headers) => (url, headers),
                Found::Gone => return Ok(Step::Drop),
                Found::Refused(why) => return Ok(Step::Refuse(why.to_owned())),
            },
            false => match address(&self.store, &notice.target).await {
                Ok(Some(url)) => (url, Headers::new()),
                Ok(None) => return Ok(Step::Drop),
                Err(error) => return Err(error.to_string()),
            },
        };
        Ok(match self.client.check(&url) {
            Ok(url) => {
                let host = Host::of(&url, named);
                Step::Send(url, host, headers)
            }
            Err(why) => Step::Refuse(why.to_string()),
        })
    }

    /// Whether the server goes on.
    async fn finish(&mut self, done: Vec<Sent>) -> bool {
        let rows = done.into_iter().map(|sent| self.judge(sent)).collect();
        self.write(rows).await
    }

    /// What the row says after a try.
    fn judge(&mut self, sent: Sent) -> NoticeRow {
        let Sent { mut notice, host, answer } = sent;
        self.desk.give_back(&host, &answer);
        let now = clock::now();
        notice.attempts += 1;
        match answer {
            Answer::Taken(_) => {
                self.figures.sent();
                over(notice, now)
            }
            Answer::Refused(why) => self.refused(notice, &why),
            Answer::Failed(_, why) | Answer::Silent(why) => {
                self.figures.failed();
                if notice.attempts >= MOST_TRIES {
                    tracing::warn!(notice = notice.id, why, "a message was given up");
                    self.figures.given_up();
                    return over(notice, now);
                }
                tracing::debug!(notice = notice.id, why, "a message was not taken");
                notice.next_at = now + Span::secs(5 << notice.attempts.min(10));
                notice
            }
        }
    }

    fn refused(&self, notice: NoticeRow, why: &str) -> NoticeRow {
        tracing::warn!(
            notice = notice.id,
            why,
            "a message was not sent; --notify-allow lets messages go to a network"
        );
        self.figures.refused();
        over(notice, clock::now())
    }

    /// Until this is written none of them may be sent again: it would be sent twice.
    async fn write(&mut self, notices: Vec<NoticeRow>) -> bool {
        if notices.is_empty() {
            return true;
        }
        let ids: Vec<String> = notices.iter().map(|notice| notice.id.clone()).collect();
        let write = Write::unnoted(Batch { notices, ..Batch::default() });
        let written = self.engine.write_eventually(write).await.is_ok();
        ids.iter().for_each(|id| self.desk.release(id));
        written
    }
}

/// Nothing more is done about it.
fn over(mut notice: NoticeRow, now: Time) -> NoticeRow {
    notice.sent = Some(now);
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
