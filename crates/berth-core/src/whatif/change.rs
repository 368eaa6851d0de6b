//! A change, and when it would start the job.

use berth_model::{Bound, Lifecycle, Milli, Name, Span, Time};

/// One change, and what it would bring about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub what: What,
    pub starts: Starts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Starts {
    Now,
    /// After so many running jobs were stopped for it.
    By {
        at: Time,
        stops: u32,
    },
}

/// What is changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    Release,
    NoDependencies,
    NoBeginTime,
    Preemptible,
    Model {
        model: Name,
    },
    Lifecycle {
        lifecycle: Lifecycle,
    },
    /// Its tasks need not lie in one domain of the level.
    Apart {
        level: Name,
    },
    /// Its tasks need not be spread over the level.
    Unspread {
        level: Name,
    },
    /// It need not be near to other jobs, or away from them.
    Anywhere,
    FewerTasks {
        tasks: u32,
        of: u32,
    },
    PartOfGpu {
        part: Milli,
    },
    TimeLimit {
        limit: Span,
        of: Span,
    },
    Class {
        class: Name,
    },
    Queue {
        queue: Name,
    },
    Raise {
        queue: Name,
        bound: Bound,
        resource: Name,
        from: Milli,
        to: Milli,
    },
}
