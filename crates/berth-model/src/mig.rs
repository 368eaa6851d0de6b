//! MIG geometry: eight memory slices and seven compute slices on every supported GPU. An instance
//! takes the memory slices `[start, start + size)` and a number of compute slices; where it may
//! start is fixed by its profile.

use crate::Name;
use serde::{Deserialize, Serialize};

/// What one profile takes and where it may lie.
#[derive(Debug, PartialEq, Eq)]
pub struct MigProfile {
    pub compute: u8,
    pub size: u8,
    /// Starts in the order to try them: the ones that keep the most other placements open first.
    pub starts: &'static [u8],
    /// At most this many on one GPU, whatever the slices would allow.
    pub at_most: u8,
}

/// The seven kinds of profile; a model names them by its own memory size.
const ONE: MigProfile =
    MigProfile { compute: 1, size: 1, starts: &[6, 4, 5, 0, 1, 2, 3], at_most: 7 };
const ONE_MEDIA: MigProfile =
    MigProfile { compute: 1, size: 1, starts: &[6, 4, 5, 0, 1, 2, 3], at_most: 1 };
const ONE_DOUBLE: MigProfile =
    MigProfile { compute: 1, size: 2, starts: &[6, 4, 0, 2], at_most: 4 };
const TWO: MigProfile = MigProfile { compute: 2, size: 2, starts: &[4, 0, 2], at_most: 3 };
// A 3g at start 0 leaves room for three 1g, at start 4 for four: 4 goes first.
const THREE: MigProfile = MigProfile { compute: 3, size: 4, starts: &[4, 0], at_most: 2 };
const FOUR: MigProfile = MigProfile { compute: 4, size: 4, starts: &[0], at_most: 1 };
const SEVEN: MigProfile = MigProfile { compute: 7, size: 8, starts: &[0], at_most: 1 };

/// Profile names of the models that support MIG, by the model's name.
const FAMILIES: [(&[&str], [&str; 7]); 5] = [
    (
        &["A100-40GB"],
        ["1g.5gb", "1g.5gb+me", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"],
    ),
    (
        &["A100-80GB", "H100-80GB"],
        ["1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"],
    ),
    (
        &["H200-141GB"],
        ["1g.18gb", "1g.18gb+me", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"],
    ),
    (
        &["B200-180GB"],
        ["1g.23gb", "1g.23gb+me", "1g.45gb", "2g.45gb", "3g.90gb", "4g.90gb", "7g.180gb"],
    ),
    (
        &["H100-94GB", "GH200-96GB"],
        ["1g.12gb", "1g.12gb+me", "1g.24gb", "2g.24gb", "3g.47gb", "4g.47gb", "7g.94gb"],
    ),
];

const KINDS: [&MigProfile; 7] = [&ONE, &ONE_MEDIA, &ONE_DOUBLE, &TWO, &THREE, &FOUR, &SEVEN];

impl MigProfile {
    /// The profile of that name on that GPU model, or nothing where the model has none such.
    pub fn find(model: &str, profile: &str) -> Option<&'static MigProfile> {
        let names = MigProfile::names(model)?;
        names.iter().position(|name| *name == profile).map(|kind| KINDS[kind])
    }

    /// The profile names a model offers, smallest first; nothing for a model without MIG.
    pub fn names(model: &str) -> Option<&'static [&'static str; 7]> {
        FAMILIES.iter().find(|(models, _)| models.contains(&model)).map(|(_, names)| names)
    }

    /// Whether any model has a profile of that name.
    pub fn exists(profile: &str) -> bool {
        FAMILIES.iter().any(|(_, names)| names.contains(&profile))
    }

    /// The share of a GPU an instance stands for: its compute slices in sevenths.
    pub const fn milli(&self) -> i64 {
        self.compute as i64 * 1_000 / 7
    }

    pub const fn mask(&self, start: u8) -> u8 {
        (((1u16 << self.size) - 1) << start) as u8
    }
}

/// One instance: a profile at a start.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MigSlot {
    pub profile: Name,
    pub start: u8,
}

/// Which slices of one GPU are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MigLayout {
    pub memory: u8,
    pub compute: u8,
}

impl MigLayout {
    pub fn fits(self, profile: &MigProfile, start: u8) -> bool {
        profile.starts.contains(&start)
            && self.memory & profile.mask(start) == 0
            && self.compute + profile.compute <= 7
    }

    /// The first start, in the profile's order of preference, that is free.
    pub fn place(self, profile: &MigProfile) -> Option<u8> {
        profile.starts.iter().copied().find(|start| self.fits(profile, *start))
    }

    pub fn take(&mut self, profile: &MigProfile, start: u8) {
        assert!(self.fits(profile, start), "a MIG instance was placed over another");
        self.memory |= profile.mask(start);
        self.compute += profile.compute;
    }

    pub fn give(&mut self, profile: &MigProfile, start: u8) {
        assert!(self.memory & profile.mask(start) == profile.mask(start));
        self.memory &= !profile.mask(start);
        self.compute -= profile.compute;
    }

    pub fn is_empty(self) -> bool {
        self.memory == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pack(profiles: &[&str]) -> Option<Vec<u8>> {
        let mut layout = MigLayout::default();
        profiles
            .iter()
            .map(|name| {
                let profile = MigProfile::find("A100-40GB", name).unwrap();
                let start = layout.place(profile)?;
                layout.take(profile, start);
                Some(start)
            })
            .collect()
    }

    #[test]
    fn a_3g_starts_at_4_and_leaves_room_for_four_1g() {
        assert_eq!(pack(&["3g.20gb", "1g.5gb", "1g.5gb", "1g.5gb", "1g.5gb"]).unwrap()[0], 4);
    }

    #[test]
    fn seven_1g_fill_a_gpu_and_an_eighth_does_not_fit() {
        assert!(pack(&["1g.5gb"; 7]).is_some());
        assert!(pack(&["1g.5gb"; 8]).is_none());
    }

    #[test]
    fn a_4g_and_a_3g_share_a_gpu_and_two_4g_do_not() {
        assert_eq!(pack(&["4g.20gb", "3g.20gb"]).unwrap(), [0, 4]);
        assert!(pack(&["4g.20gb", "4g.20gb"]).is_none());
    }

    #[test]
    fn small_instances_fill_the_upper_half_first_so_a_4g_still_fits() {
        assert!(pack(&["1g.5gb", "1g.5gb", "1g.5gb", "4g.20gb"]).is_some());
        assert!(pack(&["2g.10gb", "4g.20gb"]).is_some());
    }

    #[test]
    fn a_model_without_mig_has_no_profiles() {
        assert!(MigProfile::find("L4-24GB", "1g.5gb").is_none());
        assert!(MigProfile::find("A100-40GB", "1g.10gb+me").is_none());
    }
}
