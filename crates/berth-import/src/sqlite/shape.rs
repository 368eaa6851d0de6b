//! Checks the tables and columns of a database. MLflow changes its schema often, so this checks only the
//! columns that the import reads.

use sqlx::{Row, SqlitePool, query};
use std::collections::{BTreeMap, BTreeSet};

pub struct Shape(BTreeMap<String, BTreeSet<String>>);

/// The required tables.
const NEEDED: &[(&str, &[&str])] = &[
    ("experiments", &["experiment_id", "name", "lifecycle_stage"]),
    (
        "runs",
        &[
            "run_uuid",
            "name",
            "user_id",
            "status",
            "start_time",
            "end_time",
            "lifecycle_stage",
            "artifact_uri",
            "experiment_id",
        ],
    ),
    ("metrics", &["run_uuid", "key", "value", "timestamp", "step", "is_nan"]),
    ("params", &["run_uuid", "key", "value"]),
    ("tags", &["run_uuid", "key", "value"]),
];

impl Shape {
    pub async fn read(pool: &SqlitePool) -> sqlx::Result<Shape> {
        let sql = "SELECT m.name, p.name FROM sqlite_master m, pragma_table_info(m.name) p \
                   WHERE m.type = 'table'";
        let mut tables: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for row in query(sql).fetch_all(pool).await? {
            tables.entry(row.try_get(0)?).or_default().insert(row.try_get(1)?);
        }
        Ok(Shape(tables))
    }

    pub fn has(&self, table: &str, columns: &[&str]) -> bool {
        let found = self.0.get(table);
        found.is_some_and(|found| columns.iter().all(|column| found.contains(*column)))
    }

    /// The missing tables or columns.
    pub fn missing(&self) -> Option<String> {
        for (table, columns) in NEEDED {
            let Some(found) = self.0.get(*table) else {
                return Some(format!(
                    "it is no database of MLflow's tracking server: it has no table `{table}`"
                ));
            };
            if let Some(column) = columns.iter().find(|column| !found.contains(**column)) {
                return Some(format!(
                    "its table `{table}` has no column `{column}`; bring it up to date with `mlflow \
                     db upgrade`, or import from MLflow's server"
                ));
            }
        }
        None
    }
}
