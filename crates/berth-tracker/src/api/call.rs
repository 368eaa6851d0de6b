//! One request: its caller, its fields, and what the caller may see.

use crate::error::{Code, Error, Result};
use crate::event::Event;
use crate::fields::Fields;
use crate::grammar::{self, Clause, Entity, Order, Things};
use crate::model::{DEFAULT_EXPERIMENT, Experiment, Run, RunHead};
use crate::ports::{Actor, DocChange, DocKey, DocSet, Kind, Load, Right, Store};
use crate::{encode, limits, page};
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A change that the audit log records.
#[derive(Debug, Clone, PartialEq)]
pub struct Changed {
    pub target: String,
    pub detail: Value,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reply {
    /// JSON.
    pub body: Vec<u8>,
    pub changed: Option<Changed>,
    /// The event to send to webhooks of the team.
    pub event: Option<Event>,
    pub restored: Option<Restored>,
}

/// What a request has restored. Its runs have to catch up with their jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Restored {
    Run(String),
    Experiment(i64),
}

impl Reply {
    pub fn json(value: &Value) -> Reply {
        Reply::bytes(encode::bytes(value))
    }

    pub fn bytes(body: Vec<u8>) -> Reply {
        Reply { body, ..Reply::default() }
    }

    pub fn empty() -> Reply {
        Reply::bytes(b"{}".to_vec())
    }

    pub fn event(self, event: Option<Event>) -> Reply {
        Reply { event, ..self }
    }

    /// Sets the change that the audit log records.
    pub fn noted(self, target: impl Into<String>, detail: Value) -> Reply {
        Reply { changed: Some(Changed { target: target.into(), detail }), ..self }
    }
}

pub struct Call<'a> {
    pub store: &'a dyn Store,
    pub actor: &'a dyn Actor,
    pub fields: Fields,
    /// The values of the `{}` placeholders of the route.
    pub parts: Vec<String>,
    pub body: &'a [u8],
    /// Milliseconds since 1970.
    pub now: i64,
}

