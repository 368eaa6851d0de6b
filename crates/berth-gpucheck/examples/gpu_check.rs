//! A check by itself, for machines without Berth: `gpu_check UUID [MODEL]`. Every step is told.

use berth_gpucheck::{Helper, Subject, check, helper};
use std::process::ExitCode;
use std::time::{Duration, Instant};

const WORD: &str = "__gpu-check";
const LIMIT: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|first| first == WORD) {
        return helper();
    }
    let (Some(uuid), Ok(exe)) = (args.first(), std::env::current_exe()) else {
        eprintln!("usage: gpu_check UUID [MODEL]");
        return ExitCode::from(2);
    };
    let model = args.get(1).map_or("H200-141GB", String::as_str);
    let by = Helper { exe, args: vec![WORD.into()] };
    let begun = Instant::now();
    let step = |doing: &str| eprintln!("{:7.3} s  {doing}", begun.elapsed().as_secs_f64());
    let check = check(&by, Subject::Gpu(uuid.clone()), model, LIMIT, step);
    println!("{}", serde_json::to_string_pretty(&check).unwrap_or_default());
    if check.passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
