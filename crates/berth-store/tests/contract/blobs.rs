//! Objects, what teams call them, and versions of data.

use crate::place::{Place, on_both};
use berth_model::Time;
use berth_store::{
    Batch, BlobNameRow, BlobQuotaRow, BlobRow, DataVersionRow, Error, NamedSum, NamesQuery, Store,
    TeamRow,
};

on_both!(
    names_are_found_by_their_beginning_in_the_order_of_their_bytes,
    an_object_without_a_name_is_known_as_such_and_one_with_a_name_is_not_deleted,
    a_team_takes_its_names_versions_and_quota_along,
    sums_and_single_names_are_those_of_the_team_and_the_kind,
);

fn team(name: &str) -> TeamRow {
    TeamRow { name: name.into(), queue: name.into(), created: Time(1), detail: "{}".into() }
}

fn blob(sha256: &str) -> BlobRow {
    BlobRow {
        sha256: sha256.into(),
        md5: format!("md5 of {sha256}"),
        bytes: 10,
        created: Time(1),
        loose: None,
    }
}

fn name(team: &str, kind: &str, name: &str, sha256: &str) -> BlobNameRow {
    BlobNameRow {
        team: team.into(),
        kind: kind.into(),
        name: name.into(),
        sha256: sha256.into(),
        bytes: 10,
        created: Time(2),
        by: "ada".into(),
    }
}

fn version(team: &str, version: u64) -> DataVersionRow {
    DataVersionRow {
        team: team.into(),
        name: "c4".into(),
        version,
        hash: "x.dir".into(),
        bytes: 7,
        files: 2,
        parent: version.checked_sub(1),
        created: Time(3),
        by: "ada".into(),
        note: String::new(),
    }
}

async fn listed(store: &Store, prefix: &str, after: Option<&str>, limit: u32) -> Vec<String> {
    let query = NamesQuery { team: "nlp", kind: "artifact", prefix, after, limit };
    let rows = store.blob_names(query).await.unwrap();
    rows.into_iter().map(|row| row.name).collect()
}

async fn names_are_found_by_their_beginning_in_the_order_of_their_bytes(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    let mut batch = Batch::default();
    batch.put(&team("nlp"));
    batch.put(&blob("s1"));
    for one in ["a/b", "a/B", "a-b", "a/ü", "a/b/c", "b", "a_b", "a%b", "a"] {
        batch.put(&name("nlp", "artifact", one, "s1"));
    }
    writer.commit(&batch).await.unwrap();
    assert_eq!(listed(&store, "a/", None, 9).await, ["a/B", "a/b", "a/b/c", "a/ü"]);
    assert_eq!(listed(&store, "a/", Some("a/b"), 1).await, ["a/b/c"]);
    let last = "a/b/\u{10ffff}";
    assert_eq!(listed(&store, "a/", Some(last), 9).await, ["a/ü"]);
    let all = listed(&store, "", None, 99).await;
    assert_eq!(all, ["a", "a%b", "a-b", "a/B", "a/b", "a/b/c", "a/ü", "a_b", "b"]);
    assert_eq!(listed(&store, "a%", None, 9).await, ["a%b"], "no letter stands for others");
}

