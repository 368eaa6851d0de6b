//! Applies objects to the core: one write has the events, a row in the audit log and a record of
//! which object has set up what.

use super::Controller;
use crate::crd::object::Acceptance;
use crate::tenancy::rows::row;
use berth_api::{Code, Problem};
use berth_core::State;
use berth_engine::{Act, Refused, Write};
use berth_file::object::Kind;
use berth_model::{Event, Rejected};
use berth_service::Fault;
use berth_service::objects;
use berth_service::server_audit;
use berth_store::{Batch, SettingRow};

/// An object, and the queue it is about.
pub struct ObjectRef<'a> {
    pub kind: Kind,
    pub name: &'a str,
    pub queue: &'a str,
}

impl Controller {
    /// Whether it is recorded that an object has set up its queue.
    pub(super) fn owns(&self, object: &ObjectRef<'_>) -> bool {
        let key = (object.kind, object.name.to_owned());
        self.owned.get(&key).is_some_and(|queue| queue == object.queue)
    }

    /// Writes the events that the state calls for, and that they are the object's.
    pub(super) async fn set_up(
        &mut self,
        object: &ObjectRef<'_>,
        events: impl FnOnce(&State) -> Result<Vec<Event>, Box<Problem>> + Send + 'static,
    ) -> Result<(), Refused> {
        let mut documents = Batch::default();
        let (name, value) = (row(object.kind, object.name), object.queue.to_owned());
        documents.put(&SettingRow { name, value });
        self.write("apply_object", object, documents, Act::Amend(Box::new(events))).await?;
        self.owned.insert((object.kind, object.name.to_owned()), object.queue.to_owned());
        Ok(())
    }

    /// Writes the events that undo what an object has set up, and forgets the object.
    pub(super) async fn take_down(
        &mut self,
        object: &ObjectRef<'_>,
        events: impl FnOnce(&State) -> Result<Vec<Event>, Box<Problem>> + Send + 'static,
    ) -> Result<(), Refused> {
        let mut documents = Batch::default();
        documents.delete::<SettingRow>(&row(object.kind, object.name));
        self.write("remove_object", object, documents, Act::Amend(Box::new(events))).await?;
        let key = (object.kind, object.name.to_owned());
        self.owned.remove(&key);
        self.gone.remove(&key);
        Ok(())
    }

    async fn write(
        &self,
        what: &str,
        object: &ObjectRef<'_>,
        documents: Batch,
        act: Act,
    ) -> Result<(), Refused> {
        let target = format!("{} {}", object.kind.word(), object.name);
        let mut audit = server_audit("berth", what, target);
        audit.from = "kubernetes".to_owned();
        let write = Write { documents, ..Write::act(act, audit) };
        self.service.engine.write(write).await.map(drop)
    }
}

/// The rejection of an object that the core refuses; nothing where the controller tries again.
pub fn from_refusal(refused: Refused) -> Option<Acceptance> {
    match refused {
        Refused::Rejected(rejected) => {
            let reason = match &rejected {
                Rejected::QueueCycle { .. } => "QueueCycle",
                Rejected::UnknownQueue { .. } => "UnknownQueue",
                Rejected::NegativeAmount { .. } | Rejected::AmountTooLarge { .. } => "BadAmount",
                Rejected::PercentOfNothing { .. } => "PercentOfNothing",
                _ => "Refused",
            };
            Some(Acceptance::rejected(reason, rejected.to_string()))
        }
        Refused::Unmet(problem) => from_fault(&Fault(problem)),
        Refused::Unkeepable(why) => Some(Acceptance::rejected("Refused", why)),
        Refused::KeyReused
        | Refused::Stalled(_)
        | Refused::Unanswered { .. }
        | Refused::Overloaded
        | Refused::Stopping => None,
    }
}

/// The rejection of an object that the service refuses; nothing where the controller tries again.
pub fn from_fault(fault: &Fault) -> Option<Acceptance> {
    let code = fault.0.known_code();
    if matches!(code, Some(Code::StoreDown | Code::StoreFull | Code::NotReady)) {
        return None;
    }
    let reason = code.map_or_else(|| "Refused".to_owned(), |code| format!("{code:?}"));
    Some(Acceptance::rejected(reason, objects::words(fault)))
}
