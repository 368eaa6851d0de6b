//! From YAML to what is wanted, with the place of every mistake.

use super::set_up::ModelFacts;
use super::words::{percent, quota, unit};
use crate::http::names;
use berth_api::FieldError;
use berth_api::wire::DocumentKind;
use berth_file::error::{did_you_mean, or_list};
use berth_model::{Budget, Micros, Milli, Name, Policy, PriorityClass, QueueSpec};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use serde_saphyr::Spanned;
use std::collections::BTreeMap;

/// What one document wants.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    pub line: usize,
    pub want: Want,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Want {
    Team {
        name: String,
        parent: Option<String>,
    },
    /// The whole queue, but for its budget.
    Queue(Box<QueueSpec>),
    /// The whole policy: knobs that are left out are as they come.
    Policy(Box<Policy>),
    Budget {
        queue: String,
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
        team: String,
        name: String,
    },
}

/// Something that is wrong with a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    pub line: usize,
    pub column: usize,
    pub key: String,
    pub message: String,
}

impl Mistake {
    pub fn error(&self) -> FieldError {
        FieldError {
            path: self.key.clone(),
            line: Some(self.line),
            column: Some(self.column),
            message: self.message.clone(),
        }
    }
}

type Result<T> = std::result::Result<T, Mistake>;

/// All documents of a text, or the first mistake of each that has one.
pub fn read(text: &str) -> std::result::Result<Vec<Document>, Vec<Mistake>> {
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
        let kept = match ends {
            None => line.to_owned(),
            Some(rest) => {
                parts.push("\n".repeat(number));
                // What stands on the line of the dashes belongs to the next document.
                format!("   {rest}")
            }
        };
        let last = parts.last_mut().expect("there is always one");
        last.push_str(&kept);
        last.push('\n');
    }
    parts
}

fn document(text: &str) -> Result<Option<Document>> {
    let is_blank = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    if text.lines().all(is_blank) {
        return Ok(None);
    }
    let fields = Fields::parse(text)?;
    let kind = fields.kind()?;
    let want = match kind {
        DocumentKind::Team => team(&fields)?,
        DocumentKind::Queue => queue(&fields)?,
        DocumentKind::Policy => policy(&fields)?,
        DocumentKind::Budget => budget(&fields)?,
        DocumentKind::Classes => classes(&fields)?,
        DocumentKind::Prices => prices(&fields)?,
        DocumentKind::Project => project(&fields)?,
    };
    Ok(Some(Document { line: fields.line(), want }))
}

/// The keys of a document, with their places.
struct Fields {
    what: String,
    entries: BTreeMap<String, Spanned<Value>>,
}

impl Fields {
    fn parse(text: &str) -> Result<Fields> {
        let entries = serde_saphyr::from_str(text).map_err(|error| {
            let error = error.without_snippet();
            let at = error.location();
            Mistake {
                line: at.map_or(1, |at| at.line() as usize),
                column: at.map_or(1, |at| at.column() as usize),
                key: String::new(),
                message: format!("this cannot be read: {error}"),
            }
        })?;
        Ok(Fields { what: "a document".to_owned(), entries })
    }

    /// The line that it begins on, or nearly so.
    fn line(&self) -> usize {
        self.entries.values().map(|value| value.referenced.line() as usize).min().unwrap_or(1)
    }

    fn mistake(&self, key: &str, message: impl Into<String>) -> Mistake {
        let at = self.entries.get(key).map(|value| value.referenced);
        Mistake {
            line: at.map_or_else(|| self.line(), |at| at.line() as usize),
            column: at.map_or(1, |at| at.column() as usize),
            key: key.to_owned(),
            message: message.into(),
        }
    }

    fn kind(&self) -> Result<DocumentKind> {
        let words = || DocumentKind::ALL.map(DocumentKind::word);
        let word = self.text("kind")?.ok_or_else(|| {
            self.mistake("kind", format!("a document needs a `kind`: {}", or_list(words())))
        })?;
        DocumentKind::ALL.into_iter().find(|kind| kind.word() == word).ok_or_else(|| {
            let hint = match did_you_mean(&word, words()) {
                hint if hint.is_empty() => format!("; expected {}", or_list(words())),
                hint => hint,
            };
            self.mistake("kind", format!("there is no kind `{word}`{hint}"))
        })
    }

