//! A full disk. SQLite can be told to take it for full, on the connection that writes.

use super::Writer;
use crate::error::{Error, Retry};
use crate::rows::SettingRow;
use crate::{Batch, Options, Store, sqlite_url};
use berth_model::{Event, Stamped, Time};
use sqlx::{AssertSqlSafe, raw_sql};

async fn limit_pages(writer: &mut Writer, pages: u32) {
    let sql = AssertSqlSafe(format!("PRAGMA max_page_count = {pages}"));
    raw_sql(sql).execute(writer.transaction()).await.unwrap();
}

fn large(seq: u64) -> Batch {
    let mut batch = Batch {
        events: vec![Stamped { seq, at: Time(0), event: Event::Tick }],
        ..Batch::default()
    };
    batch.put(&SettingRow { name: format!("large {seq}"), value: "x".repeat(1 << 20) });
    batch
}

#[tokio::test]
async fn a_full_disk_refuses_a_batch_whole_and_takes_it_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let url = sqlite_url(&folder.path().join("berth.db"));
    let store = Store::open(&url, Options::default()).await.unwrap();
    let mut writer = store.writer("a").await.unwrap();
    limit_pages(&mut writer, 400).await;
    writer.commit(&large(1)).await.unwrap();

    let error = writer.commit(&large(2)).await.unwrap_err();
    assert!(matches!(error, Error::Full { .. }), "{error}");
    assert_eq!(error.retry(), Retry::Later);
    assert!(error.to_string().contains("no room"), "{error}");
    assert_eq!(writer.last_seq(), 1);
    assert_eq!(store.last_seq().await.unwrap(), 1);
    let half_done: Option<SettingRow> = store.get("large 2").await.unwrap();
    assert_eq!(half_done, None);

    // It may have had to connect anew since; the limit was the old connection's.
    writer.recover().await.unwrap();
    limit_pages(&mut writer, 4_000).await;
    writer.commit(&large(2)).await.unwrap();
    assert_eq!(store.last_seq().await.unwrap(), 2);
}
