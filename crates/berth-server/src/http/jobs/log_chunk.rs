//! Chunks of a log as they are sent.

use axum::body::Bytes;
use berth_api::wire;

/// What Berth has to say between what a job printed.
pub fn said(text: String) -> wire::LogChunk {
    wire::LogChunk {
        attempt: 0,
        task: 0,
        rank: 0,
        job_rank: 0,
        element: None,
        several: false,
        stream: wire::LogStream::Berth,
        position: 0,
        at: None,
        text,
        bytes: 0,
        dropped: 0,
        end: false,
        problem: None,
    }
}

pub fn line(chunk: &wire::LogChunk) -> Bytes {
    let mut line = serde_json::to_vec(chunk).expect("chunks are plain data");
    line.push(b'\n');
    Bytes::from(line)
}
