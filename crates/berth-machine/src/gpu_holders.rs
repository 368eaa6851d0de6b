//! GPUs that are held by processes which no job explains: something that a job left behind when it
//! killed its supervisor, or that somebody started beside Berth. Such a GPU is not given away.

use crate::condition::Condition;
use crate::recovery::Seen;
use berth_engine::Inlet;
use berth_node::{Driver, GpuProcess, Gpus, Inventory, Mps, Probe, Stranger};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A process that has ended is listed for a moment longer.
const LOOKS: u32 = 4;
const PAUSE: Duration = Duration::from_millis(250);
/// How often the GPUs that are held are looked at again.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Tells which processes are on GPUs.
pub trait GpuUse: Send + Sync {
    fn processes(&self, gpus: &[u32]) -> Vec<GpuProcess>;
}

impl GpuUse for Probe {
    fn processes(&self, gpus: &[u32]) -> Vec<GpuProcess> {
        Probe::processes(self, gpus)
    }
}

pub struct GpuHolders {
    pub driver: Arc<Driver>,
    pub inventory: Arc<Inventory>,
    pub condition: Arc<Condition>,
    pub gpu_use: Arc<dyn GpuUse>,
    pub mps: Arc<Mps>,
}

impl GpuHolders {
    /// Who holds GPUs that a task is about to get. This blocks: the driver waits for the device.
    pub fn of(&self, gpus: &Gpus) -> Vec<Stranger> {
        let none = matches!(gpus, Gpus::Declared { .. }) || gpus.indices().is_empty();
        if none {
            return Vec::new();
        }
        let mut found = Vec::new();
        for look in 0..LOOKS {
            if look > 0 {
                std::thread::sleep(PAUSE);
            }
            let processes = self.gpu_use.processes(gpus.indices());
            found = self.driver.strangers(gpus, &processes, &self.mps);
            if found.is_empty() {
                break;
            }
        }
        found
    }

    /// Takes GPUs out of use. Returns the events of it.
    pub fn set_aside(&self, strangers: &[Stranger]) -> Vec<Seen> {
        let told = strangers.iter().map(|stranger| (stranger.gpu, stranger.to_string()));
        let new = self.condition.hold_gpus(told.collect());
        new.into_iter().filter_map(|gpu| self.seen(gpu, true)).collect()
    }

    /// Puts GPUs back into use that nobody holds any more.
    fn put_back(&self) -> Vec<Seen> {
        let held = self.condition.held_gpus();
        if held.is_empty() {
            return Vec::new();
        }
        let gpus = Gpus::Real { indices: held.keys().copied().collect(), uuids: Vec::new() };
        let found = self.gpu_use.processes(gpus.indices());
        let strangers = self.driver.strangers(&gpus, &found, &self.mps);
        let still: BTreeMap<u32, String> =
            strangers.iter().map(|stranger| (stranger.gpu, stranger.to_string())).collect();
        let free: Vec<u32> = held.keys().filter(|gpu| !still.contains_key(gpu)).copied().collect();
        self.condition.hold_gpus(still);
        self.condition.free_gpus(&free);
        // What has failed meanwhile stays out of use.
        let free = free.into_iter().filter(|gpu| !self.condition.is_out_of_use(*gpu));
        free.filter_map(|gpu| self.seen(gpu, false)).collect()
    }

    /// The core counts GPUs in the order of the inventory.
    fn seen(&self, index: u32, held: bool) -> Option<Seen> {
        let at = self.inventory.devices.iter().position(|device| device.index == index)?;
        Some(Seen::Gpu { gpu: u32::try_from(at).ok()?, held })
    }
}

