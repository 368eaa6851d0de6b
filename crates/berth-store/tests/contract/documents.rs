use crate::place::{Place, on_both};
use berth_model::{JobId, Time};
use berth_store::{
    Batch, Error, MemberRow, ProjectRow, ScheduleRow, SecretRow, SettingRow, TeamRow, TokenRow,
    UserRow,
};

on_both!(
    what_is_put_can_be_read_replaced_and_deleted,
    a_user_takes_tokens_and_memberships_along,
    a_token_for_nobody_is_refused,
    changes_are_made_in_their_order,
    sealed_bytes_come_back_as_they_were,
    schedules_that_are_due_are_found,
    pages_are_in_the_order_of_bytes,
);

pub fn user(name: &str) -> UserRow {
    UserRow {
        name: name.into(),
        full_name: format!("{name} the first"),
        role: None,
        created: Time(1),
        disabled: None,
    }
}

pub fn team(name: &str) -> TeamRow {
    TeamRow { name: name.into(), queue: name.into(), created: Time(1), detail: "{}".into() }
}

pub fn member(team: &str, user: &str) -> MemberRow {
    MemberRow { team: team.into(), user: user.into(), role: "researcher".into(), created: Time(1) }
}

pub fn token(id: &str, user: &str) -> TokenRow {
    TokenRow {
        id: id.into(),
        user: user.into(),
        name: "laptop".into(),
        hash: "c0ffee".into(),
        scopes: "read write".into(),
        created: Time(1),
        expires: Some(Time(100)),
        revoked: None,
        last_used: None,
        parent: None,
        session: None,
    }
}

pub fn secret(team: &str, sealed: Vec<u8>) -> SecretRow {
    SecretRow { team: team.into(), name: "key".into(), sealed, created: Time(1), by: "ada".into() }
}

pub fn people() -> Batch {
    let mut batch = Batch::default();
    batch.put(&user("ada"));
    batch.put(&user("grace"));
    batch.put(&team("vision"));
    batch.put(&team("speech"));
    batch.put(&member("vision", "ada"));
    batch.put(&member("vision", "grace"));
    batch.put(&member("speech", "ada"));
    batch.put(&token("t1", "ada"));
    batch.put(&token("t2", "grace"));
    batch
}

fn setting(name: &str, value: &str) -> SettingRow {
    SettingRow { name: name.into(), value: value.into() }
}

async fn what_is_put_can_be_read_replaced_and_deleted(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    writer.commit(&people()).await.unwrap();
    assert_eq!(store.get::<UserRow>("ada").await.unwrap(), Some(user("ada")));
    assert_eq!(store.get::<TokenRow>("t1").await.unwrap(), Some(token("t1", "ada")));
    assert_eq!(
        store.get::<MemberRow>(("vision", "ada")).await.unwrap(),
        Some(member("vision", "ada"))
    );
    assert_eq!(store.members_of("vision").await.unwrap().len(), 2);
    assert_eq!(store.memberships_of("ada").await.unwrap().len(), 2);

    let mut revoked = token("t1", "ada");
    revoked.revoked = Some(Time(50));
    let mut batch = Batch::default();
    batch.put(&revoked);
    batch.delete::<MemberRow>(("speech", "ada"));
    batch.delete::<ProjectRow>(("speech", "never there"));
    writer.commit(&batch).await.unwrap();
    assert_eq!(store.tokens_of("ada").await.unwrap(), [revoked]);
    assert_eq!(store.memberships_of("ada").await.unwrap(), [member("vision", "ada")]);
}

async fn a_user_takes_tokens_and_memberships_along(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    writer.commit(&people()).await.unwrap();
    let mut batch = Batch::default();
    batch.delete::<UserRow>("ada");
    writer.commit(&batch).await.unwrap();
    assert_eq!(store.get::<TokenRow>("t1").await.unwrap(), None);
    assert_eq!(store.members_of("vision").await.unwrap(), [member("vision", "grace")]);
    assert_eq!(store.tokens_of("grace").await.unwrap().len(), 1);
}

async fn a_token_for_nobody_is_refused(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    let mut batch = Batch::default();
    batch.put(&token("t1", "nobody"));
    assert!(matches!(writer.commit(&batch).await, Err(Error::Conflict { .. })));
}

async fn changes_are_made_in_their_order(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    let mut batch = Batch::default();
    batch.put(&setting("a", "1"));
    batch.delete::<SettingRow>("a");
    batch.put(&setting("b", "1"));
    batch.put(&setting("b", "2"));
    writer.commit(&batch).await.unwrap();
    assert_eq!(store.page::<SettingRow>(None, 10).await.unwrap(), [setting("b", "2")]);
}

async fn sealed_bytes_come_back_as_they_were(place: Place) {
    let store = place.open().await;
    let mut batch = people();
    let row = secret("vision", (0..=255).collect());
    batch.put(&row);
    store.writer("a").await.unwrap().commit(&batch).await.unwrap();
    assert_eq!(store.secrets_of("vision").await.unwrap(), [row]);
    assert_eq!(store.secrets_of("speech").await.unwrap(), []);
}

async fn schedules_that_are_due_are_found(place: Place) {
    let store = place.open().await;
    let schedule = |id: &str, next_at: Option<i64>, paused: bool| ScheduleRow {
        id: id.into(),
        name: id.into(),
        user: "ada".into(),
        team: "vision".into(),
        cron: "0 3 * * *".into(),
        file: "run: true\n".into(),
        next_at: next_at.map(Time),
        last_job: Some(JobId::new(3).element(1)),
        paused,
        reason: String::new(),
    };
    let mut batch = Batch::default();
    let due = schedule("due", Some(5), false);
    for row in [
        &due,
        &schedule("later", Some(50), false),
        &schedule("paused", Some(5), true),
        &schedule("never", None, false),
    ] {
        batch.put(row);
    }
    store.writer("a").await.unwrap().commit(&batch).await.unwrap();
    assert_eq!(store.due_schedules(Time(10), 10).await.unwrap(), [due]);
}

async fn pages_are_in_the_order_of_bytes(place: Place) {
    let store = place.open().await;
    let mut batch = Batch::default();
    for name in ["b", "Z", "a", "ä", "_"] {
        batch.put(&setting(name, "1"));
    }
    store.writer("a").await.unwrap().commit(&batch).await.unwrap();
    let first = store.page::<SettingRow>(None, 3).await.unwrap();
    let rest = store.page::<SettingRow>(Some(&first[2].name), 3).await.unwrap();
    let names: Vec<&str> = first.iter().chain(&rest).map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["Z", "_", "a", "b", "ä"]);
}
