//! One experiment and one run, from their folders.

use super::layout::{
    ARTIFACTS, DATASETS, INPUTS, META, METRICS, OUTPUTS, PARAMS, TAGS, name_of, named_files, pairs,
    some_folders,
};
use super::{disk, yaml};
use crate::error::{Error, Result};
use crate::model::{Dataset, Experiment, Owner, Place, Run};
use crate::report::Problem;
use crate::tags;
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;

/// An entity, with the problems found while reading it.
pub type Read<T> = (T, Vec<Problem>);

fn problem(what: String, why: impl Into<String>) -> Problem {
    Problem { what, why: why.into() }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ExperimentMeta {
    name: Value,
    lifecycle_stage: Value,
    creation_time: Value,
}

pub fn experiment(folder: &Path, is_trash: bool) -> Result<Read<Experiment>> {
    let meta: ExperimentMeta = yaml::read(&folder.join(META))?;
    let name = yaml::some(&meta.name);
    let missing = || Error::odd(folder.join(META).display().to_string(), "it has no name");
    let name = name.ok_or_else(missing)?;
    let mut problems = Vec::new();
    let tags = pairs(&folder.join(TAGS), |key, why| {
        problems.push(problem(format!("tag {key} of experiment {name}"), why));
    })?;
    let read = Experiment {
        id: name_of(folder),
        deleted: is_trash || yaml::text(&meta.lifecycle_stage) == "deleted",
        created: yaml::int(&meta.creation_time),
        tags,
        location: folder.display().to_string(),
        name,
    };
    Ok((read, problems))
}

/// The fields of a run that the import needs.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct RunMeta {
    pub run_name: Value,
    pub user_id: Value,
    pub status: Value,
    pub start_time: Value,
    pub end_time: Value,
    pub lifecycle_stage: Value,
    pub artifact_uri: Value,
}

const STATUSES: &[(i64, &str)] =
    &[(1, "RUNNING"), (2, "SCHEDULED"), (3, "FINISHED"), (4, "FAILED"), (5, "KILLED")];

pub fn status_of(value: &Value) -> String {
    let number = yaml::int(value);
    let found = STATUSES.iter().find(|(code, word)| {
        number == Some(*code) || value.as_str().is_some_and(|said| said == *word)
    });
    found.map_or("RUNNING", |(_, word)| word).to_owned()
}

pub fn status_number(word: &str) -> i64 {
    STATUSES.iter().find(|(_, known)| *known == word).map_or(1, |(number, _)| *number)
}

pub fn run(folder: &Path, experiment: &Path) -> Result<Read<Run>> {
    let meta: RunMeta = yaml::read(&folder.join(META))?;
    let id = name_of(folder);
    let mut problems = Vec::new();
    let mut lost = |what: &str, key: &str, why: String| {
        problems.push(problem(format!("{what} {key} of run {id}"), why));
    };
    let params = pairs(&folder.join(PARAMS), |key, why| lost("param", key, why))?;
    let tags = pairs(&folder.join(TAGS), |key, why| lost("tag", key, why))?;
    let metrics = named_files(&folder.join(METRICS))?.into_iter().map(|(key, _)| key).collect();
    let mut read = Run {
        experiment: name_of(experiment),
        name: yaml::some(&meta.run_name)
            .or_else(|| tags::value(&tags, tags::RUN_NAME).map(str::to_owned))
            .unwrap_or_default(),
        user: yaml::text(&meta.user_id),
        status: status_of(&meta.status),
        start: yaml::int(&meta.start_time).filter(|at| *at > 0),
        end: yaml::int(&meta.end_time).filter(|at| *at > 0),
        deleted: yaml::text(&meta.lifecycle_stage) == "deleted",
        params,
        tags,
        metrics,
        datasets: Vec::new(),
        reads: Vec::new(),
        makes: Vec::new(),
        place: place(folder, &meta.artifact_uri, Owner::Run(id.clone())),
        id: id.clone(),
    };
    inputs(folder, experiment, &mut read, &mut problems)?;
    for one in some_folders(&folder.join(OUTPUTS))? {
        match yaml::read::<Link>(&one.join(META)) {
            Ok(link) => {
                let step = yaml::int(&link.step).unwrap_or(0);
                read.makes.push((yaml::text(&link.destination_id), step));
            }
            Err(error) => problems.push(problem(format!("an output of run {id}"), error.whole())),
        }
    }
    Ok((read, problems))
}

