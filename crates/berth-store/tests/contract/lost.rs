//! A database that is lost while a server writes to it: nothing is acknowledged from then on.

use crate::place::{Place, options, shared_server, ticks};
use berth_store::{Error, Retry, Store, Writer, sqlite_url};
use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;
use tokio::time::timeout;

/// Not a measure of speed: without an answer the test has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with a database in it, which a writer has written to twice.
async fn opened(home: &Path) -> (Store, Writer) {
    let url = sqlite_url(&home.join("berth.db"));
    let store = Store::open(&url, options()).await.unwrap();
    let mut writer = store.writer("a").await.unwrap();
    for seq in 1..=2 {
        writer.commit(&ticks(seq..=seq)).await.unwrap();
    }
    assert_eq!(store.last_seq().await.unwrap(), 2);
    (store, writer)
}

/// Ruins a database and sees that the next commit is refused, and that whoever waits is told.
async fn check(says: &str, ruin: impl FnOnce(&Path)) {
    let parent = tempfile::tempdir().unwrap();
    let home = parent.path().join("home");
    fs::create_dir(&home).unwrap();
    let (store, mut writer) = opened(&home).await;
    let healthy = timeout(Duration::from_millis(20), store.lost()).await;
    assert!(healthy.is_err(), "{healthy:?}");
    ruin(&home);
    let error = timeout(PATIENCE, store.lost()).await.expect("somebody is told");
    assert!(matches!(&error, Error::Lost { why, .. } if why.contains(says)), "{error}");
    assert!(error.to_string().contains("restore a backup"), "{error}");
    let error = writer.commit(&ticks(3..=3)).await.unwrap_err();
    assert!(matches!(error, Error::Lost { .. }), "{error}");
    assert_eq!(error.retry(), Retry::Never);
}

fn cut(path: &Path, bytes: u64) {
    File::options().write(true).open(path).unwrap().set_len(bytes).unwrap();
}

#[tokio::test]
async fn nothing_is_acknowledged_after_the_file_was_deleted() {
    check("deleted", |home| fs::remove_file(home.join("berth.db")).unwrap()).await;
}

#[tokio::test]
async fn nothing_is_acknowledged_after_the_write_ahead_log_was_deleted() {
    check("its write-ahead log was deleted", |home| {
        fs::remove_file(home.join("berth.db-wal")).unwrap();
    })
    .await;
}

#[tokio::test]
async fn nothing_is_acknowledged_after_a_file_was_cut_short() {
    check("its file was cut", |home| cut(&home.join("berth.db"), 0)).await;
    check("its write-ahead log was cut", |home| cut(&home.join("berth.db-wal"), 0)).await;
}

#[tokio::test]
async fn nothing_is_acknowledged_after_the_folder_was_renamed() {
    check("moved away", |home| fs::rename(home, home.with_extension("old")).unwrap()).await;
}

#[tokio::test]
async fn nothing_is_acknowledged_after_another_file_took_the_place() {
    check("replaced", |home| {
        fs::copy(home.join("berth.db"), home.join("copy")).unwrap();
        fs::rename(home.join("copy"), home.join("berth.db")).unwrap();
    })
    .await;
}

#[tokio::test]
async fn damage_that_a_reader_finds_is_told_to_whoever_waits() {
    let place = Place::sqlite();
    let store = place.open().await;
    store.writer("a").await.unwrap().commit(&ticks(1..=5_000)).await.unwrap();
    store.close().await;
    place.sql("PRAGMA wal_checkpoint(TRUNCATE)").await;
    // Opened before it is damaged, and without any page of it in memory.
    let store = place.open().await;
    let writer = store.writer("b").await.unwrap();
    let path = place.file("berth.db");
    let length = fs::metadata(&path).unwrap().len();
    let mut bytes = fs::read(&path).unwrap();
    bytes[8_192..].fill(0xa5);
    use std::os::unix::fs::FileExt;
    let file = File::options().write(true).open(&path).unwrap();
    file.write_all_at(&bytes, 0).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), length, "it is the same file");
    let waits = tokio::spawn({
        let store = store.clone();
        async move { store.lost().await }
    });
    let read = async {
        loop {
            let mut loading = match store.load().await {
                Ok(loading) => loading,
                Err(error) => return error,
            };
            if let Err(error) = loading.next_page().await {
                return error;
            }
        }
    };
    let error = timeout(PATIENCE, read).await.unwrap();
    assert_eq!(error.retry(), Retry::Never, "{error}");
    let lost = timeout(PATIENCE, waits).await.expect("told").unwrap();
    assert!(matches!(&lost, Error::Lost { .. }), "{lost}");
    drop(writer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_postgresql_that_was_dropped_is_lost_for_good() {
    let place = Place::on(shared_server());
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    writer.commit(&ticks(1..=1)).await.unwrap();
    let name = place.url.rsplit_once('/').unwrap().1;
    shared_server().sql("postgres", &format!("DROP DATABASE {name} WITH (FORCE)"));
    let lost = timeout(PATIENCE, store.lost()).await.expect("somebody is told");
    assert!(matches!(&lost, Error::Lost { .. }), "{lost}");
    // Its connections have ended: that alone might pass. Trying again tells.
    let written = async {
        loop {
            let error = writer.commit(&ticks(2..=2)).await.expect_err("there is no database");
            if error.retry() == Retry::Never {
                return error;
            }
            if let Err(error) = writer.recover().await
                && error.retry() == Retry::Never
            {
                return error;
            }
        }
    };
    let error = timeout(PATIENCE, written).await.expect("it gives up");
    assert!(matches!(&error, Error::Lost { .. }), "{error}");
}
