//! Loads nodes.

use super::known::Known;
use super::node;
use super::thing::Thing;
use super::tracked;
use super::walk::{Body, Walk};
use berth_api::wire::{LineageKind as Kind, LineageNode};
use berth_service::Fault;

impl<K: Known> Walk<'_, K> {
    fn conceal(&mut self, kind: Kind) -> (LineageNode, Body) {
        self.hidden += 1;
        (node::hidden(kind, self.hidden), Body::End)
    }

    /// Loads a node, with the facts that the walk needs.
    pub(super) async fn read(&mut self, thing: &Thing) -> Result<(LineageNode, Body), Fault> {
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
        // The hash differs: the version was removed and pushed again. Show the removed one.
        let id = hash.map_or(id.clone(), |hash| format!("{id}#{hash}"));
        let mut node = node::node(Kind::Data, id, &format!("{name}@v{version}"), team);
        node.details.hash = hash.map(str::to_owned);
        let mut node = node::gone(node);
        if row.is_some() {
            node.label = format!("{name}@v{version} (removed; other data has its name now)");
        }
        Ok((node, Body::End))
    }
}
