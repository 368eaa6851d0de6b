use crate::place::{Place, on_both, options, ticks};
use berth_store::{Error, Retry, Store, sqlite_url};
use berth_testbed::Account;
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Command;

on_both!(
    a_database_of_a_newer_version_is_left_alone,
    a_database_whose_schema_was_altered_is_left_alone,
    tables_of_something_else_are_left_alone,
    opening_again_changes_nothing,
);

async fn refusal(place: &Place) -> Error {
    Store::open(&place.url, options()).await.unwrap_err()
}

async fn a_database_of_a_newer_version_is_left_alone(place: Place) {
    place.open().await.writer("a").await.unwrap().commit(&ticks(1..=1)).await.unwrap();
    place.sql("INSERT INTO schema_steps VALUES (99, 'from the future')").await;
    let error = refusal(&place).await;
    assert!(matches!(error, Error::Newer { found: 99, .. }), "{error}");
    assert!(error.to_string().contains("restore a backup"), "{error}");
    place.sql("DELETE FROM schema_steps WHERE version = 99").await;
    assert_eq!(place.open().await.last_seq().await.unwrap(), 1);
}

async fn a_database_whose_schema_was_altered_is_left_alone(place: Place) {
    place.open().await;
    place.sql("UPDATE schema_steps SET checksum = 'other' WHERE version = 1").await;
    assert!(matches!(refusal(&place).await, Error::Altered { version: 1, .. }));
}

async fn tables_of_something_else_are_left_alone(place: Place) {
    if place.url.starts_with("sqlite") {
        fs::write(place.file("berth.db"), "").unwrap();
    }
    place.sql("CREATE TABLE invoices (id BIGINT PRIMARY KEY)").await;
    assert!(matches!(refusal(&place).await, Error::Foreign { .. }));
}

async fn opening_again_changes_nothing(place: Place) {
    let store = place.open().await;
    // The writer's lock is not needed where there is nothing to bring up to date.
    let mut writer = store.writer("a").await.unwrap();
    writer.commit(&ticks(1..=1)).await.unwrap();
    let again = place.open().await;
    assert_eq!(again.last_seq().await.unwrap(), 1);
    writer.commit(&ticks(2..=2)).await.unwrap();
}

#[tokio::test]
async fn a_new_file_belongs_to_its_owner_alone() {
    let place = Place::sqlite();
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    writer.commit(&ticks(1..=1)).await.unwrap();
    for name in ["berth.db", "berth.db-wal", "berth.db-shm", "berth.db.lock"] {
        let mode = fs::metadata(place.file(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[tokio::test]
async fn a_file_that_is_no_database_is_left_alone() {
    let place = Place::sqlite();
    let text = "this is a letter, not a database\n".repeat(100);
    fs::write(place.file("berth.db"), &text).unwrap();
    let error = refusal(&place).await;
    assert!(matches!(error, Error::NotDatabase { .. }), "{error}");
    assert_eq!(error.retry(), Retry::Never);
    assert_eq!(fs::read_to_string(place.file("berth.db")).unwrap(), text);
}

#[tokio::test]
async fn a_corrupt_file_is_told_from_a_whole_one() {
    let place = Place::sqlite();
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    writer.commit(&ticks(1..=5_000)).await.unwrap();
    writer.close().await.unwrap();
    store.close().await;
    place.sql("PRAGMA wal_checkpoint(TRUNCATE)").await;
    let file = fs::File::options().write(true).open(place.file("berth.db")).unwrap();
    let length = file.metadata().unwrap().len();
    // Pages in the middle, as a failing disk would leave them.
    for page in (4..length / 4_096).step_by(3) {
        file.write_all_at(&[0xa5; 4_096], page * 4_096).unwrap();
    }
    let error = refusal(&place).await;
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    assert!(error.to_string().contains("restore a backup"), "{error}");
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_named() {
    let place = Place::sqlite();
    let path = place.file("nowhere").join("berth.db");
    let error = Store::open(&sqlite_url(&path), options()).await.unwrap_err();
    assert!(matches!(&error, Error::Io { path: named, .. } if *named == path), "{error}");
}

/// Set for the process that has to try without the rights of root.
const FOLDER: &str = "BERTH_TEST_READ_ONLY_FOLDER";

#[tokio::test]
#[ignore = "run by the test below, as a user without rights"]
async fn open_in_a_read_only_folder() {
    let folder = PathBuf::from(std::env::var_os(FOLDER).expect("named by the test below"));
    for name in ["berth.db", "new.db"] {
        let error = Store::open(&sqlite_url(&folder.join(name)), options()).await.unwrap_err();
        assert_eq!(error.retry(), Retry::Never);
        println!("{name}: {error}");
    }
}

#[tokio::test]
async fn a_read_only_folder_is_a_clear_error() {
    let place = Place::sqlite();
    place.open().await.close().await;
    let folder = place.file("berth.db").parent().unwrap().to_owned();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "damage::open_in_a_read_only_folder", "--ignored", "--nocapture"]);
    child.env(FOLDER, &folder);
    if let Some(account) = Account::unprivileged() {
        account.give(&place.file("berth.db")).unwrap();
        account.run(&mut child);
    }
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
    let output = child.output().unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("cannot be written"), "{text}");
    assert!(text.contains("cannot create the database"), "{text}");
}
