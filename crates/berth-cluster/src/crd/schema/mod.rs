//! The definitions of our objects, as the API server wants them: one for each kind, with the keys
//! that documents and job files have. A test compares the keys, so none is forgotten.

mod columns;
mod job;
mod parts;
mod policy;

use berth_file::object::{GROUP, Kind, OFFERING, POLICY, VERSION, words_of};
use parts::{any, boolean, list, map, number, object, scalar, text, whole, with, word};
use serde_json::{Value, json};

/// All definitions as one text of YAML, to be given to kubectl.
pub fn crds() -> String {
    let documents = Kind::ALL.iter().map(|kind| {
        serde_saphyr::to_string(&definition(*kind)).expect("a definition is plain data")
    });
    let documents: Vec<String> = documents.collect();
    format!("# Made by `berth kube crds`.\n{}", documents.join("---\n"))
}

/// Whether objects of a kind lie in namespaces.
pub const fn is_namespaced(kind: Kind) -> bool {
    matches!(kind, Kind::Job)
}

fn definition(kind: Kind) -> Value {
    let (plural, word) = (kind.plural(), kind.word());
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{GROUP}") },
        "spec": {
            "group": GROUP,
            "scope": if is_namespaced(kind) { "Namespaced" } else { "Cluster" },
            "names": {
                "kind": word,
                "listKind": format!("{word}List"),
                "plural": plural,
                "singular": word.to_lowercase(),
                "shortNames": [short(kind)],
                "categories": ["berth"],
            },
            "versions": [{
                "name": VERSION,
                "served": true,
                "storage": true,
                "subresources": { "status": {} },
                "additionalPrinterColumns": columns::of(kind),
                "schema": { "openAPIV3Schema": whole_object(kind) },
            }],
        },
    })
}

const fn short(kind: Kind) -> &'static str {
    match kind {
        Kind::Queue => "bq",
        Kind::Policy => "bpol",
        Kind::Pool => "bpool",
        Kind::Job => "bj",
        Kind::Budget => "bb",
    }
}

fn whole_object(kind: Kind) -> Value {
    let spec = match kind {
        Kind::Queue => queue(),
        Kind::Policy => policy::spec(),
        Kind::Pool => pool(),
        Kind::Job => job::spec(),
        Kind::Budget => budget(),
    };
    let mut schema = json!({
        "type": "object",
        "description": about(kind),
        "required": ["spec"],
        "properties": {
            // Names of ours stand in addresses, files and commands.
            "metadata": { "type": "object", "properties": { "name": {
                "type": "string", "maxLength": 63,
            } } },
            "spec": spec,
            "status": columns::status(kind),
        },
    });
    let rules = rules(kind);
    if !rules.is_empty() {
        let rules = rules.iter().map(|(rule, says)| json!({ "rule": rule, "message": says }));
        schema["x-kubernetes-validations"] = rules.collect();
    }
    schema
}

const fn about(kind: Kind) -> &'static str {
    match kind {
        Kind::Queue => {
            "A queue: a node of the tree that GPUs are divided by. Pods name it by the annotation \
             or label berth.dev/queue, jobs as their team."
        }
        Kind::Policy => "How the scheduler behaves. Knobs that are left out are as they come.",
        Kind::Pool => "Machines that can be bought. It is read and has no effect yet.",
        Kind::Job => "A job file, submitted once. Deleting the object ends the job.",
        Kind::Budget => "What a queue, with all below it, may spend, and what happens then.",
    }
}

/// Rules that the API server can check on one object alone. A cycle of queues needs all of them.
fn rules(kind: Kind) -> Vec<(String, String)> {
    match kind {
        Kind::Queue => vec![(
            "!has(self.spec.parent) || self.spec.parent != self.metadata.name".to_owned(),
            "a queue cannot lie below itself; name another parent, or leave it out".to_owned(),
        )],
        Kind::Policy => vec![(
            format!("self.metadata.name == '{POLICY}'"),
            format!("there is one policy, so its object is called {POLICY}"),
        )],
        Kind::Pool => vec![(
            "!has(self.spec.min) || self.spec.min <= self.spec.max".to_owned(),
            "min is above max".to_owned(),
        )],
        Kind::Job | Kind::Budget => Vec::new(),
    }
}

