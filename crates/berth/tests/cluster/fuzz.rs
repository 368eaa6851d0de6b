//! Random worlds, scheduled once by kube-scheduler and once by Berth. A checker looks at both that
//! shares no code with Berth.

use berth_testbed::fuzz::{Options, run_fuzz, stale_explanations};
use std::env;
use std::path::Path;

#[test]
fn explanations_of_findings_are_lines_of_the_page_of_limits() {
    assert_eq!(stale_explanations().into_iter().collect::<Vec<_>>(), Vec::<&str>::new());
}

/// `SEED` is the first world, `WORLDS` how many there are. `SHRINK=yes` makes worlds with findings
/// smaller, and `LOGS` is a folder for what Berth logged about them.
#[test]
#[ignore = "two hundred worlds take a quarter of an hour; make test-long runs it"]
fn berth_breaks_no_constraint_leaves_no_pod_waiting_and_stops_none_without_need() {
    let number = |name: &str, otherwise: u64| {
        env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
    };
    let program = Path::new(env!("CARGO_BIN_EXE_berth"));
    let options = Options {
        shrinks: env::var("SHRINK").as_deref() == Ok("yes"),
        logs: env::var_os("LOGS").map(Into::into),
        ..Options::new(program, number("SEED", 1), number("WORLDS", 200))
    };
    let report = run_fuzz(&options, |seed, report| {
        println!("world {seed}: {} pods, {} findings", report.pods, report.findings.len());
        report.findings.iter().chain(&report.mistakes).for_each(|text| println!("{text}"));
    });
    println!(
        "{} worlds, {} pods: berth placed {} and stopped {}, kube-scheduler placed {} and stopped \
         {}; {} findings are explained",
        report.worlds,
        report.pods,
        report.placed_by_berth,
        report.stopped_by_berth,
        report.placed_by_peer,
        report.stopped_by_peer,
        report.explained,
    );
    assert_eq!(report.mistakes, Vec::<String>::new(), "the checker is wrong");
    assert_eq!(report.findings, Vec::<String>::new());
}
