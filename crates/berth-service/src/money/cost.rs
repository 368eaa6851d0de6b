//! Sums of what was spent, exact to the millionth of a dollar.

use super::{csv, spent};
use crate::caller::Caller;
use crate::fault::Fault;
use crate::service::Service;
use berth_api::access::Permission;
use berth_api::wire::{CostGroup, CostKey, CostReport};
use berth_api::{Code, wire};
use berth_engine::clock;
use berth_file::error::{did_you_mean, or_list};
use berth_model::CostKind;
use berth_model::{JobId, Span, Time};
use berth_store::{self as store, CostSum, EnergySum};
use std::collections::BTreeMap;

/// Millijoules (thousandths of a joule) of a kilowatt-hour.
const MJ_PER_KWH: i128 = 3_600_000_000;

pub async fn list(
    service: &Service,
    caller: &Caller,
    query: wire::CostQuery,
) -> Result<CostReport, Fault> {
    let now = clock::now();
    let by = keys(query.by.as_deref().unwrap_or("team"))?;
    let (from, to) = range(query.from, query.to, now)?;
    let empty = CostReport {
        by: by.clone(),
        from: from.into(),
        to: to.into(),
        rows: Vec::new(),
        total_micros: 0,
        idle_micros: 0,
        energy_mj: None,
        carbon_intensity: service.carbon_intensity,
    };
    let Some(teams) = teams(caller, query.team.as_deref()) else { return Ok(empty) };
    let asked = store::CostQuery {
        by: stored(&by),
        since: Some(from),
        until: Some(to),
        teams,
        project: query.project,
        experiment: query.experiment,
        user: query.user,
        job: query.job.as_deref().map(job).transpose()?,
        upto: None,
    };
    let sums = spent::sums(service, &asked).await?;
    let (mut rows, idle_micros) = add_up(&by, &sums);
    let asked = store::CostQuery { by: by.iter().copied().map(stored_key).collect(), ..asked };
    let energy = service.store.energy(&asked).await?;
    add_energy(&by, &mut rows, energy, service.carbon_intensity);
    if by.contains(&CostKey::Job) {
        rows.sort_by_cached_key(|row| order(&by, row));
        add_names(service, caller, &mut rows).await?;
    }
    let energy_mj = rows.iter().filter_map(|row| row.energy_mj).reduce(|a, b| a + b);
    let total_micros = rows.iter().map(|row| row.amount_micros).sum();
    Ok(CostReport { rows, total_micros, idle_micros, energy_mj, ..empty })
}

/// The time that is asked for: this month, where nobody says.
pub(super) fn range(
    from: Option<wire::At>,
    to: Option<wire::At>,
    now: Time,
) -> Result<(Time, Time), Fault> {
    let from = from.map_or_else(|| month_start(now), |at| at.0);
    let to = to.map_or(now, |at| at.0);
    if from > to {
        let detail = format!("from {from} to {to} is no time at all");
        return Err(Fault::new(Code::BadRequest, detail).next("put the earlier moment in `from`"));
    }
    Ok((from, to))
}

/// The report as a table.
pub fn report_csv(report: &CostReport) -> String {
    let mut head: Vec<String> = report.by.iter().map(|key| key.word().to_owned()).collect();
    let has_names = report.by.contains(&CostKey::Job);
    head.extend(has_names.then(|| "name".to_owned()));
    head.extend(["amount", "gpu_hours", "jobs", "energy_joules"].map(str::to_owned));
    let rows = report.rows.iter().map(|row| {
        let mut fields: Vec<String> = report.by.iter().map(|key| value_of(row, *key)).collect();
        fields.extend(has_names.then(|| row.name.clone().unwrap_or_default()));
        let energy = row.energy_mj.map(csv::thousandths).unwrap_or_default();
        let hours = csv::thousandths(row.gpu_ms / 3_600);
        fields.extend([csv::dollars(row.amount_micros), hours, row.jobs.to_string(), energy]);
        fields
    });
    csv::table(&head, rows)
}

/// Teams to filter by; none means all of them, and nothing that there is nothing to see.
pub(super) fn teams(caller: &Caller, wanted: Option<&str>) -> Option<Vec<String>> {
    let mine = caller.reads(Permission::CostRead);
    let teams = match (mine, wanted) {
        (None, None) => return Some(Vec::new()),
        (None, Some(team)) => vec![team.to_owned()],
        (Some(mine), None) => mine,
        (Some(mine), Some(team)) => mine.into_iter().filter(|of| of == team).collect(),
    };
    Some(teams).filter(|teams| !teams.is_empty())
}

