//! The position of the follower, stored in the database of the jobs so that a backup has both.

use berth_engine::Write;
use berth_model::{JobId, Time};
use berth_service::{Fault, Service};
use berth_store::{Batch, SettingRow};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The key of the setting.
const NAME: &str = "record.runs";

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Position {
    /// The last processed event.
    pub seq: u64,
    /// Jobs whose update failed, and the time of the next attempt.
    #[serde(default)]
    pub again: BTreeMap<JobId, Time>,
}

impl Position {
    /// The stored position; `None` if no server has kept runs before.
    pub async fn load(service: &Service) -> berth_store::Result<Option<Position>> {
        let row = service.store.get::<SettingRow>(NAME).await?;
        Ok(row.and_then(|row| serde_json::from_str(&row.value).ok()))
    }

    /// Durable when this returns.
    pub async fn save(&self, service: &Service) -> Result<(), Fault> {
        let value = serde_json::to_string(self).expect("numbers are JSON");
        let mut documents = Batch::default();
        documents.put(&SettingRow { name: NAME.to_owned(), value });
        service.engine.write(Write::unnoted(documents)).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_comes_back_with_jobs_and_elements() {
        let again =
            BTreeMap::from([(JobId::new(17), Time(5)), (JobId::new(18).element(3), Time(6))]);
        let position = Position { seq: 7, again };
        let text = serde_json::to_string(&position).unwrap();
        assert_eq!(serde_json::from_str::<Position>(&text).unwrap(), position, "{text}");
    }
}
