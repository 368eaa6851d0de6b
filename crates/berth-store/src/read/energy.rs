//! Sums of energy, and where its counters stood.

use super::costs::{CostKey, CostQuery, condition};
use crate::error::Result;
use crate::rows::EnergyRow;
use crate::store::Store;
use crate::value::{Binds, Field, Reader, Value};
use berth_model::{JobId, LeaseId, Span, Time};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnergySum {
    /// As those of [`crate::CostSum`].
    pub keys: Vec<String>,
    pub energy_mj: i64,
}

impl Store {
    /// Sums by group, in the order of their keys. They go by everything that costs go by but their
    /// kind. A row counts where it begins, and one of an old day at the start of that day.
    pub async fn energy(&self, query: &CostQuery) -> Result<Vec<EnergySum>> {
        let mut binds = Binds::default();
        let sql = sql(query, &mut binds);
        let rows = self.rows("energy", sql, binds).await?;
        let mut sums = Vec::with_capacity(rows.len());
        for row in &rows {
            let from = &mut Reader::new(row);
            let keys: std::result::Result<Vec<String>, _> =
                query.by.iter().map(|key| key.read(from)).collect();
            let sum = keys.and_then(|keys| Ok((keys, from.int()?)));
            let (keys, energy) = sum.map_err(|why| self.unreadable("a sum of energy", why))?;
            sums.extend(energy.map(|energy_mj| EnergySum { keys, energy_mj }));
        }
        Ok(sums)
    }

    /// The energy of a job or an element of an array, in thousandths of a joule; `None` if it was not
    /// measured.
    pub async fn energy_of(&self, job: JobId) -> Result<Option<i64>> {
        let mut binds = Binds::default();
        let mut values = Vec::new();
        job.write(&mut values);
        binds.push_all(values);
        let sql =
            "SELECT CAST(SUM(energy_mj) AS BIGINT) FROM energy WHERE job = $1 AND element = $2";
        let rows = self.rows("energy", sql.to_owned(), binds).await?;
        let sum = rows.first().map(|row| Reader::new(row).int()).transpose();
        let sum = sum.map_err(|why| self.unreadable("a sum of energy", why))?;
        Ok(sum.flatten())
    }

    /// The newest row of a lease.
    pub async fn newest_energy(&self, lease: LeaseId) -> Result<Option<EnergyRow>> {
        let mut binds = Binds::default();
        let mut values = Vec::new();
        lease.write(&mut values);
        binds.push_all(values);
        let rest = "WHERE job = $1 AND element = $2 AND task = $3 AND attempt = $4 \
                    ORDER BY start DESC LIMIT 1";
        Ok(self.select(rest, binds).await?.pop())
    }
}

fn sql(query: &CostQuery, binds: &mut Binds) -> String {
    let day = Span::days(1).0;
    let mut range = Vec::new();
    for (comparison, time) in [(">=", query.since), ("<", query.until)] {
        if let Some(Time(time)) = time {
            range.push(format!("e.start {comparison} {}", binds.mark(Value::Int(Some(time)))));
        }
    }
    let range = condition(&range);
    let terms = query.terms(binds);
    let columns: Vec<&str> = query.by.iter().copied().flat_map(CostKey::columns).copied().collect();
    let keys = columns.join(", ");
    let (select, group) = match columns.is_empty() {
        true => (String::new(), String::new()),
        false => (format!("{keys}, "), format!("GROUP BY {keys} ORDER BY {keys}")),
    };
    format!(
        "SELECT {select}CAST(SUM(energy_mj) AS BIGINT) FROM (\
         SELECT e.start / {day} AS day, e.job AS job, e.element AS element, j.team AS team, \
         j.project AS project, j.experiment AS experiment, j.\"user\" AS \"user\", \
         e.energy_mj AS energy_mj FROM energy AS e \
         JOIN jobs AS j ON j.id = e.job AND j.element = e.element {range}) AS used {terms} {group}"
    )
}
