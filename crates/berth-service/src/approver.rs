//! By what somebody approved a sign-in: enough to ask again whether it still counts.

use crate::job_token::JobToken;
use berth_api::routes::Route;

#[derive(Debug, Clone)]
pub(crate) struct Approver {
    pub by: By,
    pub from: String,
    pub route: &'static Route,
}

#[derive(Debug, Clone)]
pub(crate) enum By {
    Job(JobToken),
    /// The ids of their rows.
    Session(String),
    Token(String),
}

#[cfg(test)]
impl Approver {
    pub fn nobody() -> Approver {
        let route = &berth_api::routes::ROUTES[0];
        Approver { by: By::Token(String::new()), from: String::new(), route }
    }
}
