//! The reason that an operator gave for closing a node.

use crate::fault::Fault;
use crate::service::Service;
use berth_store::SettingRow;

/// The name of its row.
pub fn row(node: &str) -> String {
    format!("node-reason/{node}")
}

pub async fn of(service: &Service, node: &str) -> Result<Option<String>, Fault> {
    let row = service.store.get::<SettingRow>(&row(node)).await?;
    Ok(row.map(|row| row.value))
}
