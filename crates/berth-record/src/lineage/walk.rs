//! Going from node to node.

use super::graph::Graph;
use super::known::{Job, Known};
use super::node;
use super::thing::{self, Thing};
use super::tracked::{self, failed, tag};
use crate::runs::run_id;
use berth_api::wire::{Lineage, LineageKind as Kind, LineageLink as Link, LineageNode};
use berth_model::{DataRef, JobId};
use berth_service::Fault;
use berth_store::DataVersionRow;
use berth_tracker::grammar::{self, Entity};
use berth_tracker::{Experiment, LoggedModel, ModelVersion, ReadBy, Run, RunQuery, Store, View};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// The tag by which clients of MLflow say which run another one is part of.
const PARENT: &str = "mlflow.parentRunId";

/// What is known of a node, to go on from it.
pub(crate) enum Body {
    Model(String, Box<ModelVersion>),
    Logged(String, Box<LoggedModel>),
    Run(Box<Run>, Arc<Experiment>),
    Job(Box<Job>),
    Data(Box<DataVersionRow>),
    /// Nothing goes on from here.
    End,
}

/// A node that is in the graph.
pub(crate) struct Loaded {
    pub id: String,
    pub body: Body,
}

pub(crate) struct Walk<'a, K> {
    store: &'a dyn Store,
    known: &'a K,
    /// Ids of its things go without a team.
    team: String,
    graph: Graph,
    /// What was looked up before.
    loaded: BTreeMap<Thing, Arc<Loaded>>,
    /// Versions of models, by team.
    versions: BTreeMap<String, Arc<Vec<ModelVersion>>>,
    /// Versions of data, by team.
    data: BTreeMap<String, Arc<Vec<DataVersionRow>>>,
    hidden: usize,
    /// Jobs above the start, and the start.
    paid: BTreeSet<String>,
}

