//! Namespaces of teams: quotas, network policies, and who may read the pods in them.

mod objects;

use super::namespaces::namespace;
use crate::options::PodSettings;
use crate::retry::MayComeFromApi;
use berth_engine::Handle;
use berth_kube::Api;
use berth_kube::object::Meta;
use berth_model::Quota;
use berth_store::Store;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The service account of pods. It has no rights, and its token is in no pod.
pub const ACCOUNT: &str = "berth-jobs";
/// The label and the annotation of a namespace that say whose it is. Not every name of a team can
/// be a label.
const TEAM: &str = "berth.dev/team";
/// Where a pod finds out in which namespace it is.
const OWN_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
/// How often limits and members are looked at.
const SYNC_INTERVAL: Duration = Duration::from_secs(5);
/// How often Berth writes all objects again: a user may have changed or deleted one.
const REWRITE_INTERVAL: Duration = Duration::from_mins(1);

pub struct Teams {
    api: Api,
    store: Store,
    engine: Handle,
    settings: PodSettings,
    /// Where Berth itself runs, if that is in the cluster.
    own: Option<String>,
    /// Where pods hold GPUs that are shared.
    reservations: String,
    /// Whether one `nvidia.com/gpu` is a whole GPU on every node.
    are_whole: Box<dyn Fn() -> bool + Send + Sync>,
    /// Each namespace is set up by one at a time.
    entry: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<NamespaceEntry>>>>,
}

/// What is known of a namespace.
#[derive(Default)]
struct NamespaceEntry {
    written: Option<Written>,
    /// What was wrong with it the last time.
    last_problem: String,
}

/// What was written for a namespace.
struct Written {
    team: String,
    objects: Vec<Object>,
    /// When all of it was.
    at: Instant,
}

/// Why a namespace is not set up for a team.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
    /// The API server did not do it.
    #[error(transparent)]
    Api(#[from] berth_kube::Error),
    #[error(
        "the namespace {namespace} is no team's, but the cluster's or Berth's own; start the \
         server with `--namespace {team}=NAME` to give the team {team} another one"
    )]
    Reserved { namespace: String, team: String },
    #[error(
        "the namespace {namespace} is there, and nothing says that it is the team {team}'s; have \
         an admin say so: `kubectl annotate namespace {namespace} {}={team}`",
        TEAM
    )]
    Unmarked { namespace: String, team: String },
    #[error(
        "the namespace {namespace} is that of the team {other}; start the server with \
         `--namespace {team}=NAME` to give the team {team} another one"
    )]
    OtherTeam { namespace: String, team: String, other: String },
}

impl MayComeFromApi for NamespaceError {
    fn api_error(&self) -> Option<&berth_kube::Error> {
        match self {
            NamespaceError::Api(error) => Some(error),
            NamespaceError::Reserved { .. }
            | NamespaceError::Unmarked { .. }
            | NamespaceError::OtherTeam { .. } => None,
        }
    }
}

/// An object, and where it goes.
type Object = (String, Value);

impl Teams {
    pub fn new(
        api: Api,
        store: Store,
        engine: Handle,
        settings: PodSettings,
        reservations: &str,
        are_whole: Box<dyn Fn() -> bool + Send + Sync>,
    ) -> Arc<Teams> {
        let own = std::fs::read_to_string(OWN_NAMESPACE).ok();
        let own = own.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
        let (reservations, entry) = (reservations.to_owned(), Mutex::default());
        Arc::new(Teams { api, store, engine, settings, own, reservations, are_whole, entry })
    }

    /// Makes the namespace of a team with all that belongs to it, unless it was made before.
    pub async fn ensure(&self, team: &str, namespace: &str) -> Result<(), NamespaceError> {
        let entry = self.entry(namespace);
        let mut entry = entry.lock().await;
        if entry.written.as_ref().is_some_and(|written| written.team == team) {
            return Ok(());
        }
        let limits = self.limits();
        self.set_up(&mut entry, team, namespace, limits.get(team)).await
    }

