//! The environment contract: which variables a process finds.
//!
//! There are two layers. Defaults are what frameworks read to find each other; a user who sets
//! one of them knows better. Facts are what Berth has decided (the job's number, its GPUs, a
//! process's rank); a user's value there would be a lie.

use crate::task::{Gpus, Launch, TaskSpec};
use std::collections::BTreeMap;
use std::path::Path;

type Variables = BTreeMap<String, String>;

/// The variables of the process with that local rank: defaults, the user's own, facts, in rising
/// order of who wins. `own` is the folder that the task can write to, `notices` the one where it is
/// told that it has to stop.
pub fn environment(spec: &TaskSpec, own: &Path, notices: &Path, local_rank: u32) -> Variables {
    let mut all = defaults(spec);
    all.extend(spec.env.clone());
    all.extend(job_facts(spec, own, notices));
    all.extend(gpu_facts(&spec.gpus));
    if let Launch::Ranks { count } = spec.launch {
        all.extend(rank_facts(spec, count, local_rank));
    }
    all
}

fn put(into: &mut Variables, name: &str, value: impl ToString) {
    into.insert(name.to_owned(), value.to_string());
}

fn put_path(into: &mut Variables, name: &str, value: Option<&Path>) {
    if let Some(path) = value {
        put(into, name, path.display());
    }
}

