//! Which GPUs the tasks of a world hold: named ones are checked, others are chosen.

use super::nodes::{no_gpu, profile_of, read_slot, write_slot};
use crate::error::{Error, Result, did_you_mean};
use crate::fields::{Fields, choice, int, list, text};
use crate::out::{Out, Record};
use crate::tree::{Node, Value};
use berth_ledger::cost;
use berth_model::{
    Cpu, GpuAsk, GpuSpec, GroupSpec, Health, Micros, MigLayout, MigProfile, MigSlot, Milli, Name,
    NodeSpec, Share, Slice,
};
use std::collections::BTreeMap;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Whole,
    Fraction,
    Mps,
    TimeSlice,
}

const KINDS: [(&str, Kind); 4] = [
    ("whole", Kind::Whole),
    ("fraction", Kind::Fraction),
    ("mps", Kind::Mps),
    ("time-slice", Kind::TimeSlice),
];

/// What is held of one GPU.
enum Use {
    Free,
    Whole(String),
    Shares { kind: Kind, used: Milli, by: String },
    Mig { held: MigLayout, by: String },
}

struct Machine<'a> {
    spec: &'a NodeSpec,
    uses: Vec<Use>,
}

/// All GPUs with what is held of them so far.
pub(crate) struct Allocations<'a>(BTreeMap<&'a str, Machine<'a>>);

impl<'a> Allocations<'a> {
    pub fn new(nodes: impl Iterator<Item = &'a NodeSpec>) -> Allocations<'a> {
        let machine = |spec: &'a NodeSpec| {
            let uses = spec.gpus.iter().map(|_| Use::Free).collect();
            (spec.name.as_str(), Machine { spec, uses })
        };
        Allocations(nodes.map(machine).collect())
    }

    pub fn node(&self, node: &Node) -> Result<&'a NodeSpec> {
        let found = text(node, "the name of a node")?;
        self.0.get(found).map(|machine| machine.spec).ok_or_else(|| {
            let hint = did_you_mean(found, self.0.keys().copied());
            Error::new(node.at, format!("there is no node `{found}`{hint}"))
        })
    }

    /// The slices a list of GPUs names; a bare index stands for what the group asks of a GPU.
    pub fn named(&self, gpus: &Node, spec: &NodeSpec, ask: &GpuAsk) -> Result<Vec<Slice>> {
        list(gpus)?.iter().map(|item| self.slice(item, spec, ask)).collect()
    }

    fn slice(&self, item: &Node, spec: &NodeSpec, ask: &GpuAsk) -> Result<Slice> {
        let index_of = |node: &Node| {
            let index: u32 = int(node)?;
            match spec.gpus.get(index as usize) {
                Some(gpu) => Ok((index, gpu)),
                None => Err(no_gpu(node, &format!("node {}", spec.name), spec.gpus.len())),
            }
        };
        let asked = |index: u32, gpu: &GpuSpec| {
            let machine = &self.0[spec.name.as_str()];
            share_of(ask, gpu, &machine.uses[index as usize]).ok_or_else(|| {
                let message =
                    format!("GPU {index} of node {} has no room for such an instance", spec.name);
                Error::new(item.at, message)
            })
        };
        if let Value::Scalar { .. } = &item.value {
            let (gpu, known) = index_of(item)?;
            return Ok(Slice { gpu, share: asked(gpu, known)? });
        }
        let fields = Fields::of(item, "a held GPU", &["index", "milli", "kind", "mig"])?;
        let (gpu, known) = fields.demand("index", index_of)?;
        let milli: Option<Milli> = fields.read("milli", thousandths)?;
        let kind = fields.read("kind", |node| choice(node, &KINDS))?;
        let mig = fields.read("mig", |node| {
            let slot = read_slot(node)?;
            profile_of(node, &known.model, &slot.profile).map(|_| slot)
        })?;
        let share = match (mig, kind, milli) {
            (Some(slot), None, None) => Share::Mig(slot),
            (Some(_), _, _) => {
                return Err(Error::new(item.at, "a MIG instance has no milli and no kind"));
            }
            (None, None, None) => asked(gpu, known)?,
            (None, None, Some(Milli::ONE)) | (None, Some(Kind::Whole), None) => Share::Whole,
            (None, None | Some(Kind::Fraction), Some(milli)) => Share::Fraction(milli),
            (None, Some(Kind::Mps), Some(milli)) => Share::Mps(milli),
            (None, Some(Kind::TimeSlice), Some(milli)) => Share::TimeSlice(milli),
            (None, Some(Kind::Whole), Some(_)) | (None, Some(_), None) => {
                let expected = "milli beside a kind of share, and none for the whole GPU";
                return Err(Error::expected(item.at, "something else", expected));
            }
        };
        Ok(Slice { gpu, share })
    }

    /// The first GPUs of the node that can hold what the group asks, each on a GPU of its own.
    pub fn first_fit(&self, spec: &NodeSpec, group: &GroupSpec) -> Option<Vec<Slice>> {
        let wanted = group.gpus.count() as usize;
        let uses = &self.0[spec.name.as_str()].uses;
        let slices: Vec<Slice> = (0u32..)
            .zip(spec.gpus.iter().zip(uses))
            .filter(|(_, (gpu, _))| gpu.health == Health::Ok && suits(gpu, group))
            .filter_map(|(index, (gpu, held))| {
                let share = share_of(&group.gpus, gpu, held)?;
                fits(held, gpu, &share).then_some(Slice { gpu: index, share })
            })
            .take(wanted)
            .collect();
        (slices.len() == wanted).then_some(slices)
    }

    /// Holds the slices for a task, unless a GPU would be held twice.
    pub fn take(&mut self, at: &Node, spec: &NodeSpec, slices: &[Slice], by: &str) -> Result<()> {
        let machine = self.0.get_mut(spec.name.as_str()).expect("a node of this world");
        for slice in slices {
            let gpu = &spec.gpus[slice.gpu as usize];
            let held = &mut machine.uses[slice.gpu as usize];
            if let Err(Occupied { by: other }) = hold(held, gpu, &slice.share, by) {
                let message = format!(
                    "GPU {} of node {} is held twice: by {other} and by {by}",
                    slice.gpu, spec.name
                );
                return Err(Error::new(at.at, message));
            }
        }
        Ok(())
    }
}