type Links = Vec<(Thing, Link)>;

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

    /// Joins a job that was asked for with its run.
    pub fn join_run(&mut self, run: &Loaded, job: &Loaded) {
        self.graph.edge(&run.id, &job.id, Link::RunOf);
    }

    /// To what these were made from.
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

    /// To what was made from these.
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

    /// Puts a thing into the graph; nothing where there is no room for it.
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

    /// The id that a thing has where it is there and may be seen.
    fn plain_id(&self, thing: &Thing) -> String {
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

    fn conceal(&mut self, kind: Kind) -> (LineageNode, Body) {
        self.hidden += 1;
        (node::hidden(kind, self.hidden), Body::End)
    }

    async fn read(&mut self, thing: &Thing) -> Result<(LineageNode, Body), Fault> {
        let id = self.plain_id(thing);
        Ok(match thing {
            Thing::Model { team, name, version } => {
                return self.read_version(id, (team, name, *version)).await;
            }
            Thing::Logged { id: named, team } => {
                let Some(model) = tracked::logged(self.store, named).await? else {
                    let node = node::node(Kind::LoggedModel, id, named, team);
                    return Ok((node::gone(node), Body::End));
                };
                let experiment = self.store.experiment(model.experiment);
                match experiment.filter(|of| tracked::sees(self.known, of)) {
                    None => self.conceal(Kind::LoggedModel),
                    Some(of) => {
                        let node = node::of_logged(id, &of.team, &model);
                        (node, Body::Logged(of.team.clone(), Box::new(model)))
                    }
                }
            }
            Thing::Run { id: named, team } => {
                let Some((run, experiment)) = tracked::run(self.store, named).await? else {
                    let node = node::node(Kind::Run, id, named, team);
                    let label = format!("run {named}");
                    return Ok((node::gone(LineageNode { label, ..node }), Body::End));
                };
                match tracked::sees(self.known, &experiment) {
                    false => self.conceal(Kind::Run),
                    true => {
                        let node = node::of_run(id, &run, &experiment);
                        (node, Body::Run(Box::new(run), experiment))
                    }
                }
            }
            Thing::Job { id: number, team } => match self.known.job(*number).await? {
                None => {
                    let node = node::node(Kind::Job, id, "", team);
                    let label = format!("job {number}");
                    (node::gone(LineageNode { label, ..node }), Body::End)
                }
                Some(job) if !job.visible => self.conceal(Kind::Job),
                Some(job) => {
                    let spent = self.known.spent(&job).await?;
                    (node::of_job(id, &job, spent), Body::Job(Box::new(job)))
                }
            },
            Thing::Data { team, name, version, hash } => {
                return self.read_data(id, (team, name, *version), hash.as_deref()).await;
            }
            Thing::Dataset { team, name, digest, source } => {
                (node::of_dataset(id, (team, name), digest, source), Body::End)
            }
            Thing::Code { team, name, commit, dirty } => {
                (node::of_code(id, (team, name), commit.as_deref(), *dirty), Body::End)
            }
            Thing::Image { team, name } => (node::node(Kind::Image, id, name, team), Body::End),
        })
    }

    async fn read_version(
        &mut self,
        id: String,
        (team, name, version): (&str, &str, u64),
    ) -> Result<(LineageNode, Body), Fault> {
        if !self.known.reads(team) {
            return Ok(self.conceal(Kind::Model));
        }
        let Some(found) = tracked::version(self.store, (team, name, version)).await? else {
            let node = node::node(Kind::Model, id, &format!("{name}@{version}"), team);
            return Ok((node::gone(node), Body::End));
        };
        let model = tracked::registered(self.store, team, name).await?;
        let aliases = model.map(|model| model.aliases).unwrap_or_default().into_iter();
        let aliases = aliases.filter(|(_, named)| *named == version).map(|(alias, _)| alias);
        let node = node::of_version(id, team, &found, aliases.collect());
        Ok((node, Body::Model(team.to_owned(), Box::new(found))))
    }

    async fn read_data(
        &mut self,
        id: String,
        (team, name, version): (&str, &str, u64),
        hash: Option<&str>,
    ) -> Result<(LineageNode, Body), Fault> {
        if !self.known.reads_data(team) {
            return Ok(self.conceal(Kind::Data));
        }
        let all = self.all_data(team).await?;
        let row = all.iter().find(|row| row.name == name && row.version == version);
        if let Some(row) = row
            && hash.is_none_or(|hash| hash == row.hash)
        {
            return Ok((node::of_data(id, row), Body::Data(Box::new(row.clone()))));
        }
        // A version of that name may have been removed and another one made. This is the old one.
        let id = hash.map_or(id.clone(), |hash| format!("{id}#{hash}"));
        let mut node = node::node(Kind::Data, id, &format!("{name}@v{version}"), team);
        node.details.hash = hash.map(str::to_owned);
        let mut node = node::gone(node);
        if row.is_some() {
            node.label = format!("{name}@v{version} (removed; other data has its name now)");
        }
        Ok((node, Body::End))
    }

    async fn all_data(&mut self, team: &str) -> Result<Arc<Vec<DataVersionRow>>, Fault> {
        if let Some(all) = self.data.get(team) {
            return Ok(all.clone());
        }
        let all = Arc::new(self.known.versions(team, None).await?);
        self.data.insert(team.to_owned(), all.clone());
        Ok(all)
    }

    async fn all_versions(&mut self, team: &str) -> Result<Arc<Vec<ModelVersion>>, Fault> {
        if let Some(all) = self.versions.get(team) {
            return Ok(all.clone());
        }
        let all = match self.known.reads(team) {
            true => tracked::versions(self.store, team).await?,
            false => Some(Vec::new()),
        };
        self.graph.more |= all.is_none();
        let all = Arc::new(all.unwrap_or_default());
        self.versions.insert(team.to_owned(), all.clone());
        Ok(all)
    }

    async fn above(&mut self, from: &Loaded) -> Result<Links, Fault> {
        let mut links = Links::new();
        match &from.body {
            Body::End => {}
            Body::Model(team, version) => {
                let mut of_model = None;
                if let Some(id) = &version.model {
                    of_model = tracked::logged(self.store, id).await?.map(|model| model.run);
                    let thing = Thing::Logged { id: id.clone(), team: team.clone() };
                    links.push((thing, Link::RegisteredFrom));
                }
                // Where the logged model leads to the same run, the direct way says nothing new.
                if let Some(id) = version.run.clone().filter(|run| of_model.as_ref() != Some(run)) {
                    links.push((Thing::Run { id, team: team.clone() }, Link::RegisteredFrom));
                }
                if let Some((name, version)) = copied_from(version) {
                    let thing = Thing::Model { team: team.clone(), name, version };
                    links.push((thing, Link::RegisteredFrom));
                }
            }
            Body::Logged(team, model) => {
                if !model.run.is_empty() {
                    let thing = Thing::Run { id: model.run.clone(), team: team.clone() };
                    links.push((thing, Link::LoggedBy));
                }
            }
            Body::Run(run, experiment) => links = self.above_run(run, &experiment.team).await?,
            Body::Job(job) => links = self.above_job(job).await?,
            Body::Data(row) => {
                if let Some(version) = row.parent {
                    let (team, name) = (row.team.clone(), row.name.clone());
                    let thing = Thing::Data { team, name, version, hash: None };
                    links.push((thing, Link::DerivedFrom));
                }
            }
        }
        Ok(links)
    }

    async fn above_run(&mut self, run: &Run, team: &str) -> Result<Links, Fault> {
        let mut links = Links::new();
        let of = || team.to_owned();
        if let Some(parent) = tag(run, PARENT).filter(|parent| *parent != run.id) {
            links.push((Thing::Run { id: parent.to_owned(), team: of() }, Link::ChildOf));
        }
        if let Some(id) = self.job_of(run).await? {
            links.push((Thing::Job { id, team: of() }, Link::RunOf));
        }
        let mut data: Vec<Thing> = Vec::new();
        if !run.datasets.is_empty() {
            let versions = match self.known.reads_data(team) {
                true => self.all_data(team).await?,
                false => Arc::default(),
            };
            let inputs = run.datasets.iter();
            data.extend(inputs.map(|input| thing::of_input(input, team, &versions)));
        }
        data.sort();
        links.extend(data.into_iter().map(|data| (data, Link::Read)));
        let models = run.models.iter().filter(|model| !model.is_output);
        for model in models {
            let thing = Thing::Logged { id: model.id.clone(), team: of() };
            links.push((thing, Link::ReadModel));
        }
        links.extend(thing::code_of(run, team).map(|code| (code, Link::WithCode)));
        links.extend(thing::image_of(run, team).map(|image| (image, Link::InImage)));
        Ok(links)
    }

    /// The job whose run it is. Anyone who logs can write a tag, so the job must lead back to it.
    async fn job_of(&self, run: &Run) -> Result<Option<JobId>, Fault> {
        let Some(id) = tag(run, "berth.job").and_then(|job| job.parse::<JobId>().ok()) else {
            return Ok(None);
        };
        let job = self.known.job(id).await?;
        let leads_back = |job: &Job| run_id(id, job.row.submitted) == run.id;
        Ok(job.as_ref().is_none_or(leads_back).then_some(id))
    }

    async fn above_job(&mut self, job: &Job) -> Result<Links, Fault> {
        let (row, mut links) = (&job.row, Links::new());
        let team = || row.team.clone();
        let resumed = job.detail.as_ref().and_then(|detail| detail.resume_from);
        if let Some(id) = resumed {
            let before = self.known.job(id).await?;
            let run = before.map(|before| run_id(id, before.row.submitted));
            let thing = match run {
                Some(run) if self.is_tracked(&run).await? => Thing::Run { id: run, team: team() },
                _ => Thing::Job { id, team: team() },
            };
            links.push((thing, Link::ResumedFrom));
        }
        if self.is_tracked(&run_id(row.id, row.submitted)).await? {
            return Ok(links);
        }
        // Its run would say this.
        for (_, DataRef { version, hash }) in job.data() {
            let Some(number) = version.version else { continue };
            let hash = hash.map(|hash| hash.to_string());
            let thing = Thing::Data { team: team(), name: version.name, version: number, hash };
            links.push((thing, Link::Read));
        }
        if let Some(code) = job.run().and_then(|run| run.code.as_ref()) {
            let (name, commit, dirty) = (code.to_string(), None, None);
            links.push((Thing::Code { team: team(), name, commit, dirty }, Link::WithCode));
        }
        if let Some(image) = job.image() {
            let thing = Thing::Image { team: team(), name: image.to_owned() };
            links.push((thing, Link::InImage));
        }
        Ok(links)
    }

    async fn is_tracked(&self, run: &str) -> Result<bool, Fault> {
        Ok(self.store.run_head(run).await.map_err(failed)?.is_some())
    }

    async fn below(&mut self, from: &Loaded, is_start: bool) -> Result<Links, Fault> {
        let mut links = Links::new();
        match &from.body {
            Body::End | Body::Job(_) => {}
            Body::Model(team, version) => {
                let (name, number) = (version.name.clone(), version.version);
                let from = Some((name, number));
                links = self.registered(team, |one| copied_from(one) == from).await?;
            }
            Body::Logged(team, model) => {
                let is_of = |one: &ModelVersion| one.model.as_ref() == Some(&model.id);
                links = self.registered(team, is_of).await?;
                for run in self.readers(ReadBy::Model(&model.id)).await? {
                    let team = self.team_of(&run);
                    links.push((Thing::Run { id: run.id, team }, Link::ReadModel));
                }
            }
            Body::Run(run, experiment) => {
                links = self.below_run(run, &experiment.team, is_start).await?;
            }
            Body::Data(row) => links = self.below_data(row).await?,
        }
        Ok(links)
    }

    async fn below_run(&mut self, run: &Run, team: &str, is_start: bool) -> Result<Links, Fault> {
        let mut links = Links::new();
        let mut own = BTreeSet::new();
        for model in run.models.iter().filter(|model| model.is_output) {
            // A run may name any model, and only one has made it.
            let made = tracked::logged(self.store, &model.id).await?;
            if made.is_some_and(|made| made.run == run.id) {
                own.insert(model.id.clone());
                let thing = Thing::Logged { id: model.id.clone(), team: team.to_owned() };
                links.push((thing, Link::LoggedBy));
            }
        }
        let is_of = |one: &ModelVersion| {
            one.run.as_ref() == Some(&run.id)
                && one.model.as_ref().is_none_or(|model| !own.contains(model))
        };
        links.extend(self.registered(team, is_of).await?);
        // Looking for those of every run would go through an experiment once for each.
        if is_start {
            for child in self.children(run).await? {
                let team = self.team_of(&child);
                links.push((Thing::Run { id: child.id, team }, Link::ChildOf));
            }
        }
        Ok(links)
    }

    async fn below_data(&mut self, row: &DataVersionRow) -> Result<Links, Fault> {
        let all = self.all_data(&row.team).await?;
        let children =
            all.iter().filter(|one| one.name == row.name && one.parent == Some(row.version));
        let mut links: Links =
            children.map(|one| (Thing::of_row(one), Link::DerivedFrom)).collect();
        let own = (row.name.clone(), row.version);
        for run in self.readers(ReadBy::Digest(&row.hash)).await? {
            let of_team = self.store.experiment(run.experiment);
            let of_team = of_team.is_some_and(|experiment| experiment.team == row.team);
            let is_meant =
                |version: Option<(String, u64)>| version.is_none_or(|named| named == own);
            let mut inputs = run.datasets.iter().filter(|one| one.dataset.digest == row.hash);
            if of_team && inputs.any(|input| is_meant(thing::version_of(input))) {
                links.push((Thing::Run { id: run.id, team: row.team.clone() }, Link::Read));
            }
        }
        Ok(links)
    }

    /// Versions of models that are so.
    async fn registered(
        &mut self,
        team: &str,
        is_so: impl Fn(&ModelVersion) -> bool,
    ) -> Result<Links, Fault> {
        let all = self.all_versions(team).await?;
        let thing = |one: &ModelVersion| Thing::Model {
            team: team.to_owned(),
            name: one.name.clone(),
            version: one.version,
        };
        let found = all.iter().filter(|one| is_so(one));
        Ok(found.map(|one| (thing(one), Link::RegisteredFrom)).collect())
    }

    /// Runs that have read something, as far as the caller may see them: downwards nothing is told
    /// of the others.
    async fn readers(&mut self, of: ReadBy<'_>) -> Result<Vec<Run>, Fault> {
        let most = self.graph.room() + 1;
        let numbers = self.store.runs_that_read(of, most).await.map_err(failed)?;
        // Some of them may be hidden, and others that come after may not.
        self.graph.more |= numbers.len() == most;
        let runs = self.store.runs(&numbers).await.map_err(failed)?;
        Ok(self.visible(runs))
    }

    async fn children(&mut self, run: &Run) -> Result<Vec<Run>, Fault> {
        // Ids have no quotes, but tags may have.
        let id = run.id.replace('\'', "");
        let filter = format!("tags.`{PARENT}` = '{id}'");
        let query = RunQuery {
            experiments: vec![run.experiment],
            view: View::Active,
            clauses: grammar::filter(Entity::Run, &filter).map_err(failed)?,
            orders: Vec::new(),
            offset: 0,
            limit: self.graph.room() + 1,
        };
        let numbers = self.store.search(&query).await.map_err(failed)?;
        self.graph.more |= numbers.len() == query.limit;
        let runs = self.store.runs(&numbers).await.map_err(failed)?;
        Ok(self.visible(runs))
    }

    fn visible(&self, mut runs: Vec<Run>) -> Vec<Run> {
        runs.retain(|run| {
            let experiment = self.store.experiment(run.experiment);
            !run.deleted && experiment.is_some_and(|of| tracked::sees(self.known, &of))
        });
        runs
    }

    fn team_of(&self, run: &Run) -> String {
        self.store.experiment(run.experiment).map(|of| of.team.clone()).unwrap_or_default()
    }
}

/// The version that another one is a copy of.
fn copied_from(version: &ModelVersion) -> Option<(String, u64)> {
    let (name, number) = version.source.strip_prefix("models:/")?.split_once('/')?;
    Some((name.to_owned(), number.parse().ok()?))
}
