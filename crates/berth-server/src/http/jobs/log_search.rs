//! Looking for lines in what a job printed, in all its attempts, tasks and ranks.

use super::log_layout::{Layout, Which};
use super::output::Source;
use crate::app::App;
use crate::http::answer::{Answer, Failure, Json};
use crate::http::asking::Asking;
use crate::http::extract::{Path, Query};
use axum::extract::State;
use berth_api::Code;
use berth_api::access::Permission;
use berth_api::wire::{self, LogMatch, LogMatches, LogSearchQuery};
use berth_model::LeaseId;
use berth_node::{LogPlace, Looked};
use berth_service::Fault;
use berth_service::jobs::find;
use futures_util::StreamExt;
use futures_util::stream;
use regex::bytes::{Regex, RegexBuilder};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

const LIMIT: u32 = 100;
const MOST: u32 = 1_000;
/// What one answer reads, and in how many logs.
const MOST_BYTES: u64 = 32 << 20;
const MOST_LOGS: usize = 64;
/// The longest text to look for.
const MOST_TEXT: usize = 2 << 10;
/// How large a regular expression may get. Each byte of a log may take a step for each part of it.
const REGEX_BYTES: usize = 64 << 10;
/// The same for a text, whose steps are few.
const TEXT_BYTES: usize = 1 << 20;
/// What is remembered while it is used, which saves steps.
const CACHE_BYTES: usize = 1 << 20;
/// How long one answer takes, with the fetching of logs. The next one goes on there.
const LONGEST: Duration = Duration::from_secs(2);
/// Of that, how long it waits for logs that have to be fetched.
const FETCHING: Duration = Duration::from_secs(1);
/// Logs of pods that are fetched side by side.
const FETCHES: usize = 8;

/// Where a search goes on: a log, and a place in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Cursor {
    attempt: u32,
    task: u32,
    rank: u32,
    place: LogPlace,
}

impl Cursor {
    fn read(text: &str) -> Option<Cursor> {
        let numbers: Vec<u64> =
            text.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
        let &[attempt, task, rank, position, line, found] = numbers.as_slice() else { return None };
        let small = |number: u64| u32::try_from(number).ok();
        let (attempt, task, rank) = (small(attempt)?, small(task)?, small(rank)?);
        Some(Cursor { attempt, task, rank, place: LogPlace { position, line, found } })
    }

    fn write(&self) -> String {
        let Cursor { attempt, task, rank, place: LogPlace { position, line, found } } = self;
        format!("{attempt}.{task}.{rank}.{position}.{line}.{found}")
    }

    /// The beginning of a lease's output; the place to go on from, if the search has begun there before.
    fn at(lease: LeaseId, found: u64, from: Cursor) -> Cursor {
        let (attempt, task) = (lease.attempt, lease.task);
        match (attempt, task) == (from.attempt, from.task) {
            true => from,
            false => {
                Cursor { attempt, task, rank: 0, place: LogPlace { position: 0, line: 0, found } }
            }
        }
    }

    fn log(&self) -> (u32, u32, u32) {
        (self.attempt, self.task, self.rank)
    }
}

