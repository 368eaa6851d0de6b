//! What of a job file can be done with pods, said while somebody looks.

use super::{Jobs, namespace};
use crate::http::answer::Fault;
use berth_api::Code;
use berth_file::job::{Container, JobFile, Lowered, Refused, Warning};
use berth_model::{GpuAsk, JobId};

impl Jobs {
    /// Whether jobs are taken at all.
    pub fn must_be_on(&self) -> Result<(), Fault> {
        if !self.settings.are_off {
            return Ok(());
        }
        let detail = "this server schedules the pods of its cluster and takes no jobs of its own";
        let next = "submit pods with `kubectl`, or have an admin switch Berth's own jobs on: \
                    `jobs.enabled` of the Helm chart, or the server without --no-jobs";
        Err(Fault::new(Code::NotHere, detail).next(next))
    }

    /// Makes it a job that runs in containers.
    pub fn accept(&self, file: &JobFile, team: &str, lowered: &mut Lowered) -> Result<(), Refused> {
        let refuse = |key, message: String| Err(Refused { key, message });
        let Some(image) = file.image.clone().or_else(|| self.settings.image.clone()) else {
            let message = "jobs run in containers here; name an image, such as \
                           `image: pytorch/pytorch`, or give the server one with --image";
            return refuse("image", message.to_owned());
        };
        let spec = lowered.spec(JobId::new(0));
        let asks = spec.groups.first().map(|group| group.gpus.clone()).unwrap_or_default();
        let labels = match asks {
            GpuAsk::None => &self.plain,
            GpuAsk::Whole { .. } => &self.with_gpus,
            _ => {
                let message = "parts of GPUs are not given to jobs on Kubernetes yet; ask for \
                               whole ones";
                return refuse("gpus", message.to_owned());
            }
        };
        lowered.only_on(labels);
        for (key, all) in [("volumes", &lowered.run.volumes), ("data", &lowered.run.data)] {
            for claim in all.values() {
                if key == "data" && claim.contains(':') {
                    continue;
                }
                if !is_claim(claim) {
                    let message = format!(
                        "`{claim}` is no claim; name a PersistentVolumeClaim in the namespace {}",
                        namespace(&self.settings, team)
                    );
                    return refuse(key, message);
                }
            }
        }
        if file.checkpoint.is_some() && self.settings.checkpoints.is_none() {
            let message = "nothing keeps what it saves: this server was started without \
                           --checkpoints, so it begins anew after it was stopped";
            lowered.warnings.push(Warning { key: "checkpoint", message: message.to_owned() });
        }
        let namespace = namespace(&self.settings, team);
        lowered.run.container = Some(Container { image, namespace });
        Ok(())
    }
}

fn is_claim(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    !name.is_empty() && name.len() <= 253 && name.chars().all(plain)
}
