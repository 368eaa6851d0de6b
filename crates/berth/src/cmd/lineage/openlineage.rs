//! The runs of a lineage as events of OpenLineage 2-0-2.

use berth_api::wire::{Lineage, LineageKind, LineageLink as Link, LineageNode};
use berth_code::digest_of;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const SPEC: &str = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent";
const FACETS: &str = "https://openlineage.io/spec/facets";

/// Makes a start event and, for ended runs, an end event, in the order of the answer. A job without a
/// tracked run counts as a run.
pub fn events(found: &Lineage, server: &str) -> Vec<Value> {
    let nodes = found.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let writer = Writer { found, server, nodes };
    let runs = found.nodes.iter().filter(|node| writer.is_run(node));
    runs.flat_map(|run| writer.of_run(run)).collect()
}

struct Writer<'a> {
    found: &'a Lineage,
    /// The address of the server: a namespace that makes names unique.
    server: &'a str,
    nodes: BTreeMap<&'a str, &'a LineageNode>,
}

impl<'a> Writer<'a> {
    fn is_run(&self, node: &LineageNode) -> bool {
        let is_there = !node.hidden && !node.gone && node.details.started.is_some();
        match node.kind {
            LineageKind::Run => is_there,
            LineageKind::Job => {
                let edges = &self.found.edges;
                let has_run = edges.iter().any(|e| e.kind == Link::RunOf && e.to == node.id);
                is_there && !has_run
            }
            _ => false,
        }
    }

