//! Jobs as CSV text.

use super::Job;
use super::csv::quote;
use berth_model::{Milli, Name, Span};
use std::borrow::Cow;
use std::fmt::Write;

const HEADER: &str = "job_id,submit_s,duration_s,gpus,nodes,gpu_type,cpu,mem_gib,team,user,queue,\
                      status,wait_s,limit_s,deadline_s,model\n";

/// Writes jobs with the common columns. Reading the text gives the same jobs, if they are in order
/// of submission.
pub fn to_csv(jobs: &[Job]) -> String {
    let mut text = HEADER.to_owned();
    for job in jobs {
        line(&mut text, job).expect("writing to a string cannot fail");
    }
    text
}

fn line(out: &mut String, job: &Job) -> std::fmt::Result {
    // Milliseconds are thousandths of a second, as GPUs are counted in thousandths.
    let span = |span: Option<Span>| span.map(|span| Milli(span.0));
    let memory = job.memory.map(|bytes| {
        let thousandths = (i128::from(bytes.0) * 1_000 + (1 << 29)) >> 30;
        Milli(thousandths as i64)
    });
    write!(out, "{},{},", quote(&job.id), Milli(job.submit.0))?;
    write!(out, "{},{},", or_empty(span(job.duration)), job.gpus)?;
    write!(out, "{},{},", or_empty(job.nodes), name(&job.gpu_type))?;
    write!(out, "{},{},", or_empty(job.cpu), or_empty(memory))?;
    write!(out, "{},{},", name(&job.team), name(&job.user))?;
    write!(out, "{},{},", name(&job.queue), name(&job.status))?;
    write!(out, "{},{},", or_empty(span(job.wait)), or_empty(span(job.limit)))?;
    writeln!(out, "{},{}", or_empty(span(job.deadline)), name(&job.model))
}

fn or_empty(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn name(name: &Option<Name>) -> Cow<'_, str> {
    name.as_deref().map(quote).unwrap_or_default()
}
