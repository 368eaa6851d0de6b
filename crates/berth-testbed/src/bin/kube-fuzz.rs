//! Fuzzes a `berth` beside kube-scheduler, without building it: `BERTH_BIN` names the program,
//! `SEED` the first world, `WORLDS` how many, `LANES` how many clusters at once, and `SHRINK=yes`
//! makes worlds with findings smaller.

use berth_testbed::fuzz::{Options, run_fuzz, stale_explanations};
use std::env;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let number = |name: &str, otherwise: u64| {
        env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    };
    let program = env::var("BERTH_BIN").unwrap_or_else(|_| "target/debug/berth".to_owned());
    let mut options = Options::new(Path::new(&program), number("SEED", 1), number("WORLDS", 20));
    options.lanes = usize::try_from(number("LANES", 3)).unwrap_or(1);
    options.shrinks = env::var("SHRINK").is_ok_and(|value| value == "yes");
    let report = run_fuzz(&options, |seed, report| {
        println!(
            "world {seed}: {} pods, placed {} by berth and {} by kube-scheduler, stopped {} and {}, \
             {} findings, {} explained, {} mistakes of the checker",
            report.pods,
            report.placed_by_berth,
            report.placed_by_peer,
            report.stopped_by_berth,
            report.stopped_by_peer,
            report.findings.len(),
            report.explained,
            report.mistakes.len(),
        );
        for text in report.findings.iter().chain(&report.mistakes) {
            println!("{text}");
        }
    });
    println!(
        "{} worlds, {} pods: {} findings, {} explained, {} mistakes of the checker",
        report.worlds,
        report.pods,
        report.findings.len(),
        report.explained,
        report.mistakes.len()
    );
    for line in stale_explanations() {
        println!("the page of limits does not have this line any more: {line}");
    }
    match report.findings.is_empty() && report.mistakes.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
