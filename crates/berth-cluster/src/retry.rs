//! Retries requests to the API server.

use berth_kube::Error;
use std::fmt::Display;
use std::time::Duration;

pub const FIRST_PAUSE: Duration = Duration::from_millis(20);
pub const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// An error that comes from a request to the API server, or has another cause that no retry mends.
pub trait MayComeFromApi: Display {
    fn api_error(&self) -> Option<&Error>;
}

impl MayComeFromApi for Error {
    fn api_error(&self) -> Option<&Error> {
        Some(self)
    }
}

/// Tries again for as long as another try may help. A right that is missing may be given: whatever
/// would follow from giving up would not give it to us.
pub async fn retry_while_recoverable<T, E: MayComeFromApi, F: Future<Output = Result<T, E>>>(
    act: impl FnMut() -> F,
) -> Result<T, E> {
    retry_while(act, |error| {
        let is_rbac_denied = error.is_rbac_denied();
        if is_rbac_denied {
            tracing::error!(%error, "not allowed; trying again");
        }
        is_rbac_denied || error.is_transient()
    })
    .await
}

/// Tries again until the API server has accepted or refused the request.
pub async fn retry_until_answered<T, F: Future<Output = Result<T, Error>>>(
    act: impl FnMut() -> F,
) -> Result<T, Error> {
    retry_while(act, Error::is_transient).await
}

async fn retry_while<T, E: MayComeFromApi, F: Future<Output = Result<T, E>>>(
    mut act: impl FnMut() -> F,
    may_help: impl Fn(&Error) -> bool,
) -> Result<T, E> {
    let mut pause = FIRST_PAUSE;
    loop {
        let error = match act().await {
            Err(error) if error.api_error().is_some_and(&may_help) => error,
            done => return done,
        };
        tracing::debug!(%error, "trying again");
        let asked = error.api_error().and_then(Error::retry_after).unwrap_or_default();
        tokio::time::sleep(pause.max(asked)).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn refused(code: u16, message: &str) -> Error {
        let (what, reason) = ("pods/a".to_owned(), String::new());
        Error::Refused { what, code, reason, message: message.to_owned(), retry_after: None }
    }

    /// How often something was tried that is refused three times and done then, and what came of it.
    async fn tries(code: u16, message: &str, is_patient: bool) -> (u32, bool) {
        let count = Cell::new(0);
        let act = || {
            count.set(count.get() + 1);
            let done = if count.get() > 3 { Ok(()) } else { Err(refused(code, message)) };
            std::future::ready(done)
        };
        let done = if is_patient {
            retry_while_recoverable(act).await
        } else {
            retry_until_answered(act).await
        };
        (count.get(), done.is_ok())
    }

    #[tokio::test]
    async fn a_right_that_is_missing_is_waited_for_and_a_refusal_is_not() {
        let without = "pods is forbidden: User \"berth\" cannot patch resource \"pods\"";
        assert_eq!(tries(403, without, true).await, (4, true));
        assert_eq!(tries(403, without, false).await, (1, false));
        assert_eq!(tries(403, "exceeded quota: team", true).await, (1, false));
        assert_eq!(tries(503, "later", true).await, (4, true));
        assert_eq!(tries(503, "later", false).await, (4, true));
        assert_eq!(tries(404, "not there", true).await, (1, false));
    }
}
