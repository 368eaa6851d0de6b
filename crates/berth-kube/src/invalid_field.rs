//! A mark that makes no sense, or has no effect.

/// A label, annotation or field of a manifest whose value makes no sense, or that has no effect
/// here. Berth neither guesses what was meant nor ignores it: it says so on the pod, and keeps the
/// pod pending where its author would not want it to run without.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("`{key}` is `{value}`: {what_to_do}")]
pub struct InvalidField {
    /// Where it is, such as `gpu-fraction` or `PodGroup a/b: spec.minMember`.
    pub key: String,
    pub value: String,
    /// What its author should write instead.
    pub what_to_do: String,
}

impl InvalidField {
    pub(crate) fn new(
        key: impl Into<String>,
        value: impl Into<String>,
        what_to_do: impl Into<String>,
    ) -> InvalidField {
        InvalidField { key: key.into(), value: value.into(), what_to_do: what_to_do.into() }
    }
}
