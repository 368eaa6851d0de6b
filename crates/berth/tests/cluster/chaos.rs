//! Two replicas on one database, with faults injected into everything around them.

use berth_testbed::{ChaosReport, run_chaos};
use std::path::Path;

#[test]
fn gangs_stay_whole_through_a_few_faults() {
    let report = chaos(2);
    assert!(report.pods_observed > 0, "{report:?}");
}

#[test]
#[ignore = "six rounds take minutes; make test-long runs it"]
fn gangs_stay_whole_through_faults_and_no_gpu_is_allocated_twice_and_no_job_lost() {
    let report = chaos(6);
    let happened = report.pods_observed > 0 && report.leaders_killed >= 2;
    assert!(happened && report.bound_by_others > 0, "{report:?}");
}

fn chaos(rounds: u32) -> ChaosReport {
    let program = Path::new(env!("CARGO_BIN_EXE_berth"));
    let report = run_chaos(program, rounds, |round, fault| println!("round {round}: {fault:?}"));
    assert_eq!(report.violations(), Vec::<String>::new(), "{report:?}");
    report
}
