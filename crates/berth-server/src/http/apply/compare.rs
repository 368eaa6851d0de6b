//! What documents would change of what is set up, field by field, and the events that do it.

use super::read::{Document, Mistake, Want};
use super::set_up::{ModelFacts, SetUp};
use super::words::{self, Flat};
use crate::clock;
use crate::http::cluster::knobs;
use crate::http::identity::team_row;
use berth_api::wire::{Change, ChangeKind, DocumentKind};
use berth_file::error::did_you_mean;
use berth_model::{Event, Name, Policy, PriorityClass, QueueSpec};
use berth_store::{Batch, ProjectRow};
use std::collections::{BTreeMap, BTreeSet};

/// What comes of applying documents.
#[derive(Debug, Default)]
pub struct Outcome {
    pub changes: Vec<Change>,
    pub events: Vec<Event>,
    pub documents: Batch,
    /// Queues that go last, if nobody needs them any more: the lowest first.
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
}

pub fn compare(documents: &[Document], now: &SetUp, prune: bool) -> Result<Outcome, Vec<Mistake>> {
    let wanted = Wanted::of(documents)?;
    let mut outcome = Outcome::default();
    let mut queues = wanted.queues(now)?;
    if prune {
        outcome.prune(&wanted, now, &mut queues);
    }
    outcome.teams(&wanted, now);
    outcome.queues(&wanted, now);
    outcome.budgets(&wanted, now);
    outcome.events.extend(set_queues(now, &queues));
    outcome.policy(&wanted, now);
    outcome.classes(&wanted, now);
    outcome.models(&wanted, now);
    outcome.projects(&wanted, now);
    Ok(outcome)
}

fn mistake(line: usize, key: &str, message: String) -> Mistake {
    Mistake { line, column: 1, key: key.to_owned(), message }
}

impl<'a> Wanted<'a> {
    fn of(documents: &'a [Document]) -> Result<Wanted<'a>, Vec<Mistake>> {
        let mut wanted = Wanted::default();
        let mut mistakes = Vec::new();
        for document in documents {
            if let Some((first, what)) = wanted.take(document) {
                let message = format!("{what} is in two documents, first at line {first}");
                mistakes.push(mistake(document.line, "kind", message));
            }
        }
        if mistakes.is_empty() { Ok(wanted) } else { Err(mistakes) }
    }

    /// The line of a document before that is about the same, if there is one.
    fn take(&mut self, Document { line, want }: &'a Document) -> Option<(usize, String)> {
        let line = *line;
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
            Want::Prices { .. } => {
                let before = self.prices.replace((line, want));
                before.map(|(first, _)| (first, "the table of prices".to_owned()))
            }
        }
    }

    /// All queues as they are to be. A team without a document for its queue says where it lies.
    fn queues(&self, now: &SetUp) -> Result<BTreeMap<Name, QueueSpec>, Vec<Mistake>> {
        let mut queues = now.queues.clone();
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
        for (name, (line, budget)) in &self.budgets {
            match queues.get_mut(*name) {
                Some(queue) => queue.budget = Some((*budget).clone()),
                None => mistakes.push(unknown("queue", name, *line, "queue", queues.keys())),
            }
        }
        for ((team, _), line) in &self.projects {
            if !now.teams.contains(*team) && !self.teams.contains_key(team) {
                let teams: BTreeSet<Name> = now.teams.iter().map(|team| Name::new(team)).collect();
                mistakes.push(unknown("team", team, *line, "team", teams.iter()));
            }
        }
        if mistakes.is_empty() { Ok(queues) } else { Err(mistakes) }
    }

    fn unknown_parents(&self, queues: &BTreeMap<Name, QueueSpec>) -> Vec<Mistake> {
        let of_teams = self.teams.values().map(|(line, parent)| (*line, *parent));
        let of_queues = self.queues.values().map(|(line, spec)| (*line, spec.parent.as_deref()));
        of_teams
            .chain(of_queues)
            .filter_map(|(line, parent)| Some((line, parent?)))
            .filter(|(_, parent)| !queues.contains_key(*parent))
            .map(|(line, parent)| unknown("parent", parent, line, "queue", queues.keys()))
            .collect()
    }
}

