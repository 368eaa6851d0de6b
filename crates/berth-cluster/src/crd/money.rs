//! Budgets, the policy and pools as objects say.

use super::Controller;
use super::write;
use crate::crd::bad_spec::BadSpec;
use crate::crd::object::{Acceptance, Key};
use crate::crd::queues::queues;
use crate::crd::write::ObjectRef;
use berth_file::documents::Want;
use berth_file::error::{did_you_mean, or_list};
use berth_file::object::Kind;
use berth_model::{Budget, Event, Name, Policy, QueueSpec};
use berth_service::Fault;
use berth_service::objects;
use std::collections::BTreeMap;

impl Controller {
    pub(super) async fn reconcile_policy(&mut self) {
        let found = self.objects.get(&Kind::Policy).into_iter().flatten().next();
        let Some((key, known)) = found else { return };
        let key = key.clone();
        let policy = match &known.want {
            Some(Ok(Want::Policy(policy))) => Policy::clone(policy),
            Some(Err(why)) => {
                let acceptance = Acceptance::rejected("BadSpec", why.to_string());
                return self.set_acceptance(Kind::Policy, &key, acceptance);
            }
            Some(Ok(_)) | None => return,
        };
        let object = ObjectRef { kind: Kind::Policy, name: &key.1, queue: "" };
        let is_so = unlike(self.service.engine.core().state.policy(), &policy).is_none();
        if !is_so || !self.owns(&object) {
            let events = move |state: &berth_core::State| {
                let policy = unlike(state.policy(), &policy).map(Box::new);
                Ok(policy.map(|policy| Event::PolicySet { policy }).into_iter().collect())
            };
            if let Err(refused) = self.set_up(&object, events).await {
                if let Some(acceptance) = write::from_refusal(refused) {
                    self.set_acceptance(Kind::Policy, &key, acceptance);
                }
                return;
            }
        }
        self.set_acceptance(
            Kind::Policy,
            &key,
            Acceptance::accepted("the scheduler behaves as this says"),
        );
    }

    pub(super) async fn reconcile_budgets(&mut self) {
        let there = queues(&self.service.engine.core().state);
        let mut taken: BTreeMap<Name, String> = BTreeMap::new();
        for (key, queue, budget) in self.wanted_budgets() {
            if let Some(other) = taken.get(&queue) {
                let message = format!(
                    "the queue {queue} has its budget from the object `{other}`: delete one of them"
                );
                self.set_acceptance(
                    Kind::Budget,
                    &key,
                    Acceptance::rejected("SecondBudget", message),
                );
                continue;
            }
            taken.insert(queue.clone(), key.1.clone());
            match there.get(&queue) {
                None => {
                    let names = || there.keys().map(Name::as_str);
                    let hint = did_you_mean(&queue, names());
                    let detail = format!("there is no queue `{queue}`{hint}");
                    let next = format!("name one of {}, or make that queue", or_list(names()));
                    let message = objects::sentences(&detail, &next);
                    self.set_acceptance(
                        Kind::Budget,
                        &key,
                        Acceptance::rejected("UnknownQueue", message),
                    );
                }
                Some(now) => self.set_budget(&key, now, budget).await,
            }
        }
    }

    /// The oldest first: where two budgets name one queue, the older one counts.
    fn wanted_budgets(&mut self) -> Vec<(Key, Name, Budget)> {
        let mut preferences = Vec::new();
        for (key, known) in self.objects.get_mut(&Kind::Budget).into_iter().flatten() {
            match &known.want {
                Some(Ok(Want::Budget { queue, budget })) => {
                    let since = known.object.metadata.creation_timestamp.clone();
                    preferences.push((since, key.clone(), queue.clone(), budget.clone()));
                }
                Some(Err(why)) => {
                    known.acceptance = Some(Acceptance::rejected("BadSpec", why.to_string()))
                }
                Some(Ok(_)) | None => {}
            }
        }
        preferences.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
        preferences.into_iter().map(|(_, key, queue, budget)| (key, queue, budget)).collect()
    }

    async fn set_budget(&mut self, key: &Key, now: &QueueSpec, budget: Budget) {
        let object = ObjectRef { kind: Kind::Budget, name: &key.1, queue: &now.name };
        if now.budget.as_ref() != Some(&budget) || !self.owns(&object) {
            let name = now.name.clone();
            let events = move |state: &berth_core::State| with_budget(state, &name, Some(budget));
            if let Err(refused) = self.set_up(&object, events).await {
                if let Some(acceptance) = write::from_refusal(refused) {
                    self.set_acceptance(Kind::Budget, key, acceptance);
                }
                return;
            }
        }
        let acceptance =
            Acceptance::accepted(format!("the budget of the queue {} is as this says", now.name));
        self.set_acceptance(Kind::Budget, key, acceptance);
    }

    /// Rejects all pools: Berth buys no machines yet.
    pub(super) fn reconcile_pools(&mut self) {
        for known in self.objects.get_mut(&Kind::Pool).into_iter().flat_map(BTreeMap::values_mut) {
            let Some(Err(why)) = &known.want else { continue };
            let reason = if *why == BadSpec::Pool { "NotSupported" } else { "BadSpec" };
            known.acceptance = Some(Acceptance::rejected(reason, why.to_string()));
        }
    }
}

/// The policy to be set, if it is another one.
pub(super) fn unlike(now: &Policy, wanted: &Policy) -> Option<Policy> {
    let same = Policy { version: now.version, ..wanted.clone() };
    (*now != same).then(|| Policy { version: now.version + 1, ..same })
}

/// Changes the budget of a queue and nothing else of it.
pub(super) fn with_budget(
    state: &berth_core::State,
    name: &Name,
    budget: Option<Budget>,
) -> Result<Vec<Event>, Box<berth_api::Problem>> {
    let now = queues(state).remove(name);
    let now = now.ok_or_else(|| Fault::not_found("queue", name).0)?;
    if now.budget == budget {
        return Ok(Vec::new());
    }
    Ok(vec![Event::QueueSet { queue: Box::new(QueueSpec { budget, ..now }) }])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_differs_in_its_number_alone_is_the_same() {
        let now = Policy { version: 7, ..Policy::default() };
        assert_eq!(unlike(&now, &Policy::default()), None);
        let other = Policy { mix: 5, ..Policy::default() };
        assert_eq!(unlike(&now, &other), Some(Policy { version: 8, ..other }));
    }
}
