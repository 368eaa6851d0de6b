//! What a search for places finds.

use crate::ix::NodeIx;
use berth_model::Slice;

/// Where one task goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spot {
    pub task: u32,
    pub node: NodeIx,
    pub slices: Vec<Slice>,
}

/// The outcome of a search that found nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// It does not fit: certain.
    No,
    /// No packing of its unlike tasks was found within the bound.
    CutOff,
}
