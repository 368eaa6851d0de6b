//! The right by which a stream stays open. It is looked at again whenever rights change, when its
//! token ends, and when the job ends whose token it is; not by asking the database now and then.

use crate::caller::Caller;
use crate::fault::Fault;
use crate::jobs::find;
use crate::service::Service;
use berth_api::access::Permission;
use berth_api::{Code, Problem};
use berth_engine::clock;
use berth_model::{JobId, Time};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// Between two looks at whether the job still runs whose token it is. They cost no query.
const LOOK: Duration = Duration::from_millis(500);
/// How long a database that is away may keep it open that nobody can check the right.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(200);
/// The longest wait for the end of a token: the clock may be set meanwhile.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// What a stream needs for as long as it is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Needs {
    /// A token that is good for its route.
    Token,
    /// A permission on a job.
    OnJob(JobId, Permission),
    /// A permission in a team.
    InTeam(String, Permission),
}

/// Held by a stream that is open, until the last clone is dropped.
#[derive(Clone)]
pub struct StreamRight {
    held: watch::Receiver<Held>,
    _task: Arc<EndsWithThis>,
}

struct EndsWithThis(AbortHandle);

impl Drop for EndsWithThis {
    fn drop(&mut self) {
        self.0.abort();
    }
}

enum Held {
    By(Caller),
    Lost(Box<Problem>),
}

impl StreamRight {
    /// Begins to look after it. The caller may have lost the right since the request came, so it is
    /// looked at once more.
    pub fn hold(service: &Service, caller: &Caller, needs: Needs) -> StreamRight {
        let (tell, held) = watch::channel(Held::By(caller.clone()));
        let task = tokio::spawn(look_after(service.clone(), caller.clone(), needs, tell));
        StreamRight { held, _task: Arc::new(EndsWithThis(task.abort_handle())) }
    }

    /// The caller with the rights of this moment; nothing once they are lost.
    pub fn caller(&self) -> Option<Caller> {
        match &*self.held.borrow() {
            Held::By(caller) => Some(caller.clone()),
            Held::Lost(_) => None,
        }
    }

    /// Waits until the right is lost, and says why. To give up waiting loses nothing.
    pub async fn lost(&mut self) -> Box<Problem> {
        loop {
            if let Held::Lost(problem) = &*self.held.borrow_and_update() {
                return problem.clone();
            }
            if self.held.changed().await.is_err() {
                return ends();
            }
        }
    }
}

/// Nobody checks rights any more where the server does not write any more: another replica may lead.
fn ends() -> Box<Problem> {
    Fault::new(Code::NotReady, "the server ends, or another replica leads now").0
}

async fn look_after(service: Service, mut caller: Caller, needs: Needs, tell: watch::Sender<Held>) {
    let mut changes = service.engine.rights();
    loop {
        // Before the look: what changes during it is looked at once more.
        changes.borrow_and_update();
        match checked(&service, &caller, &needs).await {
            Ok(again) => caller = again,
            Err(problem) => {
                let (user, code) = (caller.user(), &problem.code);
                tracing::info!(user, code, ?needs, "a stream ends with the right it was opened by");
                tell.send_replace(Held::Lost(problem));
                return;
            }
        }
        tell.send_replace(Held::By(caller.clone()));
        tokio::select! {
            changed = changes.changed() => if changed.is_err() {
                tell.send_replace(Held::Lost(ends()));
                return;
            },
            () = end_of(caller.token().expires) => {}
            () = end_of_job(&service, &caller) => {}
        }
    }
}

/// The caller as of now, if the right is still there.
async fn checked(
    service: &Service,
    caller: &Caller,
    needs: &Needs,
) -> Result<Caller, Box<Problem>> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let turn = service.stream_checks.turn(deadline).await.map_err(|fault| fault.0)?;
        let checked = check(service, caller, needs).await;
        drop(turn);
        match checked {
            Err(fault) if fault.is_transient() && Instant::now() < deadline => {
                tokio::time::sleep(PAUSE).await;
            }
            checked => return checked.map_err(|fault| fault.0),
        }
    }
}

async fn check(service: &Service, caller: &Caller, needs: &Needs) -> Result<Caller, Fault> {
    let caller = caller.again(service).await?;
    let lost = |what: String, permission: Permission| {
        let (user, name) = (caller.user(), permission.name());
        Fault::new(Code::Forbidden, format!("{user} may not do this for {what} any more ({name})"))
    };
    match needs {
        Needs::Token => {}
        Needs::OnJob(job, permission) => {
            match find::job(service, &caller, &job.to_string(), *permission).await {
                Err(fault) if fault.is_transient() => return Err(fault),
                // That there is such a job they know.
                Err(_) => return Err(lost(format!("job {job}"), *permission)),
                Ok(_) => {}
            }
        }
        Needs::InTeam(team, permission) => {
            if !caller.may(*permission, Some(team), None) {
                return Err(lost(format!("team {team}"), *permission));
            }
        }
    }
    Ok(caller)
}

async fn end_of(expires: Option<Time>) {
    let Some(expires) = expires else { return std::future::pending().await };
    let left = (expires - clock::now()).0.max(0).unsigned_abs();
    tokio::time::sleep(Duration::from_millis(left).min(LONGEST_WAIT)).await;
}

async fn end_of_job(service: &Service, caller: &Caller) {
    if caller.job().is_none() {
        return std::future::pending().await;
    }
    while !caller.has_ended(service) {
        tokio::time::sleep(LOOK).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    #[tokio::test]
    async fn a_stream_that_nobody_looks_after_any_more_ends() {
        let (tell, held) = watch::channel(Held::By(Caller::stranger()));
        let task = tokio::spawn(std::future::pending::<()>()).abort_handle();
        let mut right = StreamRight { held, _task: Arc::new(EndsWithThis(task)) };
        drop(tell);
        let problem = tokio::time::timeout(SOON, right.lost()).await.expect("it ends");
        assert_eq!(problem.known_code(), Some(Code::NotReady));
    }
}
