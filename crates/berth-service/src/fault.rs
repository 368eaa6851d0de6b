//! Why a request was not carried out: a problem with its stable code.

use crate::token;
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
        let fault = Fault::new(Code::NotFound, format!("there is no {what} `{name}`"));
        match lister(what) {
            Some(command) => fault.next(format!("`{command}` lists what there is")),
            None => fault,
        }
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

/// The command that lists the things of one kind.
pub(crate) fn lister(what: &str) -> Option<&'static str> {
    Some(match what {
        "budget" => "berth budget list",
        "gpu" => "berth gpus -o wide",
        "member" => "berth member list TEAM",
        "node" => "berth nodes",
        "project" => "berth project list",
        "queue" => "berth queue",
        "schedule" => "berth schedule list",
        "secret" => "berth secret list",
        "session" => "berth session list",
        "team" => "berth team list",
        "template" => "berth template list",
        "token" => "berth token list",
        "user" => "berth user list",
        "volume" => "berth volume list",
        _ => return None,
    })
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
            // The server is about to end because of it; the next one may have another database.
            berth_store::Error::Lost { .. } => Code::StoreDown,
            error if error.retry() == berth_store::Retry::Never => Code::Internal,
            _ => Code::StoreDown,
        };
        hidden(code, &error)
    }
}

/// A problem whose details are for whoever runs the server: they name files and addresses of its
/// own. The server's log has them, under the instance that the answer names.
pub(crate) fn hidden(code: Code, error: &dyn std::error::Error) -> Fault {
    let instance = token::random::<8>();
    let mut causes = error.to_string();
    let mut below = error.source();
    while let Some(source) = below {
        causes = format!("{causes}: {source}");
        below = source.source();
    }
    tracing::error!(instance, error = causes, "a request could not be carried out");
    let detail = match code {
        Code::StoreFull => "there is no room left on the disk of the database",
        Code::StoreDown => "the database does not answer as it should",
        _ => "the server could not carry this out",
    };
    Fault(Box::new(Problem::new(code, detail).instance(instance)))
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
            // Why is in the server's log: it names the server's own files.
            Refused::Stalled(Stalled { since, full, .. }) => {
                let code = if full { Code::StoreFull } else { Code::StoreDown };
                let detail = format!(
                    "nothing could be written since {since}; the request was not carried out"
                );
                Fault::new(code, detail)
            }
            Refused::Unanswered { full } => {
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
        assert!(detail.starts_with(&problem.detail), "{problem:?}");
        problem
    }

    #[test]
    fn no_answer_names_a_file_or_a_statement_of_the_database() {
        let path = "/home/berth/berth.db";
        let stalled = Stalled { since: Time(0), why: format!("{path} is away"), full: false };
        let errors = [
            berth_store::Error::Corrupt { database: path.into(), detail: "SELECT 1".into() },
            berth_store::Error::Silent { database: path.into(), action: "read jobs" },
        ];
        let faults = errors.into_iter().map(Fault::from);
        for fault in faults.chain([Refused::Stalled(stalled).into()]) {
            let shown = serde_json::to_string(&fault.0).unwrap();
            assert!(!shown.contains(path) && !shown.contains("SELECT"), "{shown}");
        }
    }

    #[test]
    fn a_request_that_finds_no_room_has_a_code_and_may_be_sent_again() {
        let problem = check(Refused::Overloaded, Code::NotReady, 503);
        assert_eq!(problem.code, "BRT0026");
        assert_eq!(
            problem.detail,
            "too many requests wait to be written; the request was not carried out"
        );
        assert_eq!(
            problem.next,
            "Try again in a moment. /readyz answers when the server takes requests."
        );
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
