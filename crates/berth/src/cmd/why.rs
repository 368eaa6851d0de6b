//! `berth why`.

use super::plan::moments;
use super::timeline::named;
use crate::complete;
use crate::context::Context;
use crate::fail::Result;
use crate::show::{Look, Page, Tone, words};
use crate::watch::{self, Watch};
use berth_api::Client;
use berth_api::wire::{
    At, Blocker, JobRef, JobState, Segment, SegmentState, Sooner, Timeline, Why as Reasons,
};
use clap::Args;
use serde::Serialize;
use std::fmt::Write;

#[derive(Args, Debug)]
pub struct Why {
    /// A job, by number or name
    #[arg(value_name = "JOB", add = complete::jobs())]
    job: String,
    #[command(flatten)]
    watch: Watch,
}

pub async fn run(context: &Context, args: &Why) -> Result<()> {
    let client = context.client()?;
    let fetch = async || Ok(page(answer(client, &args.job).await?));
    watch::show(context, args.watch, "job,queue", fetch).await
}

/// Why a job waits, and who took its place where it ran before.
#[derive(Debug, Clone, Serialize)]
struct Answer {
    #[serde(flatten)]
    why: Reasons,
    #[serde(skip_serializing_if = "Option::is_none")]
    preempted: Option<Preempted>,
}

#[derive(Debug, Clone, Serialize)]
struct Preempted {
    at: At,
    cause: Option<String>,
    text: Option<String>,
    /// The job that got what this one had.
    by: Option<JobRef>,
}

async fn answer(client: &Client, job: &str) -> Result<Answer> {
    let why = client.why(job).await?;
    let waits = matches!(why.state, JobState::Pending | JobState::Stopping);
    // An array has no timeline of its own; `why` of an element names who preempted it.
    let time = match waits {
        true => client.timeline(&why.id.to_string()).await.ok(),
        false => None,
    };
    Ok(Answer { preempted: time.as_ref().and_then(preempted), why })
}

/// Who preempted a job that has not run since.
fn preempted(time: &Timeline) -> Option<Preempted> {
    let last = time.segments.last().filter(|last| gave_way(last))?;
    let Segment { from, cause, text, by, .. } = last.clone();
    Some(Preempted { at: from, cause, text, by })
}

pub fn gave_way(segment: &Segment) -> bool {
    segment.state == SegmentState::Preempted
}

fn page(why: Answer) -> Page<Answer> {
    Page::new(why, text, |answer| vec![answer.why.id.to_string()])
}

const BINDING: &str = "<- main blocker";

fn text(answer: &Answer, look: &Look) -> String {
    let why = &answer.why;
    let mut out = head(why, look);
    let mut line = |label: &str, text: &str| {
        let label = look.paint(Tone::Quiet, &format!("{label:<7}"));
        let _ = write!(out, "\n {label} {}", plain(text));
    };
    if !why.needs.is_empty() {
        line("needs", &words::asks(&why.needs));
    }
    if let Some(Preempted { at, text, by, .. }) = &answer.preempted {
        let by = by.as_ref().map_or_else(|| "others".to_owned(), named);
        let text = text.as_ref().map(|text| format!(" ({text})")).unwrap_or_default();
        line("was", &format!("preempted by {by} at {}{text}", look.at(*at)));
    }
    let told = |blocker: &Blocker| look.local(&blocker.text);
    let width = why.blockers.iter().map(|one| told(one).chars().count()).max().unwrap_or(0);
    for blocker @ Blocker { code, binding, .. } in &why.blockers {
        let text = told(blocker);
        let code = if look.wide { format!(" [{code}]") } else { String::new() };
        match binding {
            true => line("blocks", &format!("{text:<width$}{code}  {BINDING}")),
            false => line("blocks", &format!("{text}{code}")),
        }
    }
    if let Some(clears) = &why.clears {
        line("clears", clears);
    }
    if !why.also.is_empty() {
        line(if why.state.is_final() { "reason" } else { "also" }, &why.also.join("; "));
    }
    if !why.sooner.is_empty() {
        let changes: Vec<String> = why.sooner.iter().map(|sooner| change(sooner, look)).collect();
        line("sooner", &changes.join(" | "));
    }
    for command in why.sooner.iter().filter_map(|sooner| sooner.command.as_ref()) {
        line("try", command);
    }
    out.push('\n');
    out
}

