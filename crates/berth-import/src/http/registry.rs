//! Registered models at a server.

use super::Server;
use super::json::{of_pairs, text};
use crate::error::{Error, Result};
use crate::model::{Pairs, RegisteredModel};
use crate::sink::NewVersion;
use crate::tags;
use berth_api::routes::Method;
use serde_json::{Value, json};

/// The maximum number of skipped version numbers. The import has to create and delete a version for each.
const MOST_SKIPPED: u64 = 10_000;

impl Server {
    pub(super) async fn new_registered_model(
        &self,
        name: &str,
        model: &RegisteredModel,
        tags: Pairs,
    ) -> Result<()> {
        let fields =
            json!({ "name": name, "description": model.description, "tags": of_pairs(&tags) });
        let find = || async {
            let asked = json!({ "name": name });
            match self.ask((Method::Get, "registered-models/get"), &asked).await {
                Err(error) if error.is_absent() => Ok(false),
                found => found.map(|_| true),
            }
        };
        self.make("registered-models/create", &fields, find).await.map(drop)
    }

    /// The version at the target for a version of the source.
    async fn version_with(&self, model: &str, version: u64) -> Result<Option<u64>> {
        let from = version.to_string();
        let all = self.versions_of(model).await?;
        let ours = |tags: &Pairs| tags::value(tags, tags::VERSION) == Some(&from);
        Ok(all.iter().find(|one| ours(&one.tags)).map(|one| one.version))
    }

    pub(super) async fn new_version(&self, new: NewVersion<'_>) -> Result<u64> {
        let fields = json!({
            "name": new.model,
            "source": new.source,
            "run_id": new.run,
            "run_link": new.run_link,
            "model_id": new.logged_model,
            "description": new.description,
            "tags": of_pairs(&new.tags),
        });
        // The target assigned the skipped numbers to versions that the import has deleted.
        for _ in 0..=MOST_SKIPPED {
            let find = || async { Ok(self.version_with(new.model, new.version).await?.is_some()) };
            let number = match self.make("model-versions/create", &fields, find).await? {
                Some(made) => text(&made["model_version"]["version"]).parse().ok(),
                None => self.version_with(new.model, new.version).await?,
            };
            let odd = || Error::odd(format!("model {}", new.model), "a new version has no number");
            let number: u64 = number.ok_or_else(odd)?;
            if number >= new.version {
                return Ok(number);
            }
            let gone = json!({ "name": new.model, "version": number.to_string() });
            self.ask((Method::Delete, "model-versions/delete"), &gone).await?;
        }
        let what = format!("version {} of model {}", new.version, new.model);
        let why = format!("more than {MOST_SKIPPED} numbers before it are not there at the source");
        Err(Error::Refused { what, why })
    }

    async fn registry(&self, path: &str, fields: &Value) -> Result<()> {
        self.ask((Method::Post, path), fields).await.map(drop)
    }

    pub(super) async fn stage(&self, model: &str, version: u64, stage: &str) -> Result<()> {
        let fields = json!({
            "name": model,
            "version": version.to_string(),
            "stage": stage,
            "archive_existing_versions": false,
        });
        self.registry("model-versions/transition-stage", &fields).await
    }

    pub(super) async fn alias(&self, model: &str, alias: &str, version: u64) -> Result<()> {
        let fields = json!({ "name": model, "alias": alias, "version": version.to_string() });
        self.registry("registered-models/alias", &fields).await
    }
}