fn defaults(spec: &TaskSpec) -> Variables {
    let mut all = Variables::new();
    let gang = &spec.gang;
    put(&mut all, "MASTER_ADDR", &gang.master_addr);
    put(&mut all, "MASTER_PORT", gang.master_port);
    put(&mut all, "PET_NNODES", gang.hosts.len());
    put(&mut all, "PET_NPROC_PER_NODE", processes_per_node(spec));
    put(&mut all, "PET_NODE_RANK", gang.node_rank);
    put(&mut all, "PET_RDZV_BACKEND", "c10d");
    put(&mut all, "PET_RDZV_ENDPOINT", format!("{}:{}", gang.master_addr, gang.master_port));
    // With the attempt, so that a process left over from the last one cannot join this one.
    put(&mut all, "PET_RDZV_ID", format!("{}-{}", spec.lease.job, spec.lease.attempt));
    put(&mut all, "PET_MASTER_ADDR", &gang.master_addr);
    put(&mut all, "PET_MASTER_PORT", gang.master_port);
    // Without it torchrun kills its ranks 30 s after TERM, in the middle of a longer checkpoint.
    put(&mut all, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT", spec.grace.as_secs().max(1));
    // NCCL connects ranks of one host by abstract sockets and shared memory, which sandboxes of
    // different tasks do not share.
    if spec.confine.is_some() {
        put(&mut all, "NCCL_HOSTID", format!("{}-{}", spec.lease.job, spec.lease.task));
    }
    if let Some(run) = &spec.run {
        put(&mut all, "WANDB_RUN_ID", run);
        put(&mut all, "WANDB_RESUME", "allow");
    }
    all
}

/// What a bare `torchrun` is to start: as many as it was asked for, otherwise one for each GPU.
fn processes_per_node(spec: &TaskSpec) -> u32 {
    match spec.launch {
        Launch::Ranks { count } | Launch::Torchrun { count } => count,
        Launch::Once => u32::try_from(spec.gpus.indices().len()).unwrap_or(u32::MAX).max(1),
    }
}

fn job_facts(spec: &TaskSpec, own: &Path, notices: &Path) -> Variables {
    let mut all = Variables::new();
    let (lease, gang) = (spec.lease, &spec.gang);
    put(&mut all, "BERTH_JOB_ID", lease.job);
    put(&mut all, "BERTH_JOB_NAME", &spec.name);
    put(&mut all, "BERTH_TASK", lease.task);
    put(&mut all, "BERTH_ATTEMPT", lease.attempt);
    put(&mut all, "BERTH_TASK_DIR", own.display());
    // The request to stop is itself the file that appears before a preemption.
    put(&mut all, "BERTH_PREEMPT_FILE", notices.join("stop.json").display());
    put_path(&mut all, "BERTH_CHECKPOINT_DIR", spec.checkpoint.as_deref());
    put_path(&mut all, "BERTH_RESUME_FROM", spec.resume_from.as_deref());
    put_path(&mut all, "BERTH_MODEL_DIR", spec.model.as_deref());
    // An integer even for an element of an array: Lightning crashes on anything else.
    put(&mut all, "SLURM_JOB_ID", lease.job.number);
    put(&mut all, "SLURM_JOBID", lease.job.number);
    if let Some(element) = lease.job.element {
        put(&mut all, "SLURM_ARRAY_JOB_ID", lease.job.number);
        put(&mut all, "SLURM_ARRAY_TASK_ID", element);
    }
    put(&mut all, "SLURM_JOB_NAME", slurm_name(&spec.name));
    put(&mut all, "SLURM_JOB_NUM_NODES", gang.hosts.len());
    put(&mut all, "SLURM_JOB_NODELIST", gang.hosts.join(","));
    put(&mut all, "SLURM_GPUS_ON_NODE", spec.gpus.indices().len());
    put(&mut all, "SLURM_RESTART_COUNT", lease.attempt);
    put(&mut all, "SLURM_SUBMIT_DIR", spec.directory.display());
    put(&mut all, "SLURM_JOB_PARTITION", &spec.queue);
    put(&mut all, "SLURM_JOB_ACCOUNT", &spec.team);
    put_path(&mut all, "SLURM_TMPDIR", spec.scratch.as_deref());
    if let Some(end) = spec.ends_at {
        put(&mut all, "SLURM_JOB_END_TIME", end.0 / 1_000);
    }
    if let Some(cpu) = spec.cpu {
        let cores = cpu.0 / 1_000 / i64::from(spec.processes().max(1));
        put(&mut all, "SLURM_CPUS_PER_TASK", cores.max(1));
    }
    if let Some(port) = spec.port {
        put(&mut all, "PORT", port);
        put(&mut all, "BERTH_PORT", port);
    }
    all
}

/// Lightning takes these two names for a session at a terminal and then ignores `SLURM_*`.
fn slurm_name(name: &str) -> String {
    match name {
        "bash" | "interactive" => format!("job-{name}"),
        _ => name.to_owned(),
    }
}

/// Every rank sees all GPUs of the job on its node: hiding them from one another breaks
/// Lightning. Declared GPUs have no UUID, and a made-up one would hide the real ones.
fn gpu_facts(gpus: &Gpus) -> Variables {
    let mut all = Variables::new();
    let indices: Vec<String> = gpus.indices().iter().map(u32::to_string).collect();
    put(&mut all, "BERTH_GPUS", indices.join(","));
    if let Gpus::Real { uuids, .. } = gpus {
        put(&mut all, "CUDA_VISIBLE_DEVICES", uuids.join(","));
    }
    all
}

/// Only for launches by rank: with `SLURM_NTASKS` in a job that starts its own processes,
/// Lightning silently trains with a world of one.
fn rank_facts(spec: &TaskSpec, count: u32, local_rank: u32) -> Variables {
    let mut all = Variables::new();
    let gang = &spec.gang;
    let nodes = u32::try_from(gang.hosts.len()).unwrap_or(u32::MAX);
    let rank = gang.node_rank * count + local_rank;
    put(&mut all, "RANK", rank);
    put(&mut all, "LOCAL_RANK", local_rank);
    put(&mut all, "WORLD_SIZE", nodes.saturating_mul(count));
    put(&mut all, "LOCAL_WORLD_SIZE", count);
    put(&mut all, "NODE_RANK", gang.node_rank);
    put(&mut all, "SLURM_NTASKS", nodes.saturating_mul(count));
    put(&mut all, "SLURM_NTASKS_PER_NODE", count);
    put(&mut all, "SLURM_PROCID", rank);
    put(&mut all, "SLURM_LOCALID", local_rank);
    put(&mut all, "SLURM_NODEID", gang.node_rank);
    put(&mut all, "SLURM_NNODES", nodes);
    put(&mut all, "SLURM_NODELIST", gang.hosts.join(","));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::{Cpu, JobId, LeaseId, Span, Time};

    fn spec() -> TaskSpec {
        let lease = LeaseId { job: JobId::new(17), task: 1, attempt: 2 };
        let mut spec = TaskSpec::new(lease, &["true"], "/work");
        spec.gang.hosts = vec!["a".to_owned(), "b".to_owned()];
        spec.gang.node_rank = 1;
        spec.gang.master_addr = "a".to_owned();
        spec.gang.master_port = 20_017;
        spec.grace = Span::mins(5);
        spec
    }

    /// `-NAME` expects a variable to be absent.
    fn check(spec: &TaskSpec, rank: u32, expect: &[&str]) {
        let found =
            environment(spec, Path::new("/home/17/job"), Path::new("/home/17/notices"), rank);
        for line in expect {
            match (line.strip_prefix('-'), line.split_once('=')) {
                (Some(name), _) => assert_eq!(found.get(name), None, "{name}"),
                (None, Some((name, value))) => {
                    assert_eq!(found.get(name).map(String::as_str), Some(value), "{name}");
                }
                (None, None) => panic!("{line} is neither NAME=value nor -NAME"),
            }
        }
    }

    #[test]
    fn a_job_that_starts_its_own_processes_finds_its_peers_but_no_rank() {
        check(
            &spec(),
            0,
            &[
                "MASTER_ADDR=a",
                "MASTER_PORT=20017",
                "PET_NNODES=2",
                "PET_NPROC_PER_NODE=1",
                "PET_NODE_RANK=1",
                "PET_RDZV_BACKEND=c10d",
                "PET_RDZV_ENDPOINT=a:20017",
                "PET_RDZV_ID=17-2",
                "TORCH_ELASTIC_SHUTDOWN_TIMEOUT=300",
                "SLURM_JOB_ID=17",
                "SLURM_JOBID=17",
                "SLURM_JOB_NODELIST=a,b",
                "SLURM_RESTART_COUNT=2",
                "BERTH_ATTEMPT=2",
                "BERTH_PREEMPT_FILE=/home/17/notices/stop.json",
                "-RANK",
                "-WORLD_SIZE",
                "-SLURM_NTASKS",
                "-SLURM_PROCID",
                "-SLURM_NODELIST",
            ],
        );
    }

    #[test]
    fn each_rank_finds_its_place_in_the_world() {
        let mut spec = spec();
        spec.launch = Launch::Ranks { count: 4 };
        spec.cpu = Some(Cpu::cores(8));
        check(
            &spec,
            3,
            &[
                "RANK=7",
                "LOCAL_RANK=3",
                "WORLD_SIZE=8",
                "LOCAL_WORLD_SIZE=4",
                "NODE_RANK=1",
                "SLURM_NTASKS=8",
                "SLURM_NTASKS_PER_NODE=4",
                "SLURM_PROCID=7",
                "SLURM_LOCALID=3",
                "SLURM_NODEID=1",
                "SLURM_NNODES=2",
                "SLURM_NODELIST=a,b",
                "SLURM_CPUS_PER_TASK=2",
                "PET_NPROC_PER_NODE=4",
            ],
        );
    }

    #[test]
    fn real_gpus_are_named_by_uuid_and_declared_ones_hide_nothing() {
        let mut spec = spec();
        spec.gpus = Gpus::Real { indices: vec![0, 3], uuids: vec!["GPU-x".into(), "MIG-y".into()] };
        check(
            &spec,
            0,
            &[
                "CUDA_VISIBLE_DEVICES=GPU-x,MIG-y",
                "BERTH_GPUS=0,3",
                "SLURM_GPUS_ON_NODE=2",
                "PET_NPROC_PER_NODE=2",
            ],
        );
        spec.gpus = Gpus::Real { indices: vec![], uuids: vec![] };
        check(&spec, 0, &["CUDA_VISIBLE_DEVICES=", "BERTH_GPUS="]);
        spec.gpus = Gpus::Declared { indices: vec![5] };
        check(&spec, 0, &["-CUDA_VISIBLE_DEVICES", "BERTH_GPUS=5"]);
    }

    #[test]
    fn the_user_wins_over_defaults_and_not_over_facts() {
        let mut spec = spec();
        spec.gpus = Gpus::Real { indices: vec![0], uuids: vec!["GPU-x".into()] };
        spec.run = Some("r1".to_owned());
        for name in ["PET_NNODES", "MASTER_PORT", "WANDB_RUN_ID", "SLURM_JOB_ID", "OWN"] {
            spec.env.insert(name.to_owned(), "mine".to_owned());
        }
        spec.env.insert("CUDA_VISIBLE_DEVICES".to_owned(), "0,1,2,3".to_owned());
        check(
            &spec,
            0,
            &[
                "PET_NNODES=mine",
                "MASTER_PORT=mine",
                "WANDB_RUN_ID=mine",
                "WANDB_RESUME=allow",
                "OWN=mine",
                "SLURM_JOB_ID=17",
                "CUDA_VISIBLE_DEVICES=GPU-x",
            ],
        );
    }

    #[test]
    fn an_element_of_an_array_has_a_whole_number_as_its_job_id() {
        let mut spec = spec();
        spec.lease.job = JobId::new(17).element(3);
        spec.name = "bash".into();
        spec.ends_at = Some(Time(1_800_000_000_500));
        spec.port = Some(8000);
        check(
            &spec,
            0,
            &[
                "SLURM_JOB_ID=17",
                "SLURM_ARRAY_JOB_ID=17",
                "SLURM_ARRAY_TASK_ID=3",
                "BERTH_JOB_ID=17_3",
                "SLURM_JOB_NAME=job-bash",
                "SLURM_JOB_END_TIME=1800000000",
                "PORT=8000",
                "BERTH_PORT=8000",
            ],
        );
    }

    /// So that none is added without saying what it is.
    #[test]
    fn every_variable_is_on_the_page() {
        const PAGE: &str = include_str!("../../../docs/environment.md");
        let mut spec = spec();
        spec.lease.job = JobId::new(17).element(3);
        spec.launch = Launch::Ranks { count: 2 };
        spec.cpu = Some(Cpu::cores(2));
        spec.gpus = Gpus::Real { indices: vec![0], uuids: vec!["GPU-x".into()] };
        spec.checkpoint = Some("/work/checkpoints".into());
        spec.resume_from = spec.checkpoint.clone();
        spec.ends_at = Some(Time(1_800_000_000_500));
        spec.port = Some(8000);
        let found = environment(&spec, Path::new("/own"), Path::new("/notices"), 0);
        let missing: Vec<String> =
            found.into_keys().filter(|name| !PAGE.contains(&format!("`{name}`"))).collect();
        assert_eq!(missing, [""; 0], "docs/environment.md says nothing of these");
    }
}
