//! Sends what the processes of a job print, in the order of time, and what Berth has to say of it.

use super::log_chunk::{line, said};
use super::log_feed::{Feed, Origin, Part};
use super::log_layout::{Layout, Which};
use super::output::Source;
use crate::app::App;
use axum::body::Bytes;
use berth_api::wire;
use berth_model::{Exit, JobId, LeaseId, LeaseOutcome};
use berth_service::jobs::{find, list};
use berth_store::LeaseRow;
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// How often a log is read again while a client follows it.
const LOOK: Duration = Duration::from_millis(200);
/// How often new attempts, and new reasons to wait, are looked for meanwhile.
const LOOK_AROUND: Duration = Duration::from_secs(1);
/// Lines of the rank that failed, told at the end, and their bytes.
const LAST_LINES: usize = 10;
const LAST_BYTES: usize = 8 << 10;
/// The last lines of several processes that are gathered before they are sent.
const MOST_TAIL_BYTES: usize = 4 << 20;

/// A job, or an element of an array, whose output is told.
pub struct Subject {
    pub job: JobId,
    pub source: Source,
    pub layout: Layout,
    pub which: Which,
}

/// How many processes' output is told.
pub fn processes(subjects: &[Subject]) -> u32 {
    let each = subjects.iter().map(|subject| match subject.which {
        Which::All => subject.layout.ranks(),
        Which::Task(_) => subject.layout.per_task,
        Which::One { .. } => 1,
    });
    each.fold(0, u32::saturating_add)
}

pub struct Teller {
    app: App,
    subjects: Vec<Subject>,
    query: wire::LogQuery,
    lines: mpsc::Sender<Result<Bytes, Infallible>>,
    feeds: Vec<Feed>,
    /// The last attempt of each task that is told.
    told: BTreeMap<(JobId, u32), u32>,
    several: bool,
    /// Lines that may still be sent, where that is limited and several processes share the limit.
    lines_left: Option<u32>,
    /// The last lines of several processes, until all that is there has been read.
    tail: Option<Tail>,
    /// Why it waits, as it was told last.
    waits: Option<String>,
}

impl Teller {
    pub fn new(
        app: App,
        subjects: Vec<Subject>,
        query: wire::LogQuery,
        lines: mpsc::Sender<Result<Bytes, Infallible>>,
    ) -> Teller {
        let several = processes(&subjects) > 1;
        let tail = query.tail.filter(|_| several).map(|most| Tail::new(most as usize));
        let lines_left = query.lines.filter(|_| several);
        let (feeds, told, waits) = (Vec::new(), BTreeMap::new(), None);
        Teller { app, subjects, query, lines, feeds, told, several, lines_left, tail, waits }
    }

    /// Nothing comes of it where whoever listened has gone.
    pub async fn tell(mut self) {
        let _ = self.tell_all().await;
    }

    async fn tell_all(&mut self) -> Option<()> {
        self.look_for_attempts().await;
        if self.query.follow {
            self.tell_why_it_waits().await?;
        }
        let mut looked_around = Instant::now();
        loop {
            let sent = self.send_what_is_there().await?;
            if self.lines_left == Some(0) {
                return Some(());
            }
            let is_over = self.feeds.iter().all(|feed| feed.is_over);
            let one_attempt = self.query.attempt.is_some() && !self.feeds.is_empty();
            if is_over && (!self.query.follow || one_attempt) {
                return self.close().await;
            }
            if self.lines.is_closed() {
                return None;
            }
            let is_due = looked_around.elapsed() >= LOOK_AROUND;
            if is_due || (is_over && !self.feeds.is_empty()) {
                // Asked before looking: an attempt that began until then is found below.
                let ended = self.have_ended().await;
                let found = self.look_for_attempts().await;
                if ended && is_over && !found {
                    return self.close().await;
                }
            }
            if is_due {
                looked_around = Instant::now();
                self.tell_why_it_waits().await?;
            }
            if !sent {
                tokio::time::sleep(LOOK).await;
            }
            self.feeds.iter_mut().for_each(|feed| feed.is_caught_up = false);
        }
    }