pub async fn search(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(wanted): Path<String>,
    Query(query): Query<LogSearchQuery>,
) -> Answer<LogMatches> {
    let begun = Instant::now();
    let regex = regex(&query)?;
    let from = query.cursor.as_deref().map(|text| {
        let bad = || Fault::new(Code::BadCursor, format!("`{text}` is no cursor"));
        Cursor::read(text).ok_or_else(bad)
    });
    let from = from.transpose()?.unwrap_or_default();
    let found = find::job(&app.service, &caller, &wanted, Permission::LogsRead).await?;
    if found.is_array() {
        let next = format!("name one, such as {}", found.first().id);
        let detail = format!("job {} is an array; each element has a log of its own", found.id);
        return Err(Fault::new(Code::WrongState, detail).next(next).into());
    }
    let row = found.first();
    let source = Source::of(&app, row)?;
    let layout = Layout::of(row, matches!(source, Source::Pods { .. }));
    let which = layout.which(row.id, query.task, query.rank, true)?;
    let mut leases: Vec<LeaseId> =
        app.service.store.leases_of(row.id).await?.into_iter().map(|lease| lease.id).collect();
    leases.retain(|lease| query.attempt.is_none_or(|wanted| wanted == lease.attempt));
    leases.retain(|lease| which.has_task(lease.task));
    leases.retain(|lease| (lease.attempt, lease.task) >= (from.attempt, from.task));
    leases.sort_by_key(|lease| (lease.attempt, lease.task));
    let some: Vec<LeaseId> = leases.iter().take(MOST_LOGS).copied().collect();
    let fetch = |lease: LeaseId| {
        let (app, source) = (app.clone(), source.clone());
        async move {
            let is_live = {
                let core = app.service.engine.core();
                core.jobs.get(&lease.job).is_some_and(|job| job.leases.contains_key(&lease))
            };
            source.fetched(&app, lease, is_live).await;
        }
    };
    let is_given_up = |lease| source.is_given_up(&app, lease);
    let coming = first_missing(&some, begun + FETCHING, fetch, is_given_up).await;
    let limit = query.limit.unwrap_or(LIMIT).min(MOST) as usize;
    let looked = tokio::task::spawn_blocking(move || {
        let until = begun + LONGEST;
        Search { app, source, regex, which, limit, until }.run(&leases, coming, from)
    });
    let looked = looked.await.map_err(|why| Failure::new(Code::Internal, why.to_string()))?;
    Ok(Json(looked?))
}

/// Fetches logs until a moment, some of them side by side. The place of the first one that was not there in
/// time: the answer ends before it, because lines would be missing, and the next one goes on there. A log
/// that cannot be fetched at all is passed over, so that a search comes to its end.
async fn first_missing<F: Future<Output = ()>>(
    leases: &[LeaseId],
    until: Instant,
    fetch: impl Fn(LeaseId) -> F,
    is_given_up: impl Fn(LeaseId) -> bool,
) -> Option<usize> {
    let fetches: Vec<_> = leases.iter().map(|lease| timeout_at(until, fetch(*lease))).collect();
    let mut fetches = stream::iter(fetches).buffered(FETCHES).enumerate();
    while let Some((nth, fetched)) = fetches.next().await {
        if fetched.is_err() && !is_given_up(leases[nth]) {
            return Some(nth);
        }
    }
    None
}

fn regex(query: &LogSearchQuery) -> Result<Regex, Fault> {
    if query.text.is_empty() {
        return Err(Fault::new(Code::BadRequest, "text: there is nothing to look for"));
    }
    if query.text.len() > MOST_TEXT {
        let detail = format!("text: it is longer than {MOST_TEXT} bytes");
        return Err(Fault::new(Code::BadRequest, detail).next("look for a part of it"));
    }
    let (pattern, most_bytes) = match query.regex {
        true => (query.text.clone(), REGEX_BYTES),
        false => (regex::escape(&query.text), TEXT_BYTES),
    };
    let mut builder = RegexBuilder::new(&pattern);
    // The letters and digits of all languages alone would take most of what there is, and logs seldom
    // have them. `(?u)` in an expression brings them back, and so does a letter beyond ASCII.
    builder.unicode(!query.regex || !query.text.is_ascii()).case_insensitive(query.ignore_case);
    builder.size_limit(most_bytes).dfa_size_limit(CACHE_BYTES);
    builder.build().map_err(|why| {
        // The last line says what; those before show where, with letters below each other.
        let why = why.to_string();
        let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        let next = "mend it; there is no look-around, and there are no backreferences";
        Fault::new(Code::BadRequest, format!("text: no regular expression: {why}")).next(next)
    })
}

struct Search {
    app: App,
    source: Source,
    regex: Regex,
    which: Which,
    limit: usize,
    until: Instant,
}

