//! Constraints that cannot be honoured.

/// Something in a pod's constraints that we cannot honour, because we do not know what it means.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("{place}: {what}")]
pub struct UnsupportedConstraint {
    /// Such as `nodeAffinity` or `toleration of gpu`.
    pub place: String,
    pub what: String,
}

impl UnsupportedConstraint {
    pub(crate) fn new(place: impl Into<String>, what: impl Into<String>) -> UnsupportedConstraint {
        UnsupportedConstraint { place: place.into(), what: what.into() }
    }
}
