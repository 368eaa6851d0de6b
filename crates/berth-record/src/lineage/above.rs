//! Follows a lineage upstream: from a node to its inputs.

use super::known::{Job, Known};
use super::thing::{self, Thing};
use super::tracked::{self, PARENT, failed, tag};
use super::walk::{Body, Links, Loaded, Walk};
use crate::runs::run_id;
use berth_api::wire::LineageLink as Link;
use berth_model::{DataRef, JobId};
use berth_service::Fault;
use berth_tracker::Run;
use std::sync::Arc;

impl<K: Known> Walk<'_, K> {
    pub(super) async fn above(&mut self, from: &Loaded) -> Result<Links, Fault> {
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
                // Skip the direct edge if the logged model leads to the same run.
                let run = thing::run_of(version).filter(|run| of_model.as_deref() != Some(*run));
                if let Some(run) = run {
                    let thing = Thing::Run { id: run.to_owned(), team: team.clone() };
                    links.push((thing, Link::RegisteredFrom));
                }
                if let Some((name, version)) = thing::copied_from(version) {
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

    /// The job of a run. Any client can write tags, so check that the job names this run, too.
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
        // The run of the job has this edge already.
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
}
