//! Staying with a job until it ends. Leaving never ends the job.

use super::job_end::{ending, look_up};
use super::logs::{Printer, Reader};
use crate::context::Context;
use crate::fail::{Exit, Failure, Result};
use crate::show::{self, Look, Tone};
use crate::watch::Changes;
use berth_api::wire::{EventQuery, Job, JobState, LogQuery};
use berth_api::{Client, Code};

/// How it came to an end.
pub enum Ended {
    Over(Box<Job>),
    /// Ctrl-C: the job goes on.
    Left(String),
}

impl Ended {
    pub fn result(&self) -> Result<()> {
        match self {
            Ended::Over(job) if job.state == JobState::Done => Ok(()),
            Ended::Over(job) => Err(Failure::of_job(exit_code(job))),
            Ended::Left(_) => Err(Failure::silent(Exit::Interrupted)),
        }
    }

    /// The last line for people.
    pub fn farewell(&self, context: &Context) {
        let text = match self {
            Ended::Over(job) => ending(job, &context.look()),
            Ended::Left(job) => format!(
                "\nDetached; the job continues. Show its output with `berth logs -f {job}`, stop it \
                 with `berth stop {job}`."
            ),
        };
        show::note(&text);
    }
}

/// The job's own exit code, 128 and the number of the signal that killed it, or 1 where it has none,
/// such as an array or a job that was stopped before it started.
fn exit_code(job: &Job) -> u8 {
    let code = |exit: &berth_api::wire::Exit| match (exit.code, exit.signal) {
        (Some(code @ 1..=255), _) => u8::try_from(code).ok(),
        (_, Some(signal @ 1..=127)) => u8::try_from(128 + signal).ok(),
        _ => None,
    };
    job.exit.as_ref().and_then(code).unwrap_or(Exit::Failed as u8)
}

/// Shows what it prints until it ends.
pub async fn stream(context: &Context, job: &str) -> Result<Ended> {
    let client = context.client()?;
    tokio::select! {
        ended = follow(context, client, job) => ended,
        () = interrupted() => Ok(Ended::Left(job.to_owned())),
    }
}

/// Waits for its end, and tells its states if asked to.
pub async fn wait(context: &Context, job: &str, tell: bool) -> Result<Ended> {
    let client = context.client()?;
    let over = async {
        let mut reporter = StateReporter::new(context, tell);
        let mut changes = Changes::new(client, events_of(job));
        loop {
            let job = look_up(client, job).await?;
            reporter.tell(&job);
            if job.state.is_final() {
                return Ok(Ended::Over(Box::new(job)));
            }
            changes.next().await;
        }
    };
    tokio::select! {
        ended = over => ended,
        () = interrupted() => Ok(Ended::Left(job.to_owned())),
    }
}

async fn interrupted() {
    // Without the signal one cannot be interrupted by it.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn events_of(job: &str) -> EventQuery {
    let kind = Some("job".to_owned());
    EventQuery { kind, job: Some(job.to_owned()), ..EventQuery::default() }
}

async fn follow(context: &Context, client: &Client, id: &str) -> Result<Ended> {
    let mut reporter = StateReporter::new(context, true);
    let mut changes = Changes::new(client, events_of(id));
    let mut printer = Printer::new(context.look(), false);
    let mut attempt = 0;
    loop {
        let job = look_up(client, id).await?;
        reporter.tell(&job);
        // An attempt is shown to its end before the next one, so that nothing of it is missed.
        if attempt < job.attempts {
            match show_attempt(client, id, attempt, &mut printer).await {
                Ok(()) => {
                    attempt += 1;
                    continue;
                }
                // It is being started, and has no log yet.
                Err(failure) if !job.state.is_final() && has_no_log(&failure) => {}
                Err(failure) => return Err(failure),
            }
        } else if job.state.is_final() {
            printer.close()?;
            return Ok(Ended::Over(Box::new(job)));
        }
        changes.next().await;
    }
}

async fn show_attempt(
    client: &Client,
    id: &str,
    attempt: u32,
    printer: &mut Printer,
) -> Result<()> {
    let query = LogQuery { attempt: Some(attempt), all: true, follow: true, ..LogQuery::default() };
    let mut reader = Reader::new(client, id, query);
    while let Some(chunk) = reader.next().await? {
        printer.print(&chunk)?;
    }
    Ok(())
}

fn has_no_log(failure: &Failure) -> bool {
    matches!(failure.code(), Some(Code::NotFound | Code::WrongState))
}

/// Tells each state once.
struct StateReporter {
    look: Look,
    tell: bool,
    last: Option<(JobState, Option<String>, bool)>,
}

impl StateReporter {
    fn new(context: &Context, tell: bool) -> StateReporter {
        StateReporter { look: context.look(), tell, last: None }
    }

    fn tell(&mut self, job: &Job) {
        let now = (job.state, job.reason.clone(), job.ready);
        if !self.tell || job.state.is_final() || self.last.as_ref() == Some(&now) {
            return;
        }
        show::note(&self.look.paint(Tone::Quiet, &news(job, &self.look)));
        self.last = Some(now);
    }
}

fn news(job: &Job, look: &Look) -> String {
    let mut text = format!("{} {}", job.id, job.state.as_str());
    if !job.on.is_empty() {
        text.push_str(&format!(" on {}", job.on.join(", ")));
    }
    if let Some(reason) = &job.reason {
        text.push_str(&format!(": {reason}"));
    }
    if let Some(eta) = job.eta.filter(|_| job.state == JobState::Pending) {
        text.push_str(&format!(", starts ~{}", look.at(eta)));
    }
    if let Some(url) = job.url.as_ref().filter(|_| job.ready) {
        text.push_str(&format!(", ready at {url}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::tests::job;

    #[test]
    fn a_command_ends_with_the_exit_code_of_its_job() {
        let exit = |code, signal| berth_api::wire::Exit {
            kind: berth_api::wire::ExitKind::Failed,
            code,
            signal,
            rank: None,
            text: String::new(),
        };
        let status = |exit| {
            let job = Job { state: JobState::Failed, exit, ..job() };
            Ended::Over(Box::new(job)).result().unwrap_err().status()
        };
        assert_eq!(status(Some(exit(Some(7), None))), 7);
        assert_eq!(status(Some(exit(None, Some(9)))), 137);
        assert_eq!(status(Some(exit(Some(0), None))), 1, "it failed all the same");
        assert_eq!(status(None), 1);
    }

    #[test]
    fn a_job_that_ended_well_is_success_and_any_other_is_not() {
        let ended = |state| Ended::Over(Box::new(Job { state, ..job() })).result();
        assert!(ended(JobState::Done).is_ok());
        for state in [JobState::Failed, JobState::Cancelled] {
            assert_eq!(ended(state).unwrap_err().exit, Exit::Failed);
        }
        assert_eq!(Ended::Left("17".into()).result().unwrap_err().exit, Exit::Interrupted);
    }

    #[test]
    fn news_say_where_it_runs_or_why_it_waits() {
        let look = Look::fixed();
        assert_eq!(news(&job(), &look), "17 running on n1");
        let waits = Job {
            state: JobState::Pending,
            on: Vec::new(),
            reason: Some("no room".into()),
            eta: Some("2026-11-15T15:40:00Z".parse().unwrap()),
            ..job()
        };
        assert_eq!(news(&waits, &look), "17 pending: no room, starts ~16:40");
    }
}
