//! Whole numbers of devices.

use super::{Error, Quantity};

/// How many whole devices an amount is.
pub(super) fn count_of(resource: &str, amount: Quantity) -> Result<u32, Error> {
    let milli = amount.milli().map_err(|source| Error::quantity(resource, source))?;
    u32::try_from(milli / 1_000)
        .ok()
        .filter(|_| milli % 1_000 == 0)
        .ok_or_else(|| Error::Parts { resource: resource.to_owned(), amount: milli })
}