    /// A namespace that was made is not there any more.
    pub async fn forget(&self, namespace: &str) {
        self.entry(namespace).lock().await.written = None;
    }

    /// Keeps namespaces as their teams are.
    pub async fn keep(self: Arc<Teams>) {
        loop {
            self.round().await;
            tokio::time::sleep(SYNC_INTERVAL).await;
        }
    }

    async fn round(&self) {
        let limits = self.limits();
        let all = self.all_entries();
        let mut wanted = BTreeSet::new();
        for (namespace, entry) in all {
            let team = entry.lock().await.written.as_ref().map(|written| written.team.clone());
            wanted.extend(team.map(|team| (namespace, team)));
        }
        if self.settings.teams {
            let all = limits.keys().map(|team| (namespace(&self.settings, team), team.clone()));
            wanted.extend(all);
        }
        for (namespace, team) in wanted {
            let entry = self.entry(&namespace);
            let mut entry = entry.lock().await;
            let done = self.set_up(&mut entry, &team, &namespace, limits.get(&team)).await;
            let last_problem = match done {
                Ok(()) => String::new(),
                Err(error) => error.to_string(),
            };
            // The others are as they should be all the same.
            if !last_problem.is_empty() && last_problem != entry.last_problem {
                tracing::warn!(
                    team,
                    "the namespace of a team is not as it should be: {last_problem}"
                );
            }
            entry.last_problem = last_problem;
        }
    }

    fn entry(&self, namespace: &str) -> Arc<tokio::sync::Mutex<NamespaceEntry>> {
        let mut all = self.entry.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(namespace.to_owned()).or_default().clone()
    }