fn thousandths(node: &Node) -> Result<Milli> {
    let milli: i64 = int(node)?;
    match (1..=1_000).contains(&milli) {
        true => Ok(Milli(milli)),
        false => Err(Error::expected(node.at, &node.found(), "thousandths of a GPU, 1 to 1000")),
    }
}

/// Whether the GPU is of a kind the group accepts.
fn suits(gpu: &GpuSpec, group: &GroupSpec) -> bool {
    let model = group.models.is_empty() || group.models.iter().any(|ask| ask.model == gpu.model);
    model && group.min_gpu_memory.is_none_or(|least| gpu.memory >= least)
}

/// What the ask takes of that GPU, or nothing where it has no free MIG instance for it.
fn share_of(ask: &GpuAsk, gpu: &GpuSpec, held: &Use) -> Option<Share> {
    Some(match ask {
        GpuAsk::None | GpuAsk::Whole { .. } => Share::Whole,
        GpuAsk::Fraction { milli, .. } => Share::Fraction(*milli),
        GpuAsk::Memory { bytes, .. } => {
            let memory = i128::from(gpu.memory.0.max(1));
            let milli = (i128::from(bytes.0) * 1_000 + memory - 1) / memory;
            Share::Fraction(Milli(i64::try_from(milli).ok()?))
        }
        GpuAsk::Mps { percent, .. } => Share::Mps(Milli(i64::from(*percent) * 10)),
        GpuAsk::TimeSlice { of, .. } => Share::TimeSlice(Milli(1_000 / i64::from(*of).max(1))),
        GpuAsk::Mig { profile, .. } => Share::Mig(free_instance(gpu, profile, held)?),
    })
}

fn fits(held: &Use, gpu: &GpuSpec, share: &Share) -> bool {
    let mut trial = match held {
        Use::Free => Use::Free,
        Use::Whole(_) => return false,
        Use::Shares { kind, used, .. } => {
            Use::Shares { kind: *kind, used: *used, by: String::new() }
        }
        Use::Mig { held, .. } => Use::Mig { held: *held, by: String::new() },
    };
    hold(&mut trial, gpu, share, "").is_ok()
}

/// An instance of the profile that nobody holds: one that exists, or else where one could be made.
fn free_instance(gpu: &GpuSpec, profile: &Name, held: &Use) -> Option<MigSlot> {
    let known = MigProfile::find(&gpu.model, profile)?;
    let mut layout = match held {
        Use::Free => MigLayout::default(),
        Use::Mig { held, .. } => *held,
        Use::Whole(_) | Use::Shares { .. } => return None,
    };
    let instances = gpu.mig.as_deref().unwrap_or_default();
    let existing =
        instances.iter().find(|slot| slot.profile == *profile && layout.fits(known, slot.start));
    if let Some(slot) = existing {
        return Some(slot.clone());
    }
    if gpu.division.is_some() {
        return None;
    }
    for slot in instances {
        if let Some(other) = MigProfile::find(&gpu.model, &slot.profile)
            && layout.fits(other, slot.start)
        {
            layout.take(other, slot.start);
        }
    }
    layout.place(known).map(|start| MigSlot { profile: profile.clone(), start })
}

