//! The whole way on the bundled trace: text, estimates, schedulers, figures.

use berth_sim::estimate::Estimate;
use berth_sim::fleet::Pool;
use berth_sim::metrics::{Report, Setting};
use berth_sim::peers::{self, Policy};
use berth_sim::trace::{self, Select};
use berth_sim::workload::Workload;

const POOL: Pool = Pool { nodes: 2, gpus_per_node: 8 };

fn workload(estimate: Estimate) -> Workload {
    let jobs = trace::jobs("sample", trace::BUNDLED, &Select::default()).unwrap();
    Workload::new(&jobs, estimate).unwrap()
}

fn report(policy: Policy, estimate: Estimate) -> Report {
    let workload = workload(estimate);
    let quotas = workload.quotas_by_demand();
    let outcomes = peers::run(policy, POOL, &workload.jobs, &quotas);
    let (gpus, teams) = (POOL.gpus(), workload.teams);
    Report::new(&outcomes, &Setting { gpus, teams, quotas, ..Setting::default() })
}

#[test]
fn every_policy_serves_every_job_of_the_bundled_trace() {
    for policy in Policy::ALL {
        let report = report(policy, Estimate::noisy(1));
        assert_eq!((report.all.jobs, report.unfinished), (300, 0), "{}", policy.word());
        assert!(report.usage.allocation <= 1.0 && report.usage.utilization > 0.0);
        assert_eq!(report.by_team.len(), 4);
        assert!(report.fairness.is_some());
    }
}

#[test]
fn nobody_waits_less_in_the_mean_than_where_pausing_is_free() {
    let mean = |policy| report(policy, Estimate::Exact).all.wait.mean;
    // With gangs neither of the two is always the lower one.
    let pausing = mean(Policy::Srtf).min(mean(Policy::Srsf));
    let never_stopping = |policy: &Policy| report(*policy, Estimate::Exact).preemptions == 0;
    for policy in Policy::ALL.into_iter().filter(never_stopping) {
        assert!(mean(policy) > pausing, "{} waits {}", policy.word(), mean(policy));
    }
}

#[test]
fn strict_fifo_waits_longer_than_fifo_with_backfilling() {
    let mean = |policy| report(policy, Estimate::Limit).all.wait.mean;
    assert!(mean(Policy::Fifo) > mean(Policy::Easy));
    assert!(mean(Policy::Fifo) > mean(Policy::Sjf));
}

#[test]
fn reports_survive_being_written_and_read() {
    let report = report(Policy::Easy, Estimate::Limit);
    let text = serde_json::to_string(&report).unwrap();
    let read: Report = serde_json::from_str(&text).unwrap();
    // The last digit of a float may change on the way.
    assert!((read.all.wait.mean - report.all.wait.mean).abs() < 1e-6);
    assert_eq!(read.by_size.len(), report.by_size.len());
    assert!(text.contains("[\">8\",{\"jobs\":4"), "{text}");
}
