//! `-w`: the same answer again whenever it may have changed.

use crate::context::Context;
use crate::fail::{Exit, Result};
use crate::show::{self, Page};
use berth_api::Client;
use berth_api::client::Events;
use berth_api::wire::{Event, EventKind, EventQuery};
use clap::Args;
use serde::Serialize;
use std::io::IsTerminal;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

#[derive(Args, Debug, Clone, Copy)]
pub struct Watch {
    /// Show the answer again whenever it changes
    #[arg(short, long)]
    watch: bool,
}

/// Waits go on without an event, so the answer is asked for anew this often.
const QUIET: Duration = Duration::from_secs(2);
/// Events come in bunches; what is shown settles before it is read.
const BUNCH: Duration = Duration::from_millis(200);

/// Shows an answer, once or for as long as one looks.
pub async fn show<T: Serialize>(
    context: &Context,
    watch: Watch,
    kinds: &str,
    fetch: impl AsyncFn() -> Result<Page<T>>,
) -> Result<()> {
    if !watch.watch {
        return context.show(&fetch().await?);
    }
    let query = EventQuery { kind: Some(kinds.to_owned()), ..EventQuery::default() };
    let mut changes = Changes::new(context.client()?, query);
    let (mut last, mut away) = (String::new(), false);
    let clear = if std::io::stdout().is_terminal() { "\x1b[H\x1b[2J" } else { "" };
    loop {
        match fetch().await {
            Ok(page) => {
                let text = page.print(context.format, &context.look())?;
                if text != last || away {
                    show::print(&format!("{clear}{text}"))?;
                    page.remark(context.format);
                    last = text;
                }
                away = false;
            }
            // A server that starts anew is waited for.
            Err(failure) if failure.exit == Exit::Unreachable => {
                if !away {
                    show::note(&failure.to_string());
                }
                away = true;
            }
            Err(failure) => return Err(failure),
        }
        changes.next().await;
    }
}

/// Tells when something may have changed.
pub struct Changes<'a> {
    client: &'a Client,
    query: EventQuery,
    stream: Option<Events>,
}

impl Changes<'_> {
    pub fn new(client: &Client, query: EventQuery) -> Changes<'_> {
        Changes { client, query, stream: None }
    }

    /// Returns after an event and those that come with it, or after a while without any.
    pub async fn next(&mut self) {
        let quiet = Instant::now() + QUIET;
        if self.stream.is_none() {
            self.stream = self.client.events(&self.query).await.ok();
        }
        if !self.event(quiet).await {
            return;
        }
        let bunch = Instant::now() + BUNCH;
        while self.event(bunch).await {}
    }

    /// Whether an event came before the moment.
    async fn event(&mut self, until: Instant) -> bool {
        let Some(stream) = &mut self.stream else {
            tokio::time::sleep_until(until).await;
            return false;
        };
        match timeout_at(until, stream.next()).await {
            Err(_) => false,
            // The right to listen was lost: what is asked for next says why.
            Ok(Ok(Some(Event { kind: EventKind::End { .. }, .. }))) => {
                self.stream = None;
                true
            }
            Ok(Ok(Some(event))) => {
                self.query.after = Some(event.seq);
                true
            }
            // A stream that broke is opened again, and not in a hurry.
            Ok(Ok(None) | Err(_)) => {
                self.stream = None;
                sleep(BUNCH).await;
                false
            }
        }
    }
}
