//! `berth logs`: what a job printed.

use super::job_end::{ending, look_up};
use super::{log_search, when};
use crate::complete;
use crate::context::Context;
use crate::fail::{Failure, Result};
use crate::outage::Outage;
use crate::show::{self, Format, Look, Tone};
use berth_api::Client;
use berth_api::client::{self, Logs as Stream};
use berth_api::wire::{At, LogChunk, LogQuery, LogSearchQuery, LogStream};
use berth_model::Span;
use clap::Args;
use std::collections::BTreeMap;
use std::time::Duration;

/// Before a stream that a stopping server has ended is opened again.
const PAUSE: Duration = Duration::from_millis(300);

#[derive(Args, Debug)]
pub struct Logs {
    /// A job, by number or name
    #[arg(value_name = "JOB", add = complete::all_jobs())]
    job: String,
    /// Follow the output until the job ends, and say how it ended
    #[arg(short, long)]
    follow: bool,
    /// Since: a time, or a time ago such as 2h
    #[arg(long, value_name = "WHEN", value_parser = when::past)]
    since: Option<At>,
    /// Only the last N lines
    #[arg(short = 'n', long, value_name = "LINES")]
    tail: Option<u32>,
    /// Only lines with this text
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Treat the text of --search as a regular expression
    #[arg(long, requires = "search", conflicts_with_all = ["follow", "tail", "since"])]
    regex: bool,
    /// Ignore case
    #[arg(long, requires = "search", conflicts_with_all = ["follow", "tail", "since"])]
    ignore_case: bool,
    /// Search all attempts
    #[arg(long, requires = "search", conflicts_with_all = ["follow", "tail", "since"])]
    everywhere: bool,
    /// Only count the lines
    #[arg(long, requires = "search", conflicts_with_all = ["follow", "tail", "since"])]
    count: bool,
    /// Show the time of each line, to a fifth of a second
    #[arg(long)]
    timestamps: bool,
    /// Only what this rank of the job printed; with --task, this rank of the task
    #[arg(long, value_name = "N")]
    rank: Option<u32>,
    /// Only the output of this node's part of the job
    #[arg(long, value_name = "N")]
    task: Option<u32>,
    /// The attempt, from 0 (the last)
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
}

pub async fn run(context: &Context, args: &Logs) -> Result<()> {
    if let (Some(text), true) = (&args.search, args.is_looked_up()) {
        let query = LogSearchQuery {
            text: text.clone(),
            regex: args.regex,
            ignore_case: args.ignore_case,
            attempt: args.attempt,
            task: args.task,
            rank: args.rank,
            ..LogSearchQuery::default()
        };
        let look = log_search::Look { count: args.count, timestamps: args.timestamps };
        return log_search::run(context, &args.job, query, args.everywhere, look).await;
    }
    let query = LogQuery {
        attempt: args.attempt,
        task: args.task,
        rank: args.rank,
        all: true,
        from: None,
        tail: args.tail,
        since: args.since,
        search: args.search.clone(),
        follow: args.follow,
        ..LogQuery::default()
    };
    let mut reader = Reader::new(context.client()?, &args.job, query);
    let mut printer = Printer::new(context.look(), args.timestamps);
    while let Some(chunk) = reader.next().await? {
        match context.format {
            Format::Json | Format::Yaml | Format::Openlineage => {
                show::print(&line(&chunk)?)?;
            }
            Format::Table | Format::Wide | Format::Name => printer.print(&chunk)?,
        }
    }
    printer.close()?;
    if args.follow && !context.format.is_for_programs() {
        let job = look_up(context.client()?, &args.job).await?;
        if job.state.is_final() {
            show::note(&ending(&job, &context.look()));
        }
    }
    Ok(())
}

impl Logs {
    /// The server looks for the lines by itself, and does not send the others.
    fn is_looked_up(&self) -> bool {
        self.regex || self.ignore_case || self.everywhere || self.count
    }
}

