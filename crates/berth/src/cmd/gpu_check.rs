//! `berth gpu-check`: the check that a GPU gets before it takes work, for a person on its machine.

use crate::context::Context;
use crate::fail::{Exit, Failure, Result};
use crate::show::{Cell, Format, Look, Page, Table, Tone, note};
use berth_api::wire;
use berth_model::Time;
use berth_node::{Device, Launcher, Probe, check_gpu};
use berth_server::shown_check;
use clap::Args;
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Args, Debug)]
pub struct GpuCheck {
    /// The GPU of this machine, by number or UUID, as `nvidia-smi -L` lists them
    #[arg(long, value_name = "GPU")]
    gpu: String,
}

/// No server is asked. The GPU has to be free.
pub fn run(context: &Context, args: &GpuCheck) -> Result<()> {
    let probe = Probe::load();
    let devices = probe.devices();
    let device = find(&devices, &args.gpu)?;
    if let Some(process) = probe.processes(&[device.index]).first() {
        let detail = format!("process {} uses GPU {}", process.pid, device.index);
        let next = "A check needs the GPU for itself, with its memory: end the process first.";
        return Err(Failure::new(Exit::Failed, detail).next(next));
    }
    let exe =
        std::env::current_exe().map_err(|error| Failure::io("finding this program", &error))?;
    let launcher = Launcher { exe, args: vec![crate::HELPER.into()] };
    let wide = context.format == Format::Wide;
    let step = |doing: &str| {
        if wide {
            note(doing);
        }
    };
    let check = check_gpu(&launcher, device, None, step)
        .ok_or_else(|| Failure::internal("a real GPU has a UUID"))?;
    let shown = shown_check(now(), &check);
    let passed = shown.passed;
    let page = Page::new(shown, text, |_| Vec::new());
    context.show(&page.remarks(remarks))?;
    if passed { Ok(()) } else { Err(Failure::silent(Exit::Failed)) }
}

fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

fn find<'a>(devices: &'a [Device], wanted: &str) -> Result<&'a Device> {
    let is_it = |device: &&Device| {
        device.uuid.as_deref() == Some(wanted) || device.index.to_string() == wanted
    };
    let why = match devices.len() {
        0 => "no NVIDIA GPU is found on this machine, or its driver is not there".to_owned(),
        1 => format!("there is no GPU {wanted} on this machine; it has GPU 0"),
        count => format!("there is no GPU {wanted} on this machine; it has 0 to {}", count - 1),
    };
    devices.iter().find(is_it).ok_or_else(|| Failure::new(Exit::NotFound, why))
}

/// The figures, and whether each is enough.
pub fn text(check: &wire::GpuCheck, look: &Look) -> String {
    let mut table = Table::new(&["CHECK", ">MEASURED", ">AT LEAST", ">MODEL", "RESULT"]);
    for figure in &check.figures {
        let amount = |value: u64| amount(value, &figure.unit);
        let enough = figure.least.is_none_or(|least| figure.measured >= least);
        table.row(vec![
            what(&figure.of).into(),
            amount(figure.measured).into(),
            figure.least.filter(|least| *least > 0).map(amount).into(),
            figure.nominal.map(amount).into(),
            match (enough, figure.least) {
                (true, Some(1..)) => Cell::toned("ok", Tone::Good),
                (true, _) => "not judged".into(),
                (false, _) => Cell::toned("slow", Tone::Bad),
            },
        ]);
    }
    let results = match check.correct {
        Some(true) => Cell::toned("ok", Tone::Good),
        Some(false) => Cell::toned("wrong", Tone::Bad),
        None => "not checked".into(),
    };
    table.row(vec!["results".into(), "".into(), "".into(), "".into(), results]);
    let verdict = match &check.why {
        _ if check.passed => "The GPU passes.".to_owned(),
        Some(why) => format!("The GPU does not pass: {why}."),
        None => "The GPU does not pass.".to_owned(),
    };
    format!("{}{verdict}\n", table.text(look))
}

pub fn remarks(check: &wire::GpuCheck) -> Vec<String> {
    check.remarks.iter().map(|remark| format!("Remark: {remark}")).collect()
}

/// Plain words for the figures that this version knows.
fn what(of: &str) -> &str {
    match of {
        "memory" => "copy in its memory",
        "to_gpu" => "copy to the GPU",
        "from_gpu" => "copy from the GPU",
        "product" => "matrix product",
        other => other,
    }
}

/// In a thousand times the unit: `4012 GB/s`, `55.2 GB/s`, `612 TFLOPS`.
fn amount(value: u64, unit: &str) -> String {
    let unit = match unit {
        "MB/s" => "GB/s",
        "GFLOPS" => "TFLOPS",
        other => return format!("{value} {other}"),
    };
    match value {
        0..100_000 => format!("{}.{} {unit}", value / 1_000, value % 1_000 / 100),
        _ => format!("{} {unit}", value / 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_what_was_measured_what_was_expected_and_what_follows() {
        let figure = |of: &str, measured, nominal, least, unit: &str| wire::GpuFigure {
            of: of.to_owned(),
            measured,
            nominal,
            least,
            unit: unit.to_owned(),
        };
        let check = wire::GpuCheck {
            at: Time(0).into(),
            passed: false,
            why: Some("it is slow: a matrix product reaches 300 TFLOPS".to_owned()),
            correct: Some(true),
            figures: vec![
                figure("memory", 4_012_345, Some(4_800_000), Some(3_840_000), "MB/s"),
                figure("to_gpu", 55_210, None, None, "MB/s"),
                figure("product", 300_000, Some(989_000), Some(514_000), "GFLOPS"),
            ],
            remarks: vec![],
            took_ms: 8_000,
        };
        let expect = "\
CHECK                 MEASURED    AT LEAST       MODEL  RESULT
copy in its memory   4012 GB/s   3840 GB/s   4800 GB/s  ok
copy to the GPU      55.2 GB/s           -           -  not judged
matrix product      300 TFLOPS  514 TFLOPS  989 TFLOPS  slow
results                      -           -           -  ok
The GPU does not pass: it is slow: a matrix product reaches 300 TFLOPS.
";
        let shown = text(&check, &Look::fixed());
        let trimmed: Vec<&str> = shown.lines().map(str::trim_end).collect();
        assert_eq!(trimmed, expect.lines().collect::<Vec<_>>());
    }

    #[test]
    fn a_gpu_that_is_not_there_is_told_with_those_that_are() {
        let failure = find(&[], "0").unwrap_err();
        assert_eq!(failure.exit, Exit::NotFound);
        assert!(failure.to_string().contains("no NVIDIA GPU is found"), "{failure}");
    }
}
