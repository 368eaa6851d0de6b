//! Errors of the database.

use berth_tracker::{Code, Error};

/// Why the tables could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("cannot {action} the tracking tables in {database}")]
    Sql {
        action: &'static str,
        database: String,
        #[source]
        source: sqlx::Error,
    },

    #[error(
        "the tracking tables in {database} were written by a newer version of Berth (schema \
         {found}, this one knows up to {known}). Run that version"
    )]
    Newer { database: String, found: i64, known: i64 },

    #[error("the tracking tables in {database} are in use by another server. Stop it first")]
    InUse { database: String },

    #[error("the tracking tables in {database} cannot be read: {why}")]
    Unreadable { database: String, why: String },
}

/// A request reads more than this many bytes.
#[derive(Debug, thiserror::Error)]
#[error("more than {0} bytes are read at once")]
pub(crate) struct TooLarge(pub usize);

impl TooLarge {
    pub fn error(bytes: usize) -> sqlx::Error {
        sqlx::Error::Configuration(Box::new(TooLarge(bytes)))
    }
}

fn too_large(error: &sqlx::Error) -> Option<&TooLarge> {
    match error {
        sqlx::Error::Configuration(inner) => inner.downcast_ref(),
        _ => None,
    }
}

pub(crate) fn is_too_large(error: &sqlx::Error) -> bool {
    too_large(error).is_some()
}

/// Turns a database error into the answer to a request, and logs the details.
pub(crate) fn failed(action: &str, error: &sqlx::Error) -> Error {
    if let Some(TooLarge(bytes)) = too_large(error) {
        let most = bytes >> 20;
        return Error::over_limit(format!(
            "The request reads more than {most} MiB at once; ask for fewer runs, or name one model"
        ));
    }
    tracing::error!(action, error = error.to_string(), "the tracking database failed");
    let is_full = error.to_string().contains("disk is full")
        || error.as_database_error().and_then(|of| of.code()).is_some_and(|code| code == "53100");
    let said = match is_full {
        true => "There is no room left on the disk of the tracking database; nothing was written",
        false => "The tracking database does not answer as it should; try again",
    };
    Error::new(Code::Unavailable, said)
}
