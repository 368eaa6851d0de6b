//! Queues as objects say, the upper ones first.

use super::Controller;
use super::write;
use crate::crd::bad_spec::BadSpec;
use crate::crd::object::{Acceptance, Key};
use crate::crd::write::ObjectRef;
use berth_core::State;
use berth_file::documents::Want;
use berth_file::error::{did_you_mean, or_list};
use berth_file::object::Kind;
use berth_model::{Event, Name, QueueSpec};
use berth_service::objects;
use std::collections::{BTreeMap, BTreeSet};

type Queues = BTreeMap<Name, QueueSpec>;

impl Controller {
    pub(super) async fn reconcile_queues(&mut self) {
        let mut there = queues(&self.service.engine.core().state);
        let preferences = self.wanted_queues();
        let parents = parents(&there, &preferences);
        let mut left: Vec<(Key, QueueSpec)> = Vec::new();
        for (key, request) in preferences {
            match circle(&request.name, &parents) {
                Some(circle) => self.set_acceptance(Kind::Queue, &key, in_circle(&circle)),
                None => left.push((key, request)),
            }
        }
        // One is set up when the one above it is.
        loop {
            let is_ready = |(_, request): &(Key, QueueSpec)| {
                request.parent.as_ref().is_none_or(|parent| there.contains_key(parent))
            };
            let (ready, later): (Vec<_>, Vec<_>) = left.into_iter().partition(is_ready);
            left = later;
            if ready.is_empty() {
                break;
            }
            for (key, request) in ready {
                self.set_queue(&mut there, &key, request).await;
            }
        }
        for (key, request) in left {
            let acceptance = self.without_parent(&request, &there);
            self.set_acceptance(Kind::Queue, &key, acceptance);
        }
        self.warn_about_models();
    }

    /// The queues that objects set up: those that exist, and those recorded by an earlier server.
    pub(super) fn owned_queues(&self) -> BTreeSet<Name> {
        let wanted = self.of(Kind::Queue).filter_map(|known| match &known.want {
            Some(Ok(Want::Queue(queue))) => Some(queue.name.clone()),
            _ => None,
        });
        let owned = self.owned.keys().filter(|owner| !self.gone.contains(*owner));
        let owned = owned.filter(|(kind, _)| *kind == Kind::Queue);
        wanted.chain(owned.map(|(_, name)| Name::new(name))).collect()
    }

    /// The specs that can be read. The other objects are rejected.
    fn wanted_queues(&mut self) -> Vec<(Key, QueueSpec)> {
        let mut preferences = Vec::new();
        for (key, known) in self.objects.get_mut(&Kind::Queue).into_iter().flatten() {
            let request = match &known.want {
                Some(Ok(Want::Queue(queue))) => match objects::check_name("queue", &queue.name) {
                    Ok(()) => Ok(QueueSpec::clone(queue)),
                    Err(fault) => Err(BadSpec::Name(objects::words(&fault))),
                },
                Some(Err(why)) => Err(why.clone()),
                Some(Ok(_)) | None => continue,
            };
            match request {
                Ok(request) => preferences.push((key.clone(), request)),
                Err(why) => {
                    known.acceptance = Some(Acceptance::rejected("BadSpec", why.to_string()))
                }
            }
        }
        preferences
    }

    async fn set_queue(&mut self, there: &mut Queues, key: &Key, request: QueueSpec) {
        let name = request.name.clone();
        let object = ObjectRef { kind: Kind::Queue, name: &name, queue: &name };
        if there.get(&name) != Some(&merged(&request, there.get(&name))) || !self.owns(&object) {
            let wanted = request.clone();
            let written = self.set_up(&object, move |state| {
                let now = state.queue_snapshots().into_iter().map(|queue| queue.spec);
                let now = now.into_iter().find(|queue| queue.name == wanted.name);
                let queue = merged(&wanted, now.as_ref());
                let events = (now.as_ref() != Some(&queue))
                    .then(|| Event::QueueSet { queue: Box::new(queue) });
                Ok(events.into_iter().collect())
            });
            if let Err(refused) = written.await {
                if let Some(acceptance) = write::from_refusal(refused) {
                    self.set_acceptance(Kind::Queue, key, acceptance);
                }
                return;
            }
            there.insert(name.clone(), merged(&request, there.get(&name)));
        }
        self.set_acceptance(
            Kind::Queue,
            key,
            Acceptance::accepted(format!("the queue {name} is as this says")),
        );
    }

    fn without_parent(&self, request: &QueueSpec, there: &Queues) -> Acceptance {
        let parent = request.parent.as_deref().unwrap_or_default();
        let is_object = self.of(Kind::Queue).any(|known| known.object.metadata.name == parent);
        if is_object {
            let message = format!(
                "its parent `{parent}` was refused: see `kubectl describe queues.berth.dev {parent}`"
            );
            return Acceptance::rejected("ParentRefused", message);
        }
        let hint = did_you_mean(parent, there.keys().map(Name::as_str));
        let detail = format!("there is no queue `{parent}` for it to lie below{hint}");
        let known = or_list(there.keys().map(Name::as_str));
        let next = format!("make that queue, name one of {known}, or leave `parent` out");
        Acceptance::rejected("UnknownParent", objects::sentences(&detail, &next))
    }

