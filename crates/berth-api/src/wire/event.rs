//! What happens, as it happens.

use super::{At, Id, JobState};
use crate::problem::Problem;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// One event of the stream. Its `seq` is the id of the server-sent event, so that a client that
/// lost the stream goes on where it was.
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
    /// Events were missed: read again what you show.
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
    /// Those after this one, as far as they are still there.
    pub after: Option<u64>,
}

/// A piece of what one process printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogChunk {
    pub attempt: u32,
    pub task: u32,
    pub rank: u32,
    pub stream: LogStream,
    /// Bytes that came before, over the whole attempt: ask again from the end of the last chunk.
    pub position: u64,
    /// When its first line was printed, where that is known.
    pub at: Option<At>,
    /// Bytes that are no UTF-8 are replaced.
    pub text: String,
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
    pub task: Option<u32>,
    pub rank: Option<u32>,
    /// From this position on.
    pub from: Option<u64>,
    /// The last lines.
    pub tail: Option<u32>,
    #[param(value_type = Option<At>)]
    pub since: Option<At>,
    /// Lines with this text in them.
    pub search: Option<String>,
    /// Stay until the job has ended.
    pub follow: bool,
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
