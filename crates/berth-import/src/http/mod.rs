//! A server that speaks MLflow's API: Berth, or MLflow's own.

mod artifacts;
mod json;
mod read;
mod registry;
mod write;

use crate::error::{Error, Result};
use crate::source::Pages;
use berth_api::Client;
use berth_api::routes::Method;
use futures_util::stream;
use serde_json::{Value, json};
use std::cell::OnceCell;
use std::rc::Rc;
use std::time::Duration;

/// The attempts of one request, and the wait before the second. Each wait is twice the previous one.
const TRIES: u32 = 8;
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

pub struct Server {
    client: Client,
    /// The team, for a server of Berth.
    team: Option<String>,
    name: String,
    /// The team of the caller, once known; `None` at a server without teams.
    own: OnceCell<Option<String>>,
}

impl Server {
    pub fn new(client: Client, team: Option<String>) -> Server {
        let name = client.url().as_str().trim_end_matches('/').to_owned();
        Server { client, team, name, own: OnceCell::new() }
    }

    fn failed(&self, doing: &str, source: berth_api::client::Error) -> Error {
        let source = Box::new(source);
        Error::Server { doing: doing.to_owned(), url: self.name.clone(), source }
    }

    /// One attempt. `path` comes after `/api/2.0/mlflow/`.
    async fn once(&self, (method, path): (Method, &str), fields: &Value) -> Result<Value> {
        let route = format!("2.0/mlflow/{path}");
        let asked = self.client.tracked((method, &route), fields, self.team.as_deref()).await;
        asked.map_err(|source| self.failed(path, source))
    }

    /// An idempotent request, with retries.
    async fn ask(&self, (method, path): (Method, &str), fields: &Value) -> Result<Value> {
        patiently(|| self.once((method, path), fields)).await
    }

    /// Creates an entity. The request is not idempotent, so after a lost answer `find` checks whether the
    /// entity exists.
    async fn make<F>(
        &self,
        path: &str,
        fields: &Value,
        find: impl Fn() -> F,
    ) -> Result<Option<Value>>
    where
        F: Future<Output = Result<bool>>,
    {
        let mut wait = FIRST_WAIT;
        for left in (0..TRIES).rev() {
            match self.once((Method::Post, path), fields).await {
                Ok(made) => return Ok(Some(made)),
                Err(error) if !error.passes() || left == 0 => return Err(error),
                Err(_) => {}
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
            if patiently(&find).await? {
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// All results of a search, page by page.
    fn search<'a, T: 'a>(
        &'a self,
        (method, path, list): (Method, &'static str, &'static str),
        fields: Value,
        read: impl Fn(&'a Server, &Value) -> Result<Vec<T>> + 'a,
    ) -> Pages<'a, T> {
        let read = Rc::new(read);
        Box::pin(stream::try_unfold(Some(fields), move |fields| {
            let read = read.clone();
            async move {
                let Some(mut fields) = fields else { return Ok(None) };
                let mut answer = self.ask((method, path), &fields).await?;
                let items = answer.get_mut(list).map(Value::take).unwrap_or(Value::Null);
                let items = read(self, &items)?;
                let next = answer["next_page_token"].as_str().unwrap_or_default().to_owned();
                // A server that repeats a page would cause an endless loop.
                let goes_on = !next.is_empty() && fields["page_token"].as_str() != Some(&next);
                fields["page_token"] = json!(next);
                Ok(Some((items, goes_on.then_some(fields))))
            }
        }))
    }
}

/// Retries temporary failures.
pub(super) async fn patiently<T, F>(ask: impl Fn() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let mut wait = FIRST_WAIT;
    for _ in 1..TRIES {
        match ask().await {
            Err(error) if error.passes() => {}
            answer => return answer,
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(LONGEST_WAIT);
    }
    ask().await
}

/// Quotes a text for a filter; `None` if that is impossible.
fn quoted(text: &str) -> Option<String> {
    match (text.contains('\''), text.contains('"')) {
        (false, _) => Some(format!("'{text}'")),
        (true, false) => Some(format!("\"{text}\"")),
        (true, true) => None,
    }
}

#[cfg(test)]
mod tests;
