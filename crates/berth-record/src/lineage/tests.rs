//! Lineages in a real tracking store, with fake jobs and data.

use super::known::{Job, Known, Spent};
use super::of;
use crate::runs::run_id;
use berth_api::Code;
use berth_api::wire::{
    Lineage, LineageKind as NodeKind, LineageLink as Link, LineageNode, LineageQuery, LineageWay,
};
use berth_model::{JobId, JobKind, JobState, Micros, Milli, Time};
use berth_service::Fault;
use berth_store::{DataVersionRow, JobRow};
use berth_tracker::{
    Dataset, DocChange, DocKey, DocSet, Experiment, Input, Kind, LoggedModel, ModelVersion, NewRun,
    RegisteredModel, RunChange, RunModel, Store, Tags,
};
use berth_tracker_store::{Options, TrackingStore};
use serde::Serialize;
use std::collections::BTreeMap;
use tempfile::TempDir;

const HASH: &str = "d751713988987e9331980363e24189ce.dir";
const OLD: &str = "0cc175b9c0f1b6a831c399e269772661";
const SUBMITTED: Time = Time(1_000);

/// Fake jobs and data, and the teams of the caller.
struct Given {
    teams: Vec<&'static str>,
    jobs: Vec<Job>,
    data: Vec<DataVersionRow>,
}

impl Known for Given {
    fn reads(&self, team: &str) -> bool {
        self.teams.contains(&team)
    }

    fn must_read(&self, team: &str, _: &str) -> Result<(), Fault> {
        match self.reads(team) {
            true => Ok(()),
            false => Err(Fault::new(Code::Forbidden, "not yours")),
        }
    }

    fn reads_data(&self, team: &str) -> bool {
        self.reads(team)
    }

    async fn job(&self, id: JobId) -> Result<Option<Job>, Fault> {
        let mut found = self.jobs.iter().find(|job| job.row.id == id).cloned();
        if let Some(job) = &mut found {
            job.visible = self.reads(&job.row.team);
        }
        Ok(found)
    }

    async fn spent(&self, _: &Job) -> Result<Spent, Fault> {
        Ok(Spent { cost_micros: 1_500_000, gpu_ms: 3_600_000 })
    }

    async fn versions(&self, team: &str, name: Option<&str>) -> Result<Vec<DataVersionRow>, Fault> {
        let of = self.data.iter().filter(|row| row.team == team);
        Ok(of.filter(|row| name.is_none_or(|name| row.name == name)).cloned().collect())
    }
}

fn job(number: u64, team: &str) -> Job {
    let row = JobRow {
        id: JobId::new(number),
        name: "train".into(),
        kind: JobKind::Job,
        user: "kim".into(),
        team: team.into(),
        project: "default".into(),
        experiment: String::new(),
        state: JobState::Done,
        priority: 0,
        submitted: SUBMITTED,
        started: Some(Time(2_000)),
        ended: Some(Time(3_000)),
        attempt: 1,
        gpus: Milli(1_000),
        cost: Micros(7),
        file: String::new(),
        detail: String::new(),
        reason: String::new(),
    };
    Job { row, detail: None, visible: true }
}

fn version(name: &str, version: u64, hash: &str, parent: Option<u64>) -> DataVersionRow {
    DataVersionRow {
        team: "nlp".into(),
        name: name.into(),
        version,
        hash: hash.into(),
        bytes: 6,
        files: 1,
        parent,
        created: Time(1),
        by: "kim".into(),
        note: String::new(),
    }
}

/// A store with experiment 1 of team `nlp`, shared with `audio`.
struct Place {
    store: TrackingStore,
    given: Given,
    _folder: TempDir,
}

async fn put(store: &TrackingStore, key: DocKey, value: &impl Serialize) {
    let value = serde_json::to_value(value).unwrap();
    let edit = move |docs: &mut DocSet| {
        docs.put(key, &value);
        Ok(Vec::new())
    };
    store.edit(DocChange { load: Vec::new(), edit: Box::new(edit) }).await.unwrap();
}

fn key(kind: Kind, scope: &str, name: &str, sub: i64) -> DocKey {
    DocKey { kind, scope: scope.into(), name: name.into(), sub }
}

