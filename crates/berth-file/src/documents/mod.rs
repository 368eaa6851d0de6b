//! Documents that say how a cluster is set up: teams, queues, the policy, budgets, classes, prices,
//! projects and where messages go. What one of them says is written as in a world file, or as an
//! object for Kubernetes.

use crate::error::{Error, Position, Result, did_you_mean, or_list};
use crate::fields::{Fields, int, map, name, named, text, unit_from_zero};
use crate::object::{self, Object};
use crate::tree::{self, Limits, Node, Value};
use crate::world::{policy, pools, queues, read_classes};
use berth_model::{Budget, Micros, Milli, Name, Policy, PriorityClass, QueueSpec, Time};
use std::collections::BTreeMap;

#[cfg(test)]
mod tests;

/// What one document wants, and where it begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    pub at: Position,
    pub want: Want,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Want {
    Team {
        name: Name,
        parent: Option<Name>,
    },
    /// The whole queue, but for its budget.
    Queue(Box<QueueSpec>),
    /// The whole policy: knobs that are left out are as they come.
    Policy(Box<Policy>),
    Budget {
        queue: Name,
        budget: Budget,
    },
    Classes(BTreeMap<Name, PriorityClass>),
    /// Tables that are left out stay.
    Prices {
        prices: Option<BTreeMap<Name, Micros>>,
        speeds: Option<BTreeMap<Name, Milli>>,
        watts: Option<BTreeMap<Name, i64>>,
    },
    Project {
        team: Name,
        name: Name,
    },
    /// Where messages to a target go; nowhere without an address.
    Notify {
        target: Name,
        url: Option<String>,
    },
}

type Reader = fn(&Node) -> Result<Want>;

/// Every kind with the keys it takes besides `kind`.
const KINDS: [(&str, Reader); 9] = [
    ("team", team),
    ("queue", queue),
    ("policy", read_policy),
    ("budget", budget),
    ("classes", classes),
    ("prices", prices),
    ("project", project),
    ("notify", notify),
    ("pool", pool),
];

pub(crate) const BUDGET: &[&str] = &["queue", "limit", "per", "action", "thresholds"];

/// What is said of a pool that is as it should be.
pub const NO_POOLS: &str = "machines cannot be bought yet, so a pool has no effect: leave it out, \
                            and add nodes to the cluster yourself";

/// All documents of a text, or the first mistake of each that has one.
pub fn read(text: &str) -> std::result::Result<Vec<Document>, Vec<Error>> {
    let (mut documents, mut mistakes) = (Vec::new(), Vec::new());
    for part in split(text) {
        match document(&part) {
            Ok(found) => documents.extend(found),
            Err(mistake) => mistakes.push(mistake),
        }
    }
    if mistakes.is_empty() { Ok(documents) } else { Err(mistakes) }
}

/// The documents, each with as many empty lines before it as there were lines: places stay what
/// they are. At the start of a line `---` ends a document, whatever it stands in.
fn split(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for (number, line) in text.lines().enumerate() {
        let rest = line.strip_prefix("---").or_else(|| line.strip_prefix("..."));
        let ends = rest.filter(|rest| rest.is_empty() || rest.starts_with([' ', '\t']));
        let content = match ends {
            None => line.to_owned(),
            Some(rest) => {
                parts.push("\n".repeat(number));
                // What stands on the line of the dashes belongs to the next document.
                format!("   {rest}")
            }
        };
        let last = parts.last_mut().expect("there is always one");
        last.push_str(&content);
        last.push('\n');
    }
    parts
}

fn document(text: &str) -> Result<Option<Document>> {
    // Whoever may apply documents is trusted with as much as whoever submits jobs.
    let mut node = tree::parse(text, Limits::JOB)?;
    let entries = map(&node).map_err(|error| error.within("a document"))?;
    if entries.is_empty() {
        return Ok(None);
    }
    if let Some(object) = object::of(&node)? {
        let at = node.at;
        node = Node { at, ..of_object(object)? };
    }
    let read = kind(&node)?;
    if let Value::Map(entries) = &mut node.value {
        entries.retain(|entry| entry.key != "kind");
    }
    Ok(Some(Document { at: node.at, want: read(&node)? }))
}

fn of_object(object: Object) -> Result<Node> {
    let kind = object.kind;
    let flat = object.flat()?;
    match kind {
        object::Kind::Job => {
            let message = "a job is submitted, not set up: use `berth run -f FILE`, or kubectl";
            Err(Error::new(flat.at, message))
        }
        _ => Ok(flat),
    }
}

