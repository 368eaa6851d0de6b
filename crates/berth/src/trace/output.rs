//! Reports for programs, and files that are there whole or not at all.

use super::{Row, Trace, Variant};
use anyhow::{Context, Result};
use berth_sim::workload::Workload;
use clap::ValueEnum;
use std::path::Path;

/// Whoever stops the program never leaves half a report behind.
pub fn whole(path: &Path, text: &str) -> Result<()> {
    berth_fs::write_output(path, text.as_bytes())
        .with_context(|| format!("writing {}", path.display()))
}

pub fn json(
    args: &Trace,
    about: &[String],
    workload: &Workload,
    variants: &[Variant],
    rows: &[Row],
) -> Result<String> {
    let one = |row: &Row| {
        serde_json::json!({
            "policy": row.policy,
            "what_if": row.what_if,
            "report": row.picture.report,
            "account": row.picture.account,
            "waits": row.picture.waits,
            "shares": row.picture.shares,
            "forecasts": row.calibration,
        })
    };
    let estimates = args.input.estimates.to_possible_value();
    let world = |variant: &Variant| {
        let site = &variant.site;
        serde_json::json!({
            "what_if": !variant.suffix.is_empty(),
            "nodes": site.fleet.kinds().iter().map(|(kind, count)| serde_json::json!({
                "count": count,
                "gpus": kind.gpus,
                "model": site.fleet.models[kind.model as usize],
            })).collect::<Vec<_>>(),
            "gpus": site.fleet.gpus(),
            "failures": site.troubles,
            "checkpoints": site.saves,
            "market": site.market,
            "quotas": variant.quotas,
        })
    };
    let value = serde_json::json!({
        "about": about,
        "jobs": workload.jobs.len(),
        "left_out": workload.left_out,
        "teams": workload.teams,
        "worlds": variants.iter().map(world).collect::<Vec<_>>(),
        "estimates": estimates.as_ref().map(|value| value.get_name()),
        "seed": args.input.seed,
        "policies": rows.iter().map(one).collect::<Vec<_>>(),
    });
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}
