//! An H200 as `nvidia-smi` shows it, played from what was captured on one: the lists are in the form
//! of the captured ones, the refusals in their words and with their codes.

use super::smi::{Smi, SmiError};
use std::fmt::Write;
use std::sync::Mutex;

const PROFILES: &str = include_str!("captured/lgip.txt");
const PLACES: &str = include_str!("captured/lgipp.txt");

/// Number, name, size in memory slices, compute slices.
const SIZES: [(u32, &str, u8, u8); 7] = [
    (19, "1g.18gb", 1, 1),
    (20, "1g.18gb+me", 1, 1),
    (15, "1g.35gb", 2, 1),
    (14, "2g.35gb", 2, 2),
    (9, "3g.71gb", 4, 3),
    (5, "4g.71gb", 4, 4),
    (0, "7g.141gb", 8, 7),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Played {
    pub id: u32,
    pub profile: u32,
    pub start: u8,
    /// Whether it has a compute instance.
    pub has_compute: bool,
    pub is_open: bool,
}

#[derive(Debug, Default)]
pub struct Card {
    pub is_on: bool,
    pub instances: Vec<Played>,
    next: u32,
    pub calls: Vec<String>,
    /// Fails the call with this number, counted from one: the server was killed before it.
    pub dies_at: Option<usize>,
}

#[derive(Debug, Default)]
pub struct Player(pub Mutex<Card>);

fn refused(args: &[&str], code: i32, told: &str) -> SmiError {
    SmiError::Refused { args: args.join(" "), code: Some(code), told: told.to_owned() }
}

fn size(profile: u32) -> (&'static str, u8, u8) {
    let found = SIZES.iter().find(|(id, ..)| *id == profile).expect("a known profile");
    (found.1, found.2, found.3)
}

impl Card {
    fn list(&self, args: &[&str]) -> Result<String, SmiError> {
        if self.instances.is_empty() {
            return Err(refused(args, 6, "No GPU instances found: Not Found"));
        }
        let mut text =
            String::from("| GPU   Name               Profile  Instance   Placement  |\n");
        let mut all = self.instances.clone();
        all.sort_by_key(|one| one.start);
        for one in all {
            let (name, size, _) = size(one.profile);
            let place = format!("{}:{size}", one.start);
            let _ = writeln!(
                text,
                "|   0  MIG {name:<17} {:>3} {:>8} {place:>12}     |\n+----+",
                one.profile, one.id
            );
        }
        Ok(text)
    }

    fn with_compute(&self) -> impl Iterator<Item = (usize, &Played)> {
        self.instances.iter().filter(|one| one.has_compute).enumerate()
    }

    fn make(&mut self, args: &[&str], place: &str) -> Result<String, SmiError> {
        let (profile, start) = place.split_once(':').expect("a place is named");
        let (profile, start): (u32, u8) = (profile.parse().unwrap(), start.parse().unwrap());
        let (name, length, compute) = size(profile);
        let overlaps = |one: &Played| {
            let (_, other, _) = size(one.profile);
            one.start < start + length && start < one.start + other
        };
        let used: u8 = self.instances.iter().map(|one| size(one.profile).2).sum();
        if !self.is_on || self.instances.iter().any(overlaps) || used + compute > 7 {
            let told = format!(
                "Unable to create a GPU instance on GPU  0 using profile {place}: Insufficient Resources"
            );
            return Err(refused(args, 23, &told));
        }
        self.next += 1;
        let id = self.next;
        self.instances.push(Played { id, profile, start, has_compute: true, is_open: false });
        Ok(format!(
            "Successfully created GPU instance ID  {id} on GPU  0 using profile MIG {name} (ID {profile})"
        ))
    }

    fn destroy(&mut self, args: &[&str], what: &str, id: u32) -> Result<String, SmiError> {
        let missing = refused(args, 6, "No GPU instances found: Not Found");
        let at = self.instances.iter().position(|one| one.id == id).ok_or(missing)?;
        let one = &mut self.instances[at];
        if one.is_open || what == "-dgi" && one.has_compute {
            let told = format!(
                "Unable to destroy GPU instance ID  {id} from GPU  0: In use by another client"
            );
            return Err(refused(args, 19, &told));
        }
        if what == "-dci" {
            if !one.has_compute {
                return Err(refused(args, 6, "No compute instances found: Not Found"));
            }
            one.has_compute = false;
        } else {
            self.instances.remove(at);
        }
        Ok("Successfully destroyed".to_owned())
    }
}

impl Smi for Player {
    fn run(&self, args: &[&str]) -> Result<String, SmiError> {
        let mut card = self.0.lock().unwrap();
        card.calls.push(args.join(" "));
        if card.dies_at == Some(card.calls.len()) {
            return Err(refused(args, 999, "killed"));
        }
        match args {
            ["-i", "0", query, _] if query.starts_with("--query-gpu=mig") => {
                let word = if card.is_on { "Enabled" } else { "Disabled" };
                Ok(format!("{word}, {word}"))
            }
            ["-i", "0", "-mig", "1"] => {
                card.is_on = true;
                Ok("Enabled MIG Mode for GPU 00000000:00:06.0\nAll done.".to_owned())
            }
            ["-i", "0", "-mig", "0"] => {
                if card.instances.iter().any(|one| one.is_open) {
                    return Err(refused(
                        args,
                        19,
                        "Unable to disable MIG Mode: In use by another client",
                    ));
                }
                assert!(card.instances.is_empty(), "instances are lost");
                card.is_on = false;
                Ok("Disabled MIG Mode for GPU 00000000:00:06.0\nAll done.".to_owned())
            }
            ["mig", "-i", "0", "-lgip"] => Ok(PROFILES.to_owned()),
            ["mig", "-i", "0", "-lgipp"] => Ok(PLACES.to_owned()),
            ["mig", "-i", "0", "-lgi"] if !card.is_on => {
                Ok("No MIG-enabled devices found.".to_owned())
            }
            ["mig", "-i", "0", "-lgi"] => card.list(args),
            ["mig", "-i", "0", "-cgi", place, "-C"] => card.make(args, place),
            ["mig", "-i", "0", what @ ("-dci" | "-dgi"), "-gi", id] => {
                card.destroy(args, what, id.parse().unwrap())
            }
            ["-L"] => {
                let mut text = String::from("GPU 0: NVIDIA H200 (UUID: GPU-bffe)\n");
                for (number, one) in card.with_compute() {
                    let name = size(one.profile).0;
                    let _ =
                        writeln!(text, "  MIG {name}     Device  {number}: (UUID: MIG-{})", one.id);
                }
                Ok(text)
            }
            ["-i", "0", "-q", "-x"] => {
                let mut text = String::new();
                for (number, one) in card.with_compute() {
                    let _ = write!(
                        text,
                        "<mig_device>\n\t<index>{number}</index>\n\
                         \t<gpu_instance_id>{}</gpu_instance_id>\n</mig_device>\n",
                        one.id
                    );
                }
                Ok(text)
            }
            other => panic!("nobody asks for {other:?}"),
        }
    }
}
