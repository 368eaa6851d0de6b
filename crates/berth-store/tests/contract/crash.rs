use crate::place::{Place, job, on_both, options, ticks};
use berth_store::{Batch, Error, JobFilter, Store, Writer};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

on_both!(a_writer_that_is_killed_loses_nothing_that_it_acknowledged);

/// Set for the process that is to be killed.
const URL: &str = "BERTH_TEST_CRASH_URL";

/// Becomes the writer, once the one before is really gone.
async fn take_over(store: &Store) -> Writer {
    loop {
        match store.writer("next").await {
            Ok(writer) => return writer,
            Err(Error::Locked { .. }) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
#[ignore = "run by the test below, which kills it"]
async fn commit_until_killed() {
    let url = std::env::var(URL).expect("named by the test below");
    let store = Store::open(&url, options()).await.unwrap();
    let mut writer = take_over(&store).await;
    loop {
        let first = writer.last_seq() + 1;
        let last = first + first % 7;
        let batch = Batch { jobs: (first..=last).map(job).collect(), ..ticks(first..=last) };
        writer.commit(&batch).await.unwrap();
        println!("acknowledged {last}");
        std::io::stdout().flush().unwrap();
    }
}

fn start_child(url: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::commit_until_killed", "--ignored", "--nocapture"])
        .env(URL, url)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Kills the child after some acknowledgements, and gives the last one that it made.
fn kill_after(mut child: Child, acknowledgements: usize) -> u64 {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut last = 0;
    let mut note = |line: String| {
        let Some((_, number)) = line.split_once("acknowledged ") else {
            return false;
        };
        last = number.parse().unwrap();
        true
    };
    let mut seen = 0;
    while seen < acknowledgements {
        let line = lines.next().expect("the child goes on until it is killed").unwrap();
        seen += usize::from(note(line));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // What it said before it was killed counts, also if nobody had read it yet.
    lines.map_while(Result::ok).for_each(|line| {
        note(line);
    });
    last
}

async fn a_writer_that_is_killed_loses_nothing_that_it_acknowledged(place: Place) {
    for acknowledgements in [1, 2, 7, 20, 33] {
        let child = start_child(&place.url);
        let acknowledged =
            tokio::task::spawn_blocking(move || kill_after(child, acknowledgements)).await.unwrap();
        let store = place.open().await;
        let writer = take_over(&store).await;
        let last = writer.last_seq();
        // One commit more may have been on its way, and that one whole.
        assert!((acknowledged..=acknowledged + 7).contains(&last), "{acknowledged}, {last}");
        let mut loading = store.load().await.unwrap();
        let mut events = 0;
        loop {
            match loading.next_page().await.unwrap().len() {
                0 => break,
                more => events += more as u64,
            }
        }
        assert_eq!(events, last);
        let jobs: u64 = store.count_jobs(&JobFilter::default()).await.unwrap().values().sum();
        assert_eq!(jobs, last);
        writer.close().await.unwrap();
    }
}