/// Who holds what a share needs.
struct Occupied {
    by: String,
}

impl Occupied {
    /// The share would not fit on a free GPU either.
    fn by_nobody() -> Occupied {
        Occupied { by: "nobody".to_owned() }
    }
}

/// Adds a share to what is held, or says who is in the way.
fn hold(
    held: &mut Use,
    gpu: &GpuSpec,
    share: &Share,
    by: &str,
) -> std::result::Result<(), Occupied> {
    let by = by.to_owned();
    let (kind, milli) = match share {
        Share::Whole => match held {
            Use::Free => {
                *held = Use::Whole(by);
                return Ok(());
            }
            Use::Whole(other) | Use::Shares { by: other, .. } | Use::Mig { by: other, .. } => {
                return Err(Occupied { by: other.clone() });
            }
        },
        Share::Mig(slot) => return hold_instance(held, gpu, slot, by),
        Share::Fraction(milli) => (Kind::Fraction, *milli),
        Share::Mps(milli) => (Kind::Mps, *milli),
        Share::TimeSlice(milli) => (Kind::TimeSlice, *milli),
    };
    match held {
        Use::Free if milli <= Milli::ONE => {
            *held = Use::Shares { kind, used: milli, by };
            Ok(())
        }
        Use::Shares { kind: other, used, .. } if *other == kind && *used + milli <= Milli::ONE => {
            *used += milli;
            Ok(())
        }
        Use::Free => Err(Occupied::by_nobody()),
        Use::Whole(other) | Use::Shares { by: other, .. } | Use::Mig { by: other, .. } => {
            Err(Occupied { by: other.clone() })
        }
    }
}

fn hold_instance(
    held: &mut Use,
    gpu: &GpuSpec,
    slot: &MigSlot,
    by: String,
) -> std::result::Result<(), Occupied> {
    let Some(profile) = MigProfile::find(&gpu.model, &slot.profile) else {
        return Err(Occupied::by_nobody());
    };
    if let Use::Free = held {
        *held = Use::Mig { held: MigLayout::default(), by: by.clone() };
    }
    match held {
        Use::Mig { held, .. } if held.fits(profile, slot.start) => {
            held.take(profile, slot.start);
            Ok(())
        }
        Use::Whole(other) | Use::Shares { by: other, .. } | Use::Mig { by: other, .. } => {
            Err(Occupied { by: other.clone() })
        }
        Use::Free => Err(Occupied::by_nobody()),
    }
}

/// What an hour of these slices costs where the world does not say.
pub(crate) fn price_of(
    spec: &NodeSpec,
    slices: &[Slice],
    cpu: Cpu,
    prices: &BTreeMap<Name, Micros>,
) -> Micros {
    if spec.gpus.is_empty() {
        return cost::cpu_price(cost::node_price(spec, prices), spec.cpu, cpu);
    }
    let models: Vec<Name> = spec.gpus.iter().map(|gpu| gpu.model.clone()).collect();
    cost::lease_price(&cost::gpu_prices(spec, prices), slices, &models)
}

/// A slice, as short as it can be told apart from what the group asks for.
pub(crate) fn write_slice(Slice { gpu, share }: &Slice, ask: &GpuAsk) -> Out {
    if *share == Share::Whole && ask.is_whole() {
        return Out::raw(gpu);
    }
    let mut out = Record::default();
    out.put("index", Out::raw(gpu));
    match share {
        Share::Whole => out.put("kind", Out::raw("whole")),
        Share::Fraction(milli) => {
            out.put("milli", Out::raw(milli.0));
            out.put_if(*milli == Milli::ONE, "kind", || Out::raw("fraction"));
        }
        Share::Mps(milli) => {
            out.put("milli", Out::raw(milli.0));
            out.put("kind", Out::raw("mps"));
        }
        Share::TimeSlice(milli) => {
            out.put("milli", Out::raw(milli.0));
            out.put("kind", Out::raw("time-slice"));
        }
        Share::Mig(slot) => out.put("mig", write_slot(slot)),
    }
    out.done()
}