impl Place {
    async fn set() -> Place {
        let folder = TempDir::with_prefix("berth-lineage-").unwrap();
        let file = folder.path().join("tracking.db");
        let url = format!("sqlite://{}", file.display());
        let store =
            TrackingStore::open(&url, "a test", Some(&file), &Options::default()).await.unwrap();
        let data = vec![version("c4", 1, OLD, None), version("c4", 2, HASH, Some(1))];
        let given = Given { teams: vec!["nlp"], jobs: vec![job(17, "nlp")], data };
        let place = Place { store, given, _folder: folder };
        place.experiment(1, "nlp", &["audio"]).await;
        place.experiment(2, "audio", &[]).await;
        place
    }

    async fn experiment(&self, no: i64, team: &str, shared_with: &[&str]) {
        let experiment = Experiment {
            no,
            team: team.into(),
            name: "llama".into(),
            deleted: false,
            created: 1,
            updated: 1,
            by: "kim".into(),
            tags: Tags::new(),
            shared_with: shared_with.iter().map(|team| (*team).to_owned()).collect(),
        };
        put(&self.store, key(Kind::Experiment, team, "llama", no), &experiment).await;
    }

    /// Makes a run that reads a data set.
    async fn run(&self, id: &str, experiment: i64, tags: &[(&str, &str)], data: &[(&str, &str)]) {
        let tags = tags.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        let new = NewRun {
            id: id.into(),
            experiment,
            name: "brisk-harbor".into(),
            user: "kim".into(),
            by: "kim".into(),
            start: 5,
            tags,
        };
        self.store.write(RunChange::Create(new)).await.unwrap();
        let input = |(name, digest): &(&str, &str)| Input {
            dataset: Dataset {
                name: (*name).into(),
                digest: (*digest).into(),
                source_type: "berth".into(),
                source: "{}".into(),
                schema: None,
                profile: None,
            },
            tags: vec![],
        };
        self.inputs(id, data.iter().map(input).collect(), vec![]).await;
    }

    async fn inputs(&self, id: &str, datasets: Vec<Input>, models: Vec<RunModel>) {
        let run = self.store.run_head(id).await.unwrap().unwrap();
        self.store.write(RunChange::Inputs { run, datasets, models }).await.unwrap();
    }

    /// Makes a logged model of a run, and version 1 of `chat` from it.
    async fn model(&self, run: &str) {
        let logged = LoggedModel {
            id: "m-1".into(),
            experiment: 1,
            name: "lora".into(),
            model_type: String::new(),
            run: run.into(),
            status: "LOGGED_MODEL_READY".into(),
            created: 1,
            updated: 1,
            by: "kim".into(),
            tags: Tags::new(),
            params: Tags::new(),
        };
        put(&self.store, key(Kind::LoggedModel, "1", "m-1", 0), &logged).await;
        let made = RunModel { id: "m-1".into(), is_output: true, step: 0 };
        self.inputs(run, vec![], vec![made]).await;
        let model = RegisteredModel {
            name: "chat".into(),
            created: 1,
            updated: 1,
            by: "kim".into(),
            description: None,
            deployment_job: None,
            tags: Tags::new(),
            aliases: BTreeMap::from([("champion".to_owned(), 1)]),
            last_version: 1,
            newest: BTreeMap::from([("None".to_owned(), 1)]),
            shared_with: Vec::new(),
        };
        put(&self.store, key(Kind::RegisteredModel, "nlp", "chat", 0), &model).await;
        let version = ModelVersion {
            name: "chat".into(),
            version: 1,
            created: 1,
            updated: 1,
            by: "kim".into(),
            description: None,
            stage: "None".into(),
            source: "models:/m-1".into(),
            storage: String::new(),
            run: Some(run.into()),
            run_link: None,
            model: Some("m-1".into()),
            tags: Tags::new(),
        };
        put(&self.store, key(Kind::ModelVersion, "nlp", "chat", 1), &version).await;
    }

