//! By what somebody makes a token: another token, or the session of a browser. What is made ends with
//! that at the latest, and is revoked with it.

use crate::caller::Caller;
use crate::credentials;
use crate::fault::Fault;
use crate::service::Service;
use crate::sessions;
use berth_api::Code;
use berth_model::Time;
use berth_store::{Store, TokenRow};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Maker {
    /// Also where a browser is signed in with it.
    pub token: Option<String>,
    pub session: Option<String>,
    /// When what it makes has to end.
    pub ends: Option<Time>,
}

impl Maker {
    pub async fn of(service: &Service, caller: &Caller) -> Result<Maker, Fault> {
        let Some(session) = caller.session() else {
            let (token, ends) = (Some(caller.token().id.clone()), caller.token().expires);
            return Ok(Maker { token, session: None, ends });
        };
        // A browser is signed in for hours, and people make tokens there that last for months.
        let ends = match &session.token {
            Some(id) => end_of(&service.store, id).await?,
            None => None,
        };
        Ok(Maker { token: session.token.clone(), session: Some(session.id.clone()), ends })
    }

    /// The end that something has which is wanted until then, or for ever.
    pub fn until(&self, wanted: Option<Time>) -> Option<Time> {
        match (wanted, self.ends) {
            (Some(wanted), Some(ends)) => Some(wanted.min(ends)),
            (wanted, ends) => wanted.or(ends),
        }
    }

    /// Whether it is still good, and as long as it was.
    pub async fn check(&self, service: &Service, store: &Store) -> Result<(), Fault> {
        let mut ends = None;
        if let Some(id) = &self.token {
            ends = end_of(store, id).await?;
        }
        if let Some(id) = &self.session {
            sessions::still(service, store, id).await?;
        }
        match ends == self.ends {
            true => Ok(()),
            false => Err(Fault::new(Code::WrongState, "the token ends at another time by now")),
        }
    }
}

async fn end_of(store: &Store, token: &str) -> Result<Option<Time>, Fault> {
    let row = store.get::<TokenRow>(token).await?;
    let gone = || Fault::new(Code::TokenEnded, "the token is gone");
    Ok(credentials::good(row.ok_or_else(gone)?)?.expires)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_ends_with_its_maker_at_the_latest() {
        let maker = |ends| Maker { token: Some("t1".into()), session: None, ends };
        let (soon, late) = (Some(Time(5)), Some(Time(9)));
        for (ends, wanted, until) in [
            (None, None, None),
            (None, late, late),
            (soon, None, soon),
            (soon, late, soon),
            (late, soon, soon),
        ] {
            assert_eq!(maker(ends).until(wanted), until, "{ends:?} {wanted:?}");
        }
    }
}