    /// No other keys than these, and `kind`.
    fn only(&self, what: &str, known: &[&str]) -> Result<()> {
        for key in self.entries.keys().filter(|key| *key != "kind") {
            if !known.contains(&key.as_str()) {
                let hint = match did_you_mean(key, known.iter().copied()) {
                    hint if hint.is_empty() => {
                        format!("; expected {}", or_list(known.iter().copied()))
                    }
                    hint => hint,
                };
                return Err(self.mistake(key, format!("unknown key `{key}` in {what}{hint}")));
            }
        }
        Ok(())
    }

    fn get(&self, key: &str) -> Option<&Value> {
        self.entries.get(key).map(|entry| &entry.value).filter(|value| !value.is_null())
    }

    fn read<T>(
        &self,
        key: &str,
        read: impl FnOnce(&Value) -> std::result::Result<T, String>,
    ) -> Result<Option<T>> {
        let read = self.get(key).map(read).transpose();
        read.map_err(|why| self.mistake(key, format!("`{key}` of {}: {why}", self.what)))
    }

    fn of_type<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>> {
        self.read(key, |value| serde_json::from_value(value.clone()).map_err(|why| why.to_string()))
    }

    fn text(&self, key: &str) -> Result<Option<String>> {
        self.read(key, |value| {
            value.as_str().map(ToOwned::to_owned).ok_or_else(|| "expected a word".to_owned())
        })
    }

    fn name(&self, key: &str, what: &str) -> Result<String> {
        let name = self
            .text(key)?
            .ok_or_else(|| self.mistake(key, format!("a {what} has no `{key}`, which it needs")))?;
        let checked = names::check(what, &name);
        checked
            .map_err(|fault| self.mistake(key, format!("{}; {}", fault.0.detail, fault.0.next)))?;
        Ok(name)
    }
}

fn team(fields: &Fields) -> Result<Want> {
    fields.only("a team", &["name", "parent"])?;
    Ok(Want::Team { name: fields.name("name", "team")?, parent: fields.text("parent")? })
}

fn project(fields: &Fields) -> Result<Want> {
    fields.only("a project", &["name", "team"])?;
    Ok(Want::Project { team: fields.name("team", "team")?, name: fields.name("name", "project")? })
}

const QUEUE: &[&str] = &[
    "name",
    "parent",
    "quota",
    "weight",
    "priority",
    "limit",
    "borrow",
    "lend",
    "user_limit",
    "order",
    "min_runtime",
    "preempt_after",
    "time_sharing",
];

fn queue(fields: &Fields) -> Result<Want> {
    if fields.entries.contains_key("budget") {
        let message = "a queue's budget is a document of its own: {kind: budget, queue: …}";
        return Err(fields.mistake("budget", message));
    }
    fields.only("a queue", QUEUE)?;
    let new = QueueSpec::new(&fields.name("name", "queue")?);
    let amounts = |key| Ok::<_, Mistake>(fields.read(key, quota)?.unwrap_or_default());
    Ok(Want::Queue(Box::new(QueueSpec {
        parent: fields.text("parent")?.map(Name::from),
        quota: amounts("quota")?,
        weight: fields.read("weight", unit)?.unwrap_or(new.weight),
        priority: fields.of_type("priority")?.unwrap_or(new.priority),
        limit: amounts("limit")?,
        borrow: amounts("borrow")?,
        lend: amounts("lend")?,
        user_limit: amounts("user_limit")?,
        order: fields.of_type("order")?,
        min_runtime: fields.read("min_runtime", unit)?,
        preempt_after: fields.read("preempt_after", unit)?,
        time_sharing: fields.of_type("time_sharing")?,
        budget: None,
        name: new.name,
    })))
}