impl Call<'_> {
    /// The team that new experiments, runs and models belong to.
    pub fn team(&self) -> Result<&str> {
        self.actor.team().ok_or_else(|| {
            Error::new(
                Code::PermissionDenied,
                format!(
                    "{} is in no team. Name one in the header X-Berth-Team, or ask a lead to add \
                     you to a team",
                    self.actor.user()
                ),
            )
        })
    }

    /// The team, if the caller has the right there.
    pub fn team_for(&self, right: Right) -> Result<&str> {
        let team = self.team()?;
        self.must(right, team, None)?;
        Ok(team)
    }

    pub fn must(&self, right: Right, team: &str, by: Option<&str>) -> Result<()> {
        if self.actor.may(right, team, by) {
            return Ok(());
        }
        let what = match right {
            Right::Read => "read what team",
            Right::Write => "write to what team",
            Right::Manage => "delete, restore or share what another user of team",
        };
        let user = self.actor.user();
        let said = format!("Permission denied: {user} may not {what} {team} tracks");
        Err(Error::new(Code::PermissionDenied, said))
    }

    pub fn sees(&self, experiment: &Experiment) -> bool {
        let reads = |team: &str| self.actor.may(Right::Read, team, None);
        reads(&experiment.team)
            || experiment.shared_with.iter().any(|team| reads(team) || team == "*")
    }

    /// An experiment that the caller may read; for others the answer is "not found".
    pub async fn experiment(&self, id: &str) -> Result<Arc<Experiment>> {
        let no: i64 = id.parse().map_err(|_| {
            Error::invalid(format!(
                "Invalid experiment ID '{id}'. Experiment ID must be a valid integer."
            ))
        })?;
        if no == 0 {
            let home = self.actor.home().and_then(|no| self.store.experiment(no));
            return match home.filter(|home| self.sees(home) && !home.deleted) {
                Some(home) => Ok(home),
                None => self.default_experiment().await,
            };
        }
        let found = self.store.experiment(no).filter(|found| self.sees(found));
        found.ok_or_else(|| Error::absent(format!("No Experiment with id={no} exists")))
    }

    /// The default experiment of the team. The first request creates it.
    pub async fn default_experiment(&self) -> Result<Arc<Experiment>> {
        let team = self.team_for(Right::Read)?.to_owned();
        if let Some(found) = self.store.experiment_named(&team, DEFAULT_EXPERIMENT) {
            return Ok(found);
        }
        let made = self.make_experiment(&team, DEFAULT_EXPERIMENT, BTreeMap::new()).await;
        let found = self.store.experiment_named(&team, DEFAULT_EXPERIMENT);
        match (found, made) {
            (Some(found), _) => Ok(found),
            (None, Err(error)) => Err(error),
            (None, Ok(_)) => Err(Error::internal("the default experiment was not made")),
        }
    }

    pub async fn make_experiment(
        &self,
        team: &str,
        name: &str,
        tags: BTreeMap<String, String>,
    ) -> Result<Vec<u8>> {
        let kept = self.store.count(Kind::Experiment, team.to_owned()).await?;
        if kept >= limits::EXPERIMENTS_PER_TEAM as u64 {
            return Err(Error::over_limit(format!(
                "Team {team} has {kept} experiments, which is all a team may have"
            )));
        }
        let (now, by) = (self.now, self.actor.user().to_owned());
        let (team, name) = (team.to_owned(), name.to_owned());
        let load = Load {
            kind: Kind::Experiment,
            scope: team.clone(),
            name: Some(name.clone()),
            sub: None,
        };
        let edit = move |docs: &mut DocSet| {
            if let Some((_, there)) = docs.all::<Experiment>(Kind::Experiment)?.pop() {
                let said = format!("Experiment(name={name}) already exists.");
                return Err(Error::exists(match there.deleted {
                    true => format!("{said} It is deleted: restore it, or choose another name."),
                    false => said,
                }));
            }
            let no = docs.next_experiment;
            docs.next_experiment += 1;
            let key = experiment_key(&team, &name, no);
            let made = Experiment {
                no,
                team,
                name,
                deleted: false,
                created: now,
                updated: now,
                by,
                tags,
                shared_with: Vec::new(),
            };
            docs.put(key, &made);
            Ok(encode::bytes(&json!({ "experiment_id": no.to_string() })))
        };
        self.store.edit(DocChange { load: vec![load], edit: Box::new(edit) }).await
    }

    /// Changes one experiment.
    pub async fn edit_experiment(
        &self,
        experiment: &Experiment,
        change: impl FnOnce(&mut Experiment, &mut DocSet) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        let key = experiment_key(&experiment.team, &experiment.name, experiment.no);
        let load = Load {
            kind: Kind::Experiment,
            scope: key.scope.clone(),
            name: Some(key.name.clone()),
            sub: Some(key.sub),
        };
        let now = self.now;
        let edit = move |docs: &mut DocSet| {
            let there: Option<Experiment> = docs.get(&key)?;
            let mut there = there.ok_or_else(|| {
                Error::new(Code::Conflict, "The experiment was changed meanwhile; try again")
            })?;
            change(&mut there, docs)?;
            there.updated = now;
            docs.put(experiment_key(&there.team, &there.name, there.no), &there);
            Ok(b"{}".to_vec())
        };
        let change = DocChange { load: vec![load], edit: Box::new(edit) };
        self.store.edit(change).await.map(drop)
    }

    /// A run that the caller may read, with its experiment.
    pub async fn run(&self, id: &str) -> Result<(RunHead, Arc<Experiment>)> {
        let absent = || Error::absent(format!("Run with id={id} not found"));
        let head = self.store.run_head(id).await?.ok_or_else(absent)?;
        let experiment = self.store.experiment(head.experiment).ok_or_else(absent)?;
        if !self.sees(&experiment) {
            return Err(absent());
        }
        Ok((head, experiment))
    }

    /// All of a run.
    pub async fn read_run(&self, head: &RunHead) -> Result<Run> {
        let mut found = self.store.runs(&[head.no]).await?;
        found.pop().ok_or_else(|| Error::absent(format!("Run with id={} not found", head.id)))
    }

    /// A run that the caller may write to.
    pub async fn own_run(&self, id: &str) -> Result<(RunHead, Arc<Experiment>)> {
        let (head, experiment) = self.run(id).await?;
        self.must(Right::Write, &experiment.team, Some(&head.by))?;
        Ok((head, experiment))
    }
}

pub fn experiment_key(team: &str, name: &str, no: i64) -> DocKey {
    DocKey { kind: Kind::Experiment, scope: team.to_owned(), name: name.to_owned(), sub: no }
}

/// Validates the tags of a request.
pub fn checked_tags(
    pairs: Vec<(String, String)>,
    most_value: usize,
) -> Result<BTreeMap<String, String>> {
    let mut tags = BTreeMap::new();
    for (index, (key, value)) in pairs.into_iter().enumerate() {
        limits::name(&key, || format!("tags[{index}].key"))?;
        limits::length("key", &key, limits::KEY)?;
        limits::length("value", &value, most_value)?;
        limits::no_zero("value", &value)?;
        tags.insert(key, value);
    }
    must_fit(&tags)?;
    Ok(tags)
}

/// Sets a tag, unless that exceeds the limits.
pub fn put_tag(tags: &mut BTreeMap<String, String>, key: String, value: String) -> Result<()> {
    tags.insert(key, value);
    must_fit(tags)
}