impl Search {
    fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Looks through the logs, up to the one that is still coming.
    fn run(
        &self,
        leases: &[LeaseId],
        coming: Option<usize>,
        from: Cursor,
    ) -> Result<LogMatches, Fault> {
        let mut matches: Vec<LogMatch> = Vec::new();
        let (mut total, mut bytes, mut logs) = (from.place.found, 0, 0);
        // Where the next answer begins: after the last line that is told, or where it stopped.
        let mut next: Option<Cursor> = None;
        for (nth, lease) in leases.iter().enumerate() {
            if coming == Some(nth) {
                let next = next.unwrap_or_else(|| Cursor::at(*lease, total, from));
                return Ok(answer(matches, total, false, Some(next), bytes));
            }
            for rank in self.ranks(*lease) {
                let here = Cursor {
                    attempt: lease.attempt,
                    task: lease.task,
                    rank,
                    place: LogPlace { position: 0, line: 0, found: total },
                };
                if here.log() < from.log() {
                    continue;
                }
                // One log at the least, so that the next answer begins at another place.
                let is_over = logs > 0 && self.is_over();
                if bytes >= MOST_BYTES || logs >= MOST_LOGS || is_over {
                    let next = next.unwrap_or(here);
                    return Ok(answer(matches, total, false, Some(next), bytes));
                }
                let begin = if here.log() == from.log() { from.place } else { here.place };
                let room = self.limit - matches.len();
                let Some(looked) = self.look(*lease, rank, begin, MOST_BYTES - bytes, room) else {
                    continue;
                };
                (logs, bytes, total) = (logs + 1, bytes + looked.bytes, looked.found);
                let is_full = self.limit > 0 && matches.len() + looked.hits.len() == self.limit;
                self.tell(&mut matches, *lease, rank, &looked);
                let stopped = Cursor { place: looked.next, ..here };
                if is_full && next.is_none() {
                    next = Some(stopped);
                }
                if !looked.whole {
                    let next = next.unwrap_or(stopped);
                    return Ok(answer(matches, total, false, Some(next), bytes));
                }
            }
        }
        // All was looked at: there is more only if more was found than is told.
        let told_up_to = next.map_or(total, |next| next.place.found);
        let next = next.filter(|_| told_up_to < total);
        Ok(answer(matches, total, true, next, bytes))
    }

    fn ranks(&self, lease: LeaseId) -> Vec<u32> {
        let all = match &self.source {
            Source::Here => {
                let reader = self.source.read(&self.app, lease, 0);
                reader.and_then(|reader| reader.ranks().ok()).unwrap_or_default()
            }
            Source::Pods { .. } => vec![0],
        };
        all.into_iter().filter(|rank| self.which.has_rank(*rank)).collect()
    }

    /// Nothing where there is no log, or none any more.
    fn look(
        &self,
        lease: LeaseId,
        rank: u32,
        from: LogPlace,
        most_bytes: u64,
        most: usize,
    ) -> Option<Looked> {
        let reader = self.source.read(&self.app, lease, rank)?;
        let wanted = |line: &[u8]| self.regex.is_match(line);
        reader.search(from, most_bytes, most, &wanted, &|| self.is_over()).ok()
    }

    fn tell(&self, matches: &mut Vec<LogMatch>, lease: LeaseId, rank: u32, looked: &Looked) {
        let positions: Vec<u64> = looked.hits.iter().map(|hit| hit.position).collect();
        let reader = self.source.read(&self.app, lease, rank);
        let times = reader.and_then(|reader| reader.times_of(&positions).ok()).unwrap_or_default();
        for (nth, hit) in looked.hits.iter().enumerate() {
            matches.push(LogMatch {
                attempt: lease.attempt,
                task: lease.task,
                rank,
                line: hit.line,
                position: hit.position,
                at: times.get(nth).copied().flatten().map(wire::At),
                text: String::from_utf8_lossy(&hit.bytes).into_owned(),
            });
        }
    }
}

