//! Objects as Kubernetes writes them: `apiVersion`, `kind`, `metadata` and `spec`. A spec says what
//! a document or a job file says, so that one file serves `kubectl apply` and `berth apply` alike.

use crate::error::{Error, Result, did_you_mean, or_list};
use crate::fields::{map, text};
use crate::tree::{Entry, Node, Value};
use crate::world::{policy, pools, words};

/// The API group of our objects, and its version.
pub const GROUP: &str = "berth.dev";
pub const VERSION: &str = "v1alpha1";
/// There is one policy, and its object is called so.
pub const POLICY: &str = "default";

/// The kinds of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Queue,
    Policy,
    Pool,
    Job,
    Budget,
}

impl Kind {
    pub const ALL: [Kind; 5] = [Kind::Queue, Kind::Policy, Kind::Pool, Kind::Job, Kind::Budget];

    pub const fn word(self) -> &'static str {
        match self {
            Kind::Queue => "Queue",
            Kind::Policy => "Policy",
            Kind::Pool => "Pool",
            Kind::Job => "Job",
            Kind::Budget => "Budget",
        }
    }

    /// As addresses have it.
    pub const fn plural(self) -> &'static str {
        match self {
            Kind::Queue => "queues",
            Kind::Policy => "policies",
            Kind::Pool => "pools",
            Kind::Job => "jobs",
            Kind::Budget => "budgets",
        }
    }
}

/// The keys of what a pool offers.
pub const OFFERING: &[&str] = pools::OFFERING;

/// The knobs of a policy, each with the kind of its value: `number`, `unit`, `flag`, or one of
/// those that have [`words_of`] their own.
pub fn knobs() -> impl Iterator<Item = (&'static str, &'static str)> {
    policy::KINDS.iter().copied().filter(|(key, _)| *key != "version")
}

/// The words that a kind of value takes.
pub fn words_of(kind: &str) -> Vec<&'static str> {
    fn of<T>(words: &[(&'static str, T)]) -> Vec<&'static str> {
        words.iter().map(|(word, _)| *word).collect()
    }
    match kind {
        "order" => of(&words::ORDERS),
        "backfill" => of(&words::BACKFILLS),
        "strategy" => of(&words::STRATEGIES),
        "share_gpus" => of(&words::SHARE_GPUS),
        "passes" => of(&words::PASSES),
        "lifecycle" => of(&words::LIFECYCLES),
        "action" => of(&words::ACTIONS),
        "per" => of(&words::PERIODS),
        _ => Vec::new(),
    }
}

/// An object of ours, taken apart.
pub(crate) struct Object {
    pub kind: Kind,
    name: Entry,
    spec: Node,
}

/// The object that a text has; nothing where it has none.
pub(crate) fn of(node: &Node) -> Result<Option<Object>> {
    let Value::Map(entries) = &node.value else { return Ok(None) };
    let find = |key: &str| entries.iter().find(|entry| entry.key == key);
    let Some(version) = find("apiVersion") else { return Ok(None) };
    let is_ours = text(&version.value, "a version")?.split_once('/').map(|(group, _)| group);
    if is_ours != Some(GROUP) {
        let message = format!(
            "found {}, expected {GROUP}/{VERSION}: other objects are for kubectl",
            version.value.found()
        );
        return Err(Error::new(version.value.at, message));
    }
    let known = ["apiVersion", "kind", "metadata", "spec", "status"];
    if let Some(odd) = entries.iter().find(|entry| !known.contains(&entry.key.as_str())) {
        let hint = did_you_mean(&odd.key, known);
        return Err(Error::new(odd.at, format!("unknown key `{}` in an object{hint}", odd.key)));
    }
    let missing = |key: &str| Error::new(node.at, format!("an object needs its `{key}`"));
    let kind = kind(&find("kind").ok_or_else(|| missing("kind"))?.value)?;
    let metadata = &find("metadata").ok_or_else(|| missing("metadata"))?.value;
    let name = map(metadata)?.iter().find(|entry| entry.key == "name");
    let name = name.ok_or_else(|| Error::new(metadata.at, "an object needs `metadata.name`"))?;
    let nothing = Node { at: node.at, value: Value::Map(Vec::new()) };
    let spec = find("spec").map_or(nothing, |spec| spec.value.clone());
    if let Some(odd) = map(&spec)?.iter().find(|entry| entry.key == "name") {
        return Err(Error::new(odd.at, "the name of an object is in its metadata; leave this out"));
    }
    Ok(Some(Object { kind, name: name.clone(), spec }))
}

fn kind(node: &Node) -> Result<Kind> {
    let word = text(node, "a kind")?;
    let words = || Kind::ALL.iter().map(|kind| kind.word());
    Kind::ALL.into_iter().find(|kind| kind.word() == word).ok_or_else(|| {
        let hint = match did_you_mean(word, words()) {
            hint if hint.is_empty() => format!("; expected {}", or_list(words())),
            hint => hint,
        };
        Error::new(node.at, format!("there is no kind `{word}` of objects{hint}"))
    })
}

impl Object {
    /// The same as a document or a job file has it: all keys in one map.
    pub fn flat(self) -> Result<Node> {
        let Object { kind, name, mut spec } = self;
        let at = spec.at;
        let Value::Map(entries) = &mut spec.value else { return Ok(spec) };
        let has = |entries: &[Entry], key: &str| entries.iter().any(|entry| entry.key == key);
        match kind {
            Kind::Policy => {
                let found = text(&name.value, "a name")?;
                if found != POLICY {
                    let message =
                        format!("there is one policy, so its object is called `{POLICY}`");
                    return Err(Error::new(name.value.at, message));
                }
            }
            Kind::Budget if has(entries, "queue") => {}
            Kind::Budget => entries.push(Entry { key: "queue".to_owned(), ..name }),
            Kind::Queue | Kind::Pool | Kind::Job => entries.push(name),
        }
        if kind != Kind::Job {
            let text = kind.word().to_lowercase();
            let value = Node { at, value: Value::Scalar { text, plain: true } };
            entries.push(Entry { at, key: "kind".to_owned(), value });
        }
        Ok(spec)
    }
}