pub(super) fn keys(text: &str) -> Result<Vec<CostKey>, Fault> {
    let mut keys = Vec::new();
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let words = || CostKey::ALL.map(CostKey::word);
        let key = CostKey::ALL.into_iter().find(|key| key.word() == word).ok_or_else(|| {
            let detail = format!("by: there is no key `{word}`{}", did_you_mean(word, words()));
            Fault::new(Code::BadRequest, detail).next(format!("use {}", or_list(words())))
        })?;
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    Ok(keys)
}

pub(super) fn job(text: &str) -> Result<JobId, Fault> {
    text.parse().map_err(|_| {
        let detail = format!("job: found `{text}`, expected a number such as 17 or 17_3");
        Fault::new(Code::BadRequest, detail)
    })
}

/// The keys of the report, and what is needed to count jobs and to tell idle GPUs apart.
fn stored(by: &[CostKey]) -> Vec<store::CostKey> {
    let keys = by.iter().copied().map(stored_key);
    keys.chain([store::CostKey::Job, store::CostKey::Kind]).collect()
}

pub(super) fn stored_key(key: CostKey) -> store::CostKey {
    match key {
        CostKey::Team => store::CostKey::Team,
        CostKey::Project => store::CostKey::Project,
        CostKey::Experiment => store::CostKey::Experiment,
        CostKey::User => store::CostKey::User,
        CostKey::Job => store::CostKey::Job,
    }
}

/// Adds to the rows what they used.
fn add_energy(
    by: &[CostKey],
    rows: &mut [CostGroup],
    energy: Vec<EnergySum>,
    carbon_intensity: Option<i64>,
) {
    let energy: BTreeMap<Vec<String>, i64> =
        energy.into_iter().map(|sum| (sum.keys, sum.energy_mj)).collect();
    for row in rows {
        let keys: Vec<String> = by.iter().map(|key| value_of(row, *key)).collect();
        row.energy_mj = energy.get(&keys).copied();
        let carbon = row.energy_mj.zip(carbon_intensity).map(|(energy, grams)| {
            i64::try_from(i128::from(energy) * i128::from(grams) * 1_000 / MJ_PER_KWH)
        });
        row.carbon_mg = carbon.and_then(Result::ok);
    }
}

/// Jobs come in the order of their numbers, everything else in that of the alphabet.
fn order(by: &[CostKey], row: &CostGroup) -> Vec<(Option<JobId>, String)> {
    let key = |key: &CostKey| {
        let value = value_of(row, *key);
        let number = value.parse().ok().filter(|_| *key == CostKey::Job);
        (number, value)
    };
    by.iter().map(key).collect()
}

/// Jobs of a report whose names are looked up.
const MOST_NAMES: usize = 2_000;

async fn add_names(
    service: &Service,
    caller: &Caller,
    rows: &mut [CostGroup],
) -> Result<(), Fault> {
    for row in rows.iter_mut().take(MOST_NAMES) {
        let Some(id) = row.job.as_ref().and_then(|job| job.parse().ok()) else { continue };
        let Some(job) = service.store.job(id).await? else { continue };
        if caller.may(Permission::JobsRead, Some(&job.team), Some(&job.user)) {
            row.name = Some(job.name);
        }
    }
    Ok(())
}

fn value_of(row: &CostGroup, key: CostKey) -> String {
    let value = match key {
        CostKey::Team => &row.team,
        CostKey::Project => &row.project,
        CostKey::Experiment => &row.experiment,
        CostKey::User => &row.user,
        CostKey::Job => &row.job,
    };
    value.clone().unwrap_or_default()
}

#[derive(Default)]
struct Sum {
    amount: i64,
    gpu_us: i64,
    jobs: u64,
    last: Option<String>,
}

/// Rows of the report, and the cost of machines that no lease held.
fn add_up(by: &[CostKey], sums: &[CostSum]) -> (Vec<CostGroup>, i64) {
    let mut idle = 0;
    let mut rows: BTreeMap<&[String], Sum> = BTreeMap::new();
    for sum in sums {
        let (keys, rest) = sum.keys.split_at(by.len());
        let [job, kind] = rest else { continue };
        if !is_of_lease(kind) {
            idle += sum.amount.0;
            continue;
        }
        let row = rows.entry(keys).or_default();
        row.amount += sum.amount.0;
        row.gpu_us += sum.gpu_us;
        // Sums come in the order of their keys: those of a job are next to one another.
        if row.last.as_ref() != Some(job) {
            row.jobs += 1;
            row.last = Some(job.clone());
        }
    }
    (rows.into_iter().map(|(keys, sum)| row(by, keys, &sum)).collect(), idle)
}

