//! The routes of MLflow, and the functions that answer them.

mod artifacts;
mod call;
mod experiments;
mod history;
mod logged_models;
mod logging;
mod loose;
mod model_shares;
mod registered;
mod registry;
mod resumed;
mod run_tags;
mod runs;
mod scanner;
mod shares;
mod table;
mod versions;
mod webhooks;

pub use call::{Changed, Reply, Restored};
pub use model_shares::{NamedModel, model_shares, set_model_share};
pub use shares::{Named, set_share, shares};
pub use table::{Access, OPS, Op, find};
pub use webhooks::{hook, hooks_of};

use crate::error::Result;
use crate::fields::Fields;
use crate::ports::{Actor, Store};
use call::Call;

/// The parts of an HTTP request that the routes read.
pub struct Request<'a> {
    pub query: &'a str,
    pub body: &'a [u8],
    /// The values of the `{}` placeholders of the route.
    pub parts: Vec<String>,
    /// Milliseconds since 1970.
    pub now: i64,
}

/// Answers a request.
pub async fn answer(
    op: &Op,
    store: &dyn Store,
    actor: &dyn Actor,
    request: Request<'_>,
) -> Result<Reply> {
    let Request { query, body, parts, now } = request;
    let fields = match (op.method, op.reads_body_itself) {
        (_, true) => Fields::default(),
        ("GET", _) => Fields::of_query(query),
        // Old clients send the arguments of DELETE in the body, new ones in the query.
        _ if body.is_empty() => Fields::of_query(query),
        _ => Fields::of_json(body)?,
    };
    (op.run)(&Call { store, actor, fields, parts, body, now }).await
}
