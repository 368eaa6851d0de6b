//! Asking until there is an answer.

use berth_kube::Error;
use std::time::Duration;

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Tries again for as long as another try may help.
pub async fn patiently<T, F: Future<Output = berth_kube::Result<T>>>(
    mut act: impl FnMut() -> F,
) -> berth_kube::Result<T> {
    let mut pause = FIRST_PAUSE;
    loop {
        match act().await {
            Err(error) if error.is_for_now() => tracing::debug!(%error, "trying again"),
            // Failing the job would not give us the right.
            Err(error) if is_without_right(&error) => {
                tracing::error!(%error, "not allowed; trying again");
            }
            done => return done,
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Whether we may not ask that at all. What is refused for what it says has the same code.
fn is_without_right(error: &Error) -> bool {
    match error {
        Error::Refused { code: 401, .. } => true,
        Error::Refused { code: 403, message, .. } => {
            message.contains(" cannot ") && message.contains(" resource ")
        }
        _ => false,
    }
}
