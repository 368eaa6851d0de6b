//! Jobs of objects: one for each, and its end when the object goes.

use super::Controller;
use super::write;
use crate::crd::object::{Acceptance, Key, Known};
use berth_engine::{Act, Refused, Write};
use berth_file::object::Kind;
use berth_kube::Api;
use berth_kube::object::Meta;
use berth_model::{JobId, Rejected};
use berth_service::objects::{self, Owner};
use berth_service::server_audit;
use futures_util::StreamExt;
use std::collections::{BTreeMap, BTreeSet};

/// Submissions that are under way at once; the loop takes them together.
const MAX_SUBMISSIONS_PER_ROUND: usize = 64;

impl Controller {
    pub(super) async fn reconcile_jobs(&mut self) {
        self.cancel().await;
        let all = self.objects.get(&Kind::Job).into_iter().flatten();
        let new = all.filter(|(_, known)| known.job.is_none()).map(|(key, known)| {
            let (uid, text) = (known.object.metadata.uid.clone(), known.object.text(Kind::Job));
            (key.clone(), uid, text)
        });
        let new: Vec<(Key, String, String)> = new.collect();
        let namespaces: BTreeSet<&String> = new.iter().map(|(key, ..)| &key.0).collect();
        let mut teams = BTreeMap::new();
        // A server that takes no jobs refuses them without looking at their namespaces.
        let are_off = self.service.host.must_take_jobs().is_err();
        for namespace in namespaces.into_iter().filter(|_| !are_off) {
            teams.insert(namespace.clone(), labelled(&self.context.api, namespace).await);
        }
        let (service, shared) = (&self.service, &self.context.queue);
        let submitting = futures_util::stream::iter(new).map(|(key, uid, text)| {
            let own = teams.get(&key.0).and_then(Option::as_deref);
            async move {
                let owner = Owner { namespace: &key.0, uid: &uid, own, shared };
                let made = objects::submit(service, &owner, &text).await;
                (key, uid, made)
            }
        });
        let submitted: Vec<_> =
            submitting.buffer_unordered(MAX_SUBMISSIONS_PER_ROUND).collect().await;
        for (key, uid, made) in submitted {
            match made {
                Ok(job) => self.made(&key, &uid, job),
                Err(fault) => {
                    if let Some(acceptance) = write::from_fault(&fault) {
                        self.set_acceptance(Kind::Job, &key, acceptance);
                    }
                }
            }
        }
        for known in self.objects.get_mut(&Kind::Job).into_iter().flat_map(|all| all.values_mut()) {
            set_job_acceptance(known);
        }
    }

    fn made(&mut self, key: &Key, uid: &str, job: JobId) {
        self.jobs.insert(uid.to_owned(), job);
        let known = self.objects.get_mut(&Kind::Job).and_then(|all| all.get_mut(key));
        if let Some(known) = known.filter(|known| known.object.metadata.uid == uid) {
            known.job = Some(job);
            known.made_of = known.object.metadata.generation;
        }
    }

    /// Ends the jobs of objects that are gone.
    async fn cancel(&mut self) {
        for (job, uid) in self.cancelled.clone() {
            let ended = match objects::is_live(&self.service, job, &uid) {
                false => Ok(()),
                true => {
                    let mut audit = server_audit("berth", "stop_job", format!("job {job}"));
                    audit.from = "kubernetes".to_owned();
                    let act = Act::Cancel { job, now: false };
                    self.service.engine.write(Write::act(act, audit)).await.map(drop)
                }
            };
            match ended {
                Ok(()) | Err(Refused::Rejected(Rejected::UnknownJob { .. })) => {
                    self.jobs.remove(&uid);
                    self.cancelled.remove(&(job, uid));
                }
                Err(refused) => tracing::warn!(%refused, %job, "a job could not be ended yet"),
            }
        }
    }
}

/// The team that the label of a namespace names. The name of the namespace does not count: a user
/// who may create namespaces could call one like a team.
async fn labelled(api: &Api, namespace: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Namespace {
        metadata: Meta,
    }
    let found: berth_kube::Result<Namespace> =
        api.get(&format!("/api/v1/namespaces/{namespace}")).await;
    match found {
        Ok(found) => found.metadata.label(objects::TEAM).map(str::to_owned),
        Err(error) => {
            tracing::debug!(%error, namespace, "whose namespace it is cannot be read");
            None
        }
    }
}

/// Accepts an object whose job was submitted, unless its spec has changed since.
fn set_job_acceptance(known: &mut Known) {
    let Some(job) = known.job else { return };
    known.acceptance = Some(match known.made_of == known.object.metadata.generation {
        true => Acceptance::accepted(format!("it is job {job}; `berth why {job}` tells more")),
        false => Acceptance::rejected(
            "SpecChanged",
            format!(
                "job {job} goes on as it was submitted, and what was changed since has no effect: \
                 delete the object and make a new one, or change the job with `berth set {job}`"
            ),
        ),
    });
}