fn unknown<'n>(
    key: &str,
    name: &str,
    line: usize,
    what: &str,
    known: impl Iterator<Item = &'n Name>,
) -> Mistake {
    let hint = did_you_mean(name, known.map(Name::as_str));
    mistake(line, key, format!("there is no {what} `{name}`{hint}"))
}

/// Queues that are not as they are to be; one comes after the one it lies below.
fn set_queues(now: &SetUp, queues: &BTreeMap<Name, QueueSpec>) -> Vec<Event> {
    let mut left: Vec<&QueueSpec> =
        queues.values().filter(|queue| now.queues.get(&queue.name) != Some(*queue)).collect();
    let mut there: BTreeSet<&Name> = now.queues.keys().collect();
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
                let before = now.queues.get(*name).and_then(|queue| queue.parent.as_deref());
                self.fields(DocumentKind::Team, name, &lies(before), &lies(*parent));
            }
        }
    }

    fn queues(&mut self, wanted: &Wanted<'_>, now: &SetUp) {
        for (name, (_, spec)) in &wanted.queues {
            let Some(before) = now.queues.get(*name) else {
                self.note(DocumentKind::Queue, name, ChangeKind::Add, None);
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
            match now.queues.get(*name).and_then(|queue| queue.budget.as_ref()) {
                None => {
                    let text = Some(budget.limit.to_string());
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
        let (old, new) = (knobs(&now.policy), knobs(policy));
        if old != new {
            self.fields(DocumentKind::Policy, "policy", &old, &new);
            let policy = Policy { version: now.policy.version + 1, ..policy.clone() };
            self.events.push(Event::PolicySet { policy: Box::new(policy) });
        }
    }

    fn classes(&mut self, wanted: &Wanted<'_>, now: &SetUp) {
        let Some((_, classes)) = wanted.classes else { return };
        if *classes != now.classes {
            let flat = |classes: &BTreeMap<Name, PriorityClass>| {
                classes
                    .iter()
                    .map(|(name, class)| (name.to_string(), words::class(class)))
                    .collect()
            };
            self.fields(DocumentKind::Classes, "classes", &flat(&now.classes), &flat(classes));
            self.events.push(Event::ClassesSet { classes: classes.clone() });
        }
    }

    fn models(&mut self, wanted: &Wanted<'_>, now: &SetUp) {
        let Some((_, want)) = wanted.prices else { return };
        let models = want.models(&now.models);
        if models != now.models {
            self.fields(DocumentKind::Prices, "prices", &flat(&now.models), &flat(&models));
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
            .queues
            .keys()
            .filter(|name| !wanted.queues.contains_key(name.as_str()))
            .filter(|name| !wanted.teams.contains_key(name.as_str()))
            .collect();
        leaving.sort_by_key(|name| std::cmp::Reverse(depth(&now.queues, name)));
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
mod tests {
    use super::*;
    use crate::http::apply::read::read;

    fn lab() -> SetUp {
        let mut lab = QueueSpec::new("lab");
        lab.priority = 1;
        let mut nlp = QueueSpec::new("nlp");
        nlp.parent = Some("lab".into());
        let queues = [lab, nlp].map(|queue| (queue.name.clone(), queue)).into();
        let teams = ["lab", "nlp"].map(String::from).into();
        let projects = [("nlp".to_owned(), "chat".to_owned())].into();
        SetUp { queues, teams, projects, ..SetUp::default() }
    }

    fn outcome(text: &str, prune: bool) -> Outcome {
        compare(&read(text).unwrap(), &lab(), prune).unwrap()
    }

    fn shown(outcome: &Outcome) -> Vec<String> {
        let each = outcome.changes.iter().map(|change| {
            let Change { kind, name, path, change, old, new } = change;
            let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
            format!("{change:?} {} {name} [{path}] {} {}", kind.word(), text(old), text(new))
        });
        each.collect()
    }

    #[test]
    fn documents_that_say_what_is_so_change_nothing() {
        let found = outcome(
            "kind: team\nname: nlp\nparent: lab\n---\nkind: queue\nname: lab\npriority: 1\n---\n\
             kind: policy\n---\nkind: project\nname: chat\nteam: nlp\n",
            false,
        );
        assert_eq!(shown(&found), Vec::<String>::new());
        assert!(found.events.is_empty() && found.documents.is_empty());
    }

    #[test]
    fn a_change_is_told_field_by_field() {
        let found = outcome("kind: queue\nname: lab\npriority: 2\nquota: {gpu: 8}\n", false);
        assert_eq!(
            shown(&found),
            ["Change queue lab [priority] 1 2", "Add queue lab [quota.gpu] - 8"]
        );
        assert_eq!(found.events.len(), 1);
        let back = outcome("kind: queue\nname: lab\n", false);
        assert_eq!(shown(&back), ["Change queue lab [priority] 1 0"]);
    }

    #[test]
    fn a_new_team_gets_its_queue_and_parents_come_first() {
        let found = outcome(
            "kind: team\nname: alpha\nparent: zeta\n---\nkind: team\nname: zeta\nparent: lab\n",
            false,
        );
        let set: Vec<&str> = found
            .events
            .iter()
            .map(|event| match event {
                Event::QueueSet { queue } => queue.name.as_str(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(set, ["zeta", "alpha"]);
        assert_eq!(found.documents.changes.len(), 2);
    }

    #[test]
    fn a_budget_goes_with_its_queue_and_stays_when_the_queue_changes() {
        let text = "kind: budget\nqueue: lab\nlimit: 100\n";
        let found = outcome(text, false);
        assert_eq!(shown(&found), ["Add budget lab [] - 100"]);
        let Event::QueueSet { queue } = &found.events[0] else { panic!("a queue is set") };
        let mut now = lab();
        now.queues.insert(queue.name.clone(), (**queue).clone());
        let again = read("kind: queue\nname: lab\npriority: 9\n").unwrap();
        let again = compare(&again, &now, false).unwrap();
        let Event::QueueSet { queue } = &again.events[0] else { panic!("a queue is set") };
        assert!(queue.budget.is_some());
    }

    #[test]
    fn the_policy_gets_the_next_version_and_only_when_it_changes() {
        let found = outcome("kind: policy\ngrace: 2m\n", false);
        assert_eq!(shown(&found), ["Change policy policy [grace] 5m 2m"]);
        let Event::PolicySet { policy } = &found.events[0] else { panic!("a policy is set") };
        assert_eq!(policy.version, 2);
    }

    #[test]
    fn pruning_removes_what_no_document_names_the_lowest_first() {
        let found = outcome("kind: policy\n", true);
        assert_eq!(
            shown(&found),
            ["Remove project chat [] nlp -", "Remove team nlp [] - -", "Remove team lab [] - -"]
        );
        let leaving: Vec<&str> = found.leaving.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(leaving, ["nlp", "lab"]);
        assert!(found.leaving.iter().all(|one| one.is_team));
        let kept = outcome("kind: policy\n", false);
        assert!(kept.changes.is_empty());
    }

    #[test]
    fn what_leads_nowhere_is_refused_with_a_suggestion() {
        let text = "kind: team\nname: x\nparent: lba\n---\nkind: budget\nqueue: nlpp\nlimit: 1\n";
        let found = compare(&read(text).unwrap(), &lab(), false).unwrap_err();
        let messages: Vec<&str> = found.iter().map(|one| one.message.as_str()).collect();
        assert_eq!(
            messages,
            [
                "there is no queue `lba`; did you mean `lab`?",
                "there is no queue `nlpp`; did you mean `nlp`?"
            ]
        );
        assert_eq!((found[0].line, found[1].line), (1, 5));
    }

    #[test]
    fn two_documents_about_the_same_are_refused() {
        let text = "kind: team\nname: x\n---\nkind: team\nname: x\n";
        let found = compare(&read(text).unwrap(), &lab(), false).unwrap_err();
        assert_eq!(found[0].message, "team x is in two documents, first at line 1");
    }
}
