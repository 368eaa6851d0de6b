//! A part of a GPU that would do for a job, in words.

use crate::live;
use berth_api::wire;
use berth_figures::{Held, Part, Summary, advise};
use berth_model::{Bytes, MigProfile, NodeSnapshot, Span};
use berth_model::{Micros, Name};
use std::collections::BTreeMap;

/// What a job would have needed of a GPU that it held whole.
pub fn of(
    summary: &Summary,
    node: &NodeSnapshot,
    gpu: u32,
    prices: &BTreeMap<Name, Micros>,
    span: Span,
) -> Vec<wire::FigureAdvice> {
    let Some(spec) = node.spec.gpus.get(gpu as usize) else { return Vec::new() };
    let model = spec.model.as_str();
    let names = MigProfile::names(model).map_or(&[][..], |names| &names[..]);
    let profiles = names.iter().filter(|name| !name.contains('+')).filter_map(|name| {
        let profile = MigProfile::find(model, name)?;
        let memory = Bytes(spec.memory.0 / 8 * i64::from(profile.size));
        Some(((*name).to_owned(), profile.milli(), memory))
    });
    let held = Held {
        span,
        price: live::price(&node.spec, gpu as usize, prices),
        memory: spec.memory,
        profiles: profiles.collect(),
    };
    advise(summary, &held).into_iter().map(|advice| shown(advice, span)).collect()
}

fn shown(advice: berth_figures::Advice, span: Span) -> wire::FigureAdvice {
    let part = match &advice.part {
        Part::Mig { profile } => format!("a {profile} slice"),
        Part::Mps { percent } => format!("an MPS share of {percent} %"),
    };
    let busy = advice.sm_active_p95 / 10;
    let text = format!(
        "at most {busy} % of the GPU and {} MiB for 95 % of {span}: {part} would do",
        advice.gpu_memory_p95
    );
    wire::FigureAdvice {
        part,
        share: advice.share,
        saves_micros: advice.saves_micros,
        sm_active_p95: advice.sm_active_p95,
        gpu_memory_p95: advice.gpu_memory_p95,
        text,
    }
}
