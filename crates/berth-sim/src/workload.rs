//! Jobs of a trace as the peers take them: whole GPUs, a duration, an estimate, a team by number.

use crate::estimate::Estimate;
use crate::fleet::{ANY, Fleet, UNNAMED};
use crate::{peers, trace};
use berth_model::{Name, Span};
use std::collections::BTreeMap;

/// A trace made ready to be run.
#[derive(Debug, Clone, Default)]
pub struct Workload {
    /// In the order of the trace.
    pub jobs: Vec<peers::Job>,
    /// For each of them, its place in the trace.
    pub rows: Vec<u32>,
    /// In order of their names; jobs without a team are in one with the empty name.
    pub teams: Vec<Name>,
    /// Jobs without a GPU, which no queue for GPUs holds up.
    pub left_out: u32,
    /// Its user and what its user may call it, by number: jobs of one user that ask for the same
    /// GPUs and the same time are taken for runs of the same thing.
    pub kinds: Vec<(u32, u32)>,
    /// Which models each job asks for, as a place in `asked`; 0 for any.
    asks: Vec<u32>,
    asked: Vec<Vec<Name>>,
}

/// Why a trace cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: job {job} has no {missing}, so it is not known how long it {verb}")]
pub struct MissingDuration {
    pub job: Name,
    pub line: u32,
    pub missing: &'static str,
    verb: &'static str,
}

impl Workload {
    /// A share of a GPU counts as a whole one: peers do not share GPUs.
    pub fn new(trace: &[trace::Job], estimate: Estimate) -> Result<Workload, MissingDuration> {
        let mut teams: BTreeMap<Name, u32> = BTreeMap::new();
        for job in trace {
            teams.insert(job.team.clone().unwrap_or_default(), 0);
        }
        for (number, (_, place)) in teams.iter_mut().enumerate() {
            *place = number as u32;
        }
        let mut workload = Workload { asked: vec![Vec::new()], ..Workload::default() };
        let mut known: BTreeMap<Name, u32> = BTreeMap::new();
        let mut users: BTreeMap<(Name, Name), u32> = BTreeMap::new();
        let mut things: BTreeMap<(i64, Option<Span>), u32> = BTreeMap::new();
        for (place, job) in trace.iter().enumerate() {
            if job.gpus.is_zero() {
                workload.left_out += 1;
                continue;
            }
            let untold = |missing, verb| MissingDuration {
                job: job.id.clone(),
                line: job.line,
                missing,
                verb,
            };
            let duration = job.duration.ok_or_else(|| untold("duration_s", "runs"))?;
            let guess = estimate.of(place, job).ok_or_else(|| untold("limit_s", "may run"))?;
            workload.rows.push(place as u32);
            let ask = match &job.gpu_type {
                None => 0,
                Some(types) => *known.entry(types.clone()).or_insert_with(|| {
                    workload.asked.push(job.gpu_types().map(Name::new).collect());
                    workload.asked.len() as u32 - 1
                }),
            };
            workload.asks.push(ask);
            let next = users.len() as u32;
            let who = (job.team.clone().unwrap_or_default(), job.user.clone().unwrap_or_default());
            let user = *users.entry(who).or_insert(next);
            let next = things.len() as u32;
            let thing = *things.entry((job.gpus.0, job.limit)).or_insert(next);
            workload.kinds.push((user, thing));
            workload.jobs.push(peers::Job {
                submit: job.submit,
                duration,
                estimate: guess,
                gpus: job.gpus.0.div_euclid(1_000) as u32 + u32::from(job.gpus.0 % 1_000 > 0),
                team: teams[job.team.as_deref().unwrap_or("")],
                models: ANY,
            });
        }
        workload.teams = teams.into_keys().collect();
        Ok(workload)
    }

    /// Lets jobs that name models run on those of the fleet only. Nodes of which nobody said what
    /// they hold suit everybody.
    pub fn suit(&mut self, fleet: &Fleet) {
        let bits = |names: &Vec<Name>| match names.as_slice() {
            [] => ANY,
            names => {
                let suits = |model: &Name| model.as_str() == UNNAMED || names.contains(model);
                let places = fleet.models.iter().enumerate().filter(|(_, model)| suits(model));
                places.fold(0, |bits, (place, _)| bits | 1 << place)
            }
        };
        let masks: Vec<u64> = self.asked.iter().map(bits).collect();
        for (job, ask) in self.jobs.iter_mut().zip(&self.asks) {
            job.models = masks[*ask as usize];
        }
    }

    /// Quotas in proportion to what each team asks for in all, in GPU-seconds, at least one: a
    /// division under which every team could be served equally well.
    pub fn quotas_by_demand(&self) -> Vec<u64> {
        let mut quotas = vec![0u64; self.teams.len()];
        for job in &self.jobs {
            let seconds = Span::as_secs(job.duration).max(0) as u64;
            quotas[job.team as usize] += seconds * u64::from(job.gpus);
        }
        quotas.iter().map(|quota| (*quota).max(1)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(rows: &str) -> Vec<trace::Job> {
        let text = format!("job_id,submit_s,duration_s,gpus,team\n{rows}");
        trace::jobs("t", &text, &trace::Select::default()).unwrap()
    }

    #[test]
    fn teams_are_numbered_by_name_and_shares_of_gpus_rounded_up() {
        let trace = trace("a,0,10,0.5,z\nb,1,10,0,z\nc,2,10,8,m\nd,3,10,1,\n");
        let workload = Workload::new(&trace, Estimate::Exact).unwrap();
        let seen: Vec<_> = workload.jobs.iter().map(|job| (job.gpus, job.team)).collect();
        assert_eq!(seen, [(1, 2), (8, 1), (1, 0)]);
        assert_eq!((workload.rows.as_slice(), workload.left_out), ([0, 2, 3].as_slice(), 1));
        assert_eq!(workload.quotas_by_demand(), [10, 80, 10]);
    }

    #[test]
    fn jobs_run_on_the_models_they_name_and_on_nodes_of_which_nobody_said() {
        let text =
            "job_id,submit_s,duration_s,gpus,gpu_type\na,0,1,1,\nb,0,1,1,T4|A100\nc,0,1,1,P100\n";
        let trace = trace::jobs("t", text, &trace::Select::default()).unwrap();
        let mut workload = Workload::new(&trace, Estimate::Exact).unwrap();
        workload.suit(&Fleet::new([(8, "A100"), (8, "V100"), (4, "T4")]).unwrap());
        let masks: Vec<u64> = workload.jobs.iter().map(|job| job.models).collect();
        assert_eq!(masks, [ANY, 0b101, 0]);
        workload.suit(&Fleet::like(2, 8, UNNAMED));
        assert!(workload.jobs.iter().all(|job| job.models & 1 == 1));
    }

    #[test]
    fn a_job_without_a_duration_is_named() {
        let error = Workload::new(&trace("a,0,10,1,z\nb,1,,1,z\n"), Estimate::Exact).unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 3: job b has no duration_s, so it is not known how long it runs"
        );
    }
}
