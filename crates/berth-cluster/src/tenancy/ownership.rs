//! Queue ownership: a queue is set up by a custom resource of Berth, described by another
//! scheduler, or neither. Queues of other schedulers are recorded in the store, so that a server
//! that starts knows which of them are gone.

use super::rows;
use crate::view::{ExternalKind, ExternalQueues};
use berth_engine::{Act, Refused, Turn, Write};
use berth_file::object::Kind;
use berth_model::{Event, Name};
use berth_service::server_audit;
use berth_store::{Batch, SettingRow, Store};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

const PREFIX: &str = "kube/foreign-queues/";
/// Rows that are read: one for each queue.
const MAX_SETTING_ROWS: u32 = 1_000_000;

/// The queues that objects of our own have set up. They go before those of others.
#[derive(Clone, Default)]
pub struct OwnedQueues(Arc<Mutex<BTreeSet<Name>>>);

impl OwnedQueues {
    /// Returns whether they are others than before.
    pub fn set(&self, names: BTreeSet<Name>) -> bool {
        let mut own = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_other = *own != names;
        *own = names;
        is_other
    }

    pub fn has(&self, name: &Name) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(name)
    }
}

/// The queues that other schedulers describe.
#[derive(Default)]
pub struct QueueOwnership {
    pub own: OwnedQueues,
    /// Those that are there for no other reason, by the kind that described them.
    pub made: BTreeMap<Name, ExternalKind>,
    /// Those whose objects carry the event that a queue of Berth's own takes precedence.
    pub hidden: BTreeSet<Name>,
    /// As they were last described.
    pub described: ExternalQueues,
}

impl QueueOwnership {
    /// What is known from before.
    pub async fn load(store: &Store) -> berth_store::Result<QueueOwnership> {
        let rows = store.page::<SettingRow>(None, MAX_SETTING_ROWS).await?;
        let own = rows.iter().filter_map(|row| match rows::owner(&row.name)? {
            (Kind::Queue, name) => Some(Name::from(name)),
            _ => None,
        });
        let own: BTreeSet<Name> = own.collect();
        let made = rows.iter().filter_map(|row| {
            let name = row.name.strip_prefix(PREFIX)?;
            Some((Name::new(name), ExternalKind::of_word(&row.value)?))
        });
        let queues = QueueOwnership { made: made.collect(), ..QueueOwnership::default() };
        queues.own.set(own);
        Ok(queues)
    }

    /// Writes what a queue of another scheduler's is now, and that it is such.
    pub fn put(
        &mut self,
        turn: &mut Turn<'_>,
        name: &Name,
        what: ExternalKind,
        events: Vec<Event>,
    ) -> Result<(), Refused> {
        let mut documents = Batch::default();
        let value = what.word().to_owned();
        documents.put(&SettingRow { name: format!("{PREFIX}{name}"), value });
        write(turn, "apply_object", name, documents, events)?;
        self.made.insert(name.clone(), what);
        Ok(())
    }

    /// Records that no object of another scheduler describes a queue any more.
    pub fn remove(
        &mut self,
        turn: &mut Turn<'_>,
        name: &Name,
        events: Vec<Event>,
    ) -> Result<(), Refused> {
        let mut documents = Batch::default();
        documents.delete::<SettingRow>(&format!("{PREFIX}{name}"));
        write(turn, "remove_object", name, documents, events)?;
        self.made.remove(name);
        Ok(())
    }
}

/// Writes events about a queue in the server's name.
pub fn write(
    turn: &mut Turn<'_>,
    what: &str,
    queue: &Name,
    documents: Batch,
    events: Vec<Event>,
) -> Result<(), Refused> {
    let mut audit = server_audit("berth", what, format!("queue {queue}"));
    audit.from = "kubernetes".to_owned();
    turn.write(Write { documents, ..Write::act(Act::Events(events), audit) }).map(drop)
}
