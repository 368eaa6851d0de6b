//! What `kubectl get` shows of an object, and the status it is taken from.

use crate::crd::schema::parts::{list, object, prose, whole};
use berth_file::object::Kind;
use serde_json::{Value, json};

/// A heading, its type, where its value is, and whether it is shown always.
type Column = (&'static str, &'static str, &'static str, bool);

const ACCEPTED: &str = ".status.conditions[?(@.type==\"Accepted\")].message";

pub fn of(kind: Kind) -> Value {
    let own: &[Column] = match kind {
        Kind::Queue => &[
            ("Parent", "string", ".spec.parent", true),
            ("GPUs", "string", ".status.quotaGpus", true),
            ("Used", "string", ".status.usedGpus", true),
            ("Pending", "integer", ".status.pending", true),
            ("Running", "integer", ".status.running", true),
            ("Share", "string", ".status.shareGpus", false),
        ],
        Kind::Policy => &[("Version", "integer", ".status.version", true)],
        Kind::Pool => {
            &[("Min", "integer", ".spec.min", true), ("Max", "integer", ".spec.max", true)]
        }
        Kind::Job => &[
            ("GPUs", "string", ".status.gpus", true),
            ("Position", "integer", ".status.position", true),
            ("ETA", "string", ".status.eta", true),
            ("Cost", "string", ".status.cost", true),
            ("Team", "string", ".status.team", false),
            ("Nodes", "string", ".status.nodes", false),
            ("Reason", "string", ".status.reason", false),
        ],
        Kind::Budget => &[
            ("Queue", "string", ".status.queue", true),
            ("Limit", "string", ".status.limit", true),
            ("Spent", "string", ".status.spent", true),
            ("Per", "string", ".status.per", true),
        ],
    };
    let all = own.iter().chain(&[
        ("Status", "string", ".status.state", true),
        ("Message", "string", ACCEPTED, false),
        ("Age", "date", ".metadata.creationTimestamp", true),
    ]);
    let columns = all.map(|(name, kind, path, always)| {
        let priority = i32::from(!always);
        json!({ "name": name, "type": kind, "jsonPath": path, "priority": priority })
    });
    columns.collect()
}

/// A number has a mark before what it means.
pub fn status(kind: Kind) -> Value {
    let own: &[(&str, &str)] = match kind {
        Kind::Queue => &[
            ("quotaGpus", "GPUs it is promised"),
            ("usedGpus", "GPUs it uses, with all queues below it"),
            ("shareGpus", "GPUs that are its fair share now"),
            ("pending", "#Jobs that wait in it"),
            ("running", "#Jobs that run in it"),
        ],
        Kind::Policy => &[("version", "#Grows by one with each change")],
        Kind::Pool => &[],
        Kind::Job => &[
            ("job", "The number of the job, as `berth ps` has it"),
            ("team", "Whose GPUs it uses"),
            ("gpus", "GPUs it asks for"),
            ("position", "#Its place in the line, while it waits"),
            ("eta", "When it is likely to start"),
            ("cost", "What it has cost"),
            ("nodes", "Where it runs"),
            ("reason", "Why it waits, or how it ended"),
        ],
        Kind::Budget => &[
            ("queue", "Whose budget it is"),
            ("limit", "Dollars for each period"),
            ("spent", "Dollars in this period"),
            ("per", "When it begins anew"),
        ],
    };
    let common: &[(&str, &str)] = &[("state", "How it is, in a word")];
    let fields = own.iter().chain(common).map(|(key, says)| match says.strip_prefix('#') {
        Some(says) => (*key, whole(says, None)),
        None => (*key, prose(says)),
    });
    let mut status = object(fields);
    status["properties"]["conditions"] = conditions();
    status
}

fn conditions() -> Value {
    let mut condition = object([
        ("type", prose("Accepted, and what else is true of it")),
        ("status", prose("True, False or Unknown")),
        ("reason", prose("Why, in a word")),
        ("message", prose("Why, and what to do")),
        ("observedGeneration", whole("The version of the spec it is about", None)),
    ]);
    condition["properties"]["lastTransitionTime"] =
        json!({ "type": "string", "format": "date-time" });
    condition["required"] = json!(["type", "status"]);
    let mut conditions = list("What is true of it", condition);
    conditions["x-kubernetes-list-type"] = json!("map");
    conditions["x-kubernetes-list-map-keys"] = json!(["type"]);
    conditions
}
