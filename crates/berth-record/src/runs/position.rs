//! How far the follower has got, kept in the database of the jobs: a backup has both together.

use berth_engine::Write;
use berth_model::{JobId, Time};
use berth_service::Service;
use berth_store::{Batch, SettingRow};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The setting that has it.
const NAME: &str = "record.runs";

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Position {
    /// The last event that was followed.
    pub seq: u64,
    /// Jobs to look at once more, and when: their last figures come late, or something failed.
    #[serde(default)]
    pub again: BTreeMap<JobId, Time>,
}

impl Position {
    /// Where an earlier server has stopped; nothing where none has kept runs.
    pub async fn load(service: &Service) -> berth_store::Result<Option<Position>> {
        let row = service.store.get::<SettingRow>(NAME).await?;
        Ok(row.and_then(|row| serde_json::from_str(&row.value).ok()))
    }

    /// Whether it is durable now.
    pub async fn save(&self, service: &Service) -> bool {
        let value = serde_json::to_string(self).expect("numbers are JSON");
        let mut documents = Batch::default();
        documents.put(&SettingRow { name: NAME.to_owned(), value });
        match service.engine.write(Write::unnoted(documents)).await {
            Ok(_) => true,
            Err(error) => {
                tracing::debug!(%error, "how far runs follow their jobs was not written");
                false
            }
        }
    }
}
