//! A GPU: how it is shared, what is taken of it, and whether a share fits.

use crate::cluster::tenants::Tenants;
use crate::ix::{ModelIx, QueueIx};
use berth_model::{Division, GpuAsk, Health, MigLayout, MigProfile, MigSlot, Milli, Share};

/// In which way a GPU is shared while anything is on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Free,
    Whole,
    Fraction,
    Mps,
    TimeSlice,
    Mig,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gpu {
    pub model: ModelIx,
    pub memory: i64,
    pub healthy: bool,
    pub island: u8,
    pub mode: Mode,
    /// Thousandths taken.
    pub used: i64,
    pub holders: u16,
    pub tenants: Tenants,
    pub mig: Option<Box<MigGpu>>,
    /// Set where the GPU is handed out in such pieces only.
    pub division: Option<Division>,
}

/// The MIG side of a GPU; present while MIG is on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct MigGpu {
    /// Instances that exist and that no lease holds; a new instance may take their place.
    pub idle: Vec<MigSlot>,
    pub held: Vec<MigSlot>,
    /// Slices of the held ones.
    pub layout: MigLayout,
    /// MIG was on before anything asked for it, so it stays on when the GPU is empty.
    pub fixed: bool,
}

/// The thousandths of a GPU that a share stands for.
pub(crate) fn share_milli(share: &Share, model: &str) -> i64 {
    match share {
        Share::Whole => 1_000,
        Share::Fraction(milli) | Share::Mps(milli) | Share::TimeSlice(milli) => milli.0,
        Share::Mig(slot) => MigProfile::find(model, &slot.profile).map_or(1_000, MigProfile::milli),
    }
}

impl Gpu {
    pub fn new(spec: &berth_model::GpuSpec, model: ModelIx, island: u8) -> Gpu {
        Gpu {
            model,
            memory: spec.memory.0,
            healthy: spec.health == Health::Ok,
            island,
            mode: unused(spec.division, spec.mig.is_some()),
            used: 0,
            holders: 0,
            tenants: Tenants::default(),
            mig: spec.mig.as_ref().map(|idle| {
                Box::new(MigGpu { idle: idle.clone(), fixed: true, ..MigGpu::default() })
            }),
            division: spec.division,
        }
    }

    /// The mode of a GPU that no lease holds.
    pub fn unused(&self) -> Mode {
        unused(self.division, self.mig.as_deref().is_some_and(|mig| mig.fixed))
    }

    /// Takes over how it is handed out now. What is held of it stays held.
    pub fn redivide(&mut self, spec: &berth_model::GpuSpec) {
        self.division = spec.division;
        if spec.division == Some(Division::Mig)
            && let (Some(mig), Some(slots)) = (self.mig.as_deref_mut(), &spec.mig)
        {
            mig.idle = slots.iter().filter(|slot| !mig.held.contains(slot)).cloned().collect();
        }
    }

    pub fn is_free(&self) -> bool {
        self.healthy && self.mode == Mode::Free
    }

    pub(super) fn mode_of(share: &Share) -> Mode {
        match share {
            Share::Whole => Mode::Whole,
            Share::Fraction(_) => Mode::Fraction,
            Share::Mps(_) => Mode::Mps,
            Share::TimeSlice(_) => Mode::TimeSlice,
            Share::Mig(_) => Mode::Mig,
        }
    }

    /// Whether the share could be taken now (the promises on the GPU left aside).
    pub fn fits(&self, share: &Share, model: &str) -> bool {
        let mode = Gpu::mode_of(share);
        if self.mode != Mode::Free && self.mode != mode {
            return false;
        }
        if !self.hands_out(share) {
            return false;
        }
        match share {
            Share::Whole => self.mode == Mode::Free,
            Share::Mig(slot) => MigProfile::find(model, &slot.profile).is_some_and(|profile| {
                let mig = self.mig.as_deref();
                let layout = mig.map_or(MigLayout::default(), |mig| mig.layout);
                let same = mig.map_or(0, |mig| {
                    mig.held.iter().filter(|held| held.profile == slot.profile).count()
                });
                same < profile.at_most as usize && layout.fits(profile, slot.start)
            }),
            _ => self.used + share_milli(share, model) <= 1_000,
        }
    }