    /// Sends all that is there, the earliest first. Whether that was anything.
    async fn send_what_is_there(&mut self) -> Option<bool> {
        let mut any = false;
        for feed in self.feeds.iter().filter(|feed| feed.is_new()) {
            feed.fetch(&self.app, self.query.follow).await;
        }
        loop {
            self.refill().await?;
            let Some(next) = self.earliest() else { break };
            let feed = &mut self.feeds[next];
            let part = feed.ready.pop_front().expect("the earliest has one");
            any |= !part.bytes.is_empty();
            let origin = feed.origin;
            let end = feed.is_over && feed.ready.is_empty() && feed.has_ended;
            match &mut self.tail {
                Some(tail) => tail.add(origin, part, end),
                None => self.send(origin, part, end).await?,
            }
            if self.lines_left == Some(0) {
                return Some(any);
            }
        }
        if let Some(tail) = self.tail.take_if(|_| !self.feeds.is_empty()) {
            for (origin, part, end) in tail.parts {
                self.send(origin, part, end).await?;
            }
        }
        Some(any)
    }

    /// Reads on for all that have nothing ready and may have more.
    async fn refill(&mut self) -> Option<()> {
        let wants = |feed: &Feed| feed.ready.is_empty() && !feed.is_caught_up && !feed.is_over;
        while self.feeds.iter().any(wants) {
            let (app, query) = (self.app.clone(), self.query.clone());
            let mut feeds = std::mem::take(&mut self.feeds);
            let read = tokio::task::spawn_blocking(move || {
                let wanting = feeds.iter_mut().filter(|feed| wants(feed));
                wanting.for_each(|feed| feed.refill(&app, &query));
                feeds
            });
            self.feeds = read.await.ok()?;
        }
        Some(())
    }

    /// Elements of an array that have ended are told one after the other.
    fn earliest(&self) -> Option<usize> {
        let ready = self.feeds.iter().enumerate().filter(|(_, feed)| !feed.ready.is_empty());
        let key = |feed: &Feed| {
            let element = feed.origin.lease.job.element.filter(|_| !self.query.follow);
            let attempt = feed.origin.lease.attempt;
            (element, feed.ready[0].at, attempt, feed.origin.job_rank)
        };
        ready.min_by_key(|(_, feed)| key(feed)).map(|(at, _)| at)
    }

    async fn send(&mut self, origin: Origin, mut part: Part, end: bool) -> Option<()> {
        if let Some(left) = &mut self.lines_left {
            cut_after(&mut part.bytes, left);
        }
        let Origin { lease, rank, job_rank } = origin;
        let chunk = wire::LogChunk {
            attempt: lease.attempt,
            task: lease.task,
            rank,
            job_rank,
            element: lease.job.element,
            several: self.several,
            stream: wire::LogStream::Output,
            position: part.position,
            at: part.at.map(wire::At),
            text: String::from_utf8_lossy(&part.bytes).into_owned(),
            bytes: part.bytes.len() as u64,
            dropped: part.dropped,
            end,
            problem: None,
        };
        self.lines.send(Ok(line(&chunk))).await.ok()
    }

    /// Begins with the attempts to tell: the one that was asked for or the last one, and then those
    /// that came after it. Whether there are any new ones.
    async fn look_for_attempts(&mut self) -> bool {
        let mut new = Vec::new();
        for (at, subject) in self.subjects.iter().enumerate() {
            let Ok(leases) = self.app.service.store.leases_of(subject.job).await else { continue };
            for task in (0..subject.layout.tasks).filter(|task| subject.which.has_task(*task)) {
                let told = self.told.get(&(subject.job, task)).copied();
                if let Some(lease) = attempt(&leases, task, self.query.attempt, told) {
                    new.push((at, lease));
                }
            }
        }
        let any = !new.is_empty();
        for (at, lease) in new {
            let subject = &self.subjects[at];
            self.told.insert((subject.job, lease.task), lease.attempt);
            for rank in (0..subject.layout.per_task).filter(|rank| subject.which.has_rank(*rank)) {
                let job_rank = subject.layout.job_rank(lease.task, rank);
                let origin = Origin { lease, rank, job_rank };
                let feed = Feed::new(origin, subject.source.clone(), &self.query, self.several);
                self.feeds.push(feed);
            }
        }
        // Of one that is over and told nothing is left to say.
        self.feeds.retain(|feed| !feed.is_over || !feed.ready.is_empty() || !any);
        any
    }