/// Each knob is read by itself, so that a mistake has its place.
fn policy(fields: &Fields) -> Result<Want> {
    let usual = Policy::default();
    let Ok(Value::Object(mut knobs)) = serde_json::to_value(&usual) else {
        unreachable!("a policy is a struct of plain data")
    };
    let known: Vec<String> = knobs.keys().filter(|key| *key != "version").cloned().collect();
    fields.only("the policy", &known.iter().map(String::as_str).collect::<Vec<_>>())?;
    for knob in &known {
        let Some(value) = fields.get(knob) else { continue };
        let alone: Map<String, Value> = [(knob.clone(), value.clone())].into_iter().collect();
        fields.read(knob, |_| {
            serde_json::from_value::<Policy>(Value::Object(alone)).map_err(|why| why.to_string())
        })?;
        knobs.insert(knob.clone(), value.clone());
    }
    let policy = serde_json::from_value(Value::Object(knobs));
    policy
        .map(|policy| Want::Policy(Box::new(policy)))
        .map_err(|why| fields.mistake("kind", format!("the policy: {why}")))
}

fn budget(fields: &Fields) -> Result<Want> {
    fields.only("a budget", &["queue", "limit", "per", "action", "thresholds"])?;
    let limit = fields.read("limit", unit)?;
    let thresholds = fields.read("thresholds", |value| match value {
        Value::Array(items) => items.iter().map(percent).collect(),
        one => percent(one).map(|one| vec![one]),
    })?;
    Ok(Want::Budget {
        queue: fields.name("queue", "queue")?,
        budget: Budget {
            limit: limit.ok_or_else(|| {
                fields.mistake("limit", "a budget has no `limit`, which it needs")
            })?,
            per: fields.of_type("per")?.unwrap_or_default(),
            action: fields.of_type("action")?.unwrap_or_default(),
            thresholds: thresholds.unwrap_or_default(),
        },
    })
}

fn classes(fields: &Fields) -> Result<Want> {
    fields.only("the classes", &["classes"])?;
    let classes = fields.read("classes", |value| {
        let Value::Object(classes) = value else { return Err("expected a map".to_owned()) };
        classes.iter().map(|(name, value)| Ok((Name::new(name), class(value)?))).collect()
    })?;
    let missing = || fields.mistake("classes", "the classes have no `classes`, which they need");
    classes.map(Want::Classes).ok_or_else(missing)
}

/// A number, or `{value: 1000, across: true}`.
fn class(value: &Value) -> std::result::Result<PriorityClass, String> {
    let (number, across) = match value {
        Value::Object(fields) => {
            if let Some(odd) =
                fields.keys().find(|key| !["value", "across"].contains(&key.as_str()))
            {
                return Err(format!("unknown key `{odd}`; expected value or across"));
            }
            let across = fields.get("across").map_or(Some(false), Value::as_bool);
            (fields.get("value"), across.ok_or("across is true or false")?)
        }
        other => (Some(other), false),
    };
    let value = number.and_then(Value::as_i64).and_then(|number| i32::try_from(number).ok());
    let value = value.ok_or("a class is a number, or {value: 1000, across: true}")?;
    Ok(PriorityClass { value, across })
}

fn prices(fields: &Fields) -> Result<Want> {
    fields.only("the prices", &["prices", "speeds", "watts"])?;
    Ok(Want::Prices {
        prices: fields.read("prices", |value| table(value, unit))?,
        speeds: fields.read("speeds", |value| table(value, unit))?,
        watts: fields.read("watts", |value| {
            let watts = |value: &Value| value.as_i64().filter(|watts| *watts >= 0);
            table(value, |value| watts(value).ok_or_else(|| "expected whole watts".to_owned()))
        })?,
    })
}

fn table<T>(
    value: &Value,
    read: impl Fn(&Value) -> std::result::Result<T, String>,
) -> std::result::Result<BTreeMap<Name, T>, String> {
    let Value::Object(models) = value else { return Err("expected a map by model".to_owned()) };
    let each = models.iter().map(|(model, value)| {
        read(value).map(|value| (Name::new(model), value)).map_err(|why| format!("{model}: {why}"))
    });
    each.collect()
}

impl Want {
    /// The tables with those that are wanted changed.
    pub fn models(&self, before: &ModelFacts) -> ModelFacts {
        let Want::Prices { prices, speeds, watts } = self else { return before.clone() };
        ModelFacts {
            prices: prices.clone().unwrap_or_else(|| before.prices.clone()),
            speeds: speeds.clone().unwrap_or_else(|| before.speeds.clone()),
            watts: watts.clone().unwrap_or_else(|| before.watts.clone()),
        }
    }
}

#[cfg(test)]
mod tests;
