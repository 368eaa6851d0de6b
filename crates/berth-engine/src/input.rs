//! What the loop is given: requests of callers, and reports of the site.

use crate::memory::Stalled;
use berth_api::Problem;
use berth_core::State;
use berth_model::{Event, JobChange, JobId, JobRequest, LeaseId, Observed, Rejected, Time};
use berth_store::{AuditEntry, Batch, Store};
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

/// What callers ask of the loop.
pub(crate) enum Request {
    Write(Box<Write>, oneshot::Sender<Result<Written, Refused>>),
    Stop,
}

/// What a site reports.
#[derive(Debug)]
pub enum Report<O> {
    Task(Observed),
    /// A task could not be started.
    NotStarted {
        lease: LeaseId,
        why: String,
    },
    /// Anything else, in the site's own terms.
    Site(O),
}

/// A change that a caller asks for. All of it is carried out, or nothing.
pub struct Write {
    pub act: Act,
    /// Users, tokens and the like. Of a batch only what was put and deleted counts.
    pub documents: Batch,
    pub check: Option<Check>,
    /// Who did it; its time is when it is taken.
    pub audit: Option<AuditEntry>,
    pub once: Option<Idempotent>,
}

/// What has to be so when it is written. It is asked when everything before is in the store and
/// nothing else can come between: what a handler has read may be over by then.
pub type Check =
    Box<dyn FnOnce(Store) -> BoxFuture<'static, Result<(), Box<Problem>>> + Send + 'static>;

impl Write {
    pub fn act(act: Act, audit: AuditEntry) -> Write {
        let documents = Batch::default();
        Write { act, documents, check: None, audit: Some(audit), once: None }
    }

    pub fn documents(documents: Batch, audit: AuditEntry) -> Write {
        Write { documents, ..Write::act(Act::Nothing, audit) }
    }

    /// A change that the server makes by itself and that needs no entry in the audit log.
    pub fn unnoted(documents: Batch) -> Write {
        Write { act: Act::Nothing, documents, check: None, audit: None, once: None }
    }

    pub fn only_if<F>(self, check: impl FnOnce(Store) -> F + Send + 'static) -> Write
    where
        F: Future<Output = Result<(), Box<Problem>>> + Send + 'static,
    {
        Write { check: Some(Box::new(move |store| Box::pin(check(store)))), ..self }
    }
}

/// What the core is to be told.
pub enum Act {
    Nothing,
    Submit(Box<JobRequest>),
    Cancel {
        job: JobId,
        /// Kill it without its grace.
        now: bool,
    },
    /// A rule of the job itself ends it: Berth stops it with its grace, and counts the exit codes of its tasks
    /// as success.
    EndEarly {
        job: JobId,
        why: String,
    },
    Change {
        job: JobId,
        changes: Vec<JobChange>,
    },
    /// In their order, all or none.
    Events(Vec<Event>),
    /// The loop reads what it changes in part when it writes it: what the caller has read before may
    /// have changed since.
    Amend(Amend),
}

/// Makes the events from the state as it is, or says why there are none.
pub type Amend = Box<dyn FnOnce(&State) -> Result<Vec<Event>, Box<Problem>> + Send>;

/// A request that may be sent again without being carried out again.
pub struct Idempotent {
    pub user: String,
    pub key: String,
    pub fingerprint: String,
    pub status: u32,
    /// The body of the answer, from the job's number.
    pub answer: Box<dyn Fn(Option<JobId>) -> String + Send>,
}

/// What came of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The job that was submitted.
    pub job: Option<JobId>,
    pub at: Time,
    pub seq: u64,
    /// The same request was carried out before.
    pub repeated: bool,
}

/// Why nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("{0}")]
    Rejected(Rejected),
    /// The same key came with another request.
    #[error("this key was used for another request")]
    KeyReused,
    /// It does not fit with what is there.
    #[error("{}", .0.detail)]
    Unmet(Box<Problem>),
    #[error("{0}")]
    Unkeepable(String),
    /// Nothing of it was done.
    #[error(
        "nothing could be written since {}; the request was not carried out: {}", .0.since, .0.why
    )]
    Stalled(Stalled),
    /// It was taken, and the database went away before its commit was over.
    #[error(
        "the log cannot be written, so it is not known yet whether the request was carried out; \
         look when it can be again, or send it again with the same Idempotency-Key"
    )]
    Unanswered {
        /// It is the disk that has no room.
        full: bool,
    },
    /// Too many requests wait; this one was not taken.
    #[error("too many requests wait to be written; the request was not carried out")]
    Overloaded,
    #[error("the server is stopping")]
    Stopping,
}
