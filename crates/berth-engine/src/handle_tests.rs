//! What callers and sites meet when as much waits for the loop as may wait.

use crate::handle::{Handle, Inlet};
use crate::input::{Act, Refused, Report, Request, Write, Written};
use crate::news::News;
use crate::team_tree::TeamTree;
use crate::testing::TestLoop;
use berth_model::{JobId, LeaseId, Observed, Time};
use berth_store::Batch;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// Longer than any test.
const LONG: Duration = Duration::from_secs(300);
/// A caller or a site that still waits after this does not go on by itself.
const MOMENT: Duration = Duration::from_millis(30);

/// A handle on whose queue so many requests may wait, and the loop's end of the queue.
fn handle(most: usize) -> (Handle, mpsc::Receiver<Request>) {
    let core = TestLoop::default().core;
    let (requests, taken) = mpsc::channel(most);
    let (_, teams) = watch::channel(Arc::new(TeamTree::of(&core.state)));
    let events = News::since(Time(0));
    (Handle::new(requests, Arc::new(Mutex::new(core)), events, teams, watch::channel(0).1), taken)
}

/// A request that its number tells from others.
fn cancel(number: u64) -> Write {
    let act = Act::Cancel { job: JobId::new(number), now: false };
    Write { act, ..Write::unnoted(Batch::default()) }
}

fn written(number: u64) -> Written {
    Written { job: Some(JobId::new(number)), at: Time(0), seq: number, repeated: false }
}

type Caller = JoinHandle<Result<Written, Refused>>;

fn call(handle: &Handle, number: u64) -> Caller {
    let handle = handle.clone();
    tokio::spawn(async move { handle.write_within(cancel(number), LONG).await })
}

/// A caller whose request is in the queue.
async fn call_and_wait_in_queue(
    handle: &Handle,
    taken: &mpsc::Receiver<Request>,
    number: u64,
) -> Caller {
    let before = taken.len();
    let caller = call(handle, number);
    while taken.len() == before {
        tokio::task::yield_now().await;
    }
    caller
}

/// Does as the loop does: takes the next request and answers it. Returns its number.
async fn carry_out_next(taken: &mut mpsc::Receiver<Request>) -> u64 {
    let Some(Request::Write(write, answer)) = taken.recv().await else {
        panic!("there is no request")
    };
    let Act::Cancel { job, .. } = write.act else { panic!("another request was sent") };
    answer.send(Ok(written(job.number))).unwrap();
    job.number
}

/// Carries out the two requests that wait, in the order in which they came.
async fn assert_both_are_carried_out_in_turn(
    taken: &mut mpsc::Receiver<Request>,
    first: Caller,
    second: Caller,
) {
    assert_eq!(carry_out_next(taken).await, 1);
    assert_eq!(carry_out_next(taken).await, 2);
    assert_eq!(first.await.unwrap(), Ok(written(1)));
    assert_eq!(second.await.unwrap(), Ok(written(2)));
}

#[tokio::test]
async fn a_caller_who_finds_no_room_until_the_timeout_is_refused_and_nothing_of_it_is_done() {
    let (handle, mut taken) = handle(2);
    let first = call_and_wait_in_queue(&handle, &taken, 1).await;
    let second = call_and_wait_in_queue(&handle, &taken, 2).await;
    assert_eq!(handle.write_within(cancel(3), MOMENT).await, Err(Refused::Overloaded));

    // Those who were there before get their answers.
    assert_both_are_carried_out_in_turn(&mut taken, first, second).await;
    // The refused request does not come after all, now that there is room.
    tokio::time::sleep(MOMENT).await;
    assert!(taken.try_recv().is_err());
    // A later one does.
    let fourth = call(&handle, 4);
    assert_eq!(carry_out_next(&mut taken).await, 4);
    assert_eq!(fourth.await.unwrap(), Ok(written(4)));
}

#[tokio::test]
async fn a_caller_who_finds_the_queue_full_is_taken_in_turn_once_there_is_room() {
    let (handle, mut taken) = handle(1);
    let first = call_and_wait_in_queue(&handle, &taken, 1).await;
    let second = call(&handle, 2);
    tokio::time::sleep(MOMENT).await;
    assert_eq!(taken.len(), 1);
    assert!(!second.is_finished());

    assert_both_are_carried_out_in_turn(&mut taken, first, second).await;
}

#[tokio::test]
async fn a_write_in_the_background_waits_for_room_and_is_never_refused_for_lack_of_it() {
    let (handle, mut taken) = handle(1);
    let first = call_and_wait_in_queue(&handle, &taken, 1).await;
    let other = handle.clone();
    let second = tokio::spawn(async move { other.write_eventually(cancel(2)).await });
    tokio::time::sleep(MOMENT).await;
    assert!(!second.is_finished());

    assert_both_are_carried_out_in_turn(&mut taken, first, second).await;
}

#[tokio::test]
async fn a_caller_who_waits_for_room_learns_that_the_server_stops() {
    let (handle, taken) = handle(1);
    let first = call_and_wait_in_queue(&handle, &taken, 1).await;
    let second = call(&handle, 2);
    tokio::time::sleep(MOMENT).await;
    drop(taken);
    assert_eq!(first.await.unwrap(), Err(Refused::Stopping));
    assert_eq!(second.await.unwrap(), Err(Refused::Stopping));
}

fn number<O: Copy>(report: Option<Report<O>>) -> O {
    match report {
        Some(Report::Site(number)) => number,
        _ => panic!("another report was sent"),
    }
}

#[tokio::test]
async fn a_site_that_finds_no_room_for_a_report_waits_and_its_reports_arrive_in_order() {
    let (reports, mut reported) = mpsc::channel(2);
    let inlet = Inlet::new(reports);
    let site = tokio::spawn(async move {
        for report in 0..7 {
            inlet.site(report).await;
        }
    });
    tokio::time::sleep(MOMENT).await;
    assert_eq!(reported.len(), 2);
    assert!(!site.is_finished());

    for expected in 0..7 {
        assert_eq!(number(reported.recv().await), expected);
    }
    site.await.unwrap();
    assert!(reported.recv().await.is_none());
}

#[tokio::test]
async fn a_thread_that_finds_no_room_for_a_report_blocks_until_there_is_some() {
    let (reports, mut reported) = mpsc::channel(1);
    let inlet = Inlet::new(reports);
    inlet.site(0).await;
    let lease = LeaseId { job: JobId::new(1), task: 0, attempt: 0 };
    let task = Observed::Started { lease, at: Time(1) };
    let watch = std::thread::spawn(move || inlet.blocking_task(task));
    tokio::time::sleep(MOMENT).await;
    assert_eq!(reported.len(), 1);
    assert!(!watch.is_finished());

    assert_eq!(number(reported.recv().await), 0);
    let report = reported.recv().await;
    assert!(matches!(&report, Some(Report::Task(seen)) if seen.lease() == lease), "{report:?}");
    watch.join().unwrap();
}