    /// Whether there is such a piece left, where pieces are not ours to make.
    fn hands_out(&self, share: &Share) -> bool {
        match (self.division, share) {
            (None, _) | (Some(Division::Whole), Share::Whole | Share::Fraction(_)) => true,
            (Some(Division::Mig), Share::Mig(slot)) => {
                self.mig.as_deref().is_some_and(|mig| mig.idle.contains(slot))
            }
            (Some(Division::Mps { .. }), Share::Mps(_))
            | (Some(Division::TimeSlice { .. }), Share::TimeSlice(_)) => self.has_pieces(1),
            _ => false,
        }
    }

    /// Whether so many more shares of it are handed out.
    pub(super) fn has_pieces(&self, more: u32) -> bool {
        match self.division {
            Some(Division::Mps { shares } | Division::TimeSlice { shares }) => {
                u32::from(self.holders) + more <= shares
            }
            _ => true,
        }
    }

    pub fn take(&mut self, share: &Share, model: &str, queue: QueueIx) {
        assert!(self.fits(share, model), "a GPU was leased beyond its capacity");
        self.mode = Gpu::mode_of(share);
        self.tenants.count(share, queue, 1);
        self.used += share_milli(share, model);
        self.holders += 1;
        if let Share::Mig(slot) = share {
            let profile = MigProfile::find(model, &slot.profile).expect("checked by fits");
            let mig = self.mig.get_or_insert_default();
            mig.layout.take(profile, slot.start);
            let mask = profile.mask(slot.start);
            mig.idle.retain(|idle| {
                MigProfile::find(model, &idle.profile)
                    .is_none_or(|other| other.mask(idle.start) & mask == 0)
            });
            mig.held.push(slot.clone());
        }
    }

    pub fn give(&mut self, share: &Share, model: &str, queue: QueueIx) {
        self.tenants.count(share, queue, -1);
        self.used -= share_milli(share, model);
        self.holders -= 1;
        if let Share::Mig(slot) = share {
            let profile = MigProfile::find(model, &slot.profile).expect("it was taken");
            let mig = self.mig.as_deref_mut().expect("it was taken");
            mig.layout.give(profile, slot.start);
            let at = mig.held.iter().position(|held| held == slot).expect("it was held");
            mig.held.swap_remove(at);
            // Where MIG was off until a job asked for it, an instance that no lease holds is not kept.
            if mig.fixed {
                mig.idle.push(slot.clone());
                mig.idle.sort();
            }
        }
        if self.holders == 0 {
            self.mode = self.unused();
            if self.mode != Mode::Mig {
                self.mig = None;
            }
        }
    }
}

const fn unused(division: Option<Division>, is_mig: bool) -> Mode {
    match division {
        Some(Division::Mps { .. }) => Mode::Mps,
        Some(Division::TimeSlice { .. }) => Mode::TimeSlice,
        _ if is_mig => Mode::Mig,
        _ => Mode::Free,
    }
}

/// The share an ask stands for on a GPU with that much memory.
pub(crate) fn share_on(ask: &GpuAsk, memory: i64) -> Option<Share> {
    match ask {
        GpuAsk::None | GpuAsk::Mig { .. } => None,
        GpuAsk::Whole { .. } => Some(Share::Whole),
        GpuAsk::Fraction { milli, .. } => Some(Share::Fraction(*milli)),
        GpuAsk::Memory { bytes, .. } => {
            // Rounded up: the share must be at least as large as what was asked for.
            let milli =
                (i128::from(bytes.0) * 1_000 + i128::from(memory) - 1) / i128::from(memory.max(1));
            (milli <= 1_000).then_some(Share::Fraction(Milli(milli as i64)))
        }
        GpuAsk::Mps { percent, .. } => Some(Share::Mps(Milli(i64::from(*percent) * 10))),
        GpuAsk::TimeSlice { of, .. } => {
            Some(Share::TimeSlice(Milli(1_000 / i64::from((*of).max(1)))))
        }
    }
}
