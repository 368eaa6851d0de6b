//! What documents would change of what is set up, field by field, and the events that do it.

use super::quotas;
use super::set_up::{ModelFacts, SetUp};
use super::words::{self, Flat};
use crate::cluster::knobs;
use crate::identity::team_row;
use berth_api::wire::{Change, ChangeKind, DocumentKind};
use berth_engine::clock;
use berth_engine::notices::setting;
use berth_file::documents::{Document, Want};
use berth_file::error::{Error, Position, did_you_mean};
use berth_model::{ClassLimit, Event, Name, Policy, PriorityClass, QueueSpec};
use berth_store::{Batch, ProjectRow, SettingRow};
use std::collections::{BTreeMap, BTreeSet};

/// What comes of applying documents.
#[derive(Debug, Default)]
pub struct Outcome {
    pub changes: Vec<Change>,
    /// Quotas that exceed those of the parent queue.
    pub warnings: Vec<String>,
    pub events: Vec<Event>,
    pub documents: Batch,
    /// Queues to remove after everything else, unless they are still in use: the lowest first.
    pub leaving: Vec<Leaving>,
}

/// A queue that goes, with all that is its team's where it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaving {
    pub name: String,
    pub is_team: bool,
}

/// Everything that the documents want, by kind and name.
#[derive(Default)]
struct Wanted<'a> {
    teams: BTreeMap<&'a str, (usize, Option<&'a str>)>,
    queues: BTreeMap<&'a str, (usize, &'a QueueSpec)>,
    budgets: BTreeMap<&'a str, (usize, &'a berth_model::Budget)>,
    projects: BTreeMap<(&'a str, &'a str), usize>,
    policy: Option<(usize, &'a Policy)>,
    classes: Option<(usize, &'a BTreeMap<Name, PriorityClass>)>,
    prices: Option<(usize, &'a Want)>,
    notify: BTreeMap<&'a str, (usize, Option<&'a str>)>,
}

pub fn compare(documents: &[Document], now: &SetUp, prune: bool) -> Result<Outcome, Vec<Error>> {
    let wanted = Wanted::of(documents)?;
    let mut outcome = Outcome::default();
    let mut queues = wanted.queues(now)?;
    if prune {
        outcome.prune(&wanted, now, &mut queues);
    }
    outcome.teams(&wanted, now);
    outcome.queues(&wanted, now);
    outcome.budgets(&wanted, now);
    let is_named = |name: &Name| {
        wanted.queues.contains_key(name.as_str()) || wanted.teams.contains_key(name.as_str())
    };
    outcome.warnings = quotas::warnings(&queues, is_named);
    outcome.events.extend(set_queues(now, &queues));
    outcome.policy(&wanted, now);
    outcome.classes(&wanted, now);
    outcome.models(&wanted, now);
    outcome.projects(&wanted, now);
    outcome.notify(&wanted, now);
    Ok(outcome)
}

/// In the order of the lines.
fn sorted(mut mistakes: Vec<Error>) -> Vec<Error> {
    mistakes.sort_by_key(|mistake| mistake.at.line);
    mistakes
}

fn mistake(line: usize, message: String) -> Error {
    Error { at: Position { line, column: 1 }, message }
}

impl<'a> Wanted<'a> {
    fn of(documents: &'a [Document]) -> Result<Wanted<'a>, Vec<Error>> {
        let mut wanted = Wanted::default();
        let mut mistakes = Vec::new();
        for document in documents {
            if let Some((first, what)) = wanted.take(document) {
                let message = format!("{what} is in two documents, first at line {first}");
                mistakes.push(mistake(document.at.line, message));
            }
        }
        if mistakes.is_empty() { Ok(wanted) } else { Err(mistakes) }
    }

    /// The line of a document before that is about the same, if there is one.
    fn take(&mut self, Document { at, want }: &'a Document) -> Option<(usize, String)> {
        let line = at.line;
        match want {
            Want::Team { name, parent } => {
                let before = self.teams.insert(name, (line, parent.as_deref()));
                before.map(|(first, _)| (first, format!("team {name}")))
            }
            Want::Queue(spec) => {
                let before = self.queues.insert(&spec.name, (line, spec));
                before.map(|(first, _)| (first, format!("queue {}", spec.name)))
            }
            Want::Budget { queue, budget } => {
                let before = self.budgets.insert(queue, (line, budget));
                before.map(|(first, _)| (first, format!("the budget of {queue}")))
            }
            Want::Project { team, name } => {
                let before = self.projects.insert((team, name), line);
                before.map(|first| (first, format!("project {name} of {team}")))
            }
            Want::Policy(policy) => {
                let before = self.policy.replace((line, policy));
                before.map(|(first, _)| (first, "the policy".to_owned()))
            }
            Want::Classes(classes) => {
                let before = self.classes.replace((line, classes));
                before.map(|(first, _)| (first, "the table of classes".to_owned()))
            }
            Want::Notify { target, url } => {
                let before = self.notify.insert(target, (line, url.as_deref()));
                before.map(|(first, _)| (first, format!("the target {target}")))
            }
            Want::Prices { .. } => {
                let before = self.prices.replace((line, want));
                before.map(|(first, _)| (first, "the table of prices".to_owned()))
            }
        }
    }

    /// All queues as they are to be. A team without a document for its queue says where it lies.
    fn queues(&self, now: &SetUp) -> Result<BTreeMap<Name, QueueSpec>, Vec<Error>> {
        let mut queues = now.rules.queues.clone();
        for (name, (_, spec)) in &self.queues {
            let budget = queues.get(*name).and_then(|queue| queue.budget.clone());
            queues.insert(spec.name.clone(), QueueSpec { budget, ..(*spec).clone() });
        }
        for (name, (_, parent)) in &self.teams {
            if !self.queues.contains_key(name) {
                let queue = queues.entry(Name::new(name)).or_insert_with(|| QueueSpec::new(name));
                queue.parent = parent.map(Name::new);
            }
        }
        let mut mistakes = self.unknown_parents(&queues);
        mistakes.extend(self.unknown_classes(now));
        for (name, (line, budget)) in &self.budgets {
            match queues.get_mut(*name) {
                Some(queue) => queue.budget = Some((*budget).clone()),
                None => mistakes.push(unknown(name, *line, "queue", queues.keys())),
            }
        }
        for ((team, _), line) in &self.projects {
            if !now.teams.contains(*team) && !self.teams.contains_key(team) {
                let teams: BTreeSet<Name> = now.teams.iter().map(|team| Name::new(team)).collect();
                mistakes.push(unknown(team, *line, "team", teams.iter()));
            }
        }
        if mistakes.is_empty() { Ok(queues) } else { Err(sorted(mistakes)) }
    }

    /// Limits that name a class which there is not, or will not be.
    fn unknown_classes(&self, now: &SetUp) -> Vec<Error> {
        let classes = self.classes.map_or(&now.rules.classes, |(_, classes)| classes);
        let named = self.queues.values().flat_map(|(line, spec)| {
            let ClassLimit { researcher, team_lead } = &spec.class_limit;
            researcher.iter().chain(team_lead).map(|class| (*line, class))
        });
        let gone = named.filter(|(_, class)| !classes.contains_key(*class));
        gone.map(|(line, class)| unknown(class, line, "class", classes.keys())).collect()
    }

    fn unknown_parents(&self, queues: &BTreeMap<Name, QueueSpec>) -> Vec<Error> {
        let of_teams = self.teams.values().map(|(line, parent)| (*line, *parent));
        let of_queues = self.queues.values().map(|(line, spec)| (*line, spec.parent.as_deref()));
        of_teams
            .chain(of_queues)
            .filter_map(|(line, parent)| Some((line, parent?)))
            .filter(|(_, parent)| !queues.contains_key(*parent))
            .map(|(line, parent)| unknown(parent, line, "queue", queues.keys()))
            .collect()
    }
}

fn unknown<'n>(
    name: &str,
    line: usize,
    what: &str,
    known: impl Iterator<Item = &'n Name>,
) -> Error {
    let hint = did_you_mean(name, known.map(Name::as_str));
    mistake(line, format!("there is no {what} `{name}`{hint}"))
}

/// Queues that are not as they are to be; one comes after the one it lies below.
fn set_queues(now: &SetUp, queues: &BTreeMap<Name, QueueSpec>) -> Vec<Event> {
    let mut left: Vec<&QueueSpec> =
        queues.values().filter(|queue| now.rules.queues.get(&queue.name) != Some(*queue)).collect();
    let mut there: BTreeSet<&Name> = now.rules.queues.keys().collect();
    let mut events = Vec::new();
    while !left.is_empty() {
        let (ready, later): (Vec<_>, Vec<_>) = left
            .into_iter()
            .partition(|queue| queue.parent.as_ref().is_none_or(|parent| there.contains(parent)));
        // New queues in a circle: the core says so.
        let (ready, later) = if ready.is_empty() { (later, ready) } else { (ready, later) };
        for queue in ready {
            there.insert(&queue.name);
            events.push(Event::QueueSet { queue: Box::new(queue.clone()) });
        }
        left = later;
    }
    events
}

fn depth(queues: &BTreeMap<Name, QueueSpec>, name: &Name) -> usize {
    let mut above = queues.get(name).and_then(|queue| queue.parent.as_ref());
    let mut depth = 0;
    while let Some(parent) = above
        && depth < queues.len()
    {
        depth += 1;
        above = queues.get(parent).and_then(|queue| queue.parent.as_ref());
    }
    depth
}

impl Outcome {
    fn note(&mut self, kind: DocumentKind, name: &str, change: ChangeKind, text: Option<String>) {
        let (old, new) = match change {
            ChangeKind::Remove => (text, None),
            ChangeKind::Add | ChangeKind::Change => (None, text),
        };
        let (name, path) = (name.to_owned(), String::new());
        self.changes.push(Change { kind, name, path, change, old, new });
    }

    /// Fields that differ.
    fn fields(&mut self, kind: DocumentKind, name: &str, old: &Flat, new: &Flat) {
        let paths: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for path in paths {
            let (old, new) = (old.get(path).cloned(), new.get(path).cloned());
            let change = match (&old, &new) {
                (Some(old), Some(new)) if old == new => continue,
                (Some(_), Some(_)) => ChangeKind::Change,
                (None, _) => ChangeKind::Add,
                (Some(_), None) => ChangeKind::Remove,
            };
            let (name, path) = (name.to_owned(), path.clone());
            self.changes.push(Change { kind, name, path, change, old, new });
        }
    }

    fn teams(&mut self, wanted: &Wanted<'_>, now: &SetUp) {
        for (name, (_, parent)) in &wanted.teams {
            if !now.teams.contains(*name) {
                self.note(DocumentKind::Team, name, ChangeKind::Add, None);
                self.documents.put(&team_row(name));
            }
            // Where there is a document for the queue, that one says where it lies.
            if !wanted.queues.contains_key(name) {
                let before = now.rules.queues.get(*name).and_then(|queue| queue.parent.as_deref());
                self.fields(DocumentKind::Team, name, &lies(before), &lies(*parent));
            }
        }
    }

    fn queues(&mut self, wanted: &Wanted<'_>, now: &SetUp) {
        for (name, (_, spec)) in &wanted.queues {
            let Some(before) = now.rules.queues.get(*name) else {
                self.note(DocumentKind::Queue, name, ChangeKind::Add, None);
                let usual = words::queue(&QueueSpec::new(name));
                let mut new = words::queue(spec);
                new.retain(|path, text| usual.get(path) != Some(text));
                new.extend(lies(spec.parent.as_deref()));
                self.fields(DocumentKind::Queue, name, &Flat::new(), &new);
                continue;
            };
            let mut old = words::queue(before);
            let mut new = words::queue(spec);
            old.extend(lies(before.parent.as_deref()));
            new.extend(lies(spec.parent.as_deref()));
            self.fields(DocumentKind::Queue, name, &old, &new);
        }
    }

    fn budgets(&mut self, wanted: &Wanted<'_>, now: &SetUp) {
        for (name, (_, budget)) in &wanted.budgets {
            match now.rules.queues.get(*name).and_then(|queue| queue.budget.as_ref()) {
                None => {
                    let text = Some(words::budget_line(budget));
                    self.note(DocumentKind::Budget, name, ChangeKind::Add, text);
                }
                Some(before) => {
                    let (old, new) = (words::budget(before), words::budget(budget));
                    self.fields(DocumentKind::Budget, name, &old, &new);
                }
            }
        }
    }

    fn policy(&mut self, wanted: &Wanted<'_>, now: &SetUp) {
        let Some((_, policy)) = wanted.policy else { return };
        let (old, new) = (knobs(&now.rules.policy), knobs(policy));
        if old != new {
            self.fields(DocumentKind::Policy, "policy", &old, &new);
            let policy = Policy { version: now.rules.policy.version + 1, ..policy.clone() };
            self.events.push(Event::PolicySet { policy: Box::new(policy) });
        }
    }

    fn classes(&mut self, wanted: &Wanted<'_>, now: &SetUp) {
        let Some((_, classes)) = wanted.classes else { return };
        if *classes != now.rules.classes {
            let flat = |classes: &BTreeMap<Name, PriorityClass>| {
                classes
                    .iter()
                    .map(|(name, class)| (name.to_string(), words::class(class)))
                    .collect()
            };
            self.fields(
                DocumentKind::Classes,
                "classes",
                &flat(&now.rules.classes),
                &flat(classes),
            );
            self.events.push(Event::ClassesSet { classes: classes.clone() });
        }
    }

    fn models(&mut self, wanted: &Wanted<'_>, now: &SetUp) {
        let Some((_, want)) = wanted.prices else { return };
        let models = now.rules.models.with(want);
        if models != now.rules.models {
            self.fields(DocumentKind::Prices, "prices", &flat(&now.rules.models), &flat(&models));
            let ModelFacts { prices, speeds, watts } = models;
            self.events.push(Event::ModelsSet { prices, speeds, watts });
        }
    }

    fn projects(&mut self, wanted: &Wanted<'_>, now: &SetUp) {
        for (team, name) in wanted.projects.keys() {
            if now.projects.contains(&((*team).to_owned(), (*name).to_owned())) {
                continue;
            }
            let created = clock::now();
            self.note(DocumentKind::Project, name, ChangeKind::Add, Some((*team).to_owned()));
            let (team, name) = ((*team).to_owned(), (*name).to_owned());
            self.documents.put(&ProjectRow { team, name, created });
        }
    }

    fn notify(&mut self, wanted: &Wanted<'_>, now: &SetUp) {
        for (target, (_, url)) in &wanted.notify {
            let name = setting(target);
            let before = now.notify.get(&name).map(String::as_str);
            if before == *url {
                continue;
            }
            let flat = |url: Option<&str>| -> Flat {
                url.map(|url| ("url".to_owned(), words::address(url))).into_iter().collect()
            };
            let (old, new) = (flat(before), flat(*url));
            match old == new {
                // Another address of the same host, of which no more is shown.
                true => self.note(DocumentKind::Notify, target, ChangeKind::Change, None),
                false => self.fields(DocumentKind::Notify, target, &old, &new),
            }
            match url {
                Some(url) => self.documents.put(&SettingRow { name, value: (*url).to_owned() }),
                None => self.documents.delete::<SettingRow>(&name),
            }
        }
    }

    /// Removes what no document names.
    fn prune(&mut self, wanted: &Wanted<'_>, now: &SetUp, queues: &mut BTreeMap<Name, QueueSpec>) {
        for (team, name) in &now.projects {
            let named = wanted.projects.contains_key(&(team.as_str(), name.as_str()));
            if !named {
                self.note(DocumentKind::Project, name, ChangeKind::Remove, Some(team.clone()));
                self.documents.delete::<ProjectRow>((team, name));
            }
        }
        let mut leaving: Vec<&Name> = now
            .rules
            .queues
            .keys()
            .filter(|name| !wanted.queues.contains_key(name.as_str()))
            .filter(|name| !wanted.teams.contains_key(name.as_str()))
            .collect();
        leaving.sort_by_key(|name| std::cmp::Reverse(depth(&now.rules.queues, name)));
        for name in leaving {
            queues.remove(name);
            let is_team = now.teams.contains(name.as_str());
            let kind = if is_team { DocumentKind::Team } else { DocumentKind::Queue };
            self.note(kind, name, ChangeKind::Remove, None);
            self.leaving.push(Leaving { name: name.to_string(), is_team });
        }
    }
}

fn lies(parent: Option<&str>) -> Flat {
    parent.map(|parent| ("parent".to_owned(), parent.to_owned())).into_iter().collect()
}

fn flat(ModelFacts { prices, speeds, watts }: &ModelFacts) -> Flat {
    let prices = prices.iter().map(|(name, one)| (format!("prices.{name}"), one.to_string()));
    let speeds = speeds.iter().map(|(name, one)| (format!("speeds.{name}"), one.to_string()));
    let watts = watts.iter().map(|(name, one)| (format!("watts.{name}"), one.to_string()));
    prices.chain(speeds).chain(watts).collect()
}

#[cfg(test)]
mod tests;
