//! Pods that are about to be made: those that ask for GPUs get our scheduler's name, and those that
//! ask for a fraction of one the variable by which they learn which.
//!
//! The API server asks and we answer; nothing is kept. A pod whose author chose a scheduler keeps
//! it, unless it is one of those we were told to stand in for.

use crate::client::Result;
use crate::client::decode;
use crate::object::Pod;
use crate::pod::gpu_sharing;
use crate::pod::requests::{self, GpuRequest, ResourceRequests};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The name that the API server writes where an author names none.
const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// Which scheduler's name is given, and in the place of which others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmissionWebhook {
    pub scheduler: String,
    /// All scheduler names by which a pod is ours, also those of schedulers that Berth replaces: a
    /// pod that keeps one of them gets the variable that names its GPU like any other.
    pub ours: BTreeSet<String>,
    /// Schedulers we stand in for, beside the one of pods that name none.
    pub instead_of: Vec<String>,
}

#[derive(Deserialize)]
struct Review {
    request: Request,
}

#[derive(Deserialize)]
struct Request {
    uid: String,
    #[serde(default)]
    object: Value,
}

impl AdmissionWebhook {
    /// The answer to a question of the API server. Everything is allowed; at most the scheduler's
    /// name and a variable are added.
    pub fn answer(&self, question: &[u8]) -> Result<Value> {
        let Review { request } = decode("an admission review", question)?;
        let mut response = json!({ "uid": request.uid, "allowed": true });
        match Pod::deserialize(&request.object) {
            Ok(pod) => {
                let patch = self.patch(&pod, &request.object);
                if !patch.is_empty() {
                    response["patchType"] = json!("JSONPatch");
                    response["patch"] = json!(BASE64.encode(json!(patch).to_string()));
                }
            }
            Err(why) => {
                let warning = format!("berth could not read this pod and left it alone: {why}");
                response["warnings"] = json!([warning]);
            }
        }
        Ok(json!({
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "response": response,
        }))
    }

    fn patch(&self, pod: &Pod, object: &Value) -> Vec<Value> {
        let is_taken = self.takes(pod);
        let name = json!({ "op": "add", "path": "/spec/schedulerName", "value": self.scheduler });
        let is_ours = is_taken || self.ours.contains(&*pod.spec.scheduler_name);
        let told = if is_ours { gpu_sharing::gpu_variable_patch(object) } else { Vec::new() };
        is_taken.then_some(name).into_iter().chain(told).collect()
    }

    fn takes(&self, pod: &Pod) -> bool {
        let named = &*pod.spec.scheduler_name;
        let is_free = named.is_empty() || named == DEFAULT_SCHEDULER;
        let is_ours_to_take = is_free || self.instead_of.iter().any(|other| other == named);
        // A pod that was made for a node has no need of a scheduler.
        is_ours_to_take && pod.spec.node_name.is_empty() && asks_for_gpus(pod)
    }
}

