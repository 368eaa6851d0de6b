//! Finding places: whether a job's minimum fits what is free, and where it packs best.
//!
//! Tasks of one group are alike, so counting decides exactly: a domain holds as many as its nodes
//! do. Only groups of unlike tasks need a search, which is bounded and says when it was cut off.

mod domains;
mod group;
mod groups_on_node;
pub(crate) mod nearby;
mod pack;
mod same_node;
mod search;
mod shares;
pub(crate) mod spot;
mod spread;
mod tree;

use crate::cluster::domain::WHOLE;
use crate::cluster::node::Requester;
use crate::draft::Draft;
use crate::fragmentation::Mix;
use crate::ix::{DomainIx, JobIx};
use crate::plan::fit::search::Search;
use crate::plan::fit::spot::{Misfit, Spot};
use crate::shape::tree::Tree;

/// Finds places for the job's minimum and takes them on the draft.
pub(crate) fn fit(
    draft: &mut Draft<'_>,
    mix: &Mix,
    job: JobIx,
    requester: Requester,
) -> Result<Vec<Spot>, Misfit> {
    let shape = draft.state.shapes[draft.state.jobs.get(job).shape.at()].clone();
    let full = shape.single().is_some_and(|leaf| !leaf.has_room(&draft.state.cluster, leaf.min));
    if full {
        return Err(Misfit::No);
    }
    let mut search = Search::new(draft, mix, job, requester, &shape);
    let mark = search.draft.mark();
    if search.tree(&shape.tree, WHOLE) {
        return Ok(search.spots);
    }
    let cut_off = search.cut_off;
    search.draft.roll_back(mark);
    Err(if cut_off { Misfit::CutOff } else { Misfit::No })
}

/// Finds places for one more task of a group, or one more segment, where its gang lies.
pub(crate) fn fit_more(
    draft: &mut Draft<'_>,
    mix: &Mix,
    job: JobIx,
    requester: Requester,
    leaf: usize,
    outer: DomainIx,
) -> Option<Vec<Spot>> {
    let shape = draft.state.shapes[draft.state.jobs.get(job).shape.at()].clone();
    let mut search = Search::new(draft, mix, job, requester, &shape);
    let mark = search.draft.mark();
    if search.more(&shape.leaves[leaf], outer) == Some(true) {
        return Some(search.spots);
    }
    search.draft.roll_back(mark);
    None
}

/// Finds places for a whole group that the job can do without, next to those that run.
pub(crate) fn fit_group(
    draft: &mut Draft<'_>,
    mix: &Mix,
    job: JobIx,
    requester: Requester,
    group: &Tree,
    home: DomainIx,
) -> Option<Vec<Spot>> {
    let shape = draft.state.shapes[draft.state.jobs.get(job).shape.at()].clone();
    let mut search = Search::new(draft, mix, job, requester, &shape);
    let mark = search.draft.mark();
    if search.tree(group, home) {
        return Some(search.spots);
    }
    search.draft.roll_back(mark);
    None
}
