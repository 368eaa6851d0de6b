//! Checks at submission what of a job file pods can do.

use super::ManagedJobs;
use crate::constraints::devices;
use crate::constraints::is_there;
use crate::state::nodes::Nodes;
use crate::tenancy::namespace;
use berth_api::Code;
use berth_engine::Core;
use berth_file::job::{Container, JobFile, Refused, Warning};
use berth_model::{DataRef, GpuAsk, GroupSpec, JobId, JobRequest, Name, Reason, Time};
use berth_service::host::{IncompleteGang, MeasuredGpu};
use berth_service::{Book, Fault, JobHost};
use std::collections::BTreeSet;

impl JobHost for ManagedJobs {
    fn runs_containers(&self) -> bool {
        true
    }

    fn fetches_data(&self) -> bool {
        true
    }

    fn keeps_checkpoints(&self) -> bool {
        self.settings.checkpoints.is_some()
    }

    fn shared_gpus(&self) -> Vec<(Name, GpuAsk)> {
        self.look(Nodes::shares)
    }

    fn figures(&self) -> Option<&Book> {
        self.figures.as_ref().map(|figures| figures.book())
    }

    fn chooses_gpus(&self) -> bool {
        false
    }

    fn measured_gpu(&self, node: &str, index: u32) -> Option<MeasuredGpu> {
        self.figures.as_ref()?.gpu(node, index)
    }

    fn why_not_measured(&self, node: &str) -> Option<String> {
        self.figures.as_ref()?.why_not(node)
    }

    fn refine(
        &self,
        core: &Core,
        job: Option<JobId>,
        groups: &[GroupSpec],
        reasons: Vec<Reason>,
    ) -> Vec<Reason> {
        self.state.read(|state| state.refine(core, job, groups, reasons))
    }

    fn incomplete_gangs(&self, now: Time) -> Vec<IncompleteGang> {
        let gangs = self.state.read(|state| state.incomplete_gangs(now));
        let shown = gangs.into_iter().map(|gang| IncompleteGang {
            why: gang.reason(),
            namespace: gang.namespace,
            name: gang.name,
            queue: gang.queue,
            since: gang.since,
            pods: gang.pods,
            needed: gang.needed,
        });
        shown.collect()
    }

    fn must_take_jobs(&self) -> Result<(), Fault> {
        if !self.settings.are_off {
            return Ok(());
        }
        let detail = "this server schedules the pods of its cluster and takes no jobs of its own";
        let next = "submit pods with `kubectl`, or have an admin switch Berth's own jobs on: \
                    `jobs.enabled` of the Helm chart, or the server without --no-jobs";
        Err(Fault::new(Code::NotHere, detail).next(next))
    }

    /// Makes it a job that runs in containers.
    fn accept(
        &self,
        file: &JobFile,
        team: &str,
        request: &mut JobRequest,
        warnings: &mut Vec<Warning>,
    ) -> Result<(), Refused> {
        let refuse = |key, message: String| Err(Refused { key, message });
        let Some(image) = file.image.clone().or_else(|| self.settings.image.clone()) else {
            let message = "jobs run in containers here; name an image, such as \
                           `image: pytorch/pytorch`, or give the server one with --image";
            return refuse("image", message.to_owned());
        };
        if file.code.is_some()
            && let Err(message) = self.settings.fetch.check()
        {
            return refuse("code", message);
        }
        let asks = request.groups.first().map(|group| group.gpus.clone()).unwrap_or_default();
        let mut labels = self.plain.clone();
        if let Some(kind) = devices::kind(&asks) {
            // Of whole ones the scheduler says more.
            if !asks.is_whole()
                && let Some(message) = not_handed_out(&kind, &self.look(Nodes::kinds))
            {
                return refuse("gpus", message);
            }
            labels.clone_from(&self.with_gpus);
            labels.extend([is_there(kind)]);
        }
        let run = request.workload.run();
        if run.is_some_and(|run| run.data.values().any(|source| DataRef::is_meant(source)))
            && let Err(message) = self.settings.fetch.check()
        {
            return refuse("data", message);
        }
        request.require_labels(&labels);
        let Some(run) = request.run_mut() else { return Ok(()) };
        for (key, all) in [("volumes", &run.volumes), ("data", &run.data)] {
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
            warnings.push(Warning { key: "checkpoint", message: message.to_owned() });
        }
        let namespace = namespace(&self.settings, team);
        let pull_secrets = file.pull_secrets.clone();
        run.container = Some(Container { image, namespace, pull_secrets });
        Ok(())
    }
}

/// The refusal of a part of a GPU that no node hands out.
fn not_handed_out(kind: &Name, kinds: &BTreeSet<Name>) -> Option<String> {
    if kinds.contains(kind) {
        return None;
    }
    let whole = devices::kind(&GpuAsk::Whole { count: 1 });
    let word = |kind: &Name| match whole.as_ref() == Some(kind) {
        true => "whole GPUs".to_owned(),
        false => kind.to_string(),
    };
    let all: Vec<String> = kinds.iter().map(word).collect();
    let there = if all.is_empty() { "no GPUs at all".to_owned() } else { all.join(", ") };
    Some(format!(
        "it needs {}, which no node hands out; ask for what nodes do hand out ({there}), or have \
         an admin set one up for it",
        word(kind)
    ))
}

fn is_claim(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    !name.is_empty() && name.len() <= 253 && name.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_no_node_has_is_refused_with_what_they_have() {
        let part = GpuAsk::Fraction { milli: berth_model::Milli(500), count: 1 };
        let slice = GpuAsk::TimeSlice { of: 4, count: 1 };
        let kind = |ask: &GpuAsk| devices::kind(ask).unwrap();
        let check = |ask: &GpuAsk, there: &[&GpuAsk]| {
            not_handed_out(&kind(ask), &there.iter().map(|ask| kind(ask)).collect())
        };
        assert_eq!(check(&slice, &[&slice]), None);
        assert_eq!(check(&part, &[&slice, &part]), None);
        let why = check(&part, &[&slice]).unwrap();
        assert!(why.starts_with("it needs whole GPUs"), "{why}");
        assert!(why.contains("(time slices of 4)"), "{why}");
        assert!(check(&slice, &[]).unwrap().contains("(no GPUs at all)"));
    }
}