    async fn have_ended(&self) -> bool {
        for subject in &self.subjects {
            let row = self.app.service.store.job(subject.job).await;
            if !row.is_ok_and(|row| row.is_none_or(|row| row.state.is_final())) {
                return false;
            }
        }
        true
    }

    /// Says why a job prints nothing yet, once for each reason.
    async fn tell_why_it_waits(&mut self) -> Option<()> {
        let [subject] = self.subjects.as_slice() else { return Some(()) };
        // Whoever asks for one attempt knows the job.
        let is_told = self.feeds.iter().any(|feed| !feed.is_over);
        if !self.query.all || self.query.attempt.is_some() || is_told {
            return Some(());
        }
        let Ok(Some(found)) = find::by_number(&self.app.service, subject.job).await else {
            return Some(());
        };
        let job = list::shown(&self.app.service, &found);
        let waits = matches!(job.state, wire::JobState::Pending | wire::JobState::Paused);
        let code = job.reason_code.clone().unwrap_or_default();
        let told = format!("{} {code}", job.state.as_str());
        if !waits || self.waits.as_ref() == Some(&told) {
            return Some(());
        }
        let why = job.reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        let text = format!("job {} is {}{why}\n", subject.job, job.state.as_str());
        self.waits = Some(told);
        self.lines.send(Ok(line(&said(text)))).await.ok()
    }

    /// Names the rank that failed, of several, with the last that it printed; and says why there was
    /// nothing to tell.
    async fn close(&mut self) -> Option<()> {
        if !self.query.all {
            return Some(());
        }
        if self.told.is_empty() {
            self.tell_why_it_waits().await?;
        }
        for at in 0..self.subjects.len() {
            if self.subjects[at].layout.ranks() > 1
                && let Some(text) = self.failure(&self.subjects[at]).await
            {
                self.lines.send(Ok(line(&said(text)))).await.ok()?;
            }
        }
        Some(())
    }

    async fn failure(&self, subject: &Subject) -> Option<String> {
        let leases = self.app.service.store.leases_of(subject.job).await.ok()?;
        let (lease, exit) = first_failure(&leases, &self.told)?;
        let rank = exit.rank?;
        let job_rank = subject.layout.job_rank(lease.task, rank);
        let (app, source) = (self.app.clone(), subject.source.clone());
        let last = tokio::task::spawn_blocking(move || {
            let reader = source.read(&app, lease, rank)?;
            let range = reader.range().ok()?;
            let from =
                reader.tail(LAST_LINES).ok()?.max(range.end.saturating_sub(LAST_BYTES as u64));
            reader.read(from, LAST_BYTES).ok()
        });
        let last = last.await.ok().flatten().map(|chunk| chunk.bytes).unwrap_or_default();
        let last = String::from_utf8_lossy(&last);
        let mut text = format!("rank {job_rank} {}", exit.text);
        if !last.trim().is_empty() {
            text.push_str("; its last lines:");
            last.lines().for_each(|line| text.push_str(&format!("\n  {line}")));
        }
        text.push('\n');
        Some(text)
    }
}

/// The attempt of a task to tell next.
fn attempt(
    leases: &[LeaseRow],
    task: u32,
    wanted: Option<u32>,
    told: Option<u32>,
) -> Option<LeaseId> {
    // One that the machine could not begin has printed nothing.
    let printed = |row: &&LeaseRow| row.started.is_some() || row.closed.is_none();
    let of_task = || leases.iter().filter(|row| row.id.task == task);
    let found = match (wanted, told) {
        (Some(_), Some(_)) => None,
        (Some(attempt), None) => of_task().find(|row| row.id.attempt == attempt),
        (None, Some(told)) => {
            let later = of_task().filter(|row| row.id.attempt > told);
            later.min_by_key(|row| row.id.attempt)
        }
        (None, None) => {
            let last = of_task().filter(printed).max_by_key(|row| row.id.attempt);
            last.or_else(|| of_task().max_by_key(|row| row.id.attempt))
        }
    };
    found.map(|row| row.id)
}

