//! Finds what has changed since a run.

use super::Found;
use crate::lineage::{Known, Live, tag};
use crate::snapshot;
use berth_api::Code;
use berth_api::access::Permission;
use berth_api::wire::{RecipeCode, RecipeData, RecipeDifference};
use berth_code::Origin;
use berth_file::job::{self, JobFile};
use berth_model::{DataRef, Micros};
use berth_service::jobs::submit;
use berth_service::{Fault, Service, code, live};
use berth_store::{DataVersionRow, SecretRow};

fn difference(what: impl Into<String>, then: impl Into<String>) -> RecipeDifference {
    let (what, then) = (what.into(), then.into());
    RecipeDifference { what, then, now: String::new(), next: String::new(), blocks: false }
}

/// The versions of data, with the changed ones as differences.
pub(super) fn data(
    had: &[(String, DataRef)],
    all: &[DataVersionRow],
) -> (Vec<RecipeData>, Vec<RecipeDifference>) {
    let (mut shown, mut differs) = (Vec::new(), Vec::new());
    for (path, data) in had {
        let (Some(hash), version) = (&data.hash, &data.version) else { continue };
        let hash = hash.to_string();
        let row =
            all.iter().find(|row| row.name == version.name && Some(row.version) == version.version);
        let now = row.map(|row| row.hash.clone());
        let name = version.to_string();
        if now.as_ref() != Some(&hash) {
            let same = all.iter().find(|row| row.hash == hash);
            let next = match same {
                Some(same) => format!(
                    "{}@v{} has the content that the run had: name that version",
                    same.name, same.version
                ),
                None => format!(
                    "push the content that the run had under a new name, and name that in `data`; \
                     `berth data show {name}` shows what the name stands for now"
                ),
            };
            let then = hash.clone();
            let now = now.clone().unwrap_or_else(|| "removed".to_owned());
            let difference = difference(format!("data {name}"), then);
            differs.push(RecipeDifference { now, next, blocks: true, ..difference });
        }
        shown.push(RecipeData { path: path.clone(), version: name, hash, now });
    }
    (shown, differs)
}

/// Inputs without versions, such as volumes.
pub(super) fn loose(file: &JobFile) -> Vec<RecipeDifference> {
    let is_loose = |(_, source): &(&String, &String)| !DataRef::is_meant(source);
    let sources = file.volumes.iter().chain(&file.data).filter(is_loose);
    let mut differs: Vec<RecipeDifference> = sources
        .map(|(path, source)| RecipeDifference {
            now: "may have changed".to_owned(),
            next: "push the files as data: `berth data push`".to_owned(),
            ..difference(format!("volume {path}"), format!("`{source}`, which has no versions"))
        })
        .collect();
    if file.code.is_none() {
        differs.push(RecipeDifference {
            now: "may have changed".to_owned(),
            next: "submit jobs with `code: .`, and Berth keeps their files".to_owned(),
            ..difference("code", "no snapshot was kept")
        });
    }
    differs
}

/// A tag of an image may have moved.
pub(super) fn image(image: Option<&str>) -> Option<RecipeDifference> {
    let tagged = image.filter(|image| !image.contains("@sha256:"))?;
    Some(RecipeDifference {
        now: "the tag may have moved".to_owned(),
        next: "name the image by its digest, as NAME@sha256:…".to_owned(),
        ..difference("image", tagged)
    })
}

/// Differences that only the server can find.
pub(super) struct Now<'a> {
    pub live: &'a Live<'a>,
    pub team: &'a str,
    pub found: &'a Found,
}