async fn an_object_without_a_name_is_known_as_such_and_one_with_a_name_is_not_deleted(
    place: Place,
) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    let mut batch = Batch::default();
    batch.put(&team("nlp"));
    for sha256 in ["s1", "s2", "s3"] {
        batch.put(&blob(sha256));
    }
    batch.put(&BlobRow { loose: Some(Time(5)), ..blob("s4") });
    batch.put(&BlobRow { loose: Some(Time(9)), ..blob("s5") });
    batch.put(&name("nlp", "artifact", "a", "s1"));
    batch.put(&name("nlp", "dvc", "b", "s4"));
    writer.commit(&batch).await.unwrap();
    let ids = |rows: Vec<BlobRow>| rows.into_iter().map(|row| row.sha256).collect::<Vec<_>>();
    let mut new = ids(store.newly_loose(9).await.unwrap());
    new.sort();
    assert_eq!(new, ["s2", "s3"]);
    assert_eq!(ids(store.named_again(9).await.unwrap()), ["s4"]);
    assert_eq!(ids(store.loose_since(Time(8), 9).await.unwrap()), [""; 0]);
    assert_eq!(ids(store.loose_since(Time(9), 9).await.unwrap()), ["s5"]);
    assert!(store.has_name("s1").await.unwrap() && !store.has_name("s2").await.unwrap());

    let mut batch = Batch::default();
    batch.delete::<BlobRow>("s1");
    let refused = writer.commit(&batch).await;
    assert!(matches!(refused, Err(Error::Conflict { .. })), "{refused:?}");
    let mut batch = Batch::default();
    batch.put(&name("nlp", "artifact", "c", "nothing"));
    assert!(matches!(writer.commit(&batch).await, Err(Error::Conflict { .. })));
    let mut batch = Batch::default();
    batch.delete::<BlobNameRow>(("nlp", "artifact", "a"));
    batch.delete::<BlobRow>("s1");
    writer.commit(&batch).await.unwrap();
    assert_eq!(store.get::<BlobRow>("s1").await.unwrap(), None);
}

async fn a_team_takes_its_names_versions_and_quota_along(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    let mut batch = Batch::default();
    batch.put(&team("nlp"));
    batch.put(&team("vision"));
    batch.put(&blob("s1"));
    for of in ["nlp", "vision"] {
        batch.put(&name(of, "artifact", "a", "s1"));
        batch.put(&version(of, 1));
        batch.put(&version(of, 12));
        batch.put(&version(of, 2));
        batch.put(&BlobQuotaRow { team: of.into(), bytes: 5 });
    }
    writer.commit(&batch).await.unwrap();
    let versions = store.data_versions("nlp", Some("c4")).await.unwrap();
    assert_eq!(versions, [version("nlp", 1), version("nlp", 2), version("nlp", 12)]);
    let one = store.get::<DataVersionRow>(("nlp", "c4", 12)).await.unwrap();
    assert_eq!(one, Some(version("nlp", 12)));
    assert_eq!(store.data_versions("nlp", Some("c5")).await.unwrap(), []);
    let mut batch = Batch::default();
    batch.delete::<TeamRow>("nlp");
    writer.commit(&batch).await.unwrap();
    assert_eq!(
        store.every::<BlobNameRow>().await.unwrap(),
        [name("vision", "artifact", "a", "s1")]
    );
    assert_eq!(store.every::<DataVersionRow>().await.unwrap().len(), 3);
    assert_eq!(store.every::<BlobQuotaRow>().await.unwrap().len(), 1);
}

async fn sums_and_single_names_are_those_of_the_team_and_the_kind(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    let mut batch = Batch::default();
    batch.put(&team("nlp"));
    batch.put(&team("vision"));
    batch.put(&blob("s1"));
    batch.put(&name("nlp", "artifact", "a", "s1"));
    batch.put(&name("nlp", "dvc", "a", "s1"));
    batch.put(&name("nlp", "dvc", "b", "s1"));
    batch.put(&name("vision", "dvc", "c", "s1"));
    writer.commit(&batch).await.unwrap();
    assert_eq!(store.named_sum("nlp").await.unwrap(), NamedSum { names: 3, bytes: 30 });
    let of_kind = store.named_sum_of("nlp", "dvc").await.unwrap();
    assert_eq!(of_kind, NamedSum { names: 2, bytes: 20 });
    assert_eq!(store.named_sum("nobody").await.unwrap(), NamedSum::default());
    let asked = ["a", "b", "c"].map(str::to_owned);
    let found = store.blob_names_among(("nlp", "dvc"), &asked).await.unwrap();
    assert_eq!(found.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(store.blob_names_among(("nlp", "dvc"), &[]).await.unwrap(), []);
}
