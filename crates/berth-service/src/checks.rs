//! Preconditions that the loop checks once more right before it writes, when no other change can
//! come between: another request may have been faster since the handler checked them.

use crate::fault::Fault;
use crate::names;
use berth_api::{Code, Problem};
use berth_store::{Row, Store, TeamRow, UserRow};

pub type Checked = Result<(), Box<Problem>>;

/// Turns what a handler would answer into what a check says.
pub async fn all(checks: impl Future<Output = Result<(), Fault>>) -> Checked {
    checks.await.map_err(|fault| fault.0)
}

pub async fn team(store: &Store, name: &str) -> Result<TeamRow, Fault> {
    let row = store.get::<TeamRow>(name).await?;
    match row {
        Some(row) => Ok(row),
        None => {
            let known = store.every::<TeamRow>().await?;
            Err(names::unknown("team", name, known.iter().map(|team| team.name.as_str())))
        }
    }
}

/// A user who exists and is not disabled.
pub async fn user(store: &Store, name: &str) -> Result<UserRow, Fault> {
    let row = store.get::<UserRow>(name).await?.filter(|row| row.disabled.is_none());
    match row {
        Some(row) => Ok(row),
        None => {
            let known = store.every::<UserRow>().await?;
            Err(names::unknown("user", name, known.iter().map(|user| user.name.as_str())))
        }
    }
}

/// A user who exists, disabled or not.
pub async fn there(store: &Store, name: &str) -> Result<UserRow, Fault> {
    let row = store.get::<UserRow>(name).await?;
    row.ok_or_else(|| Fault::not_found("user", name))
}

/// Nothing has that key yet.
pub async fn free<R: Row>(store: &Store, key: R::Key<'_>, what: &str) -> Result<(), Fault> {
    match store.get::<R>(key).await? {
        None => Ok(()),
        Some(_) => Err(Fault::new(Code::Exists, format!("there is a {what} already"))),
    }
}

/// The row is what it was when it was read; one that was not there still is not.
pub async fn same<R: Row + PartialEq>(
    store: &Store,
    key: R::Key<'_>,
    read: Option<&R>,
) -> Result<(), Fault> {
    if store.get::<R>(key).await?.as_ref() == read {
        return Ok(());
    }
    let fault = Fault::new(Code::WrongState, "another request changed it at the same time");
    Err(fault.next("look at it again, and repeat the request if it is still wanted"))
}
