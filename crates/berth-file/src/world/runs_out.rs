//! Writing jobs with their leases, and the places kept for them.

use super::Context;
use super::allocations::{price_of, write_slice};
use super::jobs::{self, JobScript};
use super::refs::JobNames;
use super::runs::{grace, leaf_of};
use crate::out::{Out, Record};
use berth_model::{
    ArraySpec, GpuAsk, GroupSpec, JobId, JobSnapshot, LeaseSnapshot, Micros, Name, NodeSpec, Place,
    Promise, StopSnapshot,
};
use std::collections::BTreeMap;

/// Everything a job is written with.
pub(crate) struct Writer<'a> {
    pub context: &'a Context,
    pub names: &'a JobNames,
    pub nodes: &'a BTreeMap<&'a str, &'a NodeSpec>,
    pub prices: &'a BTreeMap<Name, Micros>,
}

impl Writer<'_> {
    /// All jobs. Elements of an array that are alike share an entry.
    pub fn jobs(&self, jobs: &[JobSnapshot], scripts: &BTreeMap<JobId, JobScript>) -> Vec<Out> {
        let mut out = Vec::new();
        let mut rest = jobs;
        while let Some(first) = rest.first() {
            let alike = |next: &&JobSnapshot| {
                next.element.is_some()
                    && next.leases.is_empty()
                    && JobSnapshot { element: first.element, ..(*next).clone() } == *first
            };
            let run = match first.element {
                Some(_) if first.leases.is_empty() => rest.iter().take_while(alike).count(),
                _ => 1,
            };
            let elements: Vec<u32> = rest[..run].iter().filter_map(|job| job.element).collect();
            let script = scripts.get(&first.id()).or_else(|| scripts.get(&first.id().array()));
            out.push(self.job(first, &elements, script));
            rest = &rest[run..];
        }
        out
    }

    fn job(&self, job: &JobSnapshot, elements: &[u32], script: Option<&JobScript>) -> Out {
        let now = self.context.now;
        let nested = self.nests(job);
        let mut base = 0u32;
        let mut tasks = |group: &GroupSpec| -> Vec<Out> {
            let range = base..base.saturating_add(group.count);
            let mut next = base;
            base = range.end;
            let below = job.leases.iter().filter(|lease| nested && range.contains(&lease.task));
            below
                .map(|lease| {
                    let implied = lease.task == next;
                    next = lease.task + 1;
                    self.lease(lease, job, group, !implied)
                })
                .collect()
        };
        let mut out = jobs::write_spec(&job.spec, self.context, &mut tasks);
        let JobSnapshot {
            spec,
            element: _,
            leases,
            done,
            attempts,
            first_start,
            started,
            last_checkpoint,
            saved,
            estimate,
            stale_since,
            displaced,
            moved,
            pauses,
            paused,
            released,
            failed,
            cancelled,
            set_aside,
            waits_turn,
            budgets,
        } = job;
        match (elements, &spec.array) {
            ([], None) => {}
            ([], Some(_)) => out.put("element", Out::null()),
            (all, Some(array)) if all == array.elements && leases.is_empty() => {}
            ([one], _) => out.put("element", Out::raw(one)),
            (some, _) => {
                let some = ArraySpec { elements: some.to_vec(), at_most: None };
                out.put("elements", crate::array::write(&some));
            }
        }
        let running = (!leases.is_empty()).then_some(now);
        out.differing("started", *started, running, Out::time);
        out.differing("first_start", *first_start, started.or(running), Out::time);
        out.maybe("last_checkpoint", *last_checkpoint, Out::time);
        out.put_if(!saved.is_zero(), "saved", || Out::raw(saved));
        out.maybe("estimate", *estimate, Out::raw);
        out.maybe("stale_since", *stale_since, Out::time);
        out.put_if(*displaced != 0, "displaced", || Out::raw(displaced));
        out.put_if(*moved != 0, "moved", || Out::raw(moved));
        out.flag("paused", *paused);
        out.list("pauses", pauses, |time| Out::time(*time));
        out.flag("released", *released);
        out.flag("failed", *failed);
        out.flag("cancelled", *cancelled);
        out.maybe("set_aside", set_aside.as_ref(), |finding| Out::text(finding));
        out.flag("waits_turn", *waits_turn);
        out.put_if(!budgets.is_empty(), "budgets", || Out::names(budgets));
        out.list("done", done, |task| Out::raw(task));
        let implied: BTreeMap<u32, u32> =
            leases.iter().map(|lease| (lease.task, lease.attempt + 1)).collect();
        out.put_if(*attempts != implied, "attempts", || {
            Out::Map(attempts.iter().map(|(task, n)| (task.to_string(), Out::raw(n))).collect())
        });
        if !nested {
            let leaves: Vec<&GroupSpec> = spec.groups.iter().flat_map(GroupSpec::leaves).collect();
            out.list("leases", leases, |lease| {
                self.lease(lease, job, leaf_of(&leaves, lease.task), true)
            });
        }
        if let Some(script) = script {
            write_script(&mut out, script);
        }
        out.done()
    }

    /// Whether writing the leases below their groups keeps their order.
    fn nests(&self, job: &JobSnapshot) -> bool {
        let tasks: u64 = job
            .spec
            .groups
            .iter()
            .flat_map(GroupSpec::leaves)
            .map(|leaf| u64::from(leaf.count))
            .sum();
        let mut base = 0u64;
        let mut below = Vec::new();
        for leaf in job.spec.groups.iter().flat_map(GroupSpec::leaves) {
            let range = base..base + u64::from(leaf.count);
            base = range.end;
            below.extend(job.leases.iter().filter(|l| range.contains(&u64::from(l.task))));
        }
        job.leases.iter().all(|lease| u64::from(lease.task) < tasks)
            && below.iter().zip(&job.leases).all(|(a, b)| std::ptr::eq(*a, b))
    }

    fn lease(
        &self,
        lease: &LeaseSnapshot,
        job: &JobSnapshot,
        group: &GroupSpec,
        numbered: bool,
    ) -> Out {
        let LeaseSnapshot { task, attempt, node, slices, price, since, billed, bound, stopping } =
            lease;
        let now = self.context.now;
        let mut out = Record::default();
        out.put_if(numbered, "task", || Out::raw(task));
        out.put("node", Out::text(node));
        out.put("gpus", Out::list(slices, |slice| write_slice(slice, &group.gpus)));
        match (stopping, bound) {
            (Some(_), true) => out.put("state", Out::raw("stopping")),
            (Some(_), false) => {
                out.put("state", Out::raw("stopping"));
                out.put("bound", Out::raw(false));
            }
            (None, false) => out.put("state", Out::raw("starting")),
            (None, true) => {}
        }
        if let Some(StopSnapshot { cause, for_job, until }) = stopping {
            out.put("cause", Out::raw(cause));
            out.maybe("for", *for_job, |job| self.names.write(job));
            let implied = now + grace(job, self.context);
            out.put_if(*until != implied, "until", || Out::time(*until));
        }
        out.put_if(*attempt != 0, "attempt", || Out::raw(attempt));
        let implied = self
            .nodes
            .get(node.as_str())
            .filter(|spec| slices.iter().all(|slice| (slice.gpu as usize) < spec.gpus.len()))
            .map(|spec| price_of(spec, slices, group.cpu, self.prices));
        out.put_if(Some(*price) != implied, "price", || Out::raw(price));
        out.put_if(*since != job.started.unwrap_or(now), "since", || Out::time(*since));
        out.put_if(*billed != now, "billed", || Out::time(*billed));
        out.done()
    }

    pub fn promise(&self, promise: &Promise, jobs: &[JobSnapshot]) -> Out {
        let Promise { job, at, places, firm } = promise;
        let known = jobs.iter().find(|known| known.id() == *job);
        let leaves: Vec<&GroupSpec> = known
            .map_or(Vec::new(), |job| job.spec.groups.iter().flat_map(GroupSpec::leaves).collect());
        let whole = GpuAsk::Whole { count: 1 };
        let mut out = Record::default();
        out.put("job", self.names.write(*job));
        out.put("at", Out::time(*at));
        let places = places.iter().enumerate().map(|(index, Place { task, node, slices })| {
            let ask = if leaves.is_empty() { &whole } else { &leaf_of(&leaves, *task).gpus };
            let mut out = Record::default();
            out.put_if(*task as usize != index, "task", || Out::raw(task));
            out.put("node", Out::text(node));
            out.put("gpus", Out::list(slices, |slice| write_slice(slice, ask)));
            out.done()
        });
        let places: Vec<Out> = places.collect();
        out.put_if(!places.is_empty(), "places", || Out::List(places));
        out.flag("firm", *firm);
        out.done()
    }
}

fn write_script(out: &mut Record, script: &JobScript) {
    let JobScript { duration, checkpoint_every, saves_on_stop, stop_after } = script;
    out.maybe("duration", *duration, Out::raw);
    out.maybe("checkpoint_every", *checkpoint_every, Out::raw);
    out.flag("saves_on_stop", *saves_on_stop);
    out.maybe("stop_after", *stop_after, Out::raw);
}