/// Whether a pod asks for GPUs, also in a way that we do not understand: it then waits and says so,
/// instead of taking GPUs behind our back.
fn asks_for_gpus(pod: &Pod) -> bool {
    match ResourceRequests::of(pod) {
        Ok(need) => need.gpus != GpuRequest::None,
        Err(requests::Error::Quantity { .. }) => false,
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn webhook(ours: &[&str], instead_of: &[&str]) -> AdmissionWebhook {
        AdmissionWebhook {
            scheduler: "berth".to_owned(),
            ours: ours.iter().map(|name| (*name).to_owned()).collect(),
            instead_of: instead_of.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    fn is_taken(instead_of: &[&str], spec: &str, annotations: &str) -> bool {
        let webhook = webhook(&["berth"], instead_of);
        let question = format!(
            r#"{{"request":{{"uid":"u","object":{{"metadata":{{"annotations":{annotations}}},"spec":{spec}}}}}}}"#
        );
        let answer = webhook.answer(question.as_bytes()).unwrap();
        assert_eq!(answer["response"]["allowed"], true);
        assert_eq!(answer["response"]["uid"], "u");
        answer["response"]["patch"].is_string()
    }

    fn spec(resource: &str, scheduler: &str, more: &str) -> String {
        format!(
            r#"{{"schedulerName":"{scheduler}",{more}"containers":[{{"name":"a","resources":{{"limits":{{"{resource}":"1"}}}}}}]}}"#
        )
    }

    #[test]
    fn pods_that_ask_for_any_kind_of_gpu_are_taken() {
        let resources = [
            "nvidia.com/gpu",
            "nvidia.com/gpu.shared",
            "nvidia.com/mig-1g.10gb",
            "amd.com/gpu",
            "volcano.sh/vgpu-number",
        ];
        for resource in resources {
            assert!(is_taken(&[], &spec(resource, DEFAULT_SCHEDULER, ""), "{}"), "{resource}");
        }
        let plain = spec("cpu", DEFAULT_SCHEDULER, "");
        assert!(is_taken(&[], &plain, r#"{"gpu-fraction":"0.5"}"#));
        // It makes no sense, which Berth says on the pod.
        assert!(is_taken(&[], &plain, r#"{"gpu-fraction":"half"}"#));
        assert!(!is_taken(&[], &plain, "{}"));
    }

    #[test]
    fn a_scheduler_that_was_chosen_is_left_unless_we_stand_in_for_it() {
        let gpu = |scheduler| spec("nvidia.com/gpu", scheduler, "");
        assert!(!is_taken(&[], &gpu("volcano"), "{}"));
        assert!(!is_taken(&["kai-scheduler"], &gpu("volcano"), "{}"));
        assert!(is_taken(&["kai-scheduler", "volcano"], &gpu("volcano"), "{}"));
        assert!(!is_taken(&["volcano"], &gpu("berth"), "{}"), "it is ours already");
        let placed = spec("nvidia.com/gpu", DEFAULT_SCHEDULER, r#""nodeName":"a","#);
        assert!(!is_taken(&[], &placed, "{}"), "it has its node");
    }

    #[test]
    fn a_pod_of_ours_that_asks_for_a_fraction_gets_the_variable_that_names_its_gpu() {
        let webhook = webhook(&["berth", "second", "kai-scheduler"], &[]);
        let object: Value = serde_json::from_str(&format!(
            r#"{{"metadata":{{"annotations":{{"gpu-fraction":"0.5"}}}},"spec":{}}}"#,
            spec("cpu", DEFAULT_SCHEDULER, "")
        ))
        .unwrap();
        let patch = webhook.patch(&Pod::deserialize(&object).unwrap(), &object);
        assert_eq!(patch.len(), 2, "{patch:?}");
        assert_eq!(patch[1]["path"], "/spec/containers/0/env");
        let patch_of = |scheduler: &str| {
            let mut object = object.clone();
            object["spec"]["schedulerName"] = json!(scheduler);
            webhook.patch(&Pod::deserialize(&object).unwrap(), &object)
        };
        for scheduler in ["berth", "second", "kai-scheduler"] {
            let patch = patch_of(scheduler);
            assert_eq!(patch.len(), 1, "its name stays: {patch:?}");
            assert_eq!(patch[0]["path"], "/spec/containers/0/env");
        }
        assert!(patch_of("another").is_empty());
    }

    #[test]
    fn what_is_no_pod_is_allowed_with_a_warning_and_what_is_no_question_is_an_error() {
        let webhook = webhook(&["berth"], &[]);
        let answer = webhook.answer(br#"{"request":{"uid":"u","object":{"spec":7}}}"#).unwrap();
        assert_eq!(answer["response"]["allowed"], true);
        assert!(answer["response"]["warnings"][0].as_str().unwrap().contains("left it alone"));
        assert!(webhook.answer(b"{}").is_err());
    }

    #[test]
    fn the_patch_is_in_base64_with_padding() {
        for (text, encoded) in
            [("", ""), ("a", "YQ=="), ("ab", "YWI="), ("abc", "YWJj"), ("\u{ff}\u{fe}", "w7/Dvg==")]
        {
            assert_eq!(BASE64.encode(text), encoded);
        }
    }
}