impl Now<'_> {
    /// The snapshot, and whether the server still has it.
    pub async fn code(
        &self,
        file: &JobFile,
        differs: &mut Vec<RecipeDifference>,
    ) -> Result<Option<RecipeCode>, Fault> {
        let Some(snapshot) = file.code.clone() else { return Ok(None) };
        let Live { service, caller } = self.live;
        let kept = match code::info(service, caller, self.team, &snapshot).await {
            Ok(_) => true,
            Err(fault) if fault.0.known_code() == Some(Code::NotFound) => false,
            Err(fault) => return Err(fault),
        };
        let origin = if kept { origin(service, self.team, &snapshot).await } else { None };
        let of_run = |key: &str| tag(self.found.run.as_ref()?, key);
        // Trust the snapshot and not the tags: a script may change the tags of its run.
        let (commit, dirty) = match origin {
            Some(origin) => (Some(origin.commit), Some(origin.dirty)),
            None => (
                of_run("mlflow.source.git.commit").map(str::to_owned),
                of_run("berth.code.dirty").map(|dirty| dirty == "true"),
            ),
        };
        if !kept {
            let next = match (&commit, dirty) {
                (Some(commit), Some(false)) => format!(
                    "check out {commit}, and submit the file with `code: .`: the files had no \
                     other changes"
                ),
                (Some(commit), _) => format!(
                    "check out {commit}, and submit the file with `code: .`; its changes that were \
                     in no commit are lost, unless the run has them in berth/code.diff"
                ),
                (None, _) => "submit the file with `code: FOLDER` of the same files".to_owned(),
            };
            let now = "deleted: Berth keeps snapshots 30 days after their last use".to_owned();
            let difference = difference("code", snapshot.clone());
            differs.push(RecipeDifference { now, next, blocks: true, ..difference });
        }
        Ok(Some(RecipeCode { snapshot, commit, dirty, kept }))
    }

    pub async fn versions(&self) -> Result<Vec<DataVersionRow>, Fault> {
        match self.live.reads_data(self.team) {
            true => self.live.versions(self.team, None).await,
            false => Ok(Vec::new()),
        }
    }

    pub async fn secrets(&self, file: &JobFile) -> Result<Vec<RecipeDifference>, Fault> {
        let mut differs = Vec::new();
        for secret in file.secrets.values() {
            let store = &self.live.service.store;
            if store.get::<SecretRow>((self.team, secret.as_str())).await?.is_some() {
                continue;
            }
            let next = format!("add it with `berth secret set {secret} --team {}`", self.team);
            let difference = difference(format!("secret {secret}"), "there");
            let now = "removed".to_owned();
            differs.push(RecipeDifference { now, next, blocks: true, ..difference });
        }
        Ok(differs)
    }

    /// The price per hour of the GPUs of the last attempt.
    pub async fn price(&self) -> Result<Option<RecipeDifference>, Fault> {
        let Some(job) = &self.found.job else { return Ok(None) };
        let leases = self.live.service.store.leases_of(job.row.id).await?;
        let Some(last) = leases.iter().map(|lease| lease.id.attempt).max() else {
            return Ok(None);
        };
        let core = self.live.service.engine.core();
        let prices = core.state.prices();
        let (mut then, mut now) = (Micros::ZERO, Micros::ZERO);
        for lease in leases.iter().filter(|lease| lease.id.attempt == last) {
            let Some(spec) = core.state.node_spec(&lease.node) else {
                return Ok(Some(RecipeDifference {
                    now: "removed".to_owned(),
                    next: "the new job may run on another machine, at another price".to_owned(),
                    ..difference(format!("node {}", lease.node), "ran a task of the job")
                }));
            };
            then += lease.price;
            for slice in live::slices(&lease.slices) {
                let whole = live::price(spec, slice.gpu as usize, prices).0;
                now += Micros(whole * slice.share.milli() / 1_000);
            }
        }
        drop(core);
        // The prices of shares of a GPU are rounded.
        let is_same = (then.0 - now.0).abs() <= leases.len() as i64 * 1_000;
        let per_hour = |price: Micros| format!("${price} an hour");
        Ok((!is_same).then(|| RecipeDifference {
            now: per_hour(now),
            next: "`berth plan` says what the new job would cost".to_owned(),
            ..difference("price", per_hour(then))
        }))
    }

    /// Validates the file: it may name, for example, a GPU model or project that no longer exists.
    pub async fn accepted(&self, file: &JobFile) -> Result<Option<RecipeDifference>, Fault> {
        let Live { service, caller } = self.live;
        let parsed = job::read_kept(&job::write(file));
        let Ok(parsed) = parsed else { return Ok(None) };
        let tried = submit::prepare(service, caller, &parsed, None, Permission::JobsPlan).await;
        let Err(fault) = tried else { return Ok(None) };
        // A reader may lack the right to submit; that is no difference.
        let not_of_the_file = matches!(
            fault.0.known_code(),
            Some(Code::Forbidden | Code::ScopeTooSmall | Code::NotReady | Code::Internal)
        );
        if not_of_the_file || fault.is_transient() {
            return Ok(None);
        }
        let problem = fault.0;
        let mistakes: Vec<String> = problem.errors.iter().map(|one| one.message.clone()).collect();
        let now = if mistakes.is_empty() { problem.detail } else { mistakes.join("; ") };
        let difference = difference("job file", "accepted");
        Ok(Some(RecipeDifference { now, next: problem.next, blocks: true, ..difference }))
    }
}

