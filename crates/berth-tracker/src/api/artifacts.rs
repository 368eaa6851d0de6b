//! Lists the files of runs and logged models. The routes `mlflow-artifacts` serve the bytes.

use super::call::{Call, Reply};
use super::logged_models;
use crate::error::{Code, Error, Result};
use crate::model::Experiment;
use crate::page;
use serde_json::{Value, json};

/// The maximum number of entries in one answer.
const PAGE: usize = 10_000;

/// The files of a run.
pub async fn of_run(call: &Call<'_>) -> Result<Reply> {
    let (head, experiment) = call.run(&call.fields.run_id()?).await?;
    let below = format!("{}/artifacts", head.id);
    list(call, &experiment, &below, "path").await
}

/// The files of a logged model.
pub async fn of_model(call: &Call<'_>) -> Result<Reply> {
    let (model, experiment) = logged_models::find(call, &call.parts[0]).await?;
    let below = format!("models/{}/artifacts", model.id);
    list(call, &experiment, &below, "artifact_directory_path").await
}

/// Lists a folder. Paths are relative to the root in the answer.
async fn list(call: &Call<'_>, of: &Experiment, below: &str, field: &str) -> Result<Reply> {
    let folder = call.fields.text(field)?.unwrap_or_default();
    let folder = folder.trim_end_matches('/');
    let offset = page::offset(call.fields.text("page_token")?.as_deref())?;
    let mut path = format!("{}/{}/{below}", of.team, of.no);
    if !folder.is_empty() {
        path = format!("{path}/{folder}");
    }
    let mut found = match call.actor.files(&path).await {
        Err(error) if error.code == Code::DoesNotExist => {
            return Err(Error::new(
                Code::PermissionDenied,
                format!(
                    "Permission denied: {} may not read the artifacts of team {}. A shared \
                     experiment shows its runs, not their files",
                    call.actor.user(),
                    of.team
                ),
            ));
        }
        found => found?,
    };
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(found.len());
    let (page, next) = page::cut(found.split_off(start), offset, PAGE);
    let items = page.into_iter().map(|file| {
        let path = match folder {
            "" => file.name,
            folder => format!("{folder}/{}", file.name),
        };
        match file.bytes {
            Some(bytes) => json!({ "path": path, "is_dir": false, "file_size": bytes }),
            None => json!({ "path": path, "is_dir": true }),
        }
    });
    let items: Vec<Value> = items.collect();
    let mut out = json!({ "root_uri": format!("{}/{below}", of.artifacts()), "files": items });
    if let Some(next) = next {
        out["next_page_token"] = json!(next);
    }
    Ok(Reply::json(&out))
}

/// Berth checks the hash of each upload, so clients cannot bypass the server.
pub async fn presigned(_: &Call<'_>) -> Result<Reply> {
    Err(Error::new(
        Code::NotImplemented,
        "Berth keeps artifacts by the SHA-256 of their content and checks each upload, so it gives \
         out no presigned addresses. Send and read files at mlflow-artifacts/artifacts/PATH, as \
         MLflow's client does by itself",
    ))
}