    /// The inputs of a node along these kinds of edges.
    fn above(&self, id: &str, links: &[Link]) -> Vec<&'a LineageNode> {
        let edges = self.found.edges.iter();
        let edges = edges.filter(|edge| edge.from == id && links.contains(&edge.kind));
        edges.filter_map(|edge| self.nodes.get(edge.to.as_str()).copied()).collect()
    }

    fn below(&self, id: &str, links: &[Link]) -> Vec<&'a LineageNode> {
        let edges = self.found.edges.iter();
        let edges = edges.filter(|edge| edge.to == id && links.contains(&edge.kind));
        edges.filter_map(|edge| self.nodes.get(edge.from.as_str()).copied()).collect()
    }

    fn of_run(&self, run: &LineageNode) -> Vec<Value> {
        let job = match run.kind {
            LineageKind::Job => Some(run),
            _ => self.above(&run.id, &[Link::RunOf]).into_iter().find(|job| !job.hidden),
        };
        let inputs = self.above(&run.id, &[Link::Read, Link::ReadModel]).into_iter();
        let inputs: Vec<Value> = inputs.filter_map(|node| self.dataset(node)).collect();
        let event = |kind: &str, at: String, outputs: Vec<Value>| {
            json!({
                "eventType": kind,
                "eventTime": at,
                "producer": self.server,
                "schemaURL": SPEC,
                "run": { "runId": uuid(&self.unique(run)), "facets": self.run_facets(run, job) },
                "job": {
                    "namespace": self.namespace(&run.team),
                    "name": job_name(run, job),
                    "facets": self.job_facets(run),
                },
                "inputs": inputs,
                "outputs": outputs,
            })
        };
        let mut events = Vec::new();
        let Some(started) = run.details.started else { return events };
        events.push(event("START", started.to_string(), Vec::new()));
        let status = run.details.status.as_deref().unwrap_or_default();
        let end = match status {
            "FINISHED" | "done" => "COMPLETE",
            "KILLED" | "cancelled" => "ABORT",
            "FAILED" | "failed" => "FAIL",
            _ => return events,
        };
        let ended = run.details.ended.unwrap_or(started);
        events.push(event(end, ended.to_string(), self.outputs(run)));
        events
    }

    /// Models that the run logged, and versions registered from the run or from these models.
    fn outputs(&self, run: &LineageNode) -> Vec<Value> {
        let mut made = self.below(&run.id, &[Link::LoggedBy, Link::RegisteredFrom]);
        let logged: Vec<_> =
            made.iter().flat_map(|node| self.below(&node.id, &[Link::RegisteredFrom])).collect();
        made.extend(logged);
        made.sort_by(|a, b| a.id.cmp(&b.id));
        made.dedup_by(|a, b| a.id == b.id);
        made.into_iter().filter_map(|node| self.dataset(node)).collect()
    }

    fn namespace(&self, team: &str) -> String {
        format!("{}/{team}", self.server)
    }

    /// A globally unique text. MLflow's ids are unique everywhere; numbers of jobs are not.
    fn unique(&self, run: &LineageNode) -> String {
        match run.kind {
            LineageKind::Run => run.name.clone(),
            _ => format!("{} {}", self.server, run.id),
        }
    }

    fn facet(&self, name: &str, version: &str, fields: Value) -> Value {
        let mut facet = json!({
            "_producer": self.server,
            "_schemaURL": format!("{FACETS}/{version}/{name}.json#/$defs/{name}"),
        });
        merge(&mut facet, fields);
        facet
    }

    fn dataset(&self, node: &LineageNode) -> Option<Value> {
        if node.hidden {
            return None;
        }
        let (kind, separator) = match node.kind {
            LineageKind::Data => ("data", "@v"),
            LineageKind::Model => ("models", "@"),
            LineageKind::LoggedModel => ("logged-models", "\0"),
            LineageKind::Dataset => ("data-sets", "\0"),
            _ => return None,
        };
        let (name, version) = match node.name.rsplit_once(separator) {
            Some((name, version)) => (name, Some(version.to_owned())),
            None => (node.name.as_str(), node.details.hash.clone()),
        };
        let source = json!({ "name": node.team, "uri": self.namespace(&node.team) });
        let mut facets = json!({
            "dataSource": self.facet("DatasourceDatasetFacet", "1-0-1", source),
        });
        if let Some(version) = version {
            let version = json!({ "datasetVersion": version });
            facets["version"] = self.facet("DatasetVersionDatasetFacet", "1-0-1", version);
        }
        let name = format!("{kind}/{name}");
        Some(json!({ "namespace": self.namespace(&node.team), "name": name, "facets": facets }))
    }

    fn run_facets(&self, run: &LineageNode, job: Option<&LineageNode>) -> Value {
        let mut facets = Map::new();
        if let Some(parent) =
            self.above(&run.id, &[Link::ChildOf]).into_iter().find(|one| !one.hidden)
        {
            let job = self.above(&parent.id, &[Link::RunOf]).into_iter().find(|job| !job.hidden);
            let of = json!({
                "run": { "runId": uuid(&self.unique(parent)) },
                "job": { "namespace": self.namespace(&parent.team), "name": job_name(parent, job) },
            });
            facets.insert("parent".to_owned(), self.facet("ParentRunFacet", "1-0-1", of));
        }
        if let Some(job) = job {
            // The schema of the fields: Berth's API description.
            let schema = format!("{}/openapi.json#/components/schemas/LineageDetails", self.server);
            let details = &job.details;
            facets.insert(
                "berth_job".to_owned(),
                json!({
                    "_producer": self.server,
                    "_schemaURL": schema,
                    "id": job.id,
                    "cost_micros": details.cost_micros,
                    "gpu_ms": details.gpu_ms,
                    "asks": details.asks,
                    "by": details.by,
                }),
            );
        }
        Value::Object(facets)
    }

    fn job_facets(&self, run: &LineageNode) -> Value {
        let Some(code) = self.above(&run.id, &[Link::WithCode]).into_iter().next() else {
            return json!({});
        };
        let version = code.details.commit.as_ref().unwrap_or(&code.name);
        let kind = if code.details.commit.is_some() { "git" } else { "snapshot" };
        let url = format!("{}/v1/code/{}/{}", self.server, code.team, code.name);
        let location = json!({ "type": kind, "url": url, "version": version });
        json!({
            "sourceCodeLocation": self.facet("SourceCodeLocationJobFacet", "1-0-1", location),
        })
    }
}

fn merge(into: &mut Value, fields: Value) {
    if let (Value::Object(into), Value::Object(fields)) = (into, fields) {
        into.extend(fields);
    }
}

/// The name of the job in OpenLineage, the same for all repetitions of a job.
fn job_name(run: &LineageNode, job: Option<&LineageNode>) -> String {
    match job.filter(|job| !job.name.is_empty()) {
        Some(job) => job.name.clone(),
        None => run.details.experiment.clone().unwrap_or_else(|| run.name.clone()),
    }
}

