//! Where MIG instances lie. Kubernetes tells how many of each profile a node has, not on which GPU
//! or at which start; any layout that the hardware could have will do, because the device plugin
//! picks the instance in the end.

use super::Error;
use berth_model::{MigLayout, MigProfile, MigSlot, Name};

/// One GPU's instances while they are laid out.
#[derive(Debug, Clone, Default)]
struct GpuLayout {
    layout: MigLayout,
    slots: Vec<MigSlot>,
}

impl GpuLayout {
    fn count(&self, profile: &Name) -> usize {
        self.slots.iter().filter(|slot| slot.profile == *profile).count()
    }

    fn place(&mut self, name: &Name, profile: &MigProfile) -> bool {
        let room = self.count(name) < usize::from(profile.at_most);
        let Some(start) = self.layout.place(profile).filter(|_| room) else {
            return false;
        };
        self.layout.take(profile, start);
        self.slots.push(MigSlot { profile: name.clone(), start });
        true
    }
}

/// Lays out so many instances of each profile. On how many GPUs may be unknown: then on as few as
/// will do.
pub(super) fn lay_out(
    model: &Name,
    instances: &[(Name, u32)],
    gpus: Option<usize>,
) -> Result<Vec<Vec<MigSlot>>, Error> {
    let mut all: Vec<(&Name, &'static MigProfile)> = Vec::new();
    for (name, count) in instances {
        let profile = MigProfile::find(model, name)
            .ok_or_else(|| Error::Profile { model: model.clone(), profile: name.clone() })?;
        all.extend((0..*count).map(|_| (name, profile)));
    }
    // The largest first: the small ones fit into what is left.
    all.sort_by_key(|(name, profile)| (std::cmp::Reverse((profile.size, profile.compute)), *name));
    let layouts = match gpus {
        Some(gpus) => evenly(&all, gpus).or_else(|| tightly(&all, Some(gpus))),
        None => tightly(&all, None),
    };
    let layouts = layouts.ok_or_else(|| Error::Layout {
        model: model.clone(),
        instances: all.len(),
        gpus: gpus.unwrap_or(all.len()),
    })?;
    Ok(layouts.into_iter().map(|bed| bed.slots).collect())
}

/// The GPUs of a node are usually partitioned alike.
fn evenly(all: &[(&Name, &'static MigProfile)], gpus: usize) -> Option<Vec<GpuLayout>> {
    let mut layouts = vec![GpuLayout::default(); gpus];
    for (name, profile) in all {
        let mut order: Vec<usize> = (0..gpus).collect();
        order.sort_by_key(|at| layouts[*at].count(name));
        order.into_iter().find(|at| layouts[*at].place(name, profile))?;
    }
    Some(layouts)
}

fn tightly(all: &[(&Name, &'static MigProfile)], gpus: Option<usize>) -> Option<Vec<GpuLayout>> {
    let mut layouts = vec![GpuLayout::default(); gpus.unwrap_or(0)];
    for (name, profile) in all {
        if layouts.iter_mut().any(|bed| bed.place(name, profile)) {
            continue;
        }
        let mut bed = GpuLayout::default();
        if gpus.is_some() || !bed.place(name, profile) {
            return None;
        }
        layouts.push(bed);
    }
    Some(layouts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(instances: &[(&str, u32)], gpus: Option<usize>) -> Result<Vec<String>, Error> {
        let instances: Vec<(Name, u32)> =
            instances.iter().map(|(name, count)| (Name::new(name), *count)).collect();
        let layouts = lay_out(&"A100-40GB".into(), &instances, gpus)?;
        let text = |slots: Vec<MigSlot>| {
            let each: Vec<String> =
                slots.iter().map(|slot| format!("{}@{}", slot.profile, slot.start)).collect();
            each.join(" ")
        };
        Ok(layouts.into_iter().map(text).collect())
    }

    #[test]
    fn instances_are_dealt_evenly_to_the_gpus_there_are() {
        let layouts = check(&[("1g.5gb", 4), ("2g.10gb", 2), ("3g.20gb", 2)], Some(2)).unwrap();
        assert_eq!(layouts, vec!["3g.20gb@4 2g.10gb@0 1g.5gb@2 1g.5gb@3"; 2]);
    }

    #[test]
    fn unlike_gpus_are_found_where_even_dealing_fails() {
        let layouts = check(&[("7g.40gb", 1), ("1g.5gb", 7)], Some(2)).unwrap();
        assert_eq!(layouts[0], "7g.40gb@0");
        assert_eq!(layouts[1].split(' ').count(), 7);
    }

    #[test]
    fn as_few_gpus_as_will_do_where_their_number_is_unknown() {
        assert_eq!(check(&[("1g.5gb", 15)], None).unwrap().len(), 3);
        assert_eq!(check(&[("1g.5gb+me", 2)], None).unwrap().len(), 2);
    }

    #[test]
    fn a_layout_the_hardware_cannot_have_is_refused() {
        assert!(matches!(check(&[("7g.40gb", 2)], Some(1)), Err(Error::Layout { .. })));
        assert!(matches!(check(&[("1g.99gb", 1)], None), Err(Error::Profile { .. })));
    }
}
