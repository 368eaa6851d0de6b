use crate::documents::{people, secret};
use crate::place::{Place, audit, cost, job, lease, on_both, options, ticks};
use berth_model::{JobId, Snapshot, Time};
use berth_store::{Attachment, AuditCheck, Error, JobFilter, Store, Summary, attached, restore};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::pin::Pin;
use tokio::fs::File;
use tokio::io::{AsyncWriteExt, BufWriter};

on_both!(
    a_backup_restores_into_either_database,
    a_backup_is_private_and_overwrites_nothing,
    a_backup_can_be_made_while_somebody_writes,
    a_damaged_backup_is_refused,
    a_backup_restores_only_into_an_empty_database,
    a_backup_holds_every_table,
    what_is_attached_follows_the_rows_and_is_missed_if_it_is_gone,
);

async fn fill(store: &Store) {
    let mut writer = store.writer("alpha").await.unwrap();
    let mut batch = people();
    batch.put(&secret("vision", vec![0, 255, 7]));
    batch.events = ticks(1..=700).events;
    batch.jobs = (1..=150).map(job).collect();
    batch.jobs[3].name = "odd \u{1F680} \" \\ \n \u{7f} name".into();
    batch.leases = vec![lease(JobId::new(1), 1, Time(0))];
    batch.costs = vec![cost(JobId::new(1), (Time(0), Time(9)), -3), {
        let mut idle = cost(JobId::new(1), (Time(0), Time(9)), i64::MAX);
        idle.lease = None;
        idle
    }];
    batch.audit = vec![audit("submit"), audit("stop")];
    writer.commit(&batch).await.unwrap();
    writer.snapshot(&Snapshot { seq: 600, ..Snapshot::default() }, |_| Vec::new()).await.unwrap();
    writer.close().await.unwrap();
}

async fn made(place: &Place, path: &Path) -> Summary {
    let store = place.open().await;
    fill(&store).await;
    store.backup(path).await.unwrap()
}

async fn a_backup_restores_into_either_database(place: Place) {
    let path = place.file("backup");
    let summary = made(&place, &path).await;
    assert!(matches!(&summary.audit, AuditCheck::Whole(verified) if verified.rows == 2));
    for target in [Place::sqlite(), Place::postgres()] {
        assert_eq!(restore(&path, &target.url, options()).await.unwrap(), summary);
        let restored = target.open().await;
        let again = target.file("again");
        restored.backup(&again).await.unwrap();
        assert_eq!(fs::read(&again).unwrap(), fs::read(&path).unwrap());
        let mut writer = restored.writer("beta").await.unwrap();
        assert_eq!(writer.last_seq(), 700);
        writer.commit(&ticks(701..=701)).await.unwrap();
    }
}

async fn a_backup_is_private_and_overwrites_nothing(place: Place) {
    let path = place.file("backup");
    made(&place, &path).await;
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let before = fs::read(&path).unwrap();
    let error = place.open().await.backup(&path).await.unwrap_err();
    assert!(matches!(error, Error::Exists { .. }), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
    let names = fs::read_dir(path.parent().unwrap()).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name.to_str().unwrap().ends_with(".part")), "{names:?}");
}

async fn a_backup_can_be_made_while_somebody_writes(place: Place) {
    let store = place.open().await;
    fill(&store).await;
    let mut writer = store.writer("alpha").await.unwrap();
    let path = place.file("backup");
    let (done, mut wait) = tokio::sync::oneshot::channel::<()>();
    let backup = {
        let (store, path) = (store.clone(), path.clone());
        tokio::spawn(async move {
            let summary = store.backup(&path).await.unwrap();
            drop(done);
            summary
        })
    };
    let mut seq = 700;
    while wait.try_recv() == Err(tokio::sync::oneshot::error::TryRecvError::Empty) {
        seq += 1;
        let mut batch = ticks(seq..=seq);
        batch.jobs = vec![job(seq)];
        batch.audit = vec![audit("submit")];
        writer.commit(&batch).await.unwrap();
    }
    backup.await.unwrap();
    // It is the database as it was at one moment: events and jobs of the same commits.
    let target = Place::sqlite();
    restore(&path, &target.url, options()).await.unwrap();
    let restored = target.open().await;
    let last = restored.last_seq().await.unwrap();
    assert!((700..=seq).contains(&last));
    let jobs: u64 = restored.count_jobs(&JobFilter::default()).await.unwrap().values().sum();
    assert_eq!(jobs, 150 + last - 700);
    assert_eq!(restored.events(699, 10_000).await.unwrap().len() as u64, last - 699);
}

async fn a_damaged_backup_is_refused(place: Place) {
    let path = place.file("backup");
    made(&place, &path).await;
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let cases = [
        ("cut off", lines[..lines.len() - 1].join("\n")),
        ("cut off in a line", text[..text.len() - 10].to_owned()),
        ("a row less", text.replacen(&format!("{}\n", lines[9]), "", 1)),
        ("a changed value", text.replacen("\"ada\"", "\"eve\"", 1)),
        ("something else", "hello\n".to_owned()),
        ("empty", String::new()),
    ];
    let target = Place::sqlite();
    for (what, damaged) in cases {
        let file = place.file("damaged");
        fs::write(&file, damaged).unwrap();
        let error = restore(&file, &target.url, options()).await.unwrap_err();
        assert!(matches!(error, Error::BadBackup { .. }), "{what}: {error}");
    }
    restore(&path, &target.url, options()).await.unwrap();
}

