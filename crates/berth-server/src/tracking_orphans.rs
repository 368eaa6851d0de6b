//! Teams that had tracked something before this database of jobs existed. A database that was lost and
//! begun anew knows none of them, and what they tracked must outlive it.

use crate::app::App;
use berth_engine::Write;
use berth_service::{Fault, Service};
use berth_store::{Batch, SettingRow, TeamRow};
use berth_tracker::Error;
use std::collections::BTreeSet;

/// The key of the setting.
const NAME: &str = "tracking.orphans";

fn internal(why: impl std::fmt::Display) -> Error {
    Error::internal(why.to_string())
}

/// Whether the database of jobs has a team of that name, or a queue: jobs of a queue without a team are
/// tracked, too.
pub async fn is_team(service: &Service, name: &str) -> Result<bool, Error> {
    let is_queue = service.engine.teams().names().any(|queue| queue == name);
    let row = service.store.get::<TeamRow>(name).await.map_err(internal)?;
    Ok(is_queue || row.is_some())
}

/// The teams. At the first call in the life of a database, these are all tracked teams that it lacks.
pub async fn load(app: &App) -> Result<BTreeSet<String>, Error> {
    let row = app.service.store.get::<SettingRow>(NAME).await.map_err(internal)?;
    if let Some(row) = row {
        return serde_json::from_str(&row.value).map_err(internal);
    }
    let mut orphans = BTreeSet::new();
    for team in app.tracking.store.teams().await? {
        if !is_team(&app.service, &team).await? {
            tracing::warn!(
                team,
                "this team has tracked experiments and does not exist; Berth keeps them"
            );
            orphans.insert(team);
        }
    }
    save(&app.service, &orphans).await?;
    Ok(orphans)
}

/// A person has removed these teams: what they tracked goes, too.
pub async fn release(app: &App, removed: &[String]) -> Result<(), Error> {
    let mut orphans = load(app).await?;
    let before = orphans.len();
    orphans.retain(|team| !removed.contains(team));
    if orphans.len() == before {
        return Ok(());
    }
    save(&app.service, &orphans).await
}

async fn save(service: &Service, orphans: &BTreeSet<String>) -> Result<(), Error> {
    let value = serde_json::to_string(orphans).expect("names are JSON");
    let mut documents = Batch::default();
    documents.put(&SettingRow { name: NAME.to_owned(), value });
    let written = service.engine.write(Write::unnoted(documents)).await;
    written.map(drop).map_err(|refused| internal(Fault::from(refused).0.detail))
}