fn answer(
    matches: Vec<LogMatch>,
    total: u64,
    complete: bool,
    next: Option<Cursor>,
    looked_at_bytes: u64,
) -> LogMatches {
    let next = next.map(|next| next.write());
    LogMatches { matches, total, complete, next, looked_at_bytes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::JobId;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_cursor_comes_back_as_it_went_out() {
        let place = LogPlace { position: 7, line: 2, found: 9 };
        let cursor = Cursor { attempt: 1, task: 2, rank: 3, place };
        assert_eq!(Cursor::read(&cursor.write()), Some(cursor));
        for odd in ["", "1.2.3", "1.2.3.4.5.6.7", "1.2.3.4.5.x", "5000000000.0.0.0.0.0"] {
            assert_eq!(Cursor::read(odd), None, "{odd}");
        }
    }

    fn leases(count: u32) -> Vec<LeaseId> {
        (0..count).map(|task| LeaseId { job: JobId::new(1), task, attempt: 0 }).collect()
    }

    #[tokio::test]
    async fn a_search_waits_for_no_log_beyond_its_deadline_and_fetches_some_side_by_side() {
        let begun = AtomicUsize::new(0);
        let fetch = |_| async {
            begun.fetch_add(1, Ordering::Relaxed);
            std::future::pending().await
        };
        let missing = first_missing(&leases(64), Instant::now(), fetch, |_| false).await;
        assert_eq!(missing, Some(0));
        assert_eq!(begun.load(Ordering::Relaxed), FETCHES);
    }

    #[tokio::test]
    async fn a_search_goes_as_far_as_the_first_log_that_is_missing() {
        let far = Instant::now() + Duration::from_secs(86_400);
        let (all, no) = (leases(64), |_| false);
        assert_eq!(first_missing(&all, far, |_| std::future::ready(()), no).await, None);
        let some = |lease: LeaseId| async move {
            if [5, 9].contains(&lease.task) {
                std::future::pending().await
            }
        };
        let now = Instant::now();
        assert_eq!(first_missing(&all, now, some, no).await, Some(5));
        // One that cannot be fetched does not end each answer before it.
        assert_eq!(first_missing(&all, now, some, |lease| lease.task == 5).await, Some(9));
        assert_eq!(first_missing(&all, now, some, |_| true).await, None);
    }

    #[test]
    fn a_search_goes_on_at_the_log_that_was_missing() {
        let lease = leases(3)[2];
        let place = LogPlace { position: 7, line: 2, found: 9 };
        let from = Cursor { attempt: 0, task: 2, rank: 1, place };
        assert_eq!(Cursor::at(lease, 9, from), from);
        let fresh = Cursor { rank: 0, place: LogPlace { position: 0, line: 0, found: 11 }, ..from };
        assert_eq!(Cursor::at(lease, 11, Cursor::default()), fresh);
    }

    #[test]
    fn an_expression_that_would_take_too_much_is_refused() {
        let query = |text: &str| LogSearchQuery {
            text: text.to_owned(),
            regex: true,
            ..LogSearchQuery::default()
        };
        assert!(regex(&query(r"loss=\d+\.\d+")).is_ok());
        assert!(regex(&query(r"(\w+)=(\w+) (\w+)=(\w+) \S+")).is_ok());
        assert!(regex(&query("é.*[äöü]")).unwrap().is_match("café über".as_bytes()));
        assert!(regex(&query(r"(?u)\pL")).unwrap().is_match("é".as_bytes()));
        let long = "a".repeat(MOST_TEXT + 1);
        for odd in ["", "(", "(?=a)", r"(?u)(\pL{900}){900}", "(a{90}){90}", &long] {
            assert!(regex(&query(odd)).is_err(), "{odd}");
        }
        let plain = LogSearchQuery { text: "a.c(".to_owned(), ..LogSearchQuery::default() };
        assert!(regex(&plain).unwrap().is_match(b"xa.c(x"));
        assert!(!regex(&plain).unwrap().is_match(b"abc("));
        for text in ["Ä".repeat(MOST_TEXT / 2), "a".repeat(MOST_TEXT), ".".repeat(MOST_TEXT)] {
            let all = LogSearchQuery { text, ignore_case: true, ..LogSearchQuery::default() };
            assert!(regex(&all).is_ok(), "any text that is short enough can be looked for");
        }
    }

    #[test]
    fn the_longest_line_is_looked_at_with_the_largest_expression_within_seconds() {
        let largest = (1..40).rev().find_map(|n| {
            let text = format!("(a?){{{}}}b", n * 50);
            regex(&LogSearchQuery { text, regex: true, ..LogSearchQuery::default() }).ok()
        });
        let line = vec![b'a'; berth_node::LONGEST_LOG_LINE];
        let begun = Instant::now();
        assert!(!largest.expect("one of them is small enough").is_match(&line));
        assert!(begun.elapsed() < LONGEST * 10, "{:?}", begun.elapsed());
    }
}
