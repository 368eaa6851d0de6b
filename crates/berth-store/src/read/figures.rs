//! Figures by series and time, and which of them are to go.

use crate::error::Result;
use crate::rows::FigureRow;
use crate::store::Store;
use crate::value::{Binds, Field, Reader, Value};
use berth_model::Time;

/// The key of a chunk: series, level and start.
pub type FigureKey = (String, u32, Time);

/// Which chunks of a series.
#[derive(Debug, Clone, Copy)]
pub struct FigureQuery<'a> {
    pub series: &'a str,
    pub level: u32,
    /// Those that have something in `[from, to)`.
    pub from: Time,
    pub to: Time,
    /// The newest so many.
    pub limit: u32,
}

impl Store {
    /// Chunks of a series in their order.
    pub async fn figures(&self, query: FigureQuery<'_>) -> Result<Vec<FigureRow>> {
        let mut binds = Binds::default();
        let series = binds.mark(Value::Text(Some(query.series.to_owned())));
        let level = binds.mark(Value::Int(Some(i64::from(query.level))));
        let from = binds.mark(Value::Int(Some(query.from.0)));
        let to = binds.mark(Value::Int(Some(query.to.0)));
        let limit = query.limit;
        let which = format!(
            "WHERE series = {series} AND level = {level} AND \"end\" > {from} AND start < {to} \
             ORDER BY start DESC LIMIT {limit}"
        );
        let mut rows: Vec<FigureRow> = self.select(&which, binds).await?;
        rows.reverse();
        Ok(rows)
    }

    /// Chunks of several series in the order of series and time, up to `limit` of them.
    pub async fn figures_of(
        &self,
        series: &[String],
        level: u32,
        (from, to): (Time, Time),
        limit: u32,
    ) -> Result<Vec<FigureRow>> {
        let mut binds = Binds::default();
        let marks = series.iter().map(|one| binds.mark(Value::Text(Some(one.clone()))));
        let marks: Vec<String> = marks.collect();
        if marks.is_empty() {
            return Ok(Vec::new());
        }
        let level = binds.mark(Value::Int(Some(i64::from(level))));
        let from = binds.mark(Value::Int(Some(from.0)));
        let to = binds.mark(Value::Int(Some(to.0)));
        let which = format!(
            "WHERE series IN ({}) AND level = {level} AND \"end\" > {from} AND start < {to} \
             ORDER BY series, start LIMIT {limit}",
            marks.join(", ")
        );
        self.select(&which, binds).await
    }

    /// Series of which the finest chunks say more than the next coarser ones: a server ended before
    /// it had made the one of the other.
    pub async fn unthinned_figures(&self) -> Result<Vec<String>> {
        let sql = "SELECT DISTINCT fine.series FROM figures AS fine WHERE fine.level = 0 \
                   AND NOT EXISTS (SELECT 1 FROM figures AS coarse WHERE \
                   coarse.series = fine.series AND coarse.level = 1 \
                   AND coarse.\"end\" >= fine.\"end\") ORDER BY 1";
        let rows = self.rows("figures", sql.to_owned(), Binds::default()).await?;
        let name = |row| String::read(&mut Reader::new(row));
        let names: std::result::Result<Vec<String>, _> = rows.iter().map(name).collect();
        names.map_err(|why| self.unreadable("a series of figures", why))
    }

    /// What all figures take.
    pub async fn figure_bytes(&self) -> Result<u64> {
        let sql = "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM figures";
        let rows = self.rows("figures", sql.to_owned(), Binds::default()).await?;
        let row = rows.first().ok_or_else(|| self.unreadable("figures", "there is no sum"))?;
        u64::read(&mut Reader::new(row)).map_err(|why| self.unreadable("figures", why))
    }

    /// The oldest chunks of a level that began before then, with what each takes.
    pub async fn oldest_figures(
        &self,
        level: u32,
        before: Time,
        limit: u32,
    ) -> Result<Vec<(FigureKey, u64)>> {
        let mut binds = Binds::default();
        let level = binds.mark(Value::Int(Some(i64::from(level))));
        let before = binds.mark(Value::Int(Some(before.0)));
        let sql = format!(
            "SELECT series, level, start, bytes FROM figures WHERE level = {level} \
             AND start < {before} ORDER BY start, series LIMIT {limit}"
        );
        let rows = self.rows("figures", sql, binds).await?;
        let read = |row| {
            let from = &mut Reader::new(row);
            let key = (String::read(from)?, u32::read(from)?, Time::read(from)?);
            Ok::<_, sqlx::error::BoxDynError>((key, u64::read(from)?))
        };
        let keys: std::result::Result<Vec<_>, _> = rows.iter().map(read).collect();
        keys.map_err(|why| self.unreadable("a chunk of figures", why))
    }
}
