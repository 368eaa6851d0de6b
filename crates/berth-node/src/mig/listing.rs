//! What `nvidia-smi` prints about MIG, read.

use super::smi::{Smi, SmiError};
use std::collections::BTreeMap;

/// A profile that a GPU offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    pub id: u32,
    /// Such as `3g.71gb`.
    pub name: String,
    pub multiprocessors: u32,
    /// Where an instance may start, and how many memory slices it takes.
    pub starts: Vec<u8>,
    pub size: u8,
}

/// A GPU instance.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instance {
    pub id: u32,
    pub profile: String,
    pub start: u8,
    pub size: u8,
    /// Of the device that programs see; nothing where it has no compute instance yet.
    pub uuid: Option<String>,
}

impl Instance {
    /// Whether it takes a memory slice in `[start, start + size)`.
    pub fn overlaps(&self, start: u8, size: u8) -> bool {
        self.start < start + size && start < self.start + self.size
    }
}

/// Whether MIG is on, and whether it will be after the next reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode {
    pub current: bool,
    pub pending: bool,
}

pub fn mode(smi: &dyn Smi, gpu: u32) -> Result<Option<Mode>, SmiError> {
    let index = gpu.to_string();
    let query = "--query-gpu=mig.mode.current,mig.mode.pending";
    let args = ["-i", &index, query, "--format=csv,noheader"];
    let text = smi.run(&args)?;
    let mut words = text.lines().next().unwrap_or_default().split(',').map(str::trim);
    let mut word = || match words.next() {
        Some("Enabled") => Ok(Some(true)),
        Some("Disabled") => Ok(Some(false)),
        // GPUs without MIG.
        Some("[N/A]" | "N/A") => Ok(None),
        _ => Err(unreadable(&args, &text)),
    };
    Ok(word()?.zip(word()?).map(|(current, pending)| Mode { current, pending }))
}

/// The profiles of a GPU, smallest first. They are known also while MIG is off.
pub fn profiles(smi: &dyn Smi, gpu: u32) -> Result<Vec<Profile>, SmiError> {
    let index = gpu.to_string();
    let list = ["mig", "-i", &index, "-lgip"];
    let text = smi.run(&list)?;
    let places = places(smi, gpu)?;
    let mut found = Vec::new();
    for line in text.lines().filter(|line| line.contains(" MIG ")) {
        // | 0 MIG 3g.71gb 9 2/2 69.75 No 60 3 0 |
        let words: Vec<&str> = line.split_whitespace().filter(|word| *word != "|").collect();
        let [_, "MIG", name, id, _, _, _, multiprocessors, ..] = words[..] else {
            return Err(unreadable(&list, line));
        };
        let read = |word: &str| word.parse::<u32>().map_err(|_| unreadable(&list, line));
        let id = read(id)?;
        let Some((starts, size)) = places.get(&id).cloned() else { continue };
        let multiprocessors = read(multiprocessors)?;
        found.push(Profile { id, name: name.to_owned(), multiprocessors, starts, size });
    }
    Ok(found)
}

/// `GPU 0 Profile ID 14 Placements: {0,2,4}:2`, by the number of the profile.
fn places(smi: &dyn Smi, gpu: u32) -> Result<BTreeMap<u32, (Vec<u8>, u8)>, SmiError> {
    let index = gpu.to_string();
    let list = ["mig", "-i", &index, "-lgipp"];
    let text = smi.run(&list)?;
    let mut found = BTreeMap::new();
    for line in text.lines().filter(|line| line.contains("Profile ID")) {
        let read = || {
            let (head, rest) = line.split_once(':')?;
            let id = head.split_whitespace().rev().nth(1)?.parse().ok()?;
            let (starts, size) = rest.trim().strip_prefix('{')?.split_once("}:")?;
            let starts = starts.split(',').map(|start| start.trim().parse().ok());
            Some((id, (starts.collect::<Option<Vec<u8>>>()?, size.trim().parse().ok()?)))
        };
        let (id, places) = read().ok_or_else(|| unreadable(&list, line))?;
        found.insert(id, places);
    }
    Ok(found)
}

/// The instances of a GPU, by where they start. None while MIG is off.
pub fn instances(smi: &dyn Smi, gpu: u32) -> Result<Vec<Instance>, SmiError> {
    let index = gpu.to_string();
    let list = ["mig", "-i", &index, "-lgi"];
    let text = match smi.run(&list) {
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        text => text?,
    };
    let mut found = Vec::new();
    for line in text.lines().filter(|line| line.contains(" MIG ")) {
        // | 0 MIG 2g.35gb 14 4 2:2 |
        let words: Vec<&str> = line.split_whitespace().filter(|word| *word != "|").collect();
        let read = || {
            let [_, "MIG", profile, _, id, place] = words[..] else { return None };
            let (start, size) = place.split_once(':')?;
            let (start, size) = (start.parse().ok()?, size.parse().ok()?);
            let profile = profile.to_owned();
            Some(Instance { id: id.parse().ok()?, profile, start, size, uuid: None })
        };
        found.push(read().ok_or_else(|| unreadable(&list, line))?);
    }
    if !found.is_empty() {
        let devices = devices(smi, gpu)?;
        for instance in &mut found {
            instance.uuid = devices.get(&instance.id).cloned();
        }
    }
    found.sort_by_key(|instance| instance.start);
    Ok(found)
}

/// The UUIDs of MIG devices by their GPU instance. One list has the UUIDs in the order of the
/// devices, another the instances.
fn devices(smi: &dyn Smi, gpu: u32) -> Result<BTreeMap<u32, String>, SmiError> {
    let index = gpu.to_string();
    // It lists all GPUs, each followed by its MIG devices.
    let names = smi.run(&["-L"])?;
    let own = format!("GPU {gpu}:");
    let uuids: BTreeMap<u32, String> = names
        .lines()
        .skip_while(|line| !line.starts_with(&own))
        .skip(1)
        .take_while(|line| !line.starts_with("GPU "))
        .filter_map(|line| {
            // MIG 3g.71gb Device 0: (UUID: MIG-cd42b50d-...)
            let (head, rest) = line.trim().strip_prefix("MIG ")?.split_once(": (UUID: ")?;
            let number = head.split_whitespace().last()?.parse().ok()?;
            Some((number, rest.trim_end_matches(')').to_owned()))
        })
        .collect();
    let details = smi.run(&["-i", &index, "-q", "-x"])?;
    let mut found = BTreeMap::new();
    for device in details.split("<mig_device>").skip(1) {
        let number = |tag: &str| -> Option<u32> {
            let (_, rest) = device.split_once(&format!("<{tag}>"))?;
            rest.split_once(&format!("</{tag}>"))?.0.trim().parse().ok()
        };
        if let Some((number, instance)) = number("index").zip(number("gpu_instance_id"))
            && let Some(uuid) = uuids.get(&number)
        {
            found.insert(instance, uuid.clone());
        }
    }
    Ok(found)
}

fn unreadable(args: &[&str], line: &str) -> SmiError {
    SmiError::Unreadable { args: args.join(" "), line: line.trim().to_owned() }
}
