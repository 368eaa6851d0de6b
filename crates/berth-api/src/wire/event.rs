//! What happens, as it happens.

use super::{At, Id, JobState};
use crate::problem::Problem;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// One event of the stream. Its `seq` is the id of the server-sent event, so that a client that
/// lost the stream goes on where it was. Numbers go up, also over a restart of the server, and leave
/// out those of events that the client may not see or has not asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    pub seq: u64,
    pub at: At,
    #[serde(flatten)]
    pub kind: EventKind,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EventKind {
    /// A job changed; ask for it to see all of it.
    Job {
        id: Id,
        name: String,
        team: String,
        state: JobState,
        text: String,
    },
    Node {
        node: String,
        state: String,
        text: String,
    },
    /// What a queue uses, or who waits in it, changed.
    Queue {
        queue: String,
    },
    /// Someone should look.
    Alert {
        code: String,
        text: String,
        team: Option<String>,
    },
    /// A job printed something; the text is in its log.
    Log {
        id: Id,
        rank: u32,
        position: u64,
    },
    /// Events were missed that are not kept any more, or the server has started anew: read again what
    /// you show. The stream goes on after the number of this event.
    Gap,
    /// The last event of a stream that the server ends, such as one whose token was revoked.
    End {
        problem: Box<Problem>,
    },
}

/// Which events. What is left out does not filter.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct EventQuery {
    /// Kinds, separated by commas.
    pub kind: Option<String>,
    pub job: Option<String>,
    pub team: Option<String>,
    /// Those after this one, as far as they are still there; the header `Last-Event-ID` goes before
    /// it.
    pub after: Option<u64>,
    /// The events that the server still keeps, oldest first. The stream ends after the newest of them.
    pub past: bool,
}

/// A piece of what one process printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogChunk {
    pub attempt: u32,
    pub task: u32,
    /// Of the task.
    pub rank: u32,
    /// The rank over all tasks of the job, as `RANK` says it.
    #[serde(default)]
    pub job_rank: u32,
    /// The element of an array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub element: Option<u32>,
    /// The answer has the output of several processes.
    #[serde(default)]
    pub several: bool,
    pub stream: LogStream,
    /// Bytes that came before, over the whole attempt: ask again from the end of the last chunk.
    pub position: u64,
    /// When it was printed, to a fifth of a second, where that is known.
    pub at: Option<At>,
    /// Bytes that are no UTF-8 are replaced.
    pub text: String,
    /// Bytes of the log that the text stands for.
    #[serde(default)]
    pub bytes: u64,
    /// Bytes that are gone between the chunk before and this one.
    pub dropped: u64,
    /// Nothing more will come of this attempt.
    pub end: bool,
    /// Why the server ends the stream: the last chunk of one whose right was lost has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Box<Problem>>,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum LogStream {
    /// What it printed, both streams as they came.
    #[default]
    Output,
    /// What Berth has to say about it.
    Berth,
}

/// Which part of a log. The answer is one [`LogChunk`] in JSON on each line.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct LogQuery {
    /// The last one where left out.
    pub attempt: Option<u32>,
    /// A part of the job on one machine, counted from 0. The first one where left out.
    pub task: Option<u32>,
    /// A process, counted over the whole job; within its task where `task` is given.
    pub rank: Option<u32>,
    /// The output of all processes that are not left out by `task` and `rank`, whole line by line in
    /// the order of time; of an array, that of all its elements. What Berth has to say about the job
    /// comes between: why it waits, and which rank failed.
    pub all: bool,
    /// From this position on.
    pub from: Option<u64>,
    /// The last lines.
    pub tail: Option<u32>,
    /// What was printed from this moment on.
    #[param(value_type = Option<At>)]
    pub since: Option<At>,
    /// From this line on, counted from 0 for the first one that is kept.
    pub from_line: Option<u64>,
    /// And so many lines before.
    pub before: Option<u32>,
    /// So many lines at the most.
    pub lines: Option<u32>,
    /// Lines with this text in them.
    pub search: Option<String>,
    /// Stay until the job has ended.
    pub follow: bool,
}

/// What to look for in what a job printed, in all attempts and ranks that are not left out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct LogSearchQuery {
    /// A text that lines have in them, or a regular expression.
    pub text: String,
    /// The text is a regular expression.
    pub regex: bool,
    /// Capital letters are the same as small ones.
    pub ignore_case: bool,
    /// All where left out.
    pub attempt: Option<u32>,
    /// All where left out.
    pub task: Option<u32>,
    /// Counted over the whole job; within its task where `task` is given. All where left out.
    pub rank: Option<u32>,
    /// Lines of one answer, at most 1,000; 100 where left out, and 0 to count them alone.
    pub limit: Option<u32>,
    /// `next` of the answer before.
    pub cursor: Option<String>,
}

/// A line that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogMatch {
    pub attempt: u32,
    pub task: u32,
    pub rank: u32,
    /// Its number, from 0 for the first one that is kept of this rank: `from_line` of a log.
    pub line: u64,
    /// Where it begins: `from` of a log.
    pub position: u64,
    /// When it was printed, where that is known.
    pub at: Option<At>,
    /// Without its end; the first 4 KiB of one that is longer.
    pub text: String,
}

/// What was found. An answer looks at a bounded part of a log; it may have fewer lines than were asked
/// for, or none, and still have a next one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogMatches {
    pub matches: Vec<LogMatch>,
    /// Lines that were found in all that was looked at, from the first answer on. It is the number
    /// of all where `complete`.
    pub total: u64,
    /// All of the log was looked at.
    pub complete: bool,
    /// Where to go on; none where there is no more.
    pub next: Option<String>,
    /// Bytes that this answer looked at.
    pub looked_at_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_an_event_stands_beside_what_it_says() {
        let json = r#"{"seq":7,"at":"2026-11-15T09:00:00Z","kind":"queue","queue":"nlp"}"#;
        let event: Event = serde_json::from_str(json).unwrap();
        assert_eq!(event.kind, EventKind::Queue { queue: "nlp".into() });
        assert_eq!(serde_json::to_string(&event).unwrap(), json);
    }
}
