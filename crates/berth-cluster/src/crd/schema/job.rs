//! What a Job's spec can say: the keys of a job file, with their own words for people.

use crate::crd::schema::parts::{any, boolean, object, prose, text, whole, with, word};
use berth_file::job::{KEYS, Key, Takes};
use serde_json::{Value, json};

pub fn spec() -> Value {
    let keys = KEYS.iter().filter(|key| key.name != "name");
    object(keys.map(|key| (key.name, with(value(key), &says(key)))))
}

fn says(key: &Key) -> String {
    format!("{}; such as {}", key.help, key.example)
}

/// The type of a key that has only one.
fn value(key: &Key) -> Value {
    match key.name {
        "kind" => word("", &["job", "notebook", "service"]),
        "spot" => word("", &["never", "auto", "only"]),
        "launch" => word("", &["once", "ranks", "torchrun"]),
        "network" => word("", &["machine", "none"]),
        "team" | "project" | "experiment" | "place" => text(""),
        "image" | "workdir" | "model" | "comment" => prose(""),
        "nodes" | "ranks" | "port" => whole("", Some(1)),
        "preemptible" => boolean(""),
        _ => match key.takes {
            Takes::Switch => boolean(""),
            Takes::Pairs => {
                json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
            }
            _ => any(""),
        },
    }
}