/// `4711 llama-70b   PENDING 14m   3rd of 21 in nlp   starts ~16:40 (P90 18:05)`.
fn head(why: &Reasons, look: &Look) -> String {
    let state = look.paint(words::state_tone(why.state), &why.state.as_str().to_uppercase());
    // A gang that misses pods has no number yet.
    let who = match why.id.0.number {
        0 => format!("gang {}", plain(&why.name)),
        _ => format!("{} {}", look.job_text(&why.id.to_string()), plain(&why.name)),
    };
    let mut parts = vec![who, format!("{state} {}", words::span(why.since_ms))];
    if let Some(position) = why.position {
        parts.push(format!("{} of {} in {}", words::ordinal(position), why.waiting, why.queue));
    }
    if let Some(eta) = why.eta.as_ref().filter(|_| why.state == JobState::Pending) {
        parts.push(match eta.p50 {
            Some(_) => format!("starts {}", moments(eta, look)),
            None => "no start time yet".to_owned(),
        });
    }
    parts.join("   ")
}

/// `place: any -> now`.
fn change(sooner: &Sooner, look: &Look) -> String {
    let starts = sooner.starts.map_or_else(|| "now".to_owned(), |at| format!("~{}", look.at(at)));
    let stops = match sooner.stops {
        0 => String::new(),
        stops => format!(" (stops {})", words::count(stops.into(), "job")),
    };
    format!("{} -> {starts}{stops}", sooner.change)
}

fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::Format;
    use berth_api::wire::Eta;

    fn shown(why: Reasons, preempted: Option<Preempted>) -> String {
        page(Answer { why, preempted }).print(Format::Table, &Look::fixed()).unwrap()
    }

    fn why() -> Reasons {
        let at = |text: &str| Some(text.parse().unwrap());
        let blocker = |code: &str, text: &str, binding| Blocker {
            code: code.into(),
            text: text.into(),
            binding,
        };
        let sooner = |change: &str, starts, command: Option<&str>| Sooner {
            change: change.into(),
            starts,
            stops: 0,
            command: command.map(str::to_owned),
            set: None,
            clone: None,
            price_micros_per_hour: None,
            total_micros: None,
        };
        Reasons {
            id: "4711".parse().unwrap(),
            name: "llama-70b".into(),
            state: JobState::Pending,
            since_ms: 840_000,
            queue: "nlp".into(),
            position: Some(3),
            waiting: 21,
            eta: Some(Eta {
                p50: at("2026-11-15T15:40:00Z"),
                p90: at("2026-11-15T17:05:00Z"),
                age_ms: 4_000,
            }),
            needs: "4 nodes x 8 H100 in one rack".into(),
            blockers: vec![
                blocker("topology", "5 nodes free but split r1:2 r2:2 r4:1", true),
                blocker("borrow", "nlp borrows nothing", false),
            ],
            clears: Some("when 4688 (vision, limit 16:38) leaves r2".into()),
            also: vec!["nlp 96/128 GPUs".into(), "budget $2,140 left".into()],
            sooner: vec![
                sooner("place: any", None, Some("berth clone 4711 --place any")),
                sooner("priority: high", at("2026-11-15T15:10:00Z"), None),
            ],
        }
    }

    #[test]
    fn why_names_needs_blockers_what_clears_them_and_what_would_be_sooner() {
        let expect = "\
4711 llama-70b   PENDING 14m   3rd of 21 in nlp   starts ~16:40 (P90 18:05)
 needs   4 nodes x 8 H100 in one rack
 blocks  5 nodes free but split r1:2 r2:2 r4:1  <- main blocker
 blocks  nlp borrows nothing
 clears  when 4688 (vision, limit 16:38) leaves r2
 also    nlp 96/128 GPUs; budget $2,140 left
 sooner  place: any -> now | priority: high -> ~16:10
 try     berth clone 4711 --place any
";
        assert_eq!(shown(why(), None), expect);
    }

    #[test]
    fn a_job_that_runs_waits_for_nothing() {
        let runs = Reasons {
            state: JobState::Running,
            position: None,
            blockers: Vec::new(),
            clears: None,
            also: Vec::new(),
            sooner: Vec::new(),
            ..why()
        };
        let expect = "4711 llama-70b   RUNNING 14m\n needs   4 nodes x 8 H100 in one rack\n";
        assert_eq!(shown(runs, None), expect);
    }

    #[test]
    fn moments_in_reasons_are_in_local_time() {
        let mut why = why();
        why.blockers[1].text = "8 GPUs are reserved for it from 2026-11-15T15:40:02.129Z".into();
        let line = "\n blocks  8 GPUs are reserved for it from 16:40\n";
        let text = shown(why, None);
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn a_preempted_job_names_the_job_that_took_its_place() {
        let text = shown(why(), preempted(&crate::cmd::tests::preempted()));
        let line = "\n was     preempted by 4688 vit-l (vision) at 14:31 (made room for a job of a \
                    higher class)\n";
        assert!(text.contains(line), "{text}");
    }
}