/// MLflow's ids have the digits of a UUID. For other ids, derives a UUID.
fn uuid(id: &str) -> String {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let digits = match id.len() == 32 && id.bytes().all(is_digit) {
        true => id.to_owned(),
        false => {
            let sum = &digest_of(id.as_bytes())[..32];
            // Version 8: a custom UUID.
            format!("{}8{}8{}", &sum[..12], &sum[13..16], &sum[17..])
        }
    };
    let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "0b3c0b3c0b3c0b3c0b3c0b3c0b3c0b3c";

    fn lineage() -> Lineage {
        let node = |id: &str, kind: &str, name: &str, details: Value| {
            json!({ "id": id, "kind": kind, "name": name, "team": "nlp", "label": id,
                    "details": details })
        };
        let at = |second: u32| format!("2026-11-19T09:00:{second:02}Z");
        let edge =
            |from: &str, to: &str, kind: &str| json!({ "from": from, "to": to, "kind": kind });
        let run = format!("run:{RUN}");
        let of_run = json!({ "status": "FINISHED", "started": at(0), "ended": at(9) });
        let of_job = json!({ "status": "done", "started": at(0), "ended": at(9),
                             "cost_micros": 1_500_000, "gpu_ms": 3_600_000 });
        serde_json::from_value(json!({
            "of": run, "more": false, "cost_micros": 1_500_000, "gpu_ms": 3_600_000,
            "nodes": [
                node(&run, "run", RUN, of_run),
                node("job:17", "job", "train", of_job.clone()),
                node("job:18", "job", "alone", of_job),
                node("data:c4@v3", "data", "c4@v3", json!({ "hash": "0a" })),
                node("code:0c", "code", "0c", json!({ "commit": "0c" })),
                node("logged_model:m-1", "logged_model", "m-1", json!({})),
                node("model:chat@1", "model", "chat@1", json!({})),
            ],
            "edges": [
                edge("logged_model:m-1", &run, "logged_by"),
                edge("model:chat@1", "logged_model:m-1", "registered_from"),
                edge(&run, "code:0c", "with_code"),
                edge(&run, "data:c4@v3", "read"),
                edge(&run, "job:17", "run_of"),
            ],
        }))
        .unwrap()
    }

    #[test]
    fn a_run_starts_and_ends_with_what_it_read_and_made_and_what_it_cost() {
        let events = events(&lineage(), "https://berth.example.org");
        let kinds: Vec<_> =
            events.iter().map(|event| event["eventType"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["START", "COMPLETE", "START", "COMPLETE"], "a job by itself is a run");
        let end = &events[1];
        assert_eq!(end["run"]["runId"], "0b3c0b3c-0b3c-0b3c-0b3c-0b3c0b3c0b3c");
        assert_eq!(end["eventTime"], "2026-11-19T09:00:09Z");
        assert_eq!(end["job"]["name"], "train");
        assert_eq!(end["job"]["namespace"], "https://berth.example.org/nlp");
        assert_eq!(end["job"]["facets"]["sourceCodeLocation"]["version"], "0c");
        assert_eq!(end["inputs"][0]["name"], "data/c4");
        assert_eq!(end["inputs"][0]["facets"]["version"]["datasetVersion"], "3");
        let names: Vec<_> =
            end["outputs"].as_array().unwrap().iter().map(|out| &out["name"]).collect();
        assert_eq!(names, ["logged-models/m-1", "models/chat"]);
        assert_eq!(end["run"]["facets"]["berth_job"]["cost_micros"], 1_500_000);
        assert_eq!(events[0]["outputs"], json!([]), "nothing is made when it starts");
    }

    #[test]
    fn every_event_and_facet_has_what_the_specification_asks_for() {
        fn facets(value: &Value, found: &mut Vec<Value>) {
            for (name, below) in value.as_object().into_iter().flatten() {
                if name == "facets" {
                    found.extend(below.as_object().unwrap().values().cloned());
                }
                facets(below, found);
            }
            value.as_array().into_iter().flatten().for_each(|below| facets(below, found));
        }
        for event in events(&lineage(), "https://berth.example.org") {
            for field in ["eventTime", "producer", "schemaURL", "eventType"] {
                assert!(event[field].is_string(), "{field}: {event}");
            }
            let id = event["run"]["runId"].as_str().unwrap();
            let parts: Vec<usize> = id.split('-').map(str::len).collect();
            assert_eq!(parts, [8, 4, 4, 4, 12], "{id}");
            let mut found = Vec::new();
            facets(&event, &mut found);
            assert!(!found.is_empty());
            for facet in found {
                assert!(
                    facet["_producer"].is_string() && facet["_schemaURL"].is_string(),
                    "{facet}"
                );
            }
            assert!(!event.to_string().contains('\n'), "one on each line");
        }
    }

    #[test]
    fn ids_become_uuids_that_follow_from_them() {
        assert_eq!(uuid("job:17"), uuid("job:17"));
        assert_ne!(uuid("job:17"), uuid("job:18"));
        assert_eq!(&uuid("job:17")[14..15], "8");
    }
}