    /// Warns about quotas of GPU models that no node has. They are accepted, as nodes may be added
    /// later; more likely the name is misspelt.
    fn warn_about_models(&mut self) {
        let named = |queue: &QueueSpec| -> BTreeSet<Name> {
            let QueueSpec { quota, limit, borrow, lend, user_limit, .. } = queue;
            let all = [quota, limit, borrow, lend, user_limit];
            all.into_iter().flat_map(|one| one.gpu.models.keys().cloned()).collect()
        };
        let objects = self.objects.get_mut(&Kind::Queue).into_iter().flat_map(BTreeMap::values_mut);
        let mut known_models: Option<Vec<Name>> = None;
        for known in objects {
            let Some(Ok(Want::Queue(queue))) = &known.want else { continue };
            let named = named(queue);
            let Some(acceptance) = known.acceptance.as_mut().filter(|one| one.is_accepted) else {
                continue;
            };
            if named.is_empty() {
                continue;
            }
            let models = known_models.get_or_insert_with(|| {
                self.service.engine.core().state.gpu_models().into_keys().collect()
            });
            let odd = named.iter().find(|name| !models.is_empty() && !models.contains(name));
            acceptance.warning = odd.map(|odd| {
                let names = || models.iter().map(Name::as_str);
                let hint = did_you_mean(odd, names());
                let detail = format!("no node has GPUs of the model `{odd}`{hint}");
                let next = format!("name one of {}, or add nodes that have them", or_list(names()));
                ("UnknownGpuModel", objects::sentences(&detail, &next))
            });
        }
    }
}

pub(super) fn queues(state: &State) -> Queues {
    let all = state.queue_snapshots().into_iter().map(|queue| queue.spec);
    all.map(|queue| (queue.name.clone(), queue)).collect()
}

/// The spec with the budget that the queue has, which is an object of its own.
fn merged(request: &QueueSpec, now: Option<&QueueSpec>) -> QueueSpec {
    QueueSpec { budget: now.and_then(|now| now.budget.clone()), ..request.clone() }
}

/// Which queue lies below which, once all specs are applied.
fn parents(there: &Queues, preferences: &[(Key, QueueSpec)]) -> BTreeMap<Name, Name> {
    let now = there.values().map(|queue| (queue.name.clone(), queue.parent.clone()));
    let then =
        preferences.iter().map(|(_, request)| (request.name.clone(), request.parent.clone()));
    let all: BTreeMap<Name, Option<Name>> = now.chain(then).collect();
    all.into_iter().filter_map(|(name, parent)| Some((name, parent?))).collect()
}

/// The way from a queue up to itself, if there is one.
fn circle(name: &Name, parents: &BTreeMap<Name, Name>) -> Option<Vec<Name>> {
    let mut way = vec![name.clone()];
    while let Some(above) = parents.get(way.last()?) {
        if above == name {
            return Some(way);
        }
        if way.contains(above) {
            // A circle further up, of which this one is no part.
            return None;
        }
        way.push(above.clone());
    }
    None
}

fn in_circle(circle: &[Name]) -> Acceptance {
    let mut way: Vec<&str> = circle.iter().map(Name::as_str).collect();
    way.push(&circle[0]);
    let message = format!(
        "queues lie below each other in a circle: {}; give one of them another `parent`, or none",
        way.join(" below ")
    );
    Acceptance::rejected("QueueCycle", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parents(pairs: &[(&str, &str)]) -> BTreeMap<Name, Name> {
        pairs.iter().map(|(name, parent)| (Name::new(name), Name::new(parent))).collect()
    }

    #[test]
    fn only_queues_in_a_circle_are_rejected_for_it() {
        let parents = parents(&[("a", "b"), ("b", "c"), ("c", "a"), ("below", "a"), ("x", "y")]);
        let of = |name: &str| circle(&Name::new(name), &parents).map(|way| way.len());
        assert_eq!((of("a"), of("c")), (Some(3), Some(3)));
        assert_eq!((of("below"), of("x"), of("y")), (None, None, None));
        let acceptance = in_circle(&[Name::new("a"), Name::new("b")]);
        assert!(acceptance.message.contains("a below b below a"), "{}", acceptance.message);
    }

    #[test]
    fn a_queue_keeps_the_budget_that_is_an_object_of_its_own() {
        let budget = berth_model::Budget {
            limit: berth_model::Micros::dollars(5),
            per: Default::default(),
            action: Default::default(),
            thresholds: Vec::new(),
        };
        let now = QueueSpec { budget: Some(budget), ..QueueSpec::new("a") };
        let request = QueueSpec { priority: 3, ..QueueSpec::new("a") };
        let both = merged(&request, Some(&now));
        assert_eq!((both.priority, &both.budget), (3, &now.budget));
    }
}