/// Of the attempts that were told, the lease that ended first with a failure of a process of its own.
fn first_failure(
    leases: &[LeaseRow],
    told: &BTreeMap<(JobId, u32), u32>,
) -> Option<(LeaseId, Exit)> {
    let is_told = |row: &&LeaseRow| told.get(&(row.id.job, row.id.task)) == Some(&row.id.attempt);
    let failed = leases
        .iter()
        .filter(is_told)
        .filter(|row| matches!(row.outcome, Some(LeaseOutcome::Failed | LeaseOutcome::Lost)));
    let exits = failed.filter_map(|row| {
        let exit: Exit = serde_json::from_str(row.exit.as_deref()?).ok()?;
        exit.rank.map(|_| (row.closed, row.id, exit))
    });
    exits.min_by_key(|(closed, id, _)| (*closed, *id)).map(|(_, id, exit)| (id, exit))
}

/// Cuts after so many lines, and counts them.
fn cut_after(bytes: &mut Vec<u8>, left: &mut u32) {
    let mut end = 0;
    for (at, byte) in bytes.iter().enumerate() {
        if *left == 0 {
            break;
        }
        end = at + 1;
        if *byte == b'\n' {
            *left -= 1;
        }
    }
    bytes.truncate(end);
}

/// The last lines of several processes together.
#[derive(Debug)]
struct Tail {
    most: usize,
    bytes: usize,
    parts: VecDeque<(Origin, Part, bool)>,
    lines: usize,
}

impl Tail {
    fn new(most: usize) -> Tail {
        Tail { most, bytes: 0, parts: VecDeque::new(), lines: 0 }
    }

    fn add(&mut self, origin: Origin, part: Part, end: bool) {
        let Part { at, position, bytes, dropped } = part;
        if bytes.is_empty() {
            self.parts.push_back((origin, Part { at, position, bytes, dropped }, end));
            return;
        }
        let mut position = position;
        for one in bytes.split_inclusive(|byte| *byte == b'\n') {
            let line = Part { at, position, bytes: one.to_vec(), dropped: 0 };
            position += one.len() as u64;
            (self.bytes, self.lines) = (self.bytes + one.len(), self.lines + 1);
            self.parts.push_back((origin, line, false));
        }
        while self.lines > self.most || (self.bytes > MOST_TAIL_BYTES && self.lines > 1) {
            self.drop_first_line();
        }
    }

    /// The end of a process stays.
    fn drop_first_line(&mut self) {
        let Some(at) = self.parts.iter().position(|(_, part, _)| !part.bytes.is_empty()) else {
            return;
        };
        if let Some((_, part, _)) = self.parts.remove(at) {
            (self.bytes, self.lines) = (self.bytes - part.bytes.len(), self.lines - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::Time;

    fn origin(rank: u32) -> Origin {
        let lease = LeaseId { job: JobId::new(1), task: 0, attempt: 0 };
        Origin { lease, rank, job_rank: rank }
    }

    fn part(text: &str) -> Part {
        Part { at: Some(Time(0)), bytes: text.into(), ..Part::default() }
    }

    #[test]
    fn the_last_lines_are_those_of_all_processes_together() {
        let mut tail = Tail::new(3);
        tail.add(origin(0), part("a\nb\n"), false);
        tail.add(origin(1), part("c\n"), false);
        tail.add(origin(0), part(""), true);
        tail.add(origin(1), part("d\ne"), false);
        let shown: Vec<(u32, String, bool)> = tail
            .parts
            .into_iter()
            .map(|(origin, part, end)| (origin.rank, String::from_utf8(part.bytes).unwrap(), end))
            .collect();
        let expect = [(1, "c\n", false), (0, "", true), (1, "d\n", false), (1, "e", false)];
        assert_eq!(shown, expect.map(|(rank, text, end)| (rank, text.to_owned(), end)));
    }

    #[test]
    fn lines_are_counted_over_parts() {
        let mut left = 2;
        let mut first = b"a\nb".to_vec();
        cut_after(&mut first, &mut left);
        assert_eq!((first.as_slice(), left), (b"a\nb".as_slice(), 1));
        let mut second = b"c\nd\n".to_vec();
        cut_after(&mut second, &mut left);
        assert_eq!((second.as_slice(), left), (b"c\n".as_slice(), 0));
    }
}
