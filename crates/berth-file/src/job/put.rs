//! Writing the values of a job file.

use super::blocks::{MOMENTS, SIGNALS, THENS, VIAS};
use super::parts::{GpuChoice, Idle, Priority, Retry, Scale, Schedule, When};
use super::{Checkpoint, Command, Notify, Ready, ReadyCheck, Times};
use super::{How, Sweep};
use crate::error::{Error, Result};
use crate::fields::{one_or_more, text as read_text, unit};
use crate::out::{Out, Record};
use crate::tree::Node;
use crate::world::words::{AFTERS, word as word_of};
use berth_model::{Cpu, Dependency, JobRef};
use std::collections::BTreeMap;

/// More than any machine has; a larger number is a slip.
const MOST_CPU: Cpu = Cpu::cores(100_000);

pub(super) fn text(value: &str) -> Out {
    Out::text(value)
}

pub(super) fn raw(value: &impl ToString) -> Out {
    Out::raw(value.to_string())
}

pub(super) fn texts(values: &[String]) -> Out {
    Out::list(values, |value| Out::text(value))
}

pub(super) fn raws<T: ToString>(values: &[T]) -> Out {
    Out::list(values, |value| Out::raw(value.to_string()))
}

pub(super) fn texts_by_name(values: &BTreeMap<String, String>) -> Out {
    Out::Map(values.iter().map(|(name, value)| (name.clone(), Out::text(value))).collect())
}

pub(super) fn word<T: Copy + PartialEq>(words: &'static [(&'static str, T)]) -> impl Fn(&T) -> Out {
    |value| Out::raw(word_of(words, *value))
}

pub(super) fn words<T: Copy + PartialEq>(
    words: &'static [(&'static str, T)],
) -> impl Fn(&[T]) -> Out {
    |values| Out::list(values, |value| Out::raw(word_of(words, *value)))
}

pub(super) fn read_cpu(node: &Node) -> Result<Cpu> {
    match unit::<Cpu>(node)? {
        cpu if cpu > Cpu::ZERO && cpu <= MOST_CPU => Ok(cpu),
        _ => Err(Error::expected(
            node.at,
            &node.found(),
            "CPU cores above nothing, such as 8 or 0.5, and at most 100000",
        )),
    }
}

pub(super) fn read_gpus(node: &Node) -> Result<Vec<GpuChoice>> {
    let one = |node: &Node| {
        let found = read_text(node, "GPUs such as 1, H100:8 or 24GB+")?;
        found.parse().map_err(|error| Error::new(node.at, format!("{error}")))
    };
    match one_or_more(node) {
        [] => Err(Error::expected(node.at, "an empty list", "GPUs such as 1, H100:8 or 24GB+")),
        choices => choices.iter().map(one).collect(),
    }
}

pub(super) fn gpus(choices: &[GpuChoice]) -> Out {
    let one = |choice: &GpuChoice| match choice.to_string() {
        number if number.bytes().all(|b| b.is_ascii_digit() || b == b'.') => Out::Raw(number),
        text => Out::Text(text),
    };
    match choices {
        [choice] => one(choice),
        choices => Out::list(choices, one),
    }
}

pub(super) fn when(when: &When) -> Out {
    match when {
        When::At(time) => Out::time(*time),
        When::In(span) => Out::raw(span),
    }
}

pub(super) fn priority(priority: &Priority) -> Out {
    match priority {
        Priority::Class(name) => Out::text(name),
        Priority::Number(number) => Out::raw(number),
    }
}

pub(super) fn command(command: &Command) -> Out {
    match command {
        Command::Shell(script) => Out::Script(script.clone()),
        Command::Program(words) => texts(words),
    }
}

pub(super) fn checkpoint(checkpoint: &Checkpoint) -> Out {
    let Checkpoint { path, every, grace, keep, signal } = checkpoint;
    let mut out = Record::default();
    out.maybe("path", path.as_deref(), text);
    out.maybe("every", *every, Out::raw);
    out.maybe("grace", *grace, Out::raw);
    out.maybe("keep", *keep, Out::raw);
    out.maybe("signal", *signal, |signal| Out::raw(word_of(SIGNALS, signal)));
    out.done()
}

