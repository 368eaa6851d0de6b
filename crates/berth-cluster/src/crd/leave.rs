//! What is left when an object is deleted. A queue goes when nothing is in it any more.

use super::Controller;
use crate::crd::money::{unlike, with_budget};
use crate::crd::write::ObjectRef;
use berth_core::State;
use berth_engine::Refused;
use berth_file::documents::Want;
use berth_file::object::{GROUP, Kind, VERSION};
use berth_kube::event::{Level, NewEvent, ObjectReference};
use berth_model::{Event, Name, Policy, Rejected};
use berth_store::TeamRow;

impl Controller {
    pub(super) async fn reconcile_gone(&mut self) {
        // The lower ones of several queues first: as long as one goes, others may.
        loop {
            let before = self.gone.len();
            for (kind, name) in self.gone.clone() {
                self.undo(kind, &name).await;
            }
            if self.gone.len() == before || self.gone.is_empty() {
                return;
            }
        }
    }

    async fn undo(&mut self, kind: Kind, name: &str) {
        let queue = self.owned.get(&(kind, name.to_owned())).cloned().unwrap_or_default();
        let object = ObjectRef { kind, name, queue: &queue };
        let done = match kind {
            Kind::Queue => return self.remove_queue(&object).await,
            Kind::Budget => {
                let others = self.of(Kind::Budget).any(|known| match &known.want {
                    Some(Ok(Want::Budget { queue: of, .. })) => **of == *queue,
                    _ => false,
                });
                let name = Name::new(&queue);
                let events = move |state: &State| match others {
                    true => Ok(Vec::new()),
                    // Its queue may be gone as well.
                    false => Ok(with_budget(state, &name, None).unwrap_or_default()),
                };
                self.take_down(&object, events).await
            }
            Kind::Policy => {
                let events = |state: &State| {
                    let policy = unlike(state.policy(), &Policy::default()).map(Box::new);
                    Ok(policy.map(|policy| Event::PolicySet { policy }).into_iter().collect())
                };
                self.take_down(&object, events).await
            }
            Kind::Pool | Kind::Job => self.take_down(&object, |_| Ok(Vec::new())).await,
        };
        if let Err(refused) = done {
            tracing::debug!(%refused, name, "what an object set up is still there");
        }
    }

    /// Removes the queue of a deleted object. The default queue and the queues of teams stay,
    /// without an object.
    async fn remove_queue(&mut self, object: &ObjectRef<'_>) {
        let team = self.service.store.get::<TeamRow>(object.name).await;
        let is_needed = *object.name == *self.context.queue || !matches!(team, Ok(None));
        if team.is_err() {
            return;
        }
        let queue = Name::new(object.queue);
        let removed = self.take_down(object, move |state| {
            let there = state.queue_parents().any(|(name, _)| *name == queue);
            let event = (there && !is_needed).then_some(Event::QueueRemoved { queue });
            Ok(event.into_iter().collect())
        });
        match removed.await {
            Ok(()) if is_needed => {
                let note = format!(
                    "the queue {} stays as it is: it is that of a team, or of pods that name none",
                    object.name
                );
                self.write_removal_event(object, "QueueStays", &note).await;
            }
            Err(Refused::Rejected(Rejected::QueueInUse { .. })) => {
                let note = format!(
                    "the queue {} still has jobs or queues and is removed when they are gone; \
                     `berth ps --team {}` lists the jobs",
                    object.name, object.name
                );
                self.write_removal_event(object, "QueueInUse", &note).await;
            }
            Ok(()) | Err(_) => {}
        }
    }

    async fn write_removal_event(&self, object: &ObjectRef<'_>, reason: &str, note: &str) {
        let about = ObjectReference {
            api_version: format!("{GROUP}/{VERSION}"),
            kind: object.kind.word().to_owned(),
            namespace: String::new(),
            name: object.name.to_owned(),
            uid: String::new(),
        };
        let event =
            NewEvent { level: Level::Normal, action: "Remove", reason, note, dedup_key: None };
        if let Err(error) = self.events.record(&about, event).await {
            tracing::debug!(%error, "an event could not be written");
        }
    }
}