fn queue() -> Value {
    let amounts = |says: &str| with(amounts(), says);
    object([
        ("parent", text("The queue it lies below; none: it lies at the top")),
        ("quota", amounts("What it is promised, and gets back from others when it needs it")),
        ("limit", amounts("The most it may use, whatever is free")),
        ("borrow", amounts("The most it may use beyond its quota")),
        ("lend", amounts("The most of its quota that others may use meanwhile")),
        ("user_limit", amounts("The most that one user may use")),
        ("weight", number("Its share of GPUs beyond all quotas, relative to its siblings (1)", 0)),
        ("priority", whole("Whose turn it is among siblings: the highest first (0)", None)),
        ("order", word("Whose turn it is inside (the policy's)", &words_of("order"))),
        ("min_runtime", scalar("Time since its start in which a job is no victim, such as 30m")),
        ("preempt_after", scalar("How long its jobs wait before they displace others: 10m")),
        ("time_sharing", boolean("Whether long jobs are paused for short ones")),
        ("class_limit", class_limit()),
    ])
}

fn class_limit() -> Value {
    let limit = object([
        ("researcher", text("The highest class of jobs of researchers (high)")),
        ("team_lead", text("The highest class of jobs of team leads")),
    ]);
    with(limit, "The highest priority class by role, here and in the queues below")
}

/// An amount per resource.
fn amounts() -> Value {
    object([
        ("gpu", scalar("GPUs: 8, 0.5, 40%, unlimited, or by model {total: 8, H100-80GB: 4}")),
        ("cpu", scalar("CPU cores: 64, 40% or unlimited")),
        ("memory", scalar("Memory: 512GiB, 40% or unlimited")),
    ])
}

fn budget() -> Value {
    let mut budget = object([
        ("queue", text("Whose budget it is (the queue with the name of this object)")),
        ("limit", scalar("Dollars for each period: 500 or 99.50")),
        ("per", word("When it begins anew (month)", &words_of("per"))),
        ("action", word("What happens when it is spent (notify)", &words_of("action"))),
        ("thresholds", list("When Berth sends an alert, such as [50%, 80%]", text(""))),
    ]);
    budget["required"] = json!(["limit"]);
    budget
}

fn pool() -> Value {
    let mut offering = object(OFFERING.iter().map(|key| (*key, offering(key))));
    offering["required"] = json!(["type", "gpus", "model", "price"]);
    let mut pool = object([
        ("min", whole("Machines that are always there (0)", Some(0))),
        ("max", whole("The most machines", Some(0))),
        ("labels", map("Labels of its nodes", text(""))),
        ("offerings", list("What can be bought", offering)),
    ]);
    pool["required"] = json!(["max", "offerings"]);
    pool
}

fn offering(key: &str) -> Value {
    match key {
        "type" => text("The instance type, as the seller calls it"),
        "gpus" => whole("GPUs of a machine", Some(1)),
        "model" => text("The model of its GPUs, such as H100-80GB"),
        "gpu_memory" => scalar("Memory of a GPU (that of the model)"),
        "cpu" => scalar("CPU cores of a machine"),
        "memory" => scalar("Memory of a machine"),
        "zone" => text("Where it is"),
        "lifecycle" => word("How it is sold (on-demand)", &words_of("lifecycle")),
        "price" => scalar("Dollars an hour for the machine"),
        "boot" => scalar("How long it takes until it can be used, such as 3m"),
        "interruptions" => whole("Expected in a thousand hours of running", Some(0)),
        "unavailable_until" => text("Not on offer before"),
        _ => any(""),
    }
}

#[cfg(test)]
mod tests;
