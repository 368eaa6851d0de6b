//! Letting go jobs that somebody else would have let go, and holding them back.

use super::queued::{GATE, JobAt};
use berth_kube::{Api, Patch, Result};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};

/// Suspends a job or lets it go, as is wanted by the time it is written.
pub async fn hold(api: &Api, job: &JobAt, suspended: &AtomicBool) -> Result<()> {
    let mut with_gates = true;
    loop {
        let wanted = suspended.load(Ordering::SeqCst);
        let change = operations(job, wanted, with_gates);
        match api.patch(&job.path, Patch::Json, &change).await {
            Ok(_) if suspended.load(Ordering::SeqCst) == wanted => return Ok(()),
            Ok(_) => {}
            // It is gone, or another one has its name.
            Err(error) if error.is_missing() || error.is_conflict() => return Ok(()),
            // It ran before, so what its pods are made from does not change any more.
            Err(error) if error.code() == Some(422) && with_gates && !job.gates.is_empty() => {
                tracing::warn!(%error, job = job.name, "its pods are made without a gate");
                with_gates = false;
            }
            Err(error) => return Err(error),
        }
    }
}

fn operations(job: &JobAt, suspended: bool, with_gates: bool) -> Value {
    // Refused where it is another job of that name.
    let mut operations = vec![
        json!({ "op": "replace", "path": "/metadata/uid", "value": job.uid }),
        json!({ "op": "add", "path": job.suspend, "value": suspended }),
    ];
    for (spec, gates) in job.gates.iter().filter(|_| with_gates && !suspended) {
        let gates = gates.iter().map(String::as_str).chain([GATE]);
        let gates: Vec<Value> = gates.map(|name| json!({ "name": name })).collect();
        let path = format!("{spec}/schedulingGates");
        operations.push(json!({ "op": "add", "path": path, "value": gates }));
    }
    Value::Array(operations)
}
