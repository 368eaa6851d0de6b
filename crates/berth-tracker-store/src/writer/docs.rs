//! Changes of documents.

use super::group::Group;
use super::{Applied, Writer};
use crate::error::{failed, is_too_large};
use crate::read::docs_of;
use crate::rows::{Bind, execute};
use berth_tracker::{DocChange, DocKey, DocSet, Effect, Kind, read};
use sqlx::AnyConnection;

const PUT: &str = "INSERT INTO docs (kind, scope, name, sub, doc) VALUES (?, ?, ?, ?, ?) \
                   ON CONFLICT (kind, scope, name, sub) DO UPDATE SET doc = excluded.doc";
const REMOVE: &str = "DELETE FROM docs WHERE kind = ? AND scope = ? AND name = ? AND sub = ?";

fn key_binds(key: &DocKey) -> Vec<Bind> {
    vec![
        Bind::Int(key.kind as i64),
        Bind::from(&key.scope),
        Bind::from(&key.name),
        Bind::Int(key.sub),
    ]
}

impl Writer {
    pub(super) async fn remove_doc(
        &mut self,
        connection: &mut AnyConnection,
        key: &DocKey,
    ) -> sqlx::Result<()> {
        execute(connection, self.backend(), REMOVE, key_binds(key)).await.map(drop)
    }

    pub(super) async fn apply_docs(
        &mut self,
        connection: &mut AnyConnection,
        group: &mut Group,
        change: DocChange,
    ) -> Applied {
        let mut docs = Vec::new();
        for load in &change.load {
            match docs_of(connection, self.backend(), load).await {
                // A database error would roll back the other changes of the group.
                Err(error) if is_too_large(&error) => {
                    return Ok(Err(failed("read documents", &error)));
                }
                found => docs.extend(found?),
            }
        }
        let mut docs = DocSet::new(docs, self.next.experiment);
        let body = match (change.edit)(&mut docs) {
            Ok(body) => body,
            Err(refused) => return Ok(Err(refused)),
        };
        // Remove first: a new document may reuse the name of a removed one.
        for (key, doc) in docs.changes() {
            if key.kind == Kind::ModelVersion {
                self.named = None;
            }
            if doc.is_none() {
                self.remove_doc(connection, key).await?;
            }
        }
        for (key, doc) in docs.changes() {
            let Some(doc) = doc else { continue };
            let mut binds = key_binds(key);
            binds.push(Bind::from(doc));
            execute(connection, self.backend(), PUT, binds).await?;
            if key.kind == Kind::Experiment {
                match read(doc) {
                    Ok(experiment) => group.experiments.push(experiment),
                    Err(error) => return Ok(Err(error)),
                }
            }
        }
        self.next.experiment = docs.next_experiment;
        for effect in &docs.effects {
            let Effect::RunsOf { experiment, deleted, at } = effect;
            let binds = vec![
                Bind::Int((*deleted).into()),
                Bind::MaybeInt(deleted.then_some(*at)),
                Bind::Int(*experiment),
            ];
            let sql = "UPDATE runs SET deleted = ?, deleted_at = ? WHERE experiment = ?";
            execute(connection, self.backend(), sql, binds).await?;
            self.runs.clear();
        }
        Ok(Ok(body))
    }
}
