//! Formats a lineage as trees: first the inputs of the start, then its outputs.

use crate::show::{Look, Tone, words};
use berth_api::wire::{Lineage, LineageEdge, LineageKind, LineageLink, LineageNode};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

pub fn text(found: &Lineage, look: &Look) -> String {
    let nodes: BTreeMap<&str, (usize, &LineageNode)> =
        found.nodes.iter().enumerate().map(|(at, node)| (node.id.as_str(), (at, node))).collect();
    let mut tree =
        Tree { nodes, edges: &found.edges, look, seen: BTreeSet::new(), out: String::new() };
    tree.branch(&found.of, "", "", Way::Up);
    tree.seen.clear();
    if !tree.next(&found.of, Way::Down).is_empty() {
        tree.out.push_str("\nMade from it:\n");
        tree.below(&found.of, "", Way::Down);
    }
    let jobs = found.nodes.iter().any(|node| node.kind == LineageKind::Job && !node.hidden);
    if jobs {
        let (cost, hours) = (words::money(found.cost_micros), words::gpu_hours(found.gpu_ms));
        let _ = write!(tree.out, "\nIts jobs cost {cost} in {hours} GPU-hours.\n");
    }
    tree.out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

struct Tree<'a> {
    /// Nodes by id, with their position in the answer.
    nodes: BTreeMap<&'a str, (usize, &'a LineageNode)>,
    edges: &'a [LineageEdge],
    look: &'a Look,
    seen: BTreeSet<&'a str>,
    out: String,
}

impl<'a> Tree<'a> {
    /// The neighbours of a node, in the order of the answer.
    fn next(&self, id: &str, way: Way) -> Vec<(&'a LineageNode, LineageLink)> {
        let edges = self.edges.iter();
        let mut next: Vec<(usize, &LineageNode, LineageLink)> = edges
            .filter_map(|edge| {
                let (from, to) = match way {
                    Way::Up => (&edge.from, &edge.to),
                    Way::Down => (&edge.to, &edge.from),
                };
                let (at, node) = self.nodes.get(to.as_str()).filter(|_| from == id)?;
                Some((*at, *node, edge.kind))
            })
            .collect();
        next.sort_by_key(|(at, _, link)| (*at, *link));
        next.into_iter().map(|(_, node, link)| (node, link)).collect()
    }

    fn branch(&mut self, id: &str, first: &str, rest: &str, way: Way) {
        let Some((_, node)) = self.nodes.get(id).copied() else { return };
        let is_new = self.seen.insert(node.id.as_str());
        let label = match node.hidden || node.gone {
            true => self.look.paint(Tone::Quiet, &plain(&node.label)),
            false => self.look.paint(Tone::Strong, &plain(&node.label)),
        };
        let shown = if is_new { facts(node) } else { "shown above".to_owned() };
        let gap = if shown.is_empty() { "" } else { "  " };
        let _ = writeln!(self.out, "{first}{label}{gap}{shown}");
        if is_new {
            self.below(&node.id, rest, way);
        }
    }

    fn below(&mut self, id: &str, rest: &str, way: Way) {
        let next = self.next(id, way);
        for (at, (node, _)) in next.iter().enumerate() {
            let (first, rest) = match at + 1 == next.len() {
                true => (format!("{rest}└─ "), format!("{rest}   ")),
                false => (format!("{rest}├─ "), format!("{rest}│  ")),
            };
            self.branch(&node.id, &first, &rest, way);
        }
    }
}

/// The most important details of a node.
fn facts(node: &LineageNode) -> String {
    let details = &node.details;
    let mut facts: Vec<String> = Vec::new();
    if !details.aliases.is_empty() {
        facts.push(format!("({})", details.aliases.join(", ")));
    }
    facts.extend(details.status.as_deref().map(str::to_lowercase));
    match node.kind {
        LineageKind::Job => {
            facts.extend(details.cost_micros.map(words::money));
            let hours = details.gpu_ms.filter(|ms| *ms > 0).map(words::gpu_hours);
            facts.extend(hours.map(|hours| format!("{hours} GPU-hours")));
            facts.extend(details.by.clone());
        }
        LineageKind::Data => {
            let bytes = details.bytes.map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
            facts.extend(bytes.map(words::bytes));
            facts.extend(details.files.map(|files| words::count(files, "file")));
            facts.extend(details.note.clone());
        }
        LineageKind::Run => {
            facts.extend(details.experiment.clone());
            facts.extend(details.gpus.clone());
            facts.extend(details.checkpoint.as_ref().map(|path| format!("checkpoint {path}")));
        }
        _ => {}
    }
    plain(&facts.join(", "))
}

/// Users choose names, so remove control characters.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_is_shown_once_with_its_money_and_what_it_was_made_from_below_it() {
        let node = |id: &str, kind: &str, details: &str| {
            format!(
                r#"{{"id": "{id}", "kind": "{kind}", "name": "", "team": "nlp",
                    "label": "{id}", "details": {details}}}"#
            )
        };
        let edge = |from: &str, to: &str, kind: &str| {
            format!(r#"{{"from": "{from}", "to": "{to}", "kind": "{kind}"}}"#)
        };
        let nodes = [
            node("run:1", "run", r#"{"status": "FINISHED"}"#),
            node(
                "job:17",
                "job",
                r#"{"status": "done", "cost_micros": 1500000, "gpu_ms": 3600000}"#,
            ),
            node("data:c4@v2", "data", r#"{"bytes": 2048, "files": 1}"#),
            node("data:c4@v1", "data", "{}"),
            node("model:chat@1", "model", r#"{"aliases": ["champion"]}"#),
        ];
        let edges = [
            edge("data:c4@v2", "data:c4@v1", "derived_from"),
            edge("model:chat@1", "run:1", "registered_from"),
            edge("run:1", "data:c4@v1", "read"),
            edge("run:1", "data:c4@v2", "read"),
            edge("run:1", "job:17", "run_of"),
        ];
        let found = format!(
            r#"{{"of": "run:1", "nodes": [{}], "edges": [{}], "cost_micros": 1500000,
                "gpu_ms": 3600000, "more": false}}"#,
            nodes.join(","),
            edges.join(",")
        );
        let found: Lineage = serde_json::from_str(&found).unwrap();
        assert_eq!(
            text(&found, &Look::fixed()),
            "run:1  finished\n\
             ├─ job:17  done, $1.50, 1.00 GPU-hours\n\
             ├─ data:c4@v2  2 KiB, 1 file\n\
             │  └─ data:c4@v1\n\
             └─ data:c4@v1  shown above\n\
             \n\
             Made from it:\n\
             └─ model:chat@1  (champion)\n\
             \n\
             Its jobs cost $1.50 in 1.00 GPU-hours.\n"
        );
    }
}
