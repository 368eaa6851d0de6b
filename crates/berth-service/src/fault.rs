//! Why a request was not carried out: a problem with its stable code.

use berth_api::{Code, Problem};
use berth_engine::{Refused, Stalled};
use berth_model::Rejected;

/// A request that was not carried out, and why.
#[derive(Debug)]
pub struct Fault(pub Box<Problem>);

impl Fault {
    pub fn new(code: Code, detail: impl Into<String>) -> Fault {
        Fault(Box::new(Problem::new(code, detail)))
    }

    pub fn next(self, next: impl Into<String>) -> Fault {
        Fault(Box::new(self.0.next(next)))
    }

    /// Whether it is the database that is away, and not the request that is wrong.
    pub fn is_transient(&self) -> bool {
        matches!(self.0.known_code(), Some(Code::StoreDown | Code::StoreFull))
    }

    /// Nothing was found under that name. What one may not see is not there either.
    pub fn not_found(what: &str, name: &str) -> Fault {
        Fault::new(Code::NotFound, format!("there is no {what} `{name}`"))
    }

    /// The disk of the server has no room for what the request would have it write.
    pub fn no_room(why: &str) -> Fault {
        let detail = format!("nothing more is taken in: {why}");
        Fault::new(Code::StoreFull, detail).next("make room on the server's disk, and try again")
    }

    pub fn no_job(name: &str) -> Fault {
        Fault::new(Code::NoSuchJob, format!("there is no job `{name}`"))
    }
}

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Fault {
        Fault(Box::new(problem))
    }
}

impl From<berth_store::Error> for Fault {
    fn from(error: berth_store::Error) -> Fault {
        let code = match &error {
            berth_store::Error::Full { .. } => Code::StoreFull,
            error if error.retry() == berth_store::Retry::Never => Code::Internal,
            _ => Code::StoreDown,
        };
        tracing::error!(%error, "the database did not do as asked");
        Fault::new(code, error.to_string())
    }
}

impl From<Refused> for Fault {
    fn from(refused: Refused) -> Fault {
        match refused {
            Refused::Rejected(rejected) => {
                let code = match &rejected {
                    Rejected::UnknownJob { .. } => Code::NoSuchJob,
                    Rejected::UnknownQueue { .. } | Rejected::UnknownNode { .. } => Code::NotFound,
                    Rejected::QueueInUse { .. } => Code::InUse,
                    _ => Code::Rejected,
                };
                Fault::new(code, rejected.to_string())
            }
            Refused::Unmet(problem) => Fault(problem),
            Refused::Unkeepable(why) => Fault::new(Code::BadRequest, why),
            Refused::KeyReused => Fault::new(Code::KeyReused, refused.to_string()),
            Refused::Stalled(Stalled { full, .. }) | Refused::Unanswered { full } => {
                let code = if full { Code::StoreFull } else { Code::StoreDown };
                Fault::new(code, refused.to_string())
            }
            Refused::Overloaded | Refused::Stopping => {
                Fault::new(Code::NotReady, refused.to_string())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::Time;

    fn check(refused: Refused, code: Code, status: u16) -> Problem {
        let detail = refused.to_string();
        let problem = *Fault::from(refused).0;
        assert_eq!((problem.known_code(), problem.status), (Some(code), status), "{problem:?}");
        assert_eq!(problem.detail, detail);
        problem
    }

    #[test]
    fn a_request_that_finds_no_room_has_a_code_and_may_be_sent_again() {
        let problem = check(Refused::Overloaded, Code::NotReady, 503);
        assert_eq!(problem.code, "BRT0026");
        assert_eq!(
            problem.detail,
            "too many requests wait to be written; the request was not carried out"
        );
        assert_eq!(problem.next, "Try again in a moment; /readyz says when it takes requests.");
    }

    #[test]
    fn a_request_to_a_server_that_stops_may_be_sent_again() {
        let problem = check(Refused::Stopping, Code::NotReady, 503);
        assert_eq!(problem.next, Code::NotReady.next());
    }

    #[test]
    fn a_log_that_cannot_be_written_says_whether_the_disk_is_full() {
        let stalled =
            |full| Refused::Stalled(Stalled { since: Time(0), why: "it is away".to_owned(), full });
        check(stalled(false), Code::StoreDown, 503);
        check(stalled(true), Code::StoreFull, 507);
        check(Refused::Unanswered { full: false }, Code::StoreDown, 503);
        check(Refused::Unanswered { full: true }, Code::StoreFull, 507);
    }
}
