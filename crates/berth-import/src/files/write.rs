//! Writing a file store.

use super::layout::{
    ARTIFACTS, DATASETS, INPUTS, META, METRICS, OUTPUTS, PARAMS, TAGS, TRASH, file_of, files_of,
};
use super::{FileStore, disk, runs, yaml};
use crate::error::{Error, Result};
use crate::model::{Dataset, Experiment, Metric, Owner, Pairs, Place};
use crate::sink::{NewRun, Target};
use crate::sums::sum_of;
use crate::tags::{self, RUN_NAME};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

const DEFAULT: &str = "Default";

pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.ok().and_then(|since| i64::try_from(since.as_millis()).ok()).unwrap_or(0)
}

fn is_id(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 64
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// An id derived from a text.
fn id_from(text: &str) -> String {
    hex::encode(&sum_of(&[text.as_bytes()])[..16])
}

pub fn put_pairs(folder: &Path, pairs: &[(String, String)]) -> Result<()> {
    let files: BTreeMap<&str, PathBuf> =
        files_of(folder, pairs.iter().map(|(key, _)| key.as_str()))?.into_iter().collect();
    for (key, value) in pairs {
        disk::write_text(&files[key.as_str()], value)?;
    }
    Ok(())
}

impl FileStore {
    pub(super) fn new_experiment(&self, name: &str, id: &str, tags: &Pairs) -> Result<Experiment> {
        let taken =
            |id: &str| self.root.join(id).exists() || self.root.join(TRASH).join(id).exists();
        let id = match name {
            DEFAULT => "0".to_owned(),
            // The client uses 0 for the default experiment.
            _ if is_id(id) && id != "0" && !taken(id) => id.to_owned(),
            _ => id_from(name),
        };
        let folder = self.root.join(&id);
        let created =
            tags::value(tags, tags::CREATED).and_then(|at| at.parse().ok()).unwrap_or_else(now);
        let meta = yaml::write(&[
            ("artifact_location", json!(disk::uri_of_path(&folder))),
            ("creation_time", json!(created)),
            ("experiment_id", json!(id)),
            ("last_update_time", json!(created)),
            ("lifecycle_stage", json!("active")),
            ("name", json!(name)),
        ]);
        put_pairs(&folder.join(TAGS), tags)?;
        disk::write_text(&folder.join(META), &meta)?;
        runs::experiment(&folder, false).map(|(read, _)| read)
    }

    pub(super) fn trash(&self, of: &Experiment) -> Result<()> {
        let folder = PathBuf::from(&of.location);
        set_fields(&folder.join(META), &[("lifecycle_stage", json!("deleted"))])?;
        let to = self.root.join(TRASH).join(&of.id);
        fs::rename(&folder, &to).map_err(Error::file("moving to the trash", &folder))
    }

    pub(super) fn folder_of(&self, run: &Target) -> PathBuf {
        self.root.join(&run.experiment).join(&run.id)
    }

    pub(super) fn new_run(&self, of: &Experiment, new: &NewRun<'_>) -> Result<Target> {
        let id = if is_id(new.id) { new.id.to_owned() } else { id_from(new.id) };
        let folder = PathBuf::from(&of.location).join(&id);
        for inside in [METRICS, PARAMS, ARTIFACTS] {
            let path = folder.join(inside);
            fs::create_dir_all(&path).map_err(Error::file("making", &path))?;
        }
        let uri = disk::uri_of_path(&folder.join(ARTIFACTS));
        let meta = yaml::write(&[
            ("artifact_uri", json!(uri)),
            ("deleted_time", Value::Null),
            ("end_time", Value::Null),
            ("entry_point_name", json!("")),
            ("experiment_id", json!(of.id)),
            ("lifecycle_stage", json!("active")),
            ("run_id", json!(id)),
            ("run_name", json!(new.name)),
            ("source_name", json!("")),
            ("source_type", json!(4)),
            ("source_version", json!("")),
            ("start_time", json!(new.start)),
            ("status", json!(1)),
            ("tags", json!([])),
            ("user_id", json!(new.user)),
        ]);
        put_pairs(&folder.join(TAGS), &new.tags)?;
        put_pairs(&folder.join(TAGS), &[(RUN_NAME.to_owned(), new.name.to_owned())])?;
        disk::write_text(&folder.join(META), &meta)?;
        let place = Place { uri, owner: Owner::Run(id.clone()) };
        Ok(Target { experiment: of.id.clone(), id, place })
    }

    /// Skip existing lines, so that none is duplicated.
    pub(super) fn no_points(&self, run: &Target) -> Result<()> {
        let folder = self.folder_of(run).join(METRICS);
        if folder.is_dir() {
            fs::remove_dir_all(&folder).map_err(Error::file("emptying", &folder))?;
        }
        fs::create_dir_all(&folder).map_err(Error::file("making", &folder))
    }

    pub(super) fn add_points(&self, run: &Target, metrics: &[Metric]) -> Result<()> {
        let mut lines: BTreeMap<&str, String> = BTreeMap::new();
        for Metric { key, point } in metrics {
            let lines = lines.entry(key).or_default();
            let value = number(point.value());
            let _ = writeln!(lines, "{} {value} {}", point.timestamp, point.step);
        }
        let folder = self.folder_of(run).join(METRICS);
        for (key, path) in files_of(&folder, lines.keys().copied())? {
            append(&path, &lines[key])?;
        }
        Ok(())
    }

    pub(super) fn add_datasets(&self, run: &Target, datasets: &[Dataset]) -> Result<()> {
        for one in datasets {
            let id = md5_like(&[&one.name, &one.digest]);
            let described = self.root.join(&run.experiment).join(DATASETS).join(&id).join(META);
            let meta = yaml::write(&[
                ("digest", json!(one.digest)),
                ("name", json!(one.name)),
                ("profile", json!(one.profile)),
                ("schema", json!(one.schema)),
                ("source", json!(one.source)),
                ("source_type", json!(one.source_type)),
            ]);
            disk::write_text(&described, &meta)?;
            let tags: serde_json::Map<String, Value> =
                one.tags.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
            let input = self.folder_of(run).join(INPUTS).join(md5_like(&[&id, &run.id]));
            let link = link(("DATASET", &id), "RUN", &[("tags", Value::Object(tags))]);
            disk::write_text(&input.join(META), &link)?;
        }
        Ok(())
    }

    pub(super) fn add_models(
        &self,
        run: &Target,
        reads: &[String],
        makes: &[(String, i64)],
    ) -> Result<()> {
        let folder = self.folder_of(run);
        for id in reads {
            let input = folder.join(INPUTS).join(md5_like(&[id, &run.id]));
            let link = link(("MODEL", id), "RUN", &[("tags", json!({}))]);
            disk::write_text(&input.join(META), &link)?;
        }
        for (id, step) in makes {
            let output = file_of(&folder.join(OUTPUTS), id)?;
            let more = [("step", json!(step)), ("tags", json!({}))];
            let link = link(("RUN_OUTPUT", id), "MODEL_OUTPUT", &more);
            disk::write_text(&output.join(META), &link)?;
        }
        Ok(())
    }

    pub(super) fn change_run(&self, run: &Target, fields: &[(&str, Value)]) -> Result<()> {
        set_fields(&self.folder_of(run).join(META), fields)
    }
}

/// MLflow stores the same id on both sides.
fn link((kind, id): (&str, &str), to: &str, more: &[(&str, Value)]) -> String {
    let mut fields = vec![
        ("source_type", json!(kind)),
        ("source_id", json!(id)),
        ("destination_type", json!(to)),
        ("destination_id", json!(id)),
    ];
    fields.extend(more.iter().cloned());
    yaml::write(&fields)
}

/// MLflow uses MD5 sums as names of these folders; any id of this length works.
fn md5_like(parts: &[&str]) -> String {
    let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
    hex::encode(&sum_of(&parts)[..16])
}

pub fn set_fields(path: &Path, fields: &[(&str, Value)]) -> Result<()> {
    let there: serde_json::Map<String, Value> = yaml::read(path)?;
    let mut all: BTreeMap<&str, Value> =
        there.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    all.extend(fields.iter().cloned());
    let all: Vec<(&str, Value)> = all.into_iter().collect();
    disk::write_text(path, &yaml::write(&all))
}

/// Formats a number for Python.
pub fn number(value: f64) -> String {
    if value.is_nan() { "nan".to_owned() } else { format!("{value:?}") }
}

pub fn append(path: &Path, lines: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(Error::file("making", folder))?;
    }
    let opened = OpenOptions::new().create(true).append(true).open(path);
    let written = opened.and_then(|mut file| file.write_all(lines.as_bytes()));
    written.map_err(Error::file("writing", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_so_that_they_are_read_as_the_same() {
        for value in [0.1, 1e-300, f64::MAX, f64::MIN, 5e-324, 1.0, -2.5, 1e22] {
            let read: f64 = number(value).parse().unwrap();
            assert_eq!(read.to_bits(), value.to_bits());
        }
        assert_eq!(number(f64::NAN), "nan");
    }
}
