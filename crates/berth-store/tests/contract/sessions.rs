//! Browsers that are signed in, and who somebody is by a provider of identities.

use crate::documents::people;
use crate::place::{Place, on_both};
use berth_model::Time;
use berth_store::{Batch, Error, IdentityRow, SessionRow, UserRow};

on_both!(
    a_session_is_kept_found_by_its_user_and_deleted,
    a_user_takes_sessions_and_identities_along,
    a_session_of_nobody_is_refused,
);

pub fn session(id: &str, user: &str) -> SessionRow {
    SessionRow {
        id: id.into(),
        user: user.into(),
        hash: "c0ffee".into(),
        scopes: "all".into(),
        means: "token".into(),
        token: Some("t1".into()),
        created: Time(1),
        expires: Time(100),
        last_used: Time(1),
        from: "192.0.2.1".into(),
        agent: "a browser".into(),
        hint: (0..=255).collect(),
        key_hash: Some("decaf".into()),
    }
}

pub fn identity(id: &str, user: &str) -> IdentityRow {
    IdentityRow {
        id: id.into(),
        user: user.into(),
        issuer: "https://id.example".into(),
        subject: format!("subject of {user}"),
        created: Time(1),
    }
}

async fn a_session_is_kept_found_by_its_user_and_deleted(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    let mut batch = people();
    let signed_out =
        SessionRow { token: None, hint: Vec::new(), key_hash: None, ..session("s2", "ada") };
    batch.put(&session("s1", "ada"));
    batch.put(&signed_out);
    batch.put(&session("s3", "grace"));
    batch.put(&identity("i1", "ada"));
    writer.commit(&batch).await.unwrap();
    assert_eq!(store.get::<SessionRow>("s1").await.unwrap(), Some(session("s1", "ada")));
    assert_eq!(store.sessions_of("ada").await.unwrap().len(), 2);
    assert_eq!(store.count_sessions(Time(99), Time(0)).await.unwrap(), 3);
    assert_eq!(store.count_sessions(Time(100), Time(0)).await.unwrap(), 0);
    assert_eq!(store.count_sessions(Time(99), Time(1)).await.unwrap(), 0);
    assert_eq!(store.identities_of("ada").await.unwrap(), [identity("i1", "ada")]);
    assert_eq!(store.get::<IdentityRow>("i1").await.unwrap(), Some(identity("i1", "ada")));

    let used = SessionRow { last_used: Time(50), ..signed_out };
    let mut batch = Batch::default();
    batch.touch(&used);
    assert!(!batch.changes_rights());
    batch.delete::<SessionRow>("s1");
    assert!(batch.changes_rights());
    writer.commit(&batch).await.unwrap();
    assert_eq!(store.sessions_of("ada").await.unwrap(), [used]);
}

async fn a_user_takes_sessions_and_identities_along(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    let mut batch = people();
    batch.put(&session("s1", "ada"));
    batch.put(&session("s2", "grace"));
    batch.put(&identity("i1", "ada"));
    writer.commit(&batch).await.unwrap();
    let mut batch = Batch::default();
    batch.delete::<UserRow>("ada");
    writer.commit(&batch).await.unwrap();
    assert_eq!(store.every::<SessionRow>().await.unwrap(), [session("s2", "grace")]);
    assert_eq!(store.every::<IdentityRow>().await.unwrap(), []);
}

async fn a_session_of_nobody_is_refused(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    let mut batch = Batch::default();
    batch.put(&session("s1", "nobody"));
    assert!(matches!(writer.commit(&batch).await, Err(Error::Conflict { .. })));
}
