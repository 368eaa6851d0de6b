//! Resumes and suspends jobs of other controllers.

use crate::view::{GATE, JobRef};
use berth_kube::{Api, PatchType, Result};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};

/// Suspends or resumes a job, whichever is wanted at the time of the write.
pub async fn hold(api: &Api, job: &JobRef, suspended: &AtomicBool) -> Result<()> {
    let mut with_gates = true;
    loop {
        let wanted = suspended.load(Ordering::SeqCst);
        match write(api, job, wanted, with_gates && !wanted).await {
            Ok(()) if suspended.load(Ordering::SeqCst) == wanted => return Ok(()),
            Ok(()) => {}
            // It is gone, or another one has its name.
            Err(error) if error.is_not_found() || error.is_conflict() => return Ok(()),
            // It ran before, so what its pods are made from does not change any more.
            Err(error) if error.code() == Some(422) && with_gates && !job.gates.is_empty() => {
                tracing::warn!(%error, job = job.name, "its pods are made without a gate");
                with_gates = false;
            }
            Err(error) => return Err(error),
        }
    }
}

async fn write(api: &Api, job: &JobRef, suspended: bool, with_gates: bool) -> Result<()> {
    let mut change = vec![json!({ "op": "add", "path": job.suspend, "value": suspended })];
    if with_gates && !job.gates.is_empty() {
        let gates = job.gates.iter().map(|(spec, gates)| gate(spec, gates));
        match &job.below {
            None => change.extend(gates),
            // As long as it is suspended it may still be changed.
            Some(below) => patch(api, &below.path, &below.uid, gates.collect()).await?,
        }
    }
    patch(api, &job.path, &job.uid, change).await
}

async fn patch(api: &Api, path: &str, uid: &str, mut change: Vec<Value>) -> Result<()> {
    // Refused where it is another object of that name.
    change.insert(0, json!({ "op": "replace", "path": "/metadata/uid", "value": uid }));
    api.patch(path, PatchType::Json, &Value::Array(change)).await.map(drop)
}

fn gate(spec: &str, gates: &[String]) -> Value {
    let gates = gates.iter().map(String::as_str).chain([GATE]);
    let gates: Vec<Value> = gates.map(|name| json!({ "name": name })).collect();
    json!({ "op": "add", "path": format!("{spec}/schedulingGates"), "value": gates })
}
