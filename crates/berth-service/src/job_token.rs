//! The tokens of running jobs: `brj_<job>_<element>_<task>_<attempt>_<end>_<signature>`. Nothing of
//! them is kept. The signature says that the server made one, and whether its job still runs and
//! what its user may do is looked up whenever it is used.
//!
//! A token with `_code` before its signature fetches the code and the data of its job, and does nothing
//! else. One with `_track` logs to what is tracked, and reads and writes artifacts, for as long as its
//! task runs: clients of MLflow read a token once.

use crate::fault::Fault;
use crate::token;
use berth_api::Code;
use berth_api::access::{JOB_TOKEN_PREFIX as PREFIX, Scope};
use berth_engine::clock;
use berth_model::{JobId, LeaseId, Span, Time};
use berth_store::TokenRow;
use ring::hmac;
use std::sync::Arc;

/// What the key is for, so that no other use of the same secret gives the same signatures.
const PURPOSE: &[u8] = b"berth: tokens of running jobs, 1";

/// How long a token is good for. A running job gets a new one long before.
pub const LASTS: Span = Span::hours(1);
/// And one that only fetches the code of its job: its node may take long to pull images first.
const CODE_LASTS: Span = Span::hours(24);
/// A tracking token: Berth checks at each use whether its task still runs.
const TRACK_LASTS: Span = Span::days(3_650);
/// The claims of such tokens.
const CODE: &str = "code";
const TRACK: &str = "track";

/// Signs the tokens of jobs, and knows its own again.
#[derive(Clone)]
pub struct JobTokens(Arc<hmac::Key>);

/// What a token is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// What a job needs of the server.
    Job,
    /// The code and the data that the job was submitted with, and nothing else.
    Code,
    /// Tracking, artifacts of the team, and reading its data.
    Track,
}

/// A token that this server has signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobToken {
    /// The task of the job that has it.
    pub lease: LeaseId,
    pub reach: Reach,
    pub expires: Time,
}

impl JobTokens {
    /// With a key that follows from a secret of the server.
    pub fn new(secret: &[u8]) -> JobTokens {
        let key = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), PURPOSE);
        JobTokens(Arc::new(hmac::Key::new(hmac::HMAC_SHA256, key.as_ref())))
    }

    /// A token of a task, good from now on.
    pub fn mint(&self, lease: LeaseId) -> String {
        self.mint_until(lease, Reach::Job, clock::now() + LASTS)
    }

    /// A token by which a task fetches the code of its job.
    pub fn mint_for_code(&self, lease: LeaseId) -> String {
        self.mint_until(lease, Reach::Code, clock::now() + CODE_LASTS)
    }

    /// A token for the client of MLflow in a task.
    pub fn mint_for_tracking(&self, lease: LeaseId) -> String {
        self.mint_until(lease, Reach::Track, clock::now() + TRACK_LASTS)
    }

    fn mint_until(&self, lease: LeaseId, reach: Reach, expires: Time) -> String {
        let LeaseId { job: JobId { number, element }, task, attempt } = lease;
        let element = element.map(|element| element.to_string()).unwrap_or_default();
        let mut said = format!("{number}_{element}_{task}_{attempt}_{}", expires.0);
        match reach {
            Reach::Job => {}
            Reach::Code => said.extend(["_", CODE]),
            Reach::Track => said.extend(["_", TRACK]),
        }
        let signature = hex::encode(hmac::sign(&self.0, said.as_bytes()));
        format!("{PREFIX}{said}_{signature}")
    }

    /// The token of a job; nothing for a token of another kind.
    pub fn read(&self, given: &str) -> Option<Result<JobToken, Fault>> {
        let rest = given.strip_prefix(PREFIX)?;
        let unknown = || Fault::new(Code::NoToken, "the token is not one of ours");
        Some(self.verified(rest).ok_or_else(unknown))
    }

    fn verified(&self, rest: &str) -> Option<JobToken> {
        let (said, signature) = rest.rsplit_once('_')?;
        let signature = hex::decode(signature).ok()?;
        hmac::verify(&self.0, said.as_bytes(), &signature).ok()?;
        let mut parts = said.split('_');
        let mut next = || parts.next();
        let (number, element) = (next()?.parse().ok()?, next()?);
        let element = match element {
            "" => None,
            element => Some(element.parse().ok()?),
        };
        let (task, attempt) = (next()?.parse().ok()?, next()?.parse().ok()?);
        let expires = Time(next()?.parse().ok()?);
        let reach = match next() {
            None => Reach::Job,
            Some(CODE) => Reach::Code,
            Some(TRACK) => Reach::Track,
            Some(_) => return None,
        };
        let lease = LeaseId { job: JobId { number, element }, task, attempt };
        Some(JobToken { lease, reach, expires })
    }
}

impl JobToken {
    /// As the tokens of people are shown and noted in the audit log.
    pub(crate) fn row(&self, user: &str) -> TokenRow {
        let job = self.lease.job;
        let (scope, lasts) = match self.reach {
            Reach::Job => (Scope::Jobs, LASTS),
            Reach::Code => (Scope::Read, CODE_LASTS),
            Reach::Track => (Scope::Jobs, TRACK_LASTS),
        };
        TokenRow {
            id: format!("job-{job}"),
            user: user.to_owned(),
            name: format!("job {job}"),
            hash: String::new(),
            scopes: token::scope_word(scope).to_owned(),
            created: Time(self.expires.0 - lasts.0),
            expires: Some(self.expires),
            revoked: None,
            last_used: None,
            parent: None,
            session: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(element: Option<u32>) -> LeaseId {
        LeaseId { job: JobId { number: 17, element }, task: 2, attempt: 3 }
    }

    #[test]
    fn a_token_says_whose_it_is_and_only_this_server_can_say_so() {
        let (ours, theirs) = (JobTokens::new(b"one secret"), JobTokens::new(b"another"));
        let all = [None, Some(0), Some(41)]
            .map(|element| [Reach::Job, Reach::Code, Reach::Track].map(|reach| (element, reach)));
        for (element, reach) in all.into_iter().flatten() {
            let token = ours.mint_until(lease(element), reach, Time(5_000));
            let read = ours.read(&token).unwrap().unwrap();
            assert_eq!(read, JobToken { lease: lease(element), reach, expires: Time(5_000) });
            let fault = theirs.read(&token).unwrap().unwrap_err();
            assert_eq!(fault.0.known_code(), Some(Code::NoToken));
        }
    }

    #[test]
    fn no_letter_of_a_token_can_be_changed() {
        let tokens = JobTokens::new(b"one secret");
        let token = tokens.mint_until(lease(None), Reach::Code, Time(5_000));
        for wider in ["_", "_track_"] {
            let changed = token.replace("_code_", wider);
            assert!(tokens.read(&changed).unwrap().is_err(), "it stays narrow");
        }
        let tracks = tokens.mint_until(lease(None), Reach::Track, Time(5_000));
        assert!(tokens.read(&tracks.replace("_track_", "_")).unwrap().is_err(), "it stays narrow");
        for at in PREFIX.len()..token.len() {
            let mut bytes = token.clone().into_bytes();
            bytes[at] = if bytes[at] == b'9' { b'8' } else { b'9' };
            let changed = String::from_utf8(bytes).unwrap();
            assert!(tokens.read(&changed).unwrap().is_err(), "{changed}");
        }
        for odd in ["brj_", "brj_17", "brj_17__0_0_5000_", "brj_17__0_0_5000_zz"] {
            assert!(tokens.read(odd).unwrap().is_err(), "{odd}");
        }
        assert!(tokens.read("brt_1_2").is_none());
    }
}
