//! One look at the GPUs of the node and at who has them.

use crate::gpu::Gpu;
use crate::owners::{instances, owners};
use crate::page::{Told, page};
use berth_kube::PodDevices;
use berth_node::{Device, GpuFigures, Mig, MigPart, NvidiaSmi, ReadGpus};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// Finds MIG instances by their UUIDs.
trait Instances: Send {
    fn find(&self, uuids: &BTreeSet<String>, gpus: &BTreeSet<u32>) -> Vec<MigPart>;
}

/// As `nvidia-smi` lists them.
struct Listed(Mig);

impl Instances for Listed {
    fn find(&self, uuids: &BTreeSet<String>, gpus: &BTreeSet<u32>) -> Vec<MigPart> {
        self.0.parts(uuids, gpus)
    }
}

/// Looks again and again; how busy GPUs were is known between two looks.
pub struct Sampler {
    node: String,
    gpus: Vec<Gpu>,
    reader: Box<dyn ReadGpus>,
    instances: Box<dyn Instances>,
}

impl Sampler {
    pub fn new(node: String, devices: &[Device], reader: Box<dyn ReadGpus>) -> Sampler {
        // It makes and removes none, so it keeps nothing there.
        let mig = Mig::new(Path::new("/nonexistent"), Arc::new(NvidiaSmi));
        let instances = Box::new(Listed(mig));
        Sampler { node, gpus: devices.iter().map(Gpu::from).collect(), reader, instances }
    }

    /// The page of metrics. This blocks: the driver waits for the device.
    pub fn look(&mut self, pods: &[PodDevices]) -> String {
        let uuids = instances(pods);
        let numbers = self.gpus.iter().map(|gpu| gpu.index).collect();
        let parts = match uuids.is_empty() {
            true => Vec::new(),
            false => self.instances.find(&uuids, &numbers),
        };
        let figures = self.reader.read();
        let of_parts = match parts.is_empty() {
            true => Vec::new(),
            false => self.reader.read_parts(&parts),
        };
        let gpu = |index: u32| self.gpus.iter().find(|gpu| gpu.index == index);
        let told = |part, figures: &'_ GpuFigures, index| {
            gpu(index).map(|gpu| (gpu, part, figures.clone()))
        };
        let whole = figures.iter().filter_map(|one| told(None, one, one.index));
        let divided = parts.iter().zip(&of_parts);
        let divided = divided.filter_map(|(part, one)| told(Some(part), one, part.gpu));
        let all: Vec<_> = whole.chain(divided).collect();
        let all: Vec<Told<'_>> =
            all.iter().map(|(gpu, part, figures)| Told { gpu, part: *part, figures }).collect();
        page(&self.node, &all, &owners(pods, &self.gpus, &parts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::Bytes;
    use berth_node::{Activity, Declared, GpuReader, Player, RecordedGpu};

    /// Two instances on the first GPU.
    struct Two;

    impl Instances for Two {
        fn find(&self, uuids: &BTreeSet<String>, _: &BTreeSet<u32>) -> Vec<MigPart> {
            let part =
                |(instance, uuid): (u32, &String)| MigPart { gpu: 0, instance, uuid: uuid.clone() };
            (1..).zip(uuids).map(part).collect()
        }
    }

    fn pod(name: &str, device: &str) -> PodDevices {
        PodDevices {
            namespace: "ml".to_owned(),
            name: name.to_owned(),
            devices: vec![("nvidia.com/gpu".to_owned(), device.to_owned())],
            claimed: Vec::new(),
        }
    }

    #[test]
    fn gpus_and_instances_are_told_with_the_pods_that_have_them() {
        let gpu = RecordedGpu {
            figures: GpuFigures { memory_used: Some(Bytes::mib(900)), ..GpuFigures::default() },
            activity: vec![Some(Activity { sm: Some(30.0), ..Activity::default() })],
        };
        let player = Player::new(vec![gpu.clone(), gpu]).losing(1, 3);
        let declared: Declared = "2xH100".parse().unwrap();
        let reader = Box::new(GpuReader::new(player));
        let mut sampler = Sampler::new("a".to_owned(), &declared.devices(), reader);
        sampler.instances = Box::new(Two);
        let pods = [pod("half", "MIG-x"), pod("whole", "GPU-1")];
        let lines = |page: &str, name: &str| {
            let lines = page.lines().filter(|line| line.starts_with(name));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        let first = sampler.look(&pods);
        assert_eq!(lines(&first, "DCGM_FI_PROF_SM_ACTIVE"), [""; 0], "it takes two looks");
        let second = sampler.look(&pods);
        let active = lines(&second, "DCGM_FI_PROF_SM_ACTIVE");
        assert_eq!(active.len(), 3, "{second}");
        assert!(active[1].contains("gpu=\"1\"") && active[1].contains("pod=\"whole\""));
        assert!(active[2].contains("GPU_I_ID=\"1\"") && active[2].contains("pod=\"half\""));
        assert!(active.iter().all(|line| line.ends_with("} 0.300")), "{active:?}");
        let third = sampler.look(&[]);
        assert!(!third.contains("pod="), "{third}");
        assert!(lines(&sampler.look(&[]), "DCGM_FI_DEV_FB_USED").len() < 2, "one is gone");
    }
}
