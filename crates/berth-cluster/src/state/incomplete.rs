//! Gangs whose pods do not all exist: the core does not know them yet, so their pods and people
//! read from here what they wait for.

use super::explain::{IncompleteGang, gang_name};
use super::orders::{ApiOrder, GANG_INCOMPLETE};
use super::{ClusterState, Uid};
use crate::view::{GangKey, PodEvent};
use berth_kube::event::Level;
use berth_model::{Name, Span, Time};

/// A controller makes the pods of a gang one after the other; a gang is incomplete after this time.
const REPORT_AFTER: Span = Span::secs(5);

impl ClusterState {
    /// A gang misses pods, from that time on if it did not before; or it has none that wait.
    pub(super) fn note_incomplete(&mut self, key: &GangKey, at: Option<Time>) {
        match at {
            Some(at) => drop(self.incomplete.entry(key.clone()).or_insert(at)),
            None => drop(self.incomplete.remove(key)),
        }
    }

    /// Says so on their pods, in a condition and an event, and again when more pods exist.
    pub(super) fn report_incomplete(&mut self, now: Time) {
        let ClusterState { incomplete, gangs, .. } = self;
        incomplete.retain(|key, _| gangs.get(key).is_some_and(|gang| !gang.waiting.is_empty()));
        let due = self.incomplete.iter().filter(|(_, since)| **since + REPORT_AFTER <= now);
        let due: Vec<GangKey> = due.map(|(key, _)| key.clone()).collect();
        for key in due {
            let Some(gang) = self.incomplete_gang(&key) else { continue };
            let why = gang.reason().to_string();
            let pods: Vec<Uid> = self.gangs[&key].waiting.iter().cloned().collect();
            for uid in pods {
                let new = self.pods.get(&uid).filter(|pod| pod.reported_reason != why);
                let Some(pod) = new.map(|pod| pod.view.at.clone()) else { continue };
                let note = format!(
                    "{why}. Next: look at what makes its pods, or run `berth why {}`",
                    gang.name
                );
                let (level, reason, key) = (Level::Warning, GANG_INCOMPLETE, why.clone());
                self.order(ApiOrder::WritePodEvent(PodEvent { pod, level, reason, note, key }));
                self.report(&uid, GANG_INCOMPLETE, &why);
            }
        }
    }

    /// The gangs that miss pods for longer than their controllers take.
    pub fn incomplete_gangs(&self, now: Time) -> Vec<IncompleteGang> {
        let due = self.incomplete.iter().filter(|(_, since)| **since + REPORT_AFTER <= now);
        due.filter_map(|(key, _)| self.incomplete_gang(key)).collect()
    }

    fn incomplete_gang(&self, key: &GangKey) -> Option<IncompleteGang> {
        let (gang, since) = (self.gangs.get(key)?, *self.incomplete.get(key)?);
        let request = gang.waiting.iter().find_map(|uid| self.pods.get(uid)?.request())?;
        let (pods, needed) = ((gang.waiting.len() + gang.done.len()) as u32, request.members);
        let queue = request.queue.clone().unwrap_or_else(|| self.queue.clone());
        let (namespace, name): (Name, Name) = (key.namespace.clone(), gang_name(key));
        (pods < needed).then_some(IncompleteGang { namespace, name, queue, since, pods, needed })
    }
}
