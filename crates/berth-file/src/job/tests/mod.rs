//! Job files as text, and what becomes of them.

mod flags;
mod lowering;
mod mistakes;
mod odd;
mod reading;
mod round_trip;

use super::{Abilities, Defaults, JobFile, Models, RunSpec, Warning, lower, read};
use berth_model::{Bytes, JobId, JobRequest, JobSpec, Name, Policy, Time};

/// The files that the facts of the project begin with: one GPU, many, a notebook, an endpoint.
const EXAMPLES: [&str; 4] = [
    "name: bert-sft\ngpus: 1\nrun: python train.py --epochs 3\n",
    r#"
name: llama-70b
team: nlp
nodes: 4
gpus: H100:8
spot: auto
time: 72h
deadline: 2026-12-01T09:00Z
budget: $4000
image: pytorch:26.05
data:
  /data: dvc:c4@v3
checkpoint: {path: /ckpt, every: 30m, grace: 5m, keep: 3}
place: rack
retry: {infra: forever, error: 2}
notify: [slack:#nlp-train]
run: |
  torchrun -m titan.train --config llama3_70b \
    --folder $BERTH_CHECKPOINT_DIR
"#,
    r#"
name: explore
kind: notebook
gpus: 0.5
open: [jupyter, vscode, ssh]
idle: {below: 5%, for: 30m, then: suspend}
time: 8h
volumes:
  /home/me: home
"#,
    r#"
name: chat-8b
kind: service
gpus: L4
model: registry:chat-8b@production
port: 8000
ready: /health
scale: {min: 0, max: 8, pending: 10, predict: 15m}
run: vllm serve $BERTH_MODEL_DIR --port 8000
"#,
];

fn file(text: &str) -> JobFile {
    read(text).unwrap_or_else(|mistakes| panic!("{text}\n{mistakes}")).file
}

fn now() -> Time {
    "2026-11-15T09:00:00Z".parse().expect("a moment")
}

fn defaults() -> Defaults {
    Defaults {
        user: Name::new("kim"),
        team: Name::new("research"),
        project: Name::new("misc"),
        classes: crate::world::default_classes(),
        policy: Policy::default(),
        models: Models::new([(Name::new("H100-80GB"), Bytes::gb(80))]),
        levels: vec![Name::new("rack")],
        abilities: Abilities::default(),
        logs: super::LogLimits::default(),
    }
}

/// What a file is lowered to.
struct Lowered {
    request: JobRequest,
    run: RunSpec,
    warnings: Vec<Warning>,
}

impl Lowered {
    fn spec(&self, id: JobId) -> JobSpec {
        self.request.spec(id, now())
    }
}

fn lowered(text: &str) -> Lowered {
    let lowered = lower(&file(text), &defaults(), now());
    let (request, warnings) = lowered.unwrap_or_else(|refused| panic!("{text}\n{refused}"));
    let run = request.workload.run().expect("a file is run by Berth").as_ref().clone();
    Lowered { request, run, warnings }
}

fn refused(text: &str) -> String {
    match lower(&file(text), &defaults(), now()) {
        Ok(_) => panic!("this was taken:\n{text}"),
        Err(refused) => refused.to_string(),
    }
}
