//! Whose shares lie on one GPU: those of one queue, where the policy keeps queues apart.

use crate::check::finding::FindingCode;
use crate::check::overlay::Overlay;
use crate::check::place::Fault;
use crate::ix::{JobIx, NodeIx};
use crate::state::State;
use berth_model::{Division, GpuSpec, NodeSpec, Share, ShareGpus, Slice};

/// Whether shares of the GPU are handed out by somebody else, who chooses the GPU.
fn chosen_elsewhere(gpu: &GpuSpec) -> bool {
    match gpu.division {
        Some(Division::Mps { .. } | Division::TimeSlice { .. }) => true,
        None | Some(Division::Whole | Division::Mig) => false,
    }
}

/// Whether a share may lie beside those of its own queue alone.
fn is_kept_apart(state: &State, gpu: &GpuSpec, share: &Share) -> bool {
    let teams_apart = match state.policy.share_gpus {
        ShareGpus::Team => true,
        ShareGpus::Anyone => false,
    };
    match share {
        Share::Whole | Share::Mig(_) => false,
        Share::Fraction(_) | Share::TimeSlice(_) => teams_apart,
        Share::Mps(_) => teams_apart || !chosen_elsewhere(gpu),
    }
}

/// Whether two slices lie, or may turn out to lie, on one GPU that both would have to themselves.
fn collide(state: &State, node: &NodeSpec, own: &Slice, other: &Slice) -> bool {
    let gpu = |slice: &Slice| node.gpus.get(slice.gpu as usize);
    let (Some(mine), Some(theirs)) = (gpu(own), gpu(other)) else { return false };
    let meet = own.gpu == other.gpu || chosen_elsewhere(mine) && chosen_elsewhere(theirs);
    let apart = |gpu, share| is_kept_apart(state, gpu, share);
    meet && (apart(mine, &own.share) || apart(theirs, &other.share))
}

/// The shares of other queues that a job's would lie beside and may not.
pub(super) fn faults<'a>(
    view: &Overlay<'_>,
    job: JobIx,
    node: NodeIx,
    own: &[Slice],
    others: impl Iterator<Item = (JobIx, &'a Slice)>,
) -> Vec<Fault> {
    let (state, queue) = (view.state, view.base(job).queue);
    let spec = &state.cluster.node(node).spec;
    let mut strangers = others.filter(|(other, _)| view.base(*other).queue != queue);
    let met = strangers.find_map(|(other, slice)| {
        let own = own.iter().find(|own| collide(state, spec, own, slice))?;
        Some((other, own.gpu))
    });
    let told = met.map(|(other, gpu)| {
        let (id, other) = (view.base(job).id, view.base(other).id);
        let text = format!(
            "GPU {gpu} of {}: job {id} would share it with job {other} of another queue",
            spec.name
        );
        (FindingCode::Tenants, text)
    });
    told.into_iter().collect()
}