fn kind(node: &Node) -> Result<Reader> {
    let words = || KINDS.iter().map(|(word, _)| *word);
    let Some(entry) = map(node)?.iter().find(|entry| entry.key == "kind") else {
        let message = format!("a document needs a `kind`: {}", or_list(words()));
        return Err(Error::new(node.at, message));
    };
    let word = text(&entry.value, "a kind")?;
    let known = KINDS.iter().find(|(known, _)| *known == word);
    known.map(|(_, read)| *read).ok_or_else(|| {
        let hint = match did_you_mean(word, words()) {
            hint if hint.is_empty() => format!("; expected {}", or_list(words())),
            hint => hint,
        };
        Error::new(entry.value.at, format!("there is no kind `{word}`{hint}"))
    })
}

fn team(node: &Node) -> Result<Want> {
    let fields = Fields::of(node, "a team", &["name", "parent"])?;
    Ok(Want::Team { name: fields.demand("name", name)?, parent: fields.read("parent", name)? })
}

fn project(node: &Node) -> Result<Want> {
    let fields = Fields::of(node, "a project", &["name", "team"])?;
    Ok(Want::Project { team: fields.demand("team", name)?, name: fields.demand("name", name)? })
}

/// What a queue has used and spent is no wish.
fn queue(node: &Node) -> Result<Want> {
    if let Some(entry) = map(node)?.iter().find(|entry| entry.key == "budget") {
        let message = "a queue's budget is a document of its own: {kind: budget, queue: …}";
        return Err(Error::new(entry.at, message));
    }
    Fields::of(node, "a queue", queues::WISHED)?;
    Ok(Want::Queue(Box::new(queues::read(node, None)?.spec)))
}

/// Whoever applies a policy does not count its versions.
fn read_policy(node: &Node) -> Result<Want> {
    if let Some(entry) = map(node)?.iter().find(|entry| entry.key == "version") {
        return Err(Error::new(entry.at, "unknown key `version` in the policy: it is counted"));
    }
    Ok(Want::Policy(Box::new(policy::read(node, Policy::default())?)))
}

fn budget(node: &Node) -> Result<Want> {
    let fields = Fields::of(node, "a budget", BUDGET)?;
    let queue = fields.demand("queue", name)?;
    let mut rest = node.clone();
    if let Value::Map(entries) = &mut rest.value {
        entries.retain(|entry| entry.key != "queue");
    }
    let (budget, _) = queues::read_budget(&rest)?;
    Ok(Want::Budget { queue, budget })
}

/// Read for its mistakes.
fn pool(node: &Node) -> Result<Want> {
    if let Some(entry) = map(node)?.iter().find(|entry| entry.key == "claims") {
        return Err(Error::new(entry.at, "unknown key `claims` in a pool: Berth decides on them"));
    }
    let pool = pools::read_pool(node, Time(0))?;
    if pool.min > pool.max {
        return Err(Error::new(node.at, "a pool has a `min` above its `max`"));
    }
    Err(Error::new(node.at, NO_POOLS))
}

fn classes(node: &Node) -> Result<Want> {
    let fields = Fields::of(node, "the table of classes", &["classes"])?;
    Ok(Want::Classes(fields.demand("classes", read_classes)?))
}

fn prices(node: &Node) -> Result<Want> {
    let fields = Fields::of(node, "the table of prices", &["prices", "speeds", "watts"])?;
    let watts = |node: &Node| int::<u32>(node).map(i64::from);
    Ok(Want::Prices {
        prices: fields.read("prices", |node| named(node, unit_from_zero))?,
        speeds: fields.read("speeds", |node| named(node, unit_from_zero))?,
        watts: fields.read("watts", |node| named(node, watts))?,
    })
}

/// `alerts`, or a target as job files name it.
fn notify(node: &Node) -> Result<Want> {
    let fields = Fields::of(node, "a target of messages", &["name", "url"])?;
    let target = fields.demand("name", |node| {
        let target = name(node)?;
        let named = ["slack:", "webhook:"]
            .iter()
            .any(|via| target.strip_prefix(via).is_some_and(|to| !to.is_empty()));
        match named || *target == *"alerts" {
            true => Ok(target),
            false => {
                let expected = "alerts, or a target such as slack:#team or webhook:oncall";
                Err(Error::expected(node.at, &node.found(), expected))
            }
        }
    })?;
    let url = fields.read("url", |node| {
        let url = text(node, "an address")?;
        match url.starts_with("https://") || url.starts_with("http://") {
            true => Ok(url.to_owned()),
            // What was found may be confidential.
            false => Err(Error::new(node.at, "expected an address such as https://…")),
        }
    })?;
    Ok(Want::Notify { target, url })
}
