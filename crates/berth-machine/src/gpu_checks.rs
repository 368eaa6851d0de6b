//! Checks of GPUs before they take work: of one that is put back, and of those that owe a check when
//! the server starts, because they are new on this machine or had failed. A GPU is out of use while
//! it is checked.

use crate::condition::Condition;
use crate::gpu_faults::FaultSource;
use crate::gpu_holders::GpuHolders;
use crate::recovery::Seen;
use berth_engine::{Inlet, clock};
use berth_model::Health;
use berth_node::{
    Check, CheckBook, Checked, Device, GpuRecording, Gpus, Inventory, Launcher, can_be_checked,
    check_gpu,
};
use std::sync::Arc;
use std::time::Duration;

/// Between two looks at a GPU that tasks of an earlier server still hold.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Whether GPUs that owe a check are checked when the server starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CheckAtStart {
    #[default]
    New,
    Never,
}

pub struct GpuChecks {
    pub book: CheckBook,
    pub launcher: Launcher,
    pub inventory: Arc<Inventory>,
    pub condition: Arc<Condition>,
    pub faults: FaultSource,
    /// What declared GPUs tell, where a file says so.
    pub recording: Option<GpuRecording>,
    pub holders: Arc<GpuHolders>,
}

/// What came of a check, as far as it was made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Outcome {
    /// Why the GPU takes no work.
    pub refused: Option<String>,
    /// Nothing where there was nothing to check.
    pub check: Option<Check>,
}

impl Outcome {
    fn refused(why: String) -> Outcome {
        Outcome { refused: Some(why), check: None }
    }
}

/// Takes GPUs that owe a check out of use, before the scheduler hears of them.
pub fn hold_back(
    book: &CheckBook,
    inventory: &mut Inventory,
    condition: &Condition,
    recording: Option<&GpuRecording>,
) {
    let Inventory { devices, node, .. } = inventory;
    for (device, spec) in devices.iter().zip(&mut node.gpus) {
        let Some(why) = book.owed(device).filter(|_| device.health == Health::Ok) else { continue };
        let played = recording.and_then(|recording| recording.check(device.index));
        if can_be_checked(device, played.as_ref()) {
            spec.health = Health::Failed;
            condition.begin_check(device.index, why);
        }
    }
}

impl GpuChecks {
    pub(crate) fn device(&self, index: u32) -> Option<&Device> {
        self.inventory.devices.iter().find(|device| device.index == index)
    }

    /// It is checked before it takes work, by this server or the next.
    pub(crate) fn owe(&self, index: u32, why: &str) {
        if let Some(device) = self.device(index) {
            self.book.owe(device, why);
        }
    }

    /// Checks a GPU and, if it is well, lets it take work again. This blocks.
    pub(crate) fn put_back(&self, index: u32, check: bool) -> Outcome {
        let Some(device) = self.device(index) else {
            return Outcome::refused(format!("there is no GPU {index}"));
        };
        let why = self.condition.failed_gpu(index).unwrap_or_else(|| "it is put back".to_owned());
        if !self.condition.begin_check(index, why.clone()) {
            return Outcome::refused(format!("GPU {index} is being checked already"));
        }
        let outcome = self.judge(device, check);
        // What was wrong is wrong still where nothing was found out.
        let failed = outcome.refused.clone().map(|refused| match &outcome.check {
            Some(check) => check.why.clone().unwrap_or(refused),
            None => why,
        });
        self.finish(device, outcome, failed)
    }

    fn judge(&self, device: &Device, check: bool) -> Outcome {
        let index = device.index;
        if let Some(fault) = self.faults.now(index) {
            return Outcome::refused(format!("GPU {index} is still ill, {}", fault.words()));
        }
        if !check {
            return Outcome::default();
        }
        let gpus = match &device.uuid {
            Some(uuid) => Gpus::Real { indices: vec![index], uuids: vec![uuid.clone()] },
            None => Gpus::Declared { indices: vec![index] },
        };
        if let Some(stranger) = self.holders.of(&gpus).first() {
            return Outcome::refused(format!("{stranger}, and a check needs the GPU for itself"));
        }
        let played = self.recording.as_ref().and_then(|recording| recording.check(index));
        let step = |doing: &str| tracing::info!(gpu = index, doing, "checking a GPU");
        let Some(check) = check_gpu(&self.launcher, device, played, step) else {
            return Outcome::default();
        };
        self.book.note(device, Checked { at: clock::now(), check: check.clone() });
        let refused = check
            .why
            .as_ref()
            .filter(|_| !check.passed)
            .map(|why| format!("GPU {index} did not pass its check: {why}"));
        Outcome { refused, check: Some(check) }
    }

    /// Ends a check. A fault that came meanwhile keeps the GPU out of use.
    fn finish(&self, device: &Device, outcome: Outcome, failed: Option<String>) -> Outcome {
        let index = device.index;
        match self.condition.end_check(index, failed) {
            None => {
                self.book.settle(device);
                outcome
            }
            Some(now) => {
                self.book.owe(device, &now);
                let refused = outcome.refused.or(Some(format!("GPU {index} has failed, {now}")));
                Outcome { refused, ..outcome }
            }
        }
    }
}

