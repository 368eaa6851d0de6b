//! A request of each kind, as one would send it.

use serde_json::{Value, json};

/// A job file as people write it.
pub const JOB_FILE: &str = "name: bert-sft\nteam: nlp\ngpus: H100:8\ntime: 12h\n\
                            checkpoint: {path: ckpt, every: 30m}\nrun: python train.py\n";

/// The body of a request in JSON.
pub fn body(id: &str) -> Option<Value> {
    Some(match id {
        "submit_job" | "plan_job" => json!({
            "name": "bert-sft", "team": "nlp", "gpus": "H100:8", "time": "12h",
            "run": "python train.py",
        }),
        "set_job" => json!({ "priority": "high", "time": "24h" }),
        "stop_job" => json!({ "now": false }),
        "clone_job" => json!({ "file": "gpus: H100:4\n", "resume": true }),
        "resume_gpu" => json!({ "no_check": false }),
        "set_budget" => json!({
            "limit_micros": 5_000_000_000_i64, "per": "month", "action": "block",
            "thresholds_milli": [500, 800],
        }),
        "create_token" => json!({ "name": "laptop", "scope": "jobs", "expires_in": "30d" }),
        "create_user" => json!({ "name": "kim" }),
        "create_team" => json!({ "name": "nlp", "parent": "research" }),
        "set_member" => json!({ "role": "researcher" }),
        "create_project" => json!({ "name": "llama", "team": "nlp" }),
        "set_secret" => json!({ "value": "hf_…" }),
        "sign_in" => json!({ "token": "brt_…" }),
        "start_device" => json!({ "client": "berth on kim's laptop" }),
        "device_token" => json!({ "device_code": "…" }),
        "answer_device" => json!({ "approve": true }),
        "make_data" => json!({
            "version": "c4@v3", "hash": "d751713988987e9331980363e24189ce.dir", "note": "cleaned",
        }),
        "missing_data" => json!({ "hashes": ["d751713988987e9331980363e24189ce.dir"] }),
        "clean_data" | "clean_runs" => json!({ "older_than": "7d", "dry_run": true }),
        "set_storage" => json!({ "quota": 5_000_000_000_000_i64 }),
        "set_template" => json!({ "team": "nlp", "file": JOB_FILE }),
        "apply" | "diff" => json!({
            "documents": "kind: team\nname: nlp\n---\nkind: queue\nname: nlp\nquota: 16\n",
        }),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_api::wire;
    use serde::de::DeserializeOwned;

    fn reads<T: DeserializeOwned>(id: &str) {
        let body = body(id).unwrap();
        let read = serde_json::from_value::<T>(body.clone());
        assert!(read.is_ok(), "{id}: {body}: {:?}", read.err());
    }

    #[test]
    fn the_server_reads_its_own_examples() {
        reads::<wire::JobChange>("set_job");
        reads::<wire::JobStop>("stop_job");
        reads::<wire::JobClone>("clone_job");
        reads::<wire::GpuResume>("resume_gpu");
        reads::<wire::BudgetSet>("set_budget");
        reads::<wire::TokenCreate>("create_token");
        reads::<wire::UserCreate>("create_user");
        reads::<wire::Team>("create_team");
        reads::<wire::MemberSet>("set_member");
        reads::<wire::Project>("create_project");
        reads::<wire::SecretSet>("set_secret");
        reads::<wire::SignIn>("sign_in");
        reads::<wire::DeviceStart>("start_device");
        reads::<wire::DevicePoll>("device_token");
        reads::<wire::DeviceAnswer>("answer_device");
        reads::<wire::DataMake>("make_data");
        reads::<wire::DataAsk>("missing_data");
        reads::<wire::DataClean>("clean_data");
        reads::<wire::RunsClean>("clean_runs");
        reads::<wire::StorageSet>("set_storage");
        reads::<wire::TemplateSet>("set_template");
        reads::<wire::ApplyRequest>("apply");
    }
}