    fn all_entries(&self) -> BTreeMap<String, Arc<tokio::sync::Mutex<NamespaceEntry>>> {
        self.entry.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Writes what is missing or different, and now and then all of it.
    async fn set_up(
        &self,
        entry: &mut NamespaceEntry,
        team: &str,
        namespace: &str,
        limit: Option<&Quota>,
    ) -> Result<(), NamespaceError> {
        let before = entry.written.as_ref();
        if let Some(other) = before.filter(|before| before.team != team) {
            return Err(of_another(namespace, team, &other.team));
        }
        let before = before.filter(|before| before.at.elapsed() < REWRITE_INTERVAL);
        if before.is_none()
            && let Err(error) = self.take(team, namespace).await
        {
            // While the API server does not answer, the namespace counts as what it was.
            if error.api_error().is_none() {
                entry.written = None;
            }
            return Err(error);
        }
        let objects = self.objects(team, namespace, limit).await;
        self.write(&objects, before.map_or(&[][..], |before| &before.objects)).await?;
        let at = before.map_or_else(Instant::now, |before| before.at);
        entry.written = Some(Written { team: team.to_owned(), objects, at });
        Ok(())
    }

    /// Makes the namespace, or finds out whether the one that is there is the team's.
    async fn take(&self, team: &str, namespace: &str) -> Result<(), NamespaceError> {
        #[derive(Deserialize)]
        struct Found {
            metadata: Meta,
        }
        let is_own = self.own.as_deref() == Some(namespace) || namespace == self.reservations;
        if is_own || namespace.starts_with("kube-") {
            let (namespace, team) = (namespace.to_owned(), team.to_owned());
            return Err(NamespaceError::Reserved { namespace, team });
        }
        let path = format!("/api/v1/namespaces/{namespace}");
        loop {
            match self.api.get::<Found>(&path).await {
                Ok(found) => return is_of(team, namespace, &found.metadata),
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error.into()),
            }
            let made = objects::own_namespace(team, namespace, self.settings.pod_security());
            match self.api.post("/api/v1/namespaces?fieldManager=berth", &made).await {
                Ok(_) => return Ok(()),
                // Another client has made it just now; look at it again.
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The limit of each team. A queue with others below it is no team: it has no jobs of its own.
    fn limits(&self) -> BTreeMap<String, Quota> {
        let queues = self.engine.core().state.queue_snapshots();
        let parents: BTreeSet<_> =
            queues.iter().filter_map(|queue| queue.spec.parent.clone()).collect();
        let leaves = queues.into_iter().filter(|queue| !parents.contains(&queue.spec.name));
        leaves.map(|queue| (queue.spec.name.to_string(), queue.spec.limit)).collect()
    }

    /// Writes those that are new or different, in their order.
    async fn write(&self, objects: &[Object], before: &[Object]) -> berth_kube::Result<()> {
        for object in objects.iter().filter(|object| !before.contains(object)) {
            self.api.apply(&object.0, &object.1).await?;
        }
        Ok(())
    }

    async fn objects(&self, team: &str, namespace: &str, limit: Option<&Quota>) -> Vec<Object> {
        let mut limit = limit.cloned();
        if let Some(limit) = limit.as_mut().filter(|_| !(self.are_whole)()) {
            // A quota would count a part as one, and the limit counts it as what it is.
            limit.gpu.total = None;
        }
        let mut all = objects::around_pods(
            team,
            namespace,
            (limit.as_ref(), self.own.as_deref()),
            self.settings.pod_security(),
        );
        match self.store.members_of(team).await {
            Ok(members) => {
                let members: Vec<String> = members.into_iter().map(|one| one.user).collect();
                all.push(objects::binding(team, namespace, &members));
            }
            // Who may look stays as it is, until it is known who is a member.
            Err(error) => tracing::warn!(%error, team, "the members of a team cannot be read"),
        }
        all
    }
}

/// Whether a namespace that is there is that of a team, and why not.
fn is_of(team: &str, namespace: &str, found: &Meta) -> Result<(), NamespaceError> {
    let marks = [found.label(TEAM), found.annotation(TEAM)];
    let mut marks = marks.into_iter().flatten().peekable();
    if marks.peek().is_none() {
        let (namespace, team) = (namespace.to_owned(), team.to_owned());
        return Err(NamespaceError::Unmarked { namespace, team });
    }
    match marks.find(|mark| *mark != team) {
        Some(other) => Err(of_another(namespace, team, other)),
        None => Ok(()),
    }
}

fn of_another(namespace: &str, team: &str, other: &str) -> NamespaceError {
    let (namespace, team) = (namespace.to_owned(), team.to_owned());
    NamespaceError::OtherTeam { namespace, team, other: other.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::objects::{is_label, own_namespace};
    use super::*;
    use crate::view::managed::{BERTH, MANAGED};
    use serde_json::json;

    fn namespace(marks: Value) -> Meta {
        serde_json::from_value(marks).unwrap()
    }

    #[test]
    fn a_namespace_that_is_there_is_a_teams_only_if_it_says_so() {
        let check = |marks: Value| is_of("nlp", "research", &namespace(marks));
        let why = check(json!({ "labels": { MANAGED: BERTH } })).unwrap_err().to_string();
        assert!(why.contains("kubectl annotate namespace research berth.dev/team=nlp"), "{why}");
        let (ours, other) = (json!({ TEAM: "nlp" }), json!({ TEAM: "vision" }));
        assert!(check(json!({ "labels": ours })).is_ok());
        assert!(check(json!({ "annotations": ours })).is_ok());
        let why = check(json!({ "labels": other, "annotations": ours })).unwrap_err().to_string();
        assert!(why.contains("that of the team vision"), "two teams have no namespace together");
    }

    #[test]
    fn a_namespace_that_berth_makes_for_a_team_belongs_to_that_team_alone() {
        for team in ["nlp", "nlp-", "a.b", "nlp_"] {
            let made = own_namespace(team, "x", "baseline");
            let found = namespace(made["metadata"].clone());
            assert!(is_of(team, "x", &found).is_ok());
            assert_eq!(found.label(TEAM), is_label(team).then_some(team));
        }
        assert!(is_label("a.b") && !is_label("nlp-") && !is_label(&"x".repeat(64)));
    }
}