/// Checks the GPUs that were held back, one after another, beside everything else.
pub(crate) async fn check_held_back(checks: Arc<GpuChecks>, inlet: Inlet<Seen>) {
    for index in checks.condition.checking_gpus() {
        let checking = checks.clone();
        let done = tokio::task::spawn_blocking(move || {
            let device = checking.device(index)?;
            // What an earlier server has left on it ends first.
            while checking.holders.driver.held_gpus().contains(&index) {
                std::thread::sleep(LOOK_EVERY);
            }
            let outcome = checking.judge(device, true);
            let failed = outcome.refused.clone().map(|refused| match &outcome.check {
                Some(check) => check.why.clone().unwrap_or(refused),
                None => refused,
            });
            Some(checking.finish(device, outcome, failed))
        });
        let Ok(Some(outcome)) = done.await else { continue };
        let Outcome { refused, check } = outcome;
        let figures = check.map(|check| check.to_string()).unwrap_or_default();
        let told = match &refused {
            Some(why) => why.clone(),
            None => format!("passed, {figures}"),
        };
        match &refused {
            Some(why) => tracing::error!(gpu = index, why, "a GPU stays out of use"),
            None => tracing::info!(gpu = index, figures, "a GPU has passed its check"),
        }
        inlet.site(Seen::GpuChecked { gpu: index, passed: refused.is_none(), told }).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu_holders::GpuUse;
    use berth_node::{Driver, GpuProcess, Known, Limits, Mps, NvidiaMps, Options, Probe, Wanted};

    struct Nobody;

    impl GpuUse for Nobody {
        fn processes(&self, _: &[u32]) -> Vec<GpuProcess> {
            Vec::new()
        }
    }

    fn checks(root: &std::path::Path, told: &str) -> GpuChecks {
        let file = root.join("gpus.json");
        std::fs::write(&file, told).unwrap();
        let launcher = Launcher { exe: "/bin/false".into(), args: Vec::new() };
        let options = Options { cgroups: false, isolation: Wanted::Off };
        let driver = Arc::new(Driver::open(root, launcher.clone(), options).unwrap());
        let declared = "2xL4".parse().unwrap();
        let (probe, known) = (Probe::none(), Known::default());
        let inventory =
            Arc::new(Inventory::read("box", Some(&declared), &probe, &known, Limits::default()));
        let condition = Arc::<Condition>::default();
        let recording = GpuRecording::open(&file, 2).unwrap();
        GpuChecks {
            book: CheckBook::open(root, &inventory.devices),
            launcher,
            inventory: inventory.clone(),
            condition: condition.clone(),
            faults: FaultSource::Recording(recording.clone()),
            recording: Some(recording),
            holders: Arc::new(GpuHolders {
                driver,
                inventory,
                condition,
                gpu_use: Arc::new(Nobody),
                mps: Arc::new(Mps::new(root, Arc::new(NvidiaMps))),
            }),
        }
    }

    #[test]
    fn a_helper_that_ends_without_an_answer_keeps_the_gpu_out_of_use() {
        let root = tempfile::tempdir().unwrap();
        let checks = checks(root.path(), r#"[{"check": {}}]"#);
        checks.condition.gpu_failed(0, "XID 79".to_owned());
        let outcome = checks.put_back(0, true);
        let why = outcome.refused.unwrap();
        assert!(why.starts_with("GPU 0 did not pass its check: the check ended early"), "{why}");
        let failed = checks.condition.failed_gpu(0).unwrap();
        assert!(failed.starts_with("the check ended early"), "{failed}");
        assert!(checks.book.owed(&checks.inventory.devices[0]).is_some());

        // Whoever knows better puts it back as it is.
        assert_eq!(checks.put_back(0, false), Outcome::default());
        assert_eq!(checks.condition.failed_gpu(0), None);
        assert_eq!(checks.book.owed(&checks.inventory.devices[0]), None);
    }

    #[test]
    fn one_check_of_a_gpu_at_a_time() {
        let root = tempfile::tempdir().unwrap();
        let checks = checks(root.path(), "[]");
        assert!(checks.condition.begin_check(0, "it is new".to_owned()));
        let refused = checks.put_back(0, true).refused.unwrap();
        assert_eq!(refused, "GPU 0 is being checked already");
        assert_eq!(checks.condition.checking_gpu(0), Some("it is new".to_owned()));
    }

    #[test]
    fn a_gpu_that_fails_while_it_is_checked_stays_out_of_use() {
        let root = tempfile::tempdir().unwrap();
        let checks = checks(root.path(), "[]");
        let device = &checks.inventory.devices[0];
        assert!(checks.condition.begin_check(0, "XID 79".to_owned()));
        assert!(checks.condition.gpu_failed(0, "XID 48".to_owned()), "that is news");
        let outcome = checks.finish(device, Outcome::default(), None);
        assert_eq!(outcome.refused.as_deref(), Some("GPU 0 has failed, XID 48"));
        assert_eq!(checks.condition.failed_gpu(0), Some("XID 48".to_owned()));
    }
}
