use crate::place::{Place, job, on_both, ticks};
use berth_store::{Batch, Error, JobFilter, Retry, Store};
use berth_testbed::Postgres;

on_both!(
    a_second_writer_is_told_who_is_writing,
    the_right_to_write_passes_on_when_it_is_given_up,
    the_right_to_write_passes_on_when_it_is_dropped,
    readers_do_not_wait_for_the_writer,
);

async fn a_second_writer_is_told_who_is_writing(place: Place) {
    let store = place.open().await;
    let _writer = store.writer("alpha (process 17)").await.unwrap();
    let other = place.open().await;
    let error = other.writer("beta").await.unwrap_err();
    assert!(matches!(&error, Error::Locked { holder, .. } if holder == "alpha (process 17)"));
    assert_eq!(error.retry(), Retry::Later);
    assert!(error.to_string().contains("in use by alpha (process 17)"), "{error}");
}

async fn the_right_to_write_passes_on_when_it_is_given_up(place: Place) {
    let store = place.open().await;
    let mut first = store.writer("alpha").await.unwrap();
    first.commit(&ticks(1..=3)).await.unwrap();
    first.close().await.unwrap();
    let mut second = place.open().await.writer("beta").await.unwrap();
    assert_eq!(second.last_seq(), 3);
    second.commit(&ticks(4..=4)).await.unwrap();
}

async fn the_right_to_write_passes_on_when_it_is_dropped(place: Place) {
    let store = place.open().await;
    drop(store.writer("alpha").await.unwrap());
    // A server needs a moment to notice that a connection is gone.
    let second = loop {
        match store.writer("beta").await {
            Err(Error::Locked { .. }) => tokio::task::yield_now().await,
            other => break other,
        }
    };
    assert_eq!(second.unwrap().last_seq(), 0);
}

async fn readers_do_not_wait_for_the_writer(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    let reading = store.clone();
    let reader = tokio::spawn(async move {
        let mut last = 0;
        while last < 200 {
            // Whoever sees an event sees its job: both were written together.
            let seq = reading.last_seq().await.unwrap();
            let counts = reading.count_jobs(&JobFilter::default()).await.unwrap();
            assert!(counts.values().sum::<u64>() >= seq);
            assert!(seq >= last);
            last = seq;
        }
    });
    for seq in 1..=200 {
        let batch = Batch { jobs: vec![job(seq)], ..ticks(seq..=seq) };
        writer.commit(&batch).await.unwrap();
    }
    reader.await.unwrap();
}

async fn assert_fenced(mut loser: berth_store::Writer, store: &Store, last_seq: u64) {
    for _ in 0..2 {
        let next = loser.last_seq() + 1;
        let error = loser.commit(&ticks(next..=next)).await.unwrap_err();
        assert!(matches!(&error, Error::Fenced { holder, .. } if holder == "beta"), "{error}");
        assert_eq!(error.retry(), Retry::Never);
        assert_eq!(store.last_seq().await.unwrap(), last_seq);
    }
    assert!(matches!(loser.recover().await, Err(Error::Fenced { .. })));
}

/// Somebody deletes the lock file: the lock then holds nothing, and only the epoch is left.
#[tokio::test]
async fn a_writer_whose_lock_file_is_gone_is_fenced() {
    let place = Place::sqlite();
    let store = place.open().await;
    let mut loser = store.writer("alpha").await.unwrap();
    loser.commit(&ticks(1..=1)).await.unwrap();
    std::fs::remove_file(place.file("berth.db.lock")).unwrap();
    let mut winner = store.writer("beta").await.unwrap();
    assert_fenced(loser, &store, 1).await;
    winner.commit(&ticks(2..=2)).await.unwrap();
}

#[tokio::test]
async fn a_writer_whose_connection_was_ended_is_fenced_once_another_has_taken_over() {
    let server = Postgres::start();
    let place = Place::on(&server);
    let store = place.open().await;
    let mut loser = store.writer("alpha").await.unwrap();
    loser.commit(&ticks(1..=1)).await.unwrap();
    end_connections(&server);
    let mut winner = store.writer("beta").await.unwrap();
    winner.commit(&ticks(2..=2)).await.unwrap();

    // The first try finds only that the connection is gone.
    let error = loser.commit(&ticks(2..=2)).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. } | Error::Fenced { .. }), "{error}");
    assert_fenced(loser, &store, 2).await;
    winner.commit(&ticks(3..=3)).await.unwrap();
}

#[tokio::test]
async fn a_writer_whose_connection_was_ended_goes_on_if_nobody_has_taken_over() {
    let server = Postgres::start();
    let place = Place::on(&server);
    let store = place.open().await;
    let mut writer = store.writer("alpha").await.unwrap();
    writer.commit(&ticks(1..=1)).await.unwrap();
    end_connections(&server);
    let error = writer.commit(&ticks(2..=2)).await.unwrap_err();
    assert_eq!(error.retry(), Retry::Later, "{error}");
    writer.commit(&ticks(2..=2)).await.unwrap();
    // It holds the lock again.
    assert!(matches!(store.writer("beta").await, Err(Error::Locked { .. })));
}

fn end_connections(server: &Postgres) {
    server.sql(
        "postgres",
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname LIKE 'test%'",
    );
}
