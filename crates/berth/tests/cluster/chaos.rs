//! Two replicas on one database, with faults injected into everything around them.

use berth_testbed::run_chaos;
use std::path::Path;

#[test]
#[ignore = "six rounds take minutes; make test-long runs it"]
fn gangs_stay_whole_through_faults_and_no_gpu_is_allocated_twice_and_no_job_lost() {
    let program = Path::new(env!("CARGO_BIN_EXE_berth"));
    let report = run_chaos(program, 6, |round, fault| println!("round {round}: {fault:?}"));
    assert_eq!(report.violations(), Vec::<String>::new(), "{report:?}");
    let happened = report.pods_observed > 0 && report.leaders_killed >= 2;
    assert!(happened && report.bound_by_others > 0, "{report:?}");
}