async fn a_backup_restores_only_into_an_empty_database(place: Place) {
    let path = place.file("backup");
    made(&place, &path).await;
    let error = restore(&path, &place.url, options()).await.unwrap_err();
    assert!(matches!(error, Error::NotEmpty { .. }), "{error}");
    // A database that was only opened is empty.
    let target = Place::sqlite();
    target.open().await;
    restore(&path, &target.url, options()).await.unwrap();
}

struct Lines(&'static str);

impl Attachment for Lines {
    fn name(&self) -> &str {
        "words"
    }

    fn write<'a>(
        &'a self,
        file: &'a mut BufWriter<File>,
    ) -> Pin<Box<dyn Future<Output = std::io::Result<()>> + Send + 'a>> {
        Box::pin(file.write_all(self.0.as_bytes()))
    }
}

async fn what_is_attached_follows_the_rows_and_is_missed_if_it_is_gone(place: Place) {
    let path = place.file("backup");
    let store = place.open().await;
    fill(&store).await;
    let words = Lines("one\n[two]\n");
    let summary = store.backup_with(&path, Some(&words)).await.unwrap();
    let mut lines = attached(&path, "words").await.unwrap().expect("they are attached");
    assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("one"));
    assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("[two]"));
    assert_eq!(lines.next_line().await.unwrap(), None);
    assert!(attached(&path, "other").await.unwrap().is_none());
    assert_eq!(restore(&path, &Place::sqlite().url, options()).await.unwrap(), summary);
    let text = fs::read_to_string(&path).unwrap();
    let cut = place.file("cut");
    fs::write(&cut, text.strip_suffix(words.0).unwrap()).unwrap();
    let error = restore(&cut, &Place::sqlite().url, options()).await.unwrap_err();
    assert!(error.to_string().contains("its part with words is missing"), "{error}");
    // A backup without an attachment ends with its rows, in the format of older versions.
    let plain = place.file("plain");
    store.backup(&plain).await.unwrap();
    assert!(attached(&plain, "words").await.unwrap().is_none());
    let text = fs::read_to_string(&plain).unwrap();
    assert!(text.starts_with("{\"berth_backup\":1,"), "{text}");
    fs::write(&cut, format!("{text}more\n")).unwrap();
    let error = restore(&cut, &Place::sqlite().url, options()).await.unwrap_err();
    assert!(matches!(error, Error::BadBackup { .. }), "{error}");
}

/// A table that somebody adds and forgets here would be lost by every restore.
async fn a_backup_holds_every_table(place: Place) {
    let path = place.file("backup");
    made(&place, &path).await;
    let header: serde_json::Value =
        serde_json::from_str(fs::read_to_string(&path).unwrap().lines().next().unwrap()).unwrap();
    let schema = concat!(
        include_str!("../../migrations/0001_start.sql"),
        include_str!("../../migrations/0002_snapshot_parts.sql"),
        include_str!("../../migrations/0003_schedule_reason.sql"),
        include_str!("../../migrations/0004_keyed_audit.sql"),
        include_str!("../../migrations/0005_job_pages.sql"),
        include_str!("../../migrations/0006_figures.sql"),
        include_str!("../../migrations/0007_energy.sql"),
        include_str!("../../migrations/0008_sessions.sql"),
        include_str!("../../migrations/0009_portal.sql"),
        include_str!("../../migrations/0010_made_by.sql"),
        include_str!("../../migrations/0011_session_keys.sql"),
        include_str!("../../migrations/0012_blobs.sql")
    );
    let mut declared = Vec::new();
    for table in schema.split("CREATE TABLE ").skip(1) {
        let (name, rest) = table.split_once(" (\n").unwrap();
        let body = rest.split_once("\n)").unwrap().0;
        let columns: Vec<&str> = body
            .lines()
            .map(|line| line.split_whitespace().next().unwrap().trim_matches('"'))
            .filter(|word| *word != "PRIMARY")
            .collect();
        declared.push((name.to_owned(), columns.join(" ")));
    }
    for change in schema.split("ALTER TABLE ").skip(1) {
        let (name, rest) = change.split_once(" ADD COLUMN ").unwrap();
        let column = rest.split_whitespace().next().unwrap().trim_matches('"');
        let (_, columns) = declared.iter_mut().find(|(table, _)| table == name).unwrap();
        columns.push_str(&format!(" {column}"));
    }
    let saved = header["tables"].as_array().unwrap().iter().map(|table| {
        let columns = table["columns"].as_array().unwrap();
        let columns: Vec<&str> = columns.iter().map(|column| column[0].as_str().unwrap()).collect();
        (table["name"].as_str().unwrap().to_owned(), columns.join(" "))
    });
    assert_eq!(saved.collect::<Vec<_>>(), declared);
}
