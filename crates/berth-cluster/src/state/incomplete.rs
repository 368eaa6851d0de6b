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

/// A gang that misses pods.
pub(super) struct Incomplete {
    since: Time,
    /// Its pods say so, as things are.
    is_told: bool,
}

impl ClusterState {
    /// A gang misses pods, from that time on if it did not before; or it has none that wait.
    pub(super) fn note_incomplete(&mut self, key: &GangKey, at: Option<Time>) {
        let Some(at) = at else {
            self.incomplete.remove(key);
            return;
        };
        let new = || Incomplete { since: at, is_told: false };
        self.incomplete.entry(key.clone()).or_insert_with(new).is_told = false;
    }

    /// A pod of a gang is gone or lacks its reason: Berth writes the reason on all of them again.
    pub(super) fn tell_incomplete(&mut self, key: &GangKey) {
        if let Some(incomplete) = self.incomplete.get_mut(key) {
            incomplete.is_told = false;
        }
    }

    /// Whether some have to be told yet.
    pub(super) fn has_untold_gangs(&self) -> bool {
        self.incomplete.values().any(|incomplete| !incomplete.is_told)
    }

    /// Says so on their pods, in a condition and an event, and again when more pods exist.
    pub(super) fn report_incomplete(&mut self, now: Time) {
        let ClusterState { incomplete, gangs, .. } = self;
        incomplete.retain(|key, _| gangs.get(key).is_some_and(|gang| !gang.waiting.is_empty()));
        let due = self.incomplete.iter_mut();
        let due = due.filter(|(_, gang)| !gang.is_told && gang.since + REPORT_AFTER <= now);
        let told = due.map(|(key, gang)| {
            gang.is_told = true;
            key.clone()
        });
        let told: Vec<GangKey> = told.collect();
        for key in told {
            let Some(gang) = self.incomplete_gang(&key) else { continue };
            let why = gang.reason().to_string();
            let pods: Vec<Uid> = self.gangs[&key].waiting.iter().cloned().collect();
            let note = format!(
                "{why}. Next: look at what makes its pods, or run `berth why {}`",
                gang.name
            );
            pods.iter().for_each(|uid| self.report_missing_pods(uid, &why, &note));
        }
    }

    /// Says on a pod, and in an event, which pods of its gang do not exist, if it does not say so
    /// already.
    pub(super) fn report_missing_pods(&mut self, uid: &Uid, why: &str, note: &str) {
        let new = self.pods.get(uid).filter(|pod| pod.reported_reason != why);
        let Some(pod) = new.map(|pod| pod.view.at.clone()) else { return };
        let (note, key) = (note.to_owned(), why.to_owned());
        let (level, reason) = (Level::Warning, GANG_INCOMPLETE);
        self.order(ApiOrder::WritePodEvent(PodEvent { pod, level, reason, note, key }));
        self.report(uid, GANG_INCOMPLETE, why);
    }

    /// The gangs that miss pods for longer than their controllers take.
    pub fn incomplete_gangs(&self, now: Time) -> Vec<IncompleteGang> {
        let due = self.incomplete.iter().filter(|(_, gang)| gang.since + REPORT_AFTER <= now);
        due.filter_map(|(key, _)| self.incomplete_gang(key)).collect()
    }

    fn incomplete_gang(&self, key: &GangKey) -> Option<IncompleteGang> {
        let (gang, since) = (self.gangs.get(key)?, self.incomplete.get(key)?.since);
        let request = gang.waiting.iter().find_map(|uid| self.pods.get(uid)?.request())?;
        let (pods, needed) = ((gang.waiting.len() + gang.done.len()) as u32, request.members);
        let queue = request.queue.clone().unwrap_or_else(|| self.queue.clone());
        let (namespace, name): (Name, Name) = (key.namespace.clone(), gang_name(key));
        (pods < needed).then_some(IncompleteGang { namespace, name, queue, since, pods, needed })
    }
}
