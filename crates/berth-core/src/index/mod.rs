//! Indexes over the cluster that tell early that a search would find nothing.

pub(crate) mod held_gpus;
pub(crate) mod max_free;
pub(crate) mod may_hold;