pub(super) fn retry(retry: &Retry) -> Out {
    let Retry { infra, error, oom, wait } = retry;
    let mut out = Record::default();
    for (key, times) in [("infra", infra), ("error", error), ("oom", oom)] {
        out.maybe(key, *times, |times| match times {
            Times::Forever => Out::raw("forever"),
            Times::At(times) => Out::raw(times),
        });
    }
    out.maybe("wait", *wait, Out::raw);
    out.done()
}

pub(super) fn notifies(all: &[Notify]) -> Out {
    Out::list(all, |Notify { via, to, on }| {
        let target = Out::Text(format!("{}:{to}", word_of(VIAS, *via)));
        if on.is_empty() {
            return target;
        }
        let mut out = Record::default();
        out.put("to", target);
        out.put("on", Out::list(on, |moment| Out::raw(word_of(MOMENTS, *moment))));
        out.done()
    })
}

pub(super) fn sweep(sweep: &Sweep) -> Out {
    let parameters: Vec<(String, Out)> = sweep
        .parameters
        .iter()
        .map(|parameter| (parameter.name.clone(), texts(&parameter.values)))
        .collect();
    let how = match sweep.how {
        How::Product => "product",
        How::Zip => "zip",
    };
    let mut out = Record::default();
    out.put(how, Out::Map(parameters));
    out.maybe("at_most", sweep.at_most, Out::raw);
    out.done()
}

fn job(job: &JobRef) -> Out {
    match job {
        JobRef::Id(id) if id.element.is_none() => Out::raw(id),
        JobRef::Id(id) => Out::Text(id.to_string()),
        JobRef::Name(name) => Out::text(name),
    }
}

/// By kind; the order of jobs that are waited for means nothing.
pub(super) fn after(all: &[Dependency]) -> Out {
    let of = |(word, kind): &(&'static str, berth_model::After)| {
        let jobs: Vec<Out> = all.iter().filter(|d| d.after == *kind).map(|d| job(&d.job)).collect();
        (!jobs.is_empty()).then(|| ((*word).to_owned(), Out::List(jobs)))
    };
    Out::Map(AFTERS.iter().filter_map(of).collect())
}

pub(super) fn schedule(schedule: &Schedule) -> Out {
    let cron = Out::Text(schedule.cron.to_string());
    let minutes = schedule.offset.0 / 60_000;
    if minutes == 0 {
        return cron;
    }
    let sign = if minutes < 0 { '-' } else { '+' };
    let (hours, rest) = (minutes.abs() / 60, minutes.abs() % 60);
    let mut out = Record::default();
    out.put("cron", cron);
    out.put("timezone", Out::Text(format!("{sign}{hours:02}:{rest:02}")));
    out.done()
}

pub(super) fn idle(Idle { below, after, then }: &Idle) -> Out {
    let mut out = Record::default();
    out.put("below", Out::percent(*below));
    out.put("for", Out::raw(after));
    out.put("then", Out::raw(word_of(THENS, *then)));
    out.done()
}

pub(super) fn ready(Ready { check, within }: &Ready) -> Out {
    let check = match check {
        ReadyCheck::Http(path) => Out::text(path),
        ReadyCheck::Tcp => Out::raw("tcp"),
    };
    let Some(within) = within else { return check };
    let mut out = Record::default();
    out.put("check", check);
    out.put("within", Out::raw(within));
    out.done()
}

pub(super) fn scale(Scale { min, max, pending, predict }: &Scale) -> Out {
    let mut out = Record::default();
    out.put("min", Out::raw(min));
    out.put("max", Out::raw(max));
    out.maybe("pending", *pending, Out::raw);
    out.maybe("predict", *predict, Out::raw);
    out.done()
}
