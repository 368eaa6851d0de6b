//! Follows a lineage downstream: from a node to its outputs.

use super::known::Known;
use super::thing::{self, Thing};
use super::tracked::{self, PARENT, failed};
use super::walk::{Body, Links, Loaded, Walk};
use berth_api::wire::LineageLink as Link;
use berth_service::Fault;
use berth_store::DataVersionRow;
use berth_tracker::grammar::{self, Entity};
use berth_tracker::{ReadBy, Run, RunQuery, View};
use std::collections::BTreeSet;

impl<K: Known> Walk<'_, K> {
    pub(super) async fn below(&mut self, from: &Loaded, is_start: bool) -> Result<Links, Fault> {
        let mut links = Links::new();
        match &from.body {
            Body::End | Body::Job(_) => {}
            Body::Model(team, version) => {
                let all = self.all_versions(team).await?;
                links = registered(all.copies(team, &version.name, version.version));
            }
            Body::Logged(team, model) => {
                let all = self.all_versions(team).await?;
                links = registered(all.of_logged(team, &model.id));
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
            // Any run may name a model as output, but only one run has logged it.
            let made = tracked::logged(self.store, &model.id).await?;
            if made.is_some_and(|made| made.run == run.id) {
                own.insert(model.id.clone());
                let thing = Thing::Logged { id: model.id.clone(), team: team.to_owned() };
                links.push((thing, Link::LoggedBy));
            }
        }
        let all = self.all_versions(team).await?;
        links.extend(registered(all.of_run(team, &run.id, |model| own.contains(model))));
        // Searching the children of every run would scan the experiment once for each run.
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

    /// Runs with this input that the caller may read. Downstream, the answer omits all others.
    async fn readers(&mut self, of: ReadBy<'_>) -> Result<Vec<Run>, Fault> {
        let most = self.graph.room() + 1;
        let numbers = self.store.runs_that_read(of, most).await.map_err(failed)?;
        // Count before the filter: rows after the limit may be visible even if these are hidden.
        self.graph.more |= numbers.len() == most;
        let runs = self.store.runs(&numbers).await.map_err(failed)?;
        Ok(self.visible(runs))
    }

    async fn children(&mut self, run: &Run) -> Result<Vec<Run>, Fault> {
        // Ids contain no quotes, but tags may.
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

fn registered(models: Vec<Thing>) -> Links {
    models.into_iter().map(|model| (model, Link::RegisteredFrom)).collect()
}
