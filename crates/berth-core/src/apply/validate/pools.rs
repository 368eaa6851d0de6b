//! Events about pools, claims and reservations.

use crate::apply::validate::nodes::find;
use crate::state::State;
use berth_model::{Name, PoolSpec, Rejected, Reservation, Span};

pub(crate) fn claim_known(state: &State, claim: &Name) -> Result<(), Rejected> {
    match state.claims.contains_key(claim) {
        true => Ok(()),
        false => Err(Rejected::UnknownClaim { claim: claim.clone() }),
    }
}

pub(super) fn pool(pool: &PoolSpec) -> Result<(), Rejected> {
    let bad = |why: &str| Rejected::BadPool { pool: pool.name.clone(), why: why.to_owned() };
    if pool.min > pool.max {
        return Err(bad("its minimum is above its maximum"));
    }
    if pool.offerings.is_empty() {
        return Err(bad("it offers nothing; name at least one offering"));
    }
    if pool.offerings.iter().any(|o| o.price.0 < 0 || o.boot < Span::ZERO) {
        return Err(bad("an offering has a negative price or boot time"));
    }
    Ok(())
}

pub(super) fn pool_known(state: &State, pool: &Name) -> Result<(), Rejected> {
    match state.pools.contains_key(pool) {
        true => Ok(()),
        false => Err(Rejected::UnknownPool { pool: pool.clone() }),
    }
}

pub(super) fn reservation(state: &State, reservation: &Reservation) -> Result<(), Rejected> {
    if reservation.from >= reservation.to {
        return Err(Rejected::BadReservation {
            name: reservation.name.clone(),
            why: "it ends before it begins".to_owned(),
        });
    }
    for name in &reservation.nodes {
        find(state, name)?;
    }
    Ok(())
}

pub(super) fn reservation_known(state: &State, name: &Name) -> Result<(), Rejected> {
    match state.reservations.contains_key(name) {
        true => Ok(()),
        false => Err(Rejected::UnknownReservation { name: name.clone() }),
    }
}