/// The origin that a snapshot records.
async fn origin(service: &Service, team: &str, named: &str) -> Option<Origin> {
    snapshot::origin(service, team, &named.parse().ok()?).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::Time;

    const OLD: &str = "d751713988987e9331980363e24189ce.dir";
    const NEW: &str = "0cc175b9c0f1b6a831c399e269772661";

    fn row(name: &str, version: u64, hash: &str) -> DataVersionRow {
        DataVersionRow {
            team: "nlp".into(),
            name: name.into(),
            version,
            hash: hash.into(),
            bytes: 1,
            files: 1,
            parent: None,
            created: Time(0),
            by: "kim".into(),
            note: String::new(),
        }
    }

    fn differ(rows: &[DataVersionRow]) -> Option<RecipeDifference> {
        let had = [("/data".to_owned(), format!("dvc:c4@v3#{OLD}").parse().unwrap())];
        let (shown, mut differs) = data(&had, rows);
        assert_eq!((shown[0].path.as_str(), shown[0].hash.as_str()), ("/data", OLD));
        differs.pop()
    }

    #[test]
    fn data_that_is_what_it_was_makes_no_difference() {
        assert_eq!(differ(&[row("c4", 3, OLD), row("c4", 4, NEW)]), None);
    }

    #[test]
    fn data_that_was_removed_or_replaced_keeps_the_run_from_being_repeated() {
        let removed = differ(&[row("c4", 2, NEW)]).unwrap();
        assert_eq!((removed.what.as_str(), removed.then.as_str()), ("data c4@v3", OLD));
        assert!(removed.blocks && removed.now == "removed", "{removed:?}");
        let replaced = differ(&[row("c4", 3, NEW), row("saved", 1, OLD)]).unwrap();
        assert!(replaced.blocks && replaced.now == NEW, "{replaced:?}");
        assert!(replaced.next.contains("saved@v1 has the content"), "{replaced:?}");
    }

    #[test]
    fn what_has_no_versions_is_said() {
        let read = |text: &str| job::read(text).unwrap().file;
        let whats = |text: &str| -> Vec<String> {
            loose(&read(text)).into_iter().map(|one| one.what).collect()
        };
        let file = "volumes: {/scratch: work}\ndata: {/data: 'dvc:c4@v3'}\nrun: make\n";
        assert_eq!(whats(file), ["volume /scratch", "code"]);
        assert_eq!(image(Some("python:3.12")).unwrap().then, "python:3.12");
        assert_eq!(image(Some("python@sha256:0a")), None);
        assert_eq!(image(None), None);
    }
}