pub(super) fn is_of_lease(kind: &str) -> bool {
    kind == CostKind::Used.as_str() || kind == CostKind::Held.as_str()
}

fn row(by: &[CostKey], keys: &[String], sum: &Sum) -> CostGroup {
    let value = |key: CostKey| {
        let at = by.iter().position(|of| *of == key)?;
        Some(keys[at].clone())
    };
    CostGroup {
        team: value(CostKey::Team),
        project: value(CostKey::Project),
        experiment: value(CostKey::Experiment),
        user: value(CostKey::User),
        job: value(CostKey::Job),
        amount_micros: sum.amount,
        gpu_ms: sum.gpu_us / 1_000,
        jobs: sum.jobs,
        ..CostGroup::default()
    }
}

/// When the month of this moment began, in UTC.
pub fn month_start(at: Time) -> Time {
    let (_, _, day) = at.date();
    let midnight = at.0 - at.0.rem_euclid(Span::days(1).0);
    Time(midnight) - Span::days(day - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::Micros;

    fn sum(keys: &[&str], amount: i64, gpu_us: i64) -> CostSum {
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        CostSum { keys, amount: Micros(amount), gpu_us }
    }

    #[test]
    fn a_month_begins_at_midnight_of_its_first_day() {
        for (at, start) in [
            ("2026-11-15T09:30:00Z", "2026-11-01T00:00:00Z"),
            ("2024-02-29T23:59:59Z", "2024-02-01T00:00:00Z"),
            ("2026-12-01T00:00:00Z", "2026-12-01T00:00:00Z"),
        ] {
            assert_eq!(month_start(at.parse().unwrap()), start.parse().unwrap());
        }
    }

    #[test]
    fn rows_have_what_was_used_and_held_and_the_rest_is_idle() {
        let sums = [
            sum(&["", "", "unallocated"], 7, 70),
            sum(&["nlp", "17", "held"], 1, 1_000),
            sum(&["nlp", "17", "used"], 2, 2_000),
            sum(&["nlp", "18_0", "used"], 3, 3_000),
            sum(&["vision", "4", "used"], 5, 500),
        ];
        let (rows, idle) = add_up(&[CostKey::Team], &sums);
        let shown: Vec<(&str, i64, i64, u64)> = rows
            .iter()
            .map(|row| (row.team.as_deref().unwrap(), row.amount_micros, row.gpu_ms, row.jobs))
            .collect();
        assert_eq!(shown, [("nlp", 6, 6, 2), ("vision", 5, 0, 1)]);
        assert_eq!(idle, 7);
    }

    #[test]
    fn jobs_come_in_the_order_of_their_numbers() {
        let row = |job: &str| CostGroup { job: Some(job.into()), ..CostGroup::default() };
        let mut rows = ["9", "10_2", "10_10", "10", "100"].map(row);
        rows.sort_by_cached_key(|row| order(&[CostKey::Job], row));
        let jobs: Vec<&str> = rows.iter().filter_map(|row| row.job.as_deref()).collect();
        assert_eq!(jobs, ["9", "10", "10_2", "10_10", "100"]);
    }

    #[test]
    fn without_a_key_there_is_one_row_with_all() {
        let sums = [sum(&["17", "used"], 2, 0), sum(&["18", "used"], 3, 0)];
        let (rows, _) = add_up(&[], &sums);
        assert_eq!((rows.len(), rows[0].amount_micros, rows[0].jobs), (1, 5, 2));
    }

    #[test]
    fn rows_have_their_energy_and_its_carbon_where_both_are_known() {
        let by = [CostKey::Team];
        let row = |team: &str| CostGroup { team: Some(team.into()), ..CostGroup::default() };
        let mut rows = [row("nlp"), row("vision")];
        // Two kilowatt-hours.
        let energy = || vec![EnergySum { keys: vec!["nlp".into()], energy_mj: 7_200_000_000 }];
        add_energy(&by, &mut rows, energy(), None);
        assert_eq!((rows[0].energy_mj, rows[0].carbon_mg), (Some(7_200_000_000), None));
        add_energy(&by, &mut rows, energy(), Some(380));
        assert_eq!(
            (rows[0].carbon_mg, rows[1].energy_mj, rows[1].carbon_mg),
            (Some(760_000), None, None)
        );
    }

    #[test]
    fn keys_are_read_once_each_and_a_slip_gets_a_suggestion() {
        assert_eq!(keys("user, team,user").unwrap(), [CostKey::User, CostKey::Team]);
        let fault = keys("team,projcet").unwrap_err();
        assert!(fault.0.detail.contains("did you mean `project`?"), "{}", fault.0.detail);
    }
}
