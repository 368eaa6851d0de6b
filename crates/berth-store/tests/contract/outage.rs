use crate::place::{Place, ticks};
use berth_store::{Error, Retry, Store, Writer};
use berth_testbed::{Postgres, Stop};

/// Commits until it works, as a server would.
async fn commit(writer: &mut Writer, seq: u64) {
    loop {
        let error = match writer.commit(&ticks(seq..=seq)).await {
            Ok(()) => return,
            Err(error) => error,
        };
        assert_ne!(error.retry(), Retry::Never, "{error}");
        if matches!(error, Error::Unresolved { .. })
            && let Ok(recovered) = writer.recover().await
            && recovered.applied
        {
            return;
        }
    }
}

async fn assert_away(store: &Store, writer: &mut Writer, next: u64) {
    let error = writer.commit(&ticks(next..=next)).await.unwrap_err();
    assert_eq!(error.retry(), Retry::Later, "{error}");
    let error = store.last_seq().await.unwrap_err();
    assert_eq!(error.retry(), Retry::Later, "{error}");
    assert!(!format!("{error:?}").contains("a-password-for-tests"), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_goes_on_after_postgres_was_stopped_and_started() {
    let mut server = Postgres::start();
    let place = Place::on(&server);
    let options = berth_store::Options {
        timeout: std::time::Duration::from_secs(3),
        ..crate::place::options()
    };
    let store = Store::open(&place.url, options).await.unwrap();
    let mut writer = store.writer("alpha").await.unwrap();
    let mut seq = 0;
    for how in [Stop::Fast, Stop::Immediate] {
        seq += 1;
        commit(&mut writer, seq).await;
        server.stop(how);
        assert_away(&store, &mut writer, seq + 1).await;
        server.resume();
        seq += 1;
        commit(&mut writer, seq).await;
        assert_eq!(store.last_seq().await.unwrap(), seq);
        let error = store.writer("beta").await.unwrap_err();
        assert!(matches!(error, Error::Locked { .. }), "{error}");
    }
}

/// The server crashes in the middle of a stream of commits. What was acknowledged is there, what
/// was in doubt is found out about, and nothing is there twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_of_postgres_in_the_middle_of_commits_loses_nothing() {
    let mut server = Postgres::start();
    let place = Place::on(&server);
    let store = place.open().await;
    let mut writer = store.writer("alpha").await.unwrap();
    let (report, mut reports) = tokio::sync::mpsc::unbounded_channel();
    let stream = tokio::spawn(async move {
        for seq in 1..=600 {
            commit(&mut writer, seq).await;
            let _ = report.send(seq);
        }
        writer
    });
    for crash_at in [100, 300] {
        while reports.recv().await.is_some_and(|seq| seq < crash_at) {}
        server.stop(Stop::Immediate);
        server.resume();
    }
    let writer = stream.await.unwrap();
    assert_eq!(writer.last_seq(), 600);
    assert_eq!(store.events(0, 1_000).await.unwrap(), ticks(1..=600).events);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_worth_another_try() {
    let url = "postgres://berth:s3cret@127.0.0.1:1/berth";
    let error = Store::open(url, crate::place::options()).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    assert_eq!(error.retry(), Retry::Later);
    assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
}

#[tokio::test]
async fn a_wrong_password_is_not_worth_another_try() {
    let place = Place::postgres();
    let url = place.url.replace("a-password-for-tests", "wrong");
    let error = Store::open(&url, crate::place::options()).await.unwrap_err();
    assert_eq!(error.retry(), Retry::Never, "{error}");
}
