//! The walk from node to node.

use super::graph::Graph;
use super::known::{Job, Known};
use super::thing::Thing;
use super::tracked;
use super::versions::Versions;
use berth_api::wire::{Lineage, LineageKind as Kind, LineageLink as Link};
use berth_service::Fault;
use berth_store::DataVersionRow;
use berth_tracker::{Experiment, LoggedModel, ModelVersion, Run, Store};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// The facts of a node that the walk needs.
pub(crate) enum Body {
    Model(String, Box<ModelVersion>),
    Logged(String, Box<LoggedModel>),
    Run(Box<Run>, Arc<Experiment>),
    Job(Box<Job>),
    Data(Box<DataVersionRow>),
    /// The walk ends here.
    End,
}

/// A node in the graph.
pub(crate) struct Loaded {
    pub id: String,
    pub body: Body,
}

pub(crate) struct Walk<'a, K> {
    pub(super) store: &'a dyn Store,
    pub(super) known: &'a K,
    /// The team whose ids need no team prefix.
    team: String,
    pub(super) graph: Graph,
    /// Caches.
    loaded: BTreeMap<Thing, Arc<Loaded>>,
    /// Versions of models, by team.
    versions: BTreeMap<String, Arc<Versions>>,
    /// Versions of data, by team.
    data: BTreeMap<String, Arc<Vec<DataVersionRow>>>,
    pub(super) hidden: usize,
    /// Jobs upstream, for the sum of the cost.
    paid: BTreeSet<String>,
}

/// The neighbours of a node, each with its edge.
pub(super) type Links = Vec<(Thing, Link)>;

impl<'a, K: Known> Walk<'a, K> {
    pub fn new(store: &'a dyn Store, known: &'a K, team: &str, limit: usize) -> Walk<'a, K> {
        Walk {
            store,
            known,
            team: team.to_owned(),
            graph: Graph::new(limit),
            loaded: BTreeMap::new(),
            versions: BTreeMap::new(),
            data: BTreeMap::new(),
            hidden: 0,
            paid: BTreeSet::new(),
        }
    }

    pub fn finish(self, of: &str) -> Lineage {
        self.graph.finish(of.to_owned(), &self.paid)
    }

    /// Adds the edge between the requested job and its run.
    pub fn join_run(&mut self, run: &Loaded, job: &Loaded) {
        self.graph.edge(&run.id, &job.id, Link::RunOf);
    }

    /// Walks upstream.
    pub async fn up(&mut self, starts: &[Arc<Loaded>]) -> Result<(), Fault> {
        let mut seen: BTreeSet<String> = starts.iter().map(|one| one.id.clone()).collect();
        let mut queue: VecDeque<Arc<Loaded>> = starts.iter().cloned().collect();
        while let Some(from) = queue.pop_front() {
            if matches!(from.body, Body::Job(_)) {
                self.paid.insert(from.id.clone());
            }
            for (thing, link) in self.above(&from).await? {
                let Some(to) = self.load(&thing).await? else { continue };
                self.graph.edge(&from.id, &to.id, link);
                if seen.insert(to.id.clone()) {
                    queue.push_back(to);
                }
            }
        }
        Ok(())
    }

    /// Walks downstream.
    pub async fn down(&mut self, starts: &[Arc<Loaded>]) -> Result<(), Fault> {
        let mut seen: BTreeSet<String> = starts.iter().map(|one| one.id.clone()).collect();
        let mut queue: VecDeque<(Arc<Loaded>, bool)> =
            starts.iter().cloned().map(|start| (start, true)).collect();
        while let Some((from, is_start)) = queue.pop_front() {
            for (thing, link) in self.below(&from, is_start).await? {
                let Some(to) = self.load(&thing).await? else { continue };
                self.graph.edge(&to.id, &from.id, link);
                if seen.insert(to.id.clone()) {
                    queue.push_back((to, false));
                }
            }
        }
        Ok(())
    }

    fn of(&self, kind: Kind, team: &str, name: &str) -> String {
        match team == self.team {
            true => format!("{}:{name}", kind.word()),
            false => format!("{}:{team}/{name}", kind.word()),
        }
    }

    /// Adds a node to the graph; `None` if the limit is reached.
    pub async fn load(&mut self, thing: &Thing) -> Result<Option<Arc<Loaded>>, Fault> {
        if let Some(loaded) = self.loaded.get(thing) {
            return Ok(Some(loaded.clone()));
        }
        if self.graph.room() == 0 && !self.graph.has(&self.plain_id(thing)) {
            self.graph.more = true;
            return Ok(None);
        }
        let (node, body) = self.read(thing).await?;
        let id = node.id.clone();
        if !self.graph.node(node) {
            return Ok(None);
        }
        let loaded = Arc::new(Loaded { id, body });
        self.loaded.insert(thing.clone(), loaded.clone());
        Ok(Some(loaded))
    }

    /// The id of a node that exists and is visible.
    pub(super) fn plain_id(&self, thing: &Thing) -> String {
        match thing {
            Thing::Model { team, name, version } => {
                self.of(Kind::Model, team, &format!("{name}@{version}"))
            }
            Thing::Logged { id, .. } => format!("{}:{id}", Kind::LoggedModel.word()),
            Thing::Run { id, .. } => format!("{}:{id}", Kind::Run.word()),
            Thing::Job { id, .. } => format!("{}:{id}", Kind::Job.word()),
            Thing::Data { team, name, version, .. } => {
                self.of(Kind::Data, team, &format!("{name}@v{version}"))
            }
            Thing::Dataset { team, name, digest, .. } => {
                self.of(Kind::Dataset, team, &format!("{name}#{digest}"))
            }
            Thing::Code { team, name, .. } => self.of(Kind::Code, team, name),
            Thing::Image { name, .. } => format!("{}:{name}", Kind::Image.word()),
        }
    }

    pub(super) async fn all_data(&mut self, team: &str) -> Result<Arc<Vec<DataVersionRow>>, Fault> {
        if let Some(all) = self.data.get(team) {
            return Ok(all.clone());
        }
        let all = Arc::new(self.known.versions(team, None).await?);
        self.data.insert(team.to_owned(), all.clone());
        Ok(all)
    }

    pub(super) async fn all_versions(&mut self, team: &str) -> Result<Arc<Versions>, Fault> {
        if let Some(all) = self.versions.get(team) {
            return Ok(all.clone());
        }
        let all = match self.known.reads(team) {
            true => tracked::versions(self.store, team).await?,
            false => Some(Vec::new()),
        };
        self.graph.more |= all.is_none();
        let all = Arc::new(Versions::of(all.unwrap_or_default()));
        self.versions.insert(team.to_owned(), all.clone());
        Ok(all)
    }
}
