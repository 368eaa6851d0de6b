//! `berth logs`: what a job printed.

use super::{log_search, when};
use crate::complete;
use crate::context::Context;
use crate::fail::{Failure, Result};
use crate::outage::Outage;
use crate::show::{self, Format, Look, Tone};
use berth_api::Client;
use berth_api::client::{self, Logs as Stream};
use berth_api::wire::{At, LogChunk, LogQuery, LogSearchQuery, LogStream};
use clap::Args;
use std::collections::BTreeMap;

#[derive(Args, Debug)]
pub struct Logs {
    /// A job, by number or name
    #[arg(value_name = "JOB", add = complete::all_jobs())]
    job: String,
    /// Go on until it ends
    #[arg(short, long)]
    follow: bool,
    /// Printed since: a moment, or a time ago such as 2h
    #[arg(long, value_name = "WHEN", value_parser = when::past)]
    since: Option<At>,
    /// Only the last lines
    #[arg(short = 'n', long, value_name = "LINES")]
    tail: Option<u32>,
    /// Only lines with this text
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// The text is a regular expression
    #[arg(long, requires = "search", conflicts_with_all = ["follow", "tail", "since"])]
    regex: bool,
    /// Capital letters are the same as small ones
    #[arg(long, requires = "search", conflicts_with_all = ["follow", "tail", "since"])]
    ignore_case: bool,
    /// In all attempts, tasks and ranks that are not named
    #[arg(long, requires = "search", conflicts_with_all = ["follow", "tail", "since"])]
    everywhere: bool,
    /// Only say how many lines there are
    #[arg(long, requires = "search", conflicts_with_all = ["follow", "tail", "since"])]
    count: bool,
    /// Put the time before each line
    #[arg(long)]
    timestamps: bool,
    /// What this rank printed (0)
    #[arg(long, value_name = "N")]
    rank: Option<u32>,
    /// What this node's part of the job printed (0)
    #[arg(long, value_name = "N")]
    task: Option<u32>,
    /// This attempt, from 0 (the last)
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
            task: args.task.or((!args.everywhere).then_some(0)),
            rank: args.rank.or((!args.everywhere).then_some(0)),
            ..LogSearchQuery::default()
        };
        let look = log_search::Look { count: args.count, timestamps: args.timestamps };
        return log_search::run(context, &args.job, query, args.everywhere, look).await;
    }
    let query = LogQuery {
        attempt: args.attempt,
        task: args.task,
        rank: args.rank,
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
            Format::Json | Format::Yaml => show::print(&line(&chunk)?)?,
            Format::Table | Format::Wide | Format::Name => printer.print(&chunk)?,
        }
    }
    printer.close()
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

/// A log that is gone on with where it broke off.
pub struct Reader<'a> {
    client: &'a Client,
    job: &'a str,
    query: LogQuery,
    stream: Option<Stream>,
    /// Where each process stands: attempt, task and rank, and the end of its last chunk.
    ends: BTreeMap<(u32, u32, u32), u64>,
    outage: Outage,
}

impl Reader<'_> {
    pub fn new<'a>(client: &'a Client, job: &'a str, query: LogQuery) -> Reader<'a> {
        let (ends, outage) = (BTreeMap::new(), Outage::default());
        Reader { client, job, query, stream: None, ends, outage }
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
                    if let Some(chunk) = self.fresh(chunk) {
                        return Ok(Some(chunk));
                    }
                }
                Ok(None) => return Ok(None),
                // A pager that is left open takes nothing, and the server cuts it off.
                Err(error) if self.query.follow || !self.ends.is_empty() => {
                    self.again();
                    self.outage.sit_out(error.into()).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn read(&mut self) -> client::Result<Option<LogChunk>> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => self.stream.insert(self.client.logs(self.job, &self.query).await?),
        };
        stream.next().await
    }

    /// Asks anew from where the one that is least far stands; what others showed is left out.
    fn again(&mut self) {
        self.stream = None;
        if let Some(from) = self.ends.values().min() {
            (self.query.from, self.query.tail) = (Some(*from), None);
            self.query.since = None;
        }
    }

    /// What of a chunk was not shown before.
    fn fresh(&mut self, mut chunk: LogChunk) -> Option<LogChunk> {
        if chunk.stream == LogStream::Berth {
            return Some(chunk);
        }
        let end = self.ends.entry((chunk.attempt, chunk.task, chunk.rank)).or_default();
        let new_end = chunk.position + chunk.text.len() as u64;
        if chunk.position < *end {
            let seen = usize::try_from(*end - chunk.position).unwrap_or(usize::MAX);
            chunk.text = chunk.text.get(seen..).unwrap_or_default().to_owned();
            chunk.position = *end;
        }
        *end = (*end).max(new_end);
        (!chunk.text.is_empty() || chunk.dropped > 0 || chunk.end).then_some(chunk)
    }
}

/// Writes chunks as lines.
pub struct Printer {
    look: Look,
    timestamps: bool,
    /// Lines say whose they are from when there is more than one process.
    several: bool,
    last: Option<(u32, u32)>,
    at_line_start: bool,
}

impl Printer {
    pub fn new(look: Look, timestamps: bool) -> Printer {
        Printer { look, timestamps, several: false, last: None, at_line_start: true }
    }

    pub fn print(&mut self, chunk: &LogChunk) -> Result<()> {
        if chunk.dropped > 0 {
            show::note(&format!("… {} bytes are gone", chunk.dropped));
        }
        if chunk.stream == LogStream::Berth {
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
        let source = (chunk.task, chunk.rank);
        self.several |= source != (0, 0);
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
            let at = chunk.at.map_or_else(|| "-".to_owned(), |at| self.look.at_second(at));
            prefix.push_str(&self.look.paint(Tone::Quiet, &format!("{at} ")));
        }
        if self.several {
            prefix.push_str(&self.look.paint(Tone::Quiet, &format!("[{}] ", chunk.rank)));
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
            stream: LogStream::Output,
            position,
            at: Some("2026-11-15T13:00:00Z".parse().unwrap()),
            text: text.into(),
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
        assert_eq!(printed(true, &chunks), "2026-11-15 14:00:00 a\n2026-11-15 14:00:00 bc\n");
    }

    #[test]
    fn ranks_are_told_apart_and_share_no_line() {
        let chunks = [chunk(1, 0, "a\nb"), chunk(0, 0, "c\n"), chunk(1, 3, "d\n")];
        assert_eq!(printed(false, &chunks), "[1] a\n[1] b\n[0] c\n[1] d\n");
    }

    #[test]
    fn what_was_shown_before_the_stream_broke_is_not_shown_again() {
        let client = Client::new(berth_api::client::Options::new("http://127.0.0.1:1")).unwrap();
        let mut reader = Reader::new(&client, "17", LogQuery::default());
        let mut texts = Vec::new();
        for (rank, position, text) in
            [(0, 0, "abc"), (1, 0, "x"), (0, 1, "bcde"), (0, 3, "de"), (0, 5, "f"), (1, 1, "y")]
        {
            texts.extend(reader.fresh(chunk(rank, position, text)).map(|chunk| chunk.text));
        }
        assert_eq!(texts, ["abc", "x", "de", "f", "y"]);
    }
}
