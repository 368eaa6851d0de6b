//! A database that an earlier version wrote opens, and its log replays to the same decisions.

use berth_core::{State, vetted};
use berth_model::{Event, JobState, Stamped};
use berth_store::{JobFilter, Options, Store, sqlite_url};
use flate2::read::GzDecoder;
use std::io::Read;
use tempfile::TempDir;

/// One machine with four declared GPUs: nine jobs, one of them an array, that were done, failed,
/// were cancelled or put on hold.
const RECORDED: &[u8] = include_bytes!("../tests/data/before-rooms.db.gz");

async fn recorded(folder: &TempDir) -> Store {
    let mut database = Vec::new();
    GzDecoder::new(RECORDED).read_to_end(&mut database).unwrap();
    let path = folder.path().join("berth.db");
    std::fs::write(&path, database).unwrap();
    Store::open(&sqlite_url(&path), Options::default()).await.unwrap()
}

fn decisions(stamped: &Stamped) -> bool {
    matches!(&stamped.event, Event::Decided { decisions, .. } if !decisions.is_empty())
}

#[tokio::test]
async fn the_log_of_an_earlier_version_gives_the_same_decisions_byte_for_byte() {
    let folder = TempDir::new().unwrap();
    let events = recorded(&folder).await.events(0, 10_000).await.unwrap();
    let mut state = State::new();
    let mut compared = 0;
    let mut at = 0;
    while at < events.len() {
        if !decisions(&events[at]) {
            let _ = state.apply(&events[at]).unwrap();
            at += 1;
            continue;
        }
        // A plan was made here: this version makes the same one.
        let plan = state.plan();
        let (transactions, findings) = vetted(&state, &plan);
        assert!(findings.is_empty(), "{findings:?}");
        assert!(!transactions.is_empty(), "nothing is decided before event {}", events[at].seq);
        for transaction in transactions {
            let decided = Event::Decided { job: transaction.job, decisions: transaction.decisions };
            let planned = serde_json::to_string(&decided).unwrap();
            let logged = serde_json::to_string(&events[at].event).unwrap();
            assert_eq!(planned, logged, "event {}", events[at].seq);
            let _ = state.apply(&events[at]).unwrap();
            (at, compared) = (at + 1, compared + 1);
        }
    }
    assert_eq!(compared, 17, "all decisions of the log");
}

#[tokio::test]
async fn the_jobs_of_an_earlier_version_read_as_they_were_written() {
    let folder = TempDir::new().unwrap();
    let store = recorded(&folder).await;
    let rows = store.jobs(&JobFilter::default(), None, 100).await.unwrap();
    let count = |state| rows.iter().filter(|row| row.state == state).count();
    assert_eq!(rows.len(), 14);
    assert_eq!((count(JobState::Done), count(JobState::Failed)), (11, 1));
    assert_eq!((count(JobState::Cancelled), count(JobState::Paused)), (1, 1));
    for row in rows {
        let detail: crate::Detail = serde_json::from_str(&row.detail).unwrap();
        assert!(detail.workload.run().is_some(), "{}", row.name);
        // The stored form has not changed: what is read is written again as it was.
        let again = serde_json::to_value(&detail).unwrap();
        assert_eq!(again, serde_json::from_str::<serde_json::Value>(&row.detail).unwrap());
    }
}