/// A moved store still has its old URI, so prefer the folder next to the description.
pub fn place(folder: &Path, uri: &Value, owner: Owner) -> Place {
    let beside = folder.join(ARTIFACTS);
    let said = yaml::text(uri);
    let elsewhere = disk::path_of_uri(&said).is_none_or(|path| path.is_dir());
    let uri = match !beside.is_dir() && !said.is_empty() && elsewhere {
        true => said,
        false => disk::uri_of_path(&beside),
    };
    Place { uri, owner }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Link {
    source_type: Value,
    source_id: Value,
    destination_id: Value,
    step: Value,
    tags: Value,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct DatasetMeta {
    name: Value,
    digest: Value,
    source_type: Value,
    source: Value,
    schema: Value,
    profile: Value,
}

fn inputs(
    folder: &Path,
    experiment: &Path,
    run: &mut Run,
    problems: &mut Vec<Problem>,
) -> Result<()> {
    for one in some_folders(&folder.join(INPUTS))? {
        let what = || format!("an input of run {}", run.id);
        let link: Link = match yaml::read(&one.join(META)) {
            Ok(link) => link,
            Err(error) => {
                problems.push(problem(what(), error.whole()));
                continue;
            }
        };
        let from = yaml::text(&link.source_id);
        if yaml::text(&link.source_type) == "MODEL" {
            run.reads.push(from);
            continue;
        }
        let described = experiment.join(DATASETS).join(&from).join(META);
        match yaml::read::<DatasetMeta>(&described) {
            Ok(meta) => run.datasets.push(Dataset {
                name: yaml::text(&meta.name),
                digest: yaml::text(&meta.digest),
                source_type: yaml::text(&meta.source_type),
                source: yaml::text(&meta.source),
                schema: yaml::some(&meta.schema),
                profile: yaml::some(&meta.profile),
                tags: of_object(&link.tags),
            }),
            Err(error) => problems.push(problem(what(), error.whole())),
        }
    }
    Ok(())
}

fn of_object(value: &Value) -> Vec<(String, String)> {
    let pairs = value.as_object().into_iter().flatten();
    pairs.map(|(key, value)| (key.clone(), yaml::text(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::fs;

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn a_run_is_read_with_all_that_is_in_its_folders() {
        let root = tempfile::tempdir().unwrap();
        let meta = "artifact_uri: file:///moved/away/artifacts\nend_time: 7\nlifecycle_stage: active\n\
                    run_name: first\nstart_time: 5\nstatus: 3\ntags: []\nuser_id: kim\n";
        write(
            root.path(),
            &[
                ("r/meta.yaml", meta),
                ("r/params/opt/lr", "0.1"),
                ("r/tags/mlflow.runName", "first"),
                ("r/metrics/val/acc", "1 0.5 0\n"),
                ("r/artifacts/a", "x"),
                ("r/inputs/i/meta.yaml", "source_type: DATASET\nsource_id: d\ntags:\n  k: v\n"),
                ("r/inputs/j/meta.yaml", "source_type: MODEL\nsource_id: m-1\ntags: {}\n"),
                ("r/inputs/k/meta.yaml", "source_type: [\n"),
                ("r/outputs/m-2/meta.yaml", "destination_id: m-2\nstep: 4\n"),
                (
                    "datasets/d/meta.yaml",
                    "name: set\ndigest: '12'\nsource_type: local\nsource: x\n",
                ),
            ],
        );
        let (read, problems) = run(&root.path().join("r"), root.path()).unwrap();
        assert_eq!((read.name.as_str(), read.status.as_str()), ("first", "FINISHED"));
        assert_eq!((read.start, read.end), (Some(5), Some(7)));
        assert_eq!(read.params, [("opt/lr".to_owned(), "0.1".to_owned())]);
        assert_eq!(read.metrics, ["val/acc"]);
        assert_eq!(read.datasets[0].digest, "12");
        assert_eq!(read.datasets[0].tags, [("k".to_owned(), "v".to_owned())]);
        assert_eq!((read.reads, read.makes), (vec!["m-1".to_owned()], vec![("m-2".to_owned(), 4)]));
        assert!(read.place.uri.ends_with("/r/artifacts") && !read.place.uri.contains("moved"));
        assert_eq!(problems.len(), 1, "{problems:?}");
    }

    #[test]
    fn a_run_whose_description_is_broken_is_an_error_that_names_the_file() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), &[("r/meta.yaml", "status: [3\n")]);
        let said = run(&root.path().join("r"), root.path()).unwrap_err().to_string();
        assert!(said.contains("r/meta.yaml"), "{said}");
    }

    #[test]
    fn a_status_is_a_number_or_a_word() {
        assert_eq!(status_of(&json!(5)), "KILLED");
        assert_eq!(status_of(&json!("FAILED")), "FAILED");
        assert_eq!(status_of(&Value::Null), "RUNNING");
        assert_eq!(status_number("FINISHED"), 3);
    }
}