    /// Makes a run of job 17 with every kind of input.
    async fn whole(&self) -> String {
        let id = run_id(JobId::new(17), SUBMITTED);
        let tags = [
            ("berth.job", "17"),
            ("berth.code", "sha256:0c"),
            ("mlflow.source.git.commit", "1a2b"),
            ("berth.code.dirty", "true"),
            ("berth.image", "python:3.12"),
        ];
        self.run(&id, 1, &tags, &[("c4@v2", HASH)]).await;
        self.model(&id).await;
        id
    }

    async fn ask(&self, of_what: &str, way: LineageWay) -> Lineage {
        self.try_ask(of_what, way, None).await.unwrap()
    }

    async fn try_ask(
        &self,
        of_what: &str,
        way: LineageWay,
        limit: Option<u32>,
    ) -> Result<Lineage, Fault> {
        let query = LineageQuery { of: of_what.into(), team: Some("nlp".into()), way, limit };
        of(&self.store, &self.given, None, query).await
    }
}

fn ids(found: &Lineage) -> Vec<&str> {
    found.nodes.iter().map(|node| node.id.as_str()).collect()
}

fn node<'a>(found: &'a Lineage, id: &str) -> &'a LineageNode {
    found.nodes.iter().find(|node| node.id == id).unwrap_or_else(|| panic!("{id}: {found:?}"))
}

fn has(found: &Lineage, from: &str, kind: Link, to: &str) -> bool {
    found.edges.iter().any(|edge| edge.from == from && edge.kind == kind && edge.to == to)
}

#[tokio::test]
async fn a_model_leads_to_its_run_and_that_to_job_data_code_and_image() {
    let place = Place::set().await;
    let run = format!("run:{}", place.whole().await);
    let found = place.ask("model:chat@champion", LineageWay::Up).await;
    assert_eq!(
        ids(&found),
        [
            "model:chat@1",
            "logged_model:m-1",
            &run,
            "job:17",
            "data:c4@v2",
            "code:sha256:0c",
            "image:python:3.12",
            "data:c4@v1",
        ]
    );
    assert!(has(&found, "model:chat@1", Link::RegisteredFrom, "logged_model:m-1"));
    assert!(has(&found, "logged_model:m-1", Link::LoggedBy, &run));
    assert!(has(&found, &run, Link::RunOf, "job:17"));
    assert!(has(&found, "data:c4@v2", Link::DerivedFrom, "data:c4@v1"));
    assert!(!has(&found, "model:chat@1", Link::RegisteredFrom, &run), "that says nothing new");
    assert_eq!(node(&found, "model:chat@1").details.aliases, ["champion"]);
    assert_eq!(node(&found, "code:sha256:0c").label, "commit 1a2b with changes");
    assert_eq!((found.cost_micros, found.gpu_ms, found.more), (1_500_000, 3_600_000, false));
    assert_eq!(found, place.ask("model:chat@1", LineageWay::Up).await, "the same again");
}

#[tokio::test]
async fn data_leads_to_what_was_made_from_it_in_its_own_team() {
    let place = Place::set().await;
    let run = place.whole().await;
    place.run("stranger", 2, &[], &[("c4@v2", HASH)]).await;
    place.run("other-version", 1, &[], &[("c5@v1", HASH)]).await;
    place.run("plain", 1, &[], &[("corpus", HASH)]).await;
    let found = place.ask("data:c4@v1", LineageWay::Down).await;
    assert_eq!(
        ids(&found),
        [
            "data:c4@v1",
            "data:c4@v2",
            "run:plain",
            &format!("run:{run}"),
            "logged_model:m-1",
            "model:chat@1",
        ],
        "another team's run has other data of the same content, and `c5@v1` is another name"
    );
    let newest = place.ask("data:c4", LineageWay::Down).await;
    assert_eq!(newest.of, "data:c4@v2");
    assert_eq!(found.cost_micros, 0, "jobs below it are not what it was made from");
}

#[tokio::test]
async fn a_job_is_joined_with_its_run_and_a_tag_alone_joins_nothing() {
    let place = Place::set().await;
    let run = format!("run:{}", place.whole().await);
    let found = place.ask("job:17", LineageWay::Both).await;
    assert_eq!(&ids(&found)[..2], ["job:17", &run]);
    assert!(has(&found, &run, Link::RunOf, "job:17"));
    assert!(ids(&found).contains(&"model:chat@1") && ids(&found).contains(&"data:c4@v1"));
    place.run("forged", 1, &[("berth.job", "17")], &[]).await;
    let forged = place.ask("run:forged", LineageWay::Both).await;
    assert_eq!(ids(&forged), ["run:forged"], "any client can write that tag");
}

