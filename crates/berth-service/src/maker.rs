//! By what somebody makes a token: another token, or the session of a browser. What is made ends with
//! that at the latest, and is revoked with it.

use crate::caller::{self, Caller};
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
    pub fn of(caller: &Caller) -> Maker {
        let (token, session) = match caller.session() {
            Some(row) => (row.token.clone(), Some(row.id.clone())),
            None => (Some(caller.token().id.clone()), None),
        };
        Maker { token, session, ends: caller.token().expires }
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
            let row = store.get::<TokenRow>(id).await?;
            let gone = || Fault::new(Code::TokenEnded, "the token is gone");
            ends = caller::good(row.ok_or_else(gone)?)?.expires;
        }
        if let Some(id) = &self.session {
            let expires = sessions::still(service, store, id).await?.expires;
            ends = Some(ends.map_or(expires, |ends: Time| ends.min(expires)));
        }
        match ends == self.ends {
            true => Ok(()),
            false => Err(Fault::new(Code::WrongState, "the token ends at another time by now")),
        }
    }
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