/// Limits also the bytes: the store reads and writes a document with all its tags.
fn must_fit(tags: &BTreeMap<String, String>) -> Result<()> {
    let (number, most) = (tags.len(), limits::TAGS_PER_THING);
    if number > most {
        let said = format!("{number} tags exceed the limit of {most}");
        return Err(Error::over_limit(said));
    }
    let bytes: usize = tags.iter().map(|(key, value)| key.len() + value.len()).sum();
    if bytes > limits::TAG_BYTES_PER_THING {
        let most = limits::TAG_BYTES_PER_THING >> 20;
        let said = format!("The tags have {bytes} bytes; the limit is {most} MiB");
        return Err(Error::over_limit(said));
    }
    Ok(())
}

/// A random, unique id.
pub fn random_id() -> Result<String> {
    let mut bytes = [0; 16];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| Error::internal("the system returns no random numbers"))?;
    Ok(hex::encode(bytes))
}

/// A search as its request describes it.
pub struct Search {
    pub clauses: Vec<Clause>,
    pub orders: Vec<Order>,
    pub offset: u64,
    /// Results of a page.
    pub most: usize,
}

impl Search {
    /// A page has `usual` results unless the request sets `max_results`.
    pub fn read(fields: &Fields, entity: Entity, usual: usize, most: usize) -> Result<Search> {
        let filter = fields.text("filter")?.unwrap_or_default();
        Ok(Search {
            most: fields.max_results(usual, most)?,
            offset: page::offset(fields.text("page_token")?.as_deref())?,
            clauses: grammar::filter(entity, &filter)?,
            orders: grammar::orders(entity, &fields.texts("order_by")?)?,
        })
    }

    /// One page of the matches, in the requested order.
    pub fn page<T: Things>(
        &self,
        found: Vec<T>,
        order: impl Fn(&T, &T) -> std::cmp::Ordering,
    ) -> (Vec<T>, Option<String>) {
        select(found, &self.clauses, order, (self.offset, self.most))
    }
}

/// The ids of the experiments of a search, without duplicates.
pub fn searched_experiments(fields: &Fields) -> Result<BTreeSet<String>> {
    let ids: BTreeSet<String> = fields.texts("experiment_ids")?.into_iter().collect();
    let (found, most) = (ids.len(), limits::EXPERIMENTS_PER_SEARCH);
    if found > most {
        let said = format!("A search names at most {most} experiments; this one names {found}");
        return Err(Error::invalid(said));
    }
    Ok(ids)
}

/// Filters, sorts and paginates.
pub fn select<T: Things>(
    mut found: Vec<T>,
    clauses: &[Clause],
    order: impl Fn(&T, &T) -> std::cmp::Ordering,
    (offset, most): (u64, usize),
) -> (Vec<T>, Option<String>) {
    found.retain(|one| grammar::matches(one, clauses));
    found.sort_by(order);
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(found.len());
    page::cut(found.split_off(start), offset, most)
}

/// An answer with a list, and the token of the next page.
pub fn listed(name: &str, items: Vec<Value>, next: Option<String>) -> Reply {
    let mut out = json!({ name: items });
    if let Some(next) = next {
        out["next_page_token"] = json!(next);
    }
    Reply::json(&out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_a_thing_are_limited_in_number_and_in_bytes() {
        let pairs = |number: usize, bytes: usize| {
            (0..number).map(|n| (format!("key {n}"), "x".repeat(bytes))).collect()
        };
        let refused = |found: Result<BTreeMap<String, String>>| found.unwrap_err().code;
        let most = limits::REGISTRY_TAG_VALUE;
        assert!(checked_tags(pairs(limits::TAGS_PER_THING, 10), most).is_ok());
        let more = checked_tags(pairs(limits::TAGS_PER_THING + 1, 10), most);
        assert_eq!(refused(more), Code::LimitExceeded);
        assert_eq!(refused(checked_tags(pairs(50, 100_000), most)), Code::LimitExceeded);
        let mut tags = checked_tags(pairs(41, 100_000), most).unwrap();
        let more = put_tag(&mut tags, "more".to_owned(), "x".repeat(100_000));
        assert_eq!(more.unwrap_err().code, Code::LimitExceeded);
    }

    #[test]
    fn a_search_names_each_experiment_once() {
        let fields = |ids: Vec<String>| {
            Fields::of_json(json!({ "experiment_ids": ids }).to_string().as_bytes()).unwrap()
        };
        let same = fields(vec!["1".to_owned(); 5_000]);
        assert_eq!(searched_experiments(&same).unwrap().len(), 1);
        let many = fields((0..=limits::EXPERIMENTS_PER_SEARCH).map(|n| n.to_string()).collect());
        let code = searched_experiments(&many).unwrap_err().code;
        assert_eq!(code, Code::InvalidParameterValue);
    }
}