#[tokio::test]
async fn data_that_is_not_what_it_was_is_another_node() {
    let mut place = Place::set().await;
    let run = place.whole().await;
    place.given.data.retain(|row| row.version == 1);
    let found = place.ask(&format!("run:{run}"), LineageWay::Up).await;
    let gone = node(&found, &format!("data:c4@v2#{HASH}"));
    assert!(gone.gone && gone.label == "c4@v2 (removed)", "{gone:?}");
    place.given.data.push(version("c4", 2, OLD, Some(1)));
    let found = place.ask(&format!("run:{run}"), LineageWay::Up).await;
    let gone = node(&found, &format!("data:c4@v2#{HASH}"));
    assert!(gone.label.contains("other data has its name now"), "{gone:?}");
    assert!(!ids(&found).contains(&"data:c4@v2"), "the run never read that");
}

#[tokio::test]
async fn what_belongs_to_another_team_is_hidden_above_a_shared_run() {
    let mut place = Place::set().await;
    let run = place.whole().await;
    place.given.teams = vec!["audio"];
    let found = place.ask(&format!("run:{run}"), LineageWay::Both).await;
    let hidden: Vec<&LineageNode> = found.nodes.iter().filter(|node| node.hidden).collect();
    let kinds: Vec<NodeKind> = hidden.iter().map(|node| node.kind).collect();
    assert_eq!(kinds, [NodeKind::Job, NodeKind::Data]);
    assert!(hidden.iter().all(|node| node.name.is_empty() && node.team.is_empty()));
    assert!(!format!("{hidden:?}").contains("c4"), "{hidden:?}");
    assert!(!ids(&found).contains(&"model:chat@1"), "nothing is said of what was made from it");
    assert_eq!(found.cost_micros, 0);
    place.given.teams = vec!["vision"];
    for of_what in [format!("run:{run}"), "job:17".into(), "model:chat@1".into()] {
        let refused = place.try_ask(&of_what, LineageWay::Both, None).await.unwrap_err();
        let code = refused.0.known_code();
        assert!(matches!(code, Some(Code::NotFound | Code::NoSuchJob)), "{of_what}: {refused:?}");
    }
}

#[tokio::test]
async fn a_limit_cuts_and_says_so() {
    let place = Place::set().await;
    place.whole().await;
    let found = place.try_ask("model:chat@1", LineageWay::Up, Some(3)).await.unwrap();
    assert_eq!((found.nodes.len(), found.more), (3, true));
    let all = place.try_ask("model:chat@1", LineageWay::Up, Some(8)).await.unwrap();
    assert_eq!((all.nodes.len(), all.more), (8, false));
    for id in found.edges.iter().flat_map(|edge| [&edge.from, &edge.to]) {
        assert!(ids(&found).contains(&id.as_str()), "{id} is in no node");
    }
}

#[tokio::test]
async fn a_model_that_another_run_reads_leads_to_it() {
    let place = Place::set().await;
    place.whole().await;
    place.run("tune", 1, &[], &[]).await;
    let read = RunModel { id: "m-1".into(), is_output: false, step: 0 };
    place.inputs("tune", vec![], vec![read]).await;
    place.run("child", 1, &[("mlflow.parentRunId", "tune")], &[]).await;
    let found = place.ask("logged_model:m-1", LineageWay::Down).await;
    assert_eq!(ids(&found), ["logged_model:m-1", "model:chat@1", "run:tune"]);
    let child = place.ask("run:child", LineageWay::Up).await;
    assert!(has(&child, "run:child", Link::ChildOf, "run:tune"));
    assert!(has(&child, "run:tune", Link::ReadModel, "logged_model:m-1"));
    let parent = place.ask("run:tune", LineageWay::Down).await;
    assert_eq!(ids(&parent), ["run:tune", "run:child"]);
}