/// Looks at GPUs that are held until they are free.
pub async fn look_around(holders: Arc<GpuHolders>, inlet: Inlet<Seen>) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let looking = holders.clone();
        let seen = tokio::task::spawn_blocking(move || looking.put_back()).await;
        for seen in seen.unwrap_or_default() {
            inlet.site(seen).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_node::{Known, Launcher, Limits, NvidiaMps, Options, Wanted};
    use std::sync::Mutex;

    /// A library that says what the test wants.
    #[derive(Default)]
    struct Fake(Mutex<Vec<GpuProcess>>);

    impl GpuUse for Fake {
        fn processes(&self, _: &[u32]) -> Vec<GpuProcess> {
            self.0.lock().unwrap().clone()
        }
    }

    fn holders(root: &std::path::Path, fake: Arc<Fake>) -> GpuHolders {
        let launcher = Launcher { exe: "/bin/true".into(), args: Vec::new() };
        let driver =
            Driver::open(root, launcher, Options { cgroups: false, isolation: Wanted::Off })
                .unwrap();
        let declared = "2xL4".parse().unwrap();
        let limits = Limits::default();
        let mut inventory =
            Inventory::read("box", Some(&declared), &Probe::none(), &Known::default(), limits);
        for (at, device) in inventory.devices.iter_mut().enumerate() {
            device.uuid = Some(format!("GPU-{at}"));
        }
        GpuHolders {
            driver: Arc::new(driver),
            inventory: Arc::new(inventory),
            condition: Arc::default(),
            gpu_use: fake,
            mps: Arc::new(Mps::new(root, Arc::new(NvidiaMps))),
        }
    }

    fn real(indices: &[u32]) -> Gpus {
        Gpus::Real { indices: indices.to_vec(), uuids: Vec::new() }
    }

    #[test]
    fn a_gpu_that_a_stranger_holds_is_out_of_use_until_the_stranger_is_gone() {
        let root = tempfile::tempdir().unwrap();
        let fake = Arc::new(Fake::default());
        let holders = holders(root.path(), fake.clone());
        assert_eq!(holders.of(&real(&[0, 1])), []);

        // This process is no task of the driver's.
        let pid = std::process::id();
        *fake.0.lock().unwrap() = vec![GpuProcess { gpu: 1, pid }];
        assert_eq!(holders.of(&real(&[0])), [], "another GPU is none of its business");
        let found = holders.of(&real(&[0, 1]));
        assert_eq!(
            found.iter().map(|stranger| (stranger.gpu, stranger.pid)).collect::<Vec<_>>(),
            [(1, pid)]
        );
        assert_eq!(holders.set_aside(&found), [Seen::Gpu { gpu: 1, held: true }]);
        assert_eq!(holders.set_aside(&found), [], "it is said once");
        let told = holders.condition.held_gpu(1).unwrap();
        assert!(told.starts_with(&format!("GPU 1 is held by process {pid} (")), "{told}");
        assert_eq!(holders.put_back(), []);

        fake.0.lock().unwrap().clear();
        assert_eq!(holders.put_back(), [Seen::Gpu { gpu: 1, held: false }]);
        assert_eq!((holders.condition.held_gpu(1), holders.put_back()), (None, Vec::new()));
    }

    #[test]
    fn a_gpu_that_failed_meanwhile_stays_out_of_use() {
        let root = tempfile::tempdir().unwrap();
        let fake = Arc::new(Fake::default());
        let holders = holders(root.path(), fake.clone());
        *fake.0.lock().unwrap() = vec![GpuProcess { gpu: 0, pid: std::process::id() }];
        let found = holders.of(&real(&[0]));
        holders.set_aside(&found);
        holders.condition.gpu_failed(0, "XID 79".to_owned());
        fake.0.lock().unwrap().clear();
        assert_eq!(holders.put_back(), []);
    }

    #[test]
    fn declared_gpus_are_held_by_nobody() {
        let root = tempfile::tempdir().unwrap();
        let fake = Arc::new(Fake::default());
        let holders = holders(root.path(), fake.clone());
        *fake.0.lock().unwrap() = vec![GpuProcess { gpu: 0, pid: std::process::id() }];
        assert_eq!(holders.of(&Gpus::Declared { indices: vec![0] }), []);
    }
}
