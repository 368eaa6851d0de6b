//! Names of objects by their beginning, and objects without a name.

use crate::error::Result;
use crate::rows::{BlobNameRow, BlobRow, DataVersionRow};
use crate::store::Store;
use crate::value::{Binds, Field, Reader, Value};
use berth_model::Time;
use sqlx::error::BoxDynError;

/// Which names of a team to read.
#[derive(Debug, Clone, Copy)]
pub struct NamesQuery<'a> {
    pub team: &'a str,
    pub kind: &'a str,
    /// All begin with it.
    pub prefix: &'a str,
    /// And come after this one.
    pub after: Option<&'a str>,
    pub limit: u32,
}

/// What names stand for, altogether.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NamedSum {
    pub names: u64,
    pub bytes: u64,
}

/// Comes after all other letters, in both databases.
const LAST: char = '\u{10ffff}';

impl Store {
    /// In the order of their bytes.
    pub async fn blob_names(&self, query: NamesQuery<'_>) -> Result<Vec<BlobNameRow>> {
        let NamesQuery { team, kind, prefix, after, limit } = query;
        let mut binds = Binds::default();
        let [team, kind] = [team, kind].map(|value| binds.mark(text(value)));
        let mut terms = format!("team = {team} AND kind = {kind}");
        if !prefix.is_empty() {
            let (from, to) = (binds.mark(text(prefix)), binds.mark(text(&end_of(prefix))));
            terms.push_str(&format!(" AND name >= {from} AND name < {to}"));
        }
        if let Some(after) = after {
            terms.push_str(&format!(" AND name > {}", binds.mark(text(after))));
        }
        self.select(&format!("WHERE {terms} ORDER BY name LIMIT {limit}"), binds).await
    }

    /// Those of these names that a team has.
    pub async fn blob_names_among(
        &self,
        (team, kind): (&str, &str),
        names: &[String],
    ) -> Result<Vec<BlobNameRow>> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let mut binds = Binds::default();
        let [team, kind] = [team, kind].map(|value| binds.mark(text(value)));
        let marks: Vec<String> = names.iter().map(|name| binds.mark(text(name))).collect();
        let terms = format!("team = {team} AND kind = {kind} AND name IN ({})", marks.join(", "));
        self.select(&format!("WHERE {terms} ORDER BY name"), binds).await
    }

    /// What a team keeps, each name with the whole size of its object.
    pub async fn named_sum(&self, team: &str) -> Result<NamedSum> {
        let mut binds = Binds::default();
        let team = binds.mark(text(team));
        self.sum_of_names(&format!("team = {team}"), binds).await
    }

    /// The same for one kind of names.
    pub async fn named_sum_of(&self, team: &str, kind: &str) -> Result<NamedSum> {
        let mut binds = Binds::default();
        let [team, kind] = [team, kind].map(|value| binds.mark(text(value)));
        self.sum_of_names(&format!("team = {team} AND kind = {kind}"), binds).await
    }

    async fn sum_of_names(&self, terms: &str, binds: Binds) -> Result<NamedSum> {
        let sql = format!(
            "SELECT COUNT(*), CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM blob_names WHERE {terms}"
        );
        let rows = self.rows("blob_names", sql, binds).await?;
        let Some(row) = rows.first() else { return Ok(NamedSum::default()) };
        let mut reader = Reader::new(row);
        let mut read = || -> std::result::Result<NamedSum, BoxDynError> {
            Ok(NamedSum { names: u64::read(&mut reader)?, bytes: u64::read(&mut reader)? })
        };
        read().map_err(|why| self.unreadable("a sum of objects", why))
    }

    /// Names of a kind that are older than this, in the order of their bytes, after one of them.
    pub async fn old_blob_names(
        &self,
        (team, kind): (&str, &str),
        until: Time,
        after: &str,
        limit: u32,
    ) -> Result<Vec<BlobNameRow>> {
        let mut binds = Binds::default();
        let [team, kind, after] = [team, kind, after].map(|value| binds.mark(text(value)));
        let until = binds.mark(Value::Int(Some(until.0)));
        let terms =
            format!("team = {team} AND kind = {kind} AND name > {after} AND created < {until}");
        self.select(&format!("WHERE {terms} ORDER BY name LIMIT {limit}"), binds).await
    }

    /// Whether anything is called so.
    pub async fn has_name(&self, sha256: &str) -> Result<bool> {
        let mut binds = Binds::default();
        let mark = binds.mark(text(sha256));
        let found: Vec<BlobNameRow> =
            self.select(&format!("WHERE sha256 = {mark} LIMIT 1"), binds).await?;
        Ok(!found.is_empty())
    }

    /// Objects without a name, of which that was not known.
    pub async fn newly_loose(&self, limit: u32) -> Result<Vec<BlobRow>> {
        let rest = format!("WHERE loose IS NULL AND NOT EXISTS ({NAMED}) LIMIT {limit}");
        self.select(&rest, Binds::default()).await
    }

    /// Objects that have been without a name since then.
    pub async fn loose_since(&self, until: Time, limit: u32) -> Result<Vec<BlobRow>> {
        let mut binds = Binds::default();
        let until = binds.mark(Value::Int(Some(until.0)));
        let rest = format!("WHERE loose <= {until} AND NOT EXISTS ({NAMED}) LIMIT {limit}");
        self.select(&rest, binds).await
    }

    /// Objects that have a name again.
    pub async fn named_again(&self, limit: u32) -> Result<Vec<BlobRow>> {
        let rest = format!("WHERE loose IS NOT NULL AND EXISTS ({NAMED}) LIMIT {limit}");
        self.select(&rest, Binds::default()).await
    }

    /// All versions of a team's data; of one name where that is given.
    pub async fn data_versions(
        &self,
        team: &str,
        name: Option<&str>,
    ) -> Result<Vec<DataVersionRow>> {
        let mut binds = Binds::default();
        let mut terms = format!("team = {}", binds.mark(text(team)));
        if let Some(name) = name {
            terms.push_str(&format!(" AND name = {}", binds.mark(text(name))));
        }
        self.select(&format!("WHERE {terms} ORDER BY team, name, version"), binds).await
    }
}

const NAMED: &str = "SELECT 1 FROM blob_names WHERE blob_names.sha256 = blobs.sha256";

/// The first text that does not begin so.
fn end_of(prefix: &str) -> String {
    format!("{prefix}{LAST}")
}

fn text(text: &str) -> Value {
    Value::Text(Some(text.to_owned()))
}