fn line(chunk: &LogChunk) -> Result<String> {
    let json = serde_json::to_string(chunk);
    let json = json.map_err(|error| Failure::internal(format!("a log in JSON: {error}")))?;
    Ok(format!("{json}\n"))
}

/// Chunks that were sent shortly before a stream broke may have overtaken others.
const OVERLAP: Span = Span::secs(60);

/// Streams that are opened for the rest of a job that has ended.
const MOST_TRIES_AFTER_END: u32 = 3;

/// Whose chunk it is: attempt, element of an array, task and rank.
type Process = (u32, Option<u32>, u32, u32);

/// A log that is gone on with where it broke off.
pub struct Reader<'a> {
    client: &'a Client,
    job: &'a str,
    query: LogQuery,
    stream: Option<Stream>,
    /// Where each process stands: the end of its last chunk, and whether more may come.
    ends: BTreeMap<Process, (u64, bool)>,
    /// When the last chunk was printed.
    last_at: Option<At>,
    /// Nothing came of the stream that is open.
    is_silent: bool,
    tries_after_end: u32,
    outage: Outage,
}

impl Reader<'_> {
    pub fn new<'a>(client: &'a Client, job: &'a str, query: LogQuery) -> Reader<'a> {
        Reader {
            client,
            job,
            query,
            stream: None,
            ends: BTreeMap::new(),
            last_at: None,
            is_silent: true,
            tries_after_end: 0,
            outage: Outage::default(),
        }
    }

    pub async fn next(&mut self) -> Result<Option<LogChunk>> {
        loop {
            match self.read().await {
                // The last one: the right to read it was lost.
                Ok(Some(LogChunk { problem: Some(problem), .. })) => {
                    return Err((*problem).into());
                }
                Ok(Some(chunk)) => {
                    self.outage.is_over();
                    self.is_silent = false;
                    if let Some(chunk) = self.fresh(chunk) {
                        return Ok(Some(chunk));
                    }
                }
                Ok(None) => {
                    if self.is_whole().await? {
                        return Ok(None);
                    }
                    // The server ended, and the job goes on.
                    self.again();
                    tokio::time::sleep(PAUSE).await;
                }
                // A pager that is left open takes nothing, and the server cuts it off.
                Err(error) if self.query.follow || !self.ends.is_empty() => {
                    self.again();
                    self.outage.sit_out(error.into()).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Whether a stream that is over has told all there is. A server that stops ends it, too.
    async fn is_whole(&mut self) -> Result<bool> {
        if !self.query.follow {
            return Ok(true);
        }
        let is_open = self.ends.values().any(|(_, is_over)| !is_over);
        let job = look_up(self.client, self.job).await?;
        let is_past = match self.query.attempt {
            Some(_) if !self.ends.is_empty() && !is_open => true,
            Some(attempt) => job.state.is_final() || job.attempts > attempt + 1,
            None => job.state.is_final(),
        };
        if !is_past {
            return Ok(false);
        }
        // What was cut off comes with the next stream, unless it was deleted meanwhile.
        self.tries_after_end += 1;
        Ok(!is_open || self.is_silent || self.tries_after_end > MOST_TRIES_AFTER_END)
    }

    async fn read(&mut self) -> client::Result<Option<LogChunk>> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => {
                self.is_silent = true;
                self.stream.insert(self.client.logs(self.job, &self.query).await?)
            }
        };
        stream.next().await
    }

    /// Asks anew from where it broke off; what was shown before is left out. Of several processes
    /// each stands elsewhere, so these are asked for by time.
    fn again(&mut self) {
        self.stream = None;
        match self.ends.len() {
            0 => return,
            1 => {
                self.query.from = self.ends.values().map(|(end, _)| *end).next();
                self.query.since = None;
            }
            _ => {
                self.query.from = None;
                self.query.since = self.last_at.map(|at| At(at.0 - OVERLAP));
            }
        }
        self.query.tail = None;
    }

    /// What of a chunk was not shown before.
    fn fresh(&mut self, mut chunk: LogChunk) -> Option<LogChunk> {
        if chunk.stream == LogStream::Berth {
            return Some(chunk);
        }
        self.last_at = self.last_at.max(chunk.at);
        // A server of before does not say it.
        let bytes = if chunk.bytes > 0 { chunk.bytes } else { chunk.text.len() as u64 };
        let process = (chunk.attempt, chunk.element, chunk.task, chunk.rank);
        let (end, is_over) = self.ends.entry(process).or_default();
        let was_over = std::mem::replace(is_over, *is_over || chunk.end);
        let new_end = chunk.position + bytes;
        if new_end <= *end {
            chunk.text.clear();
        } else if chunk.position < *end && bytes == chunk.text.len() as u64 {
            // Where bytes were replaced, one line is shown twice rather than half of it not at all.
            let seen = usize::try_from(*end - chunk.position).unwrap_or(usize::MAX);
            chunk.text = chunk.text.get(seen..).unwrap_or_default().to_owned();
            chunk.position = *end;
        }
        *end = (*end).max(new_end);
        let ends_now = chunk.end && !was_over;
        (!chunk.text.is_empty() || chunk.dropped > 0 || ends_now).then_some(chunk)
    }
}

/// Writes chunks as lines.
pub struct Printer {
    look: Look,
    timestamps: bool,
    last: Option<(Option<u32>, u32)>,
    at_line_start: bool,
}

impl Printer {
    pub fn new(look: Look, timestamps: bool) -> Printer {
        Printer { look, timestamps, last: None, at_line_start: true }
    }

    pub fn print(&mut self, chunk: &LogChunk) -> Result<()> {
        if chunk.dropped > 0 {
            show::note(&format!("… {} bytes are not kept", chunk.dropped));
        }
        if chunk.stream == LogStream::Berth {
            self.close()?;
            let text = format!("berth: {}", chunk.text.trim_end());
            show::note(&self.look.paint(Tone::Quiet, &text));
            return Ok(());
        }
        show::print(&self.lines(chunk))
    }

    /// The last line has an end, whatever the job wrote.
    pub fn close(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.at_line_start, true) {
            true => Ok(()),
            false => show::print("\n"),
        }
    }

    fn lines(&mut self, chunk: &LogChunk) -> String {
        let source = (chunk.element, chunk.job_rank);
        let mut out = String::new();
        // Two processes do not share a line.
        if self.last.is_some_and(|last| last != source) && !self.at_line_start {
            out.push('\n');
            self.at_line_start = true;
        }
        self.last = Some(source);
        let prefix = self.prefix(chunk);
        for line in chunk.text.split_inclusive('\n') {
            if self.at_line_start {
                out.push_str(&prefix);
            }
            out.push_str(line);
            self.at_line_start = line.ends_with('\n');
        }
        out
    }

    fn prefix(&self, chunk: &LogChunk) -> String {
        let mut prefix = String::new();
        if self.timestamps {
            let at = chunk.at.map_or_else(|| "-".to_owned(), |at| self.look.at_milli(at));
            prefix.push_str(&self.look.paint(Tone::Quiet, &format!("{at} ")));
        }
        if chunk.several {
            let whose = match (chunk.element, chunk.job_rank) {
                (Some(element), 0) => element.to_string(),
                (Some(element), rank) => format!("{element}/{rank}"),
                (None, rank) => rank.to_string(),
            };
            prefix.push_str(&self.look.paint(Tone::Quiet, &format!("[{whose}] ")));
        }
        prefix
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(rank: u32, position: u64, text: &str) -> LogChunk {
        LogChunk {
            attempt: 0,
            task: 0,
            rank,
            job_rank: rank,
            element: None,
            several: false,
            stream: LogStream::Output,
            position,
            at: Some("2026-11-15T13:00:00.250Z".parse().unwrap()),
            text: text.into(),
            bytes: text.len() as u64,
            dropped: 0,
            end: false,
            problem: None,
        }
    }

    fn printed(timestamps: bool, chunks: &[LogChunk]) -> String {
        let mut printer = Printer::new(Look::fixed(), timestamps);
        chunks.iter().map(|chunk| printer.lines(chunk)).collect()
    }

    #[test]
    fn one_process_is_shown_as_it_printed() {
        let chunks = [chunk(0, 0, "a\nb"), chunk(0, 3, "c\n\x1b[1mbold\x1b[0m")];
        assert_eq!(printed(false, &chunks), "a\nbc\n\x1b[1mbold\x1b[0m");
    }

    #[test]
    fn a_line_has_one_time_even_if_it_came_in_parts() {
        let chunks = [chunk(0, 0, "a\nb"), chunk(0, 3, "c\n")];
        let expect = "2026-11-15 14:00:00.250 a\n2026-11-15 14:00:00.250 bc\n";
        assert_eq!(printed(true, &chunks), expect);
    }

    #[test]
    fn ranks_are_told_apart_from_the_first_line_on_and_share_no_line() {
        let chunks = [chunk(1, 0, "a\nb"), chunk(0, 0, "c\n"), chunk(1, 3, "d\n")];
        let chunks = chunks.map(|chunk| LogChunk { several: true, ..chunk });
        assert_eq!(printed(false, &chunks), "[1] a\n[1] b\n[0] c\n[1] d\n");
    }

    #[test]
    fn elements_of_an_array_are_named_before_their_ranks() {
        let of = |element, rank, text| LogChunk {
            element: Some(element),
            several: true,
            ..chunk(rank, 0, text)
        };
        let chunks = [of(3, 0, "a\n"), of(4, 1, "b\n")];
        assert_eq!(printed(false, &chunks), "[3] a\n[4/1] b\n");
    }

    fn fresh(chunks: impl IntoIterator<Item = LogChunk>) -> Vec<String> {
        let client = Client::new(berth_api::client::Options::new("http://127.0.0.1:1")).unwrap();
        let mut reader = Reader::new(&client, "17", LogQuery::default());
        let shown = chunks.into_iter().filter_map(|chunk| reader.fresh(chunk));
        shown.map(|chunk| chunk.text).collect()
    }

    #[test]
    fn what_was_shown_before_the_stream_broke_is_not_shown_again() {
        let chunks =
            [(0, 0, "abc"), (1, 0, "x"), (0, 1, "bcde"), (0, 3, "de"), (0, 5, "f"), (1, 1, "y")];
        let texts = fresh(chunks.map(|(rank, position, text)| chunk(rank, position, text)));
        assert_eq!(texts, ["abc", "x", "de", "f", "y"]);
    }

    #[test]
    fn bytes_that_were_replaced_hide_nothing_of_what_follows() {
        let replaced = LogChunk { bytes: 1, ..chunk(0, 0, "\u{fffd}") };
        assert_eq!(fresh([replaced, chunk(0, 1, "ab"), chunk(0, 3, "c")]), ["\u{fffd}", "ab", "c"]);
    }

    #[test]
    fn several_processes_are_asked_for_anew_by_time_and_one_by_its_place() {
        let client = Client::new(berth_api::client::Options::new("http://127.0.0.1:1")).unwrap();
        let mut reader =
            Reader::new(&client, "17", LogQuery { tail: Some(3), ..LogQuery::default() });
        reader.again();
        assert_eq!(reader.query.tail, Some(3), "nothing was shown yet");
        reader.fresh(chunk(0, 5, "abc"));
        reader.again();
        assert_eq!((reader.query.from, reader.query.tail), (Some(8), None));
        reader.fresh(chunk(1, 0, "x"));
        reader.again();
        assert_eq!(reader.query.from, None);
        assert_eq!(reader.query.since, Some("2026-11-15T12:59:00.250Z".parse().unwrap()));
    }
}
