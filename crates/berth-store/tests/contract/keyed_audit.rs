//! The audit log with a key: whoever owns the database can change anything in it and compute every
//! plain hash anew, but has no key.

use crate::place::{Place, audit, on_both, options};
use crate::sessions::{identity, session};
use berth_model::Time;
use berth_store::{
    AuditCheck, AuditEnd, AuditFollower, AuditKeys, Batch, MemberRow, Options, RightsFinding,
    SessionRow, Store, TeamRow, TokenRow, UserRow, Verified,
};
use std::time::Duration;

on_both!(
    a_row_that_was_changed_with_its_plain_hash_computed_anew_is_found,
    rows_from_before_there_were_keys_stay_as_they_are_and_are_sealed_by_the_first_signed_row,
    a_row_without_a_signature_after_signed_ones_is_found,
    a_tail_that_was_cut_off_with_its_head_set_back_is_found_by_what_was_noted_outside,
    a_tail_that_was_replaced_is_found_by_what_was_noted_outside,
    a_row_past_the_end_is_found,
    a_last_row_that_was_moved_far_past_the_end_is_missed,
    what_signed_rows_say_is_known_once_they_were_looked_at,
    another_key_signs_and_old_rows_stay_verifiable,
    a_key_that_is_missing_is_named,
    a_key_that_is_out_of_use_signs_nothing_any_more,
    a_role_that_was_changed_in_the_database_is_found,
    a_token_a_member_and_a_user_that_were_added_or_taken_away_are_found,
    an_old_row_that_was_put_back_is_found,
    a_token_in_use_stays_sound_and_a_changed_one_does_not_become_so_by_use,
    a_session_that_was_made_up_is_found_and_one_that_is_used_is_sound,
    what_goes_with_a_user_or_a_team_is_not_missed,
);

fn key(byte: u8) -> (String, [u8; 32]) {
    (format!("k{byte}"), [byte; 32])
}

async fn with_keys(place: &Place, keys: &[u8]) -> Store {
    let audit_keys = AuditKeys::new(keys.iter().copied().map(key));
    Store::open(&place.url, Options { audit_keys, ..options() }).await.unwrap()
}

async fn add(store: &Store, rows: usize) {
    let audit = (1..=rows).map(|n| audit(&format!("submit {n}"))).collect();
    write(store, Batch { audit, ..Batch::default() }).await;
}

async fn write(store: &Store, batch: Batch) {
    let mut writer = store.writer("a").await.unwrap();
    writer.commit(&batch).await.unwrap();
    writer.close().await.unwrap();
}

async fn whole(store: &Store) -> Verified {
    match store.verify_audit().await.unwrap() {
        AuditCheck::Whole(verified) => verified,
        AuditCheck::Broken(broken) => panic!("a break was found where there is none: {broken:?}"),
    }
}

async fn broken(store: &Store, noted: Option<&AuditEnd>) -> (u64, String) {
    match store.verify_audit_with(noted).await.unwrap() {
        AuditCheck::Broken(broken) => (broken.seq, broken.why),
        AuditCheck::Whole(verified) => panic!("nothing was found: {verified:?}"),
    }
}

/// What a thief of the database can do: the hash of rows without a key, as anybody computes it.
async fn forge(place: &Place, store: &Store, from: u64) {
    let thief = Store::open(&place.url, options()).await.unwrap();
    let mut rows = store.audit_after(from - 1, 100).await.unwrap();
    let prev = store.audit_after(from - 2, 1).await.unwrap().remove(0).hash;
    place.sql(&format!("DELETE FROM audit WHERE seq >= {from}")).await;
    place.sql(&format!("UPDATE log SET audit_seq = {}, audit_hash = '{prev}'", from - 1)).await;
    rows[0].who = "mallory".into();
    let mut writer = thief.writer("thief").await.unwrap();
    for row in rows {
        let entry = berth_store::AuditEntry { who: row.who, ..audit(&row.what) };
        writer.commit(&Batch { audit: vec![entry], ..Batch::default() }).await.unwrap();
    }
    writer.close().await.unwrap();
}

async fn a_row_that_was_changed_with_its_plain_hash_computed_anew_is_found(place: Place) {
    // Without a key nothing is found: that is what the key is for.
    let plain = place.open().await;
    add(&plain, 9).await;
    forge(&place, &plain, 4).await;
    assert_eq!(whole(&plain).await.keyed_from, None);

    let place = fresh(&place);
    let store = with_keys(&place, &[1]).await;
    add(&store, 9).await;
    assert_eq!(whole(&store).await.keyed_from, Some(1));
    forge(&place, &store, 4).await;
    assert_eq!(broken(&store, None).await.0, 4);
}

/// Another place of the same kind.
fn fresh(place: &Place) -> Place {
    if place.url.starts_with("sqlite") { Place::sqlite() } else { Place::postgres() }
}

async fn rows_from_before_there_were_keys_stay_as_they_are_and_are_sealed_by_the_first_signed_row(
    place: Place,
) {
    add(&place.open().await, 3).await;
    let store = with_keys(&place, &[1]).await;
    assert_eq!(whole(&store).await.keyed_from, None);
    add(&store, 2).await;
    let verified = whole(&store).await;
    assert_eq!((verified.rows, verified.keyed_from), (5, Some(4)));
    // The old rows are computed anew with their plain hashes; the signed one does not follow them.
    place.sql("UPDATE audit SET who = 'mallory' WHERE seq = 3").await;
    assert_eq!(broken(&store, None).await.0, 3);
}

async fn a_row_without_a_signature_after_signed_ones_is_found(place: Place) {
    let store = with_keys(&place, &[1]).await;
    add(&store, 2).await;
    add(&place.open().await, 1).await;
    assert_eq!(broken(&store, None).await, (3, "it is not signed, and rows before it are".into()));
}

async fn noted(store: &Store) -> AuditEnd {
    store.audit_end().await.unwrap()
}

async fn a_tail_that_was_cut_off_with_its_head_set_back_is_found_by_what_was_noted_outside(
    place: Place,
) {
    let store = with_keys(&place, &[1]).await;
    add(&store, 6).await;
    let early = noted(&store).await;
    add(&store, 3).await;
    let end = noted(&store).await;
    cut(&place, 6).await;
    // The database alone does not tell, and neither does a note from before the cut.
    assert_eq!(whole(&store).await.rows, 6);
    let check = store.verify_audit_with(Some(&early)).await.unwrap();
    assert!(matches!(check, AuditCheck::Whole(_)), "{check:?}");
    assert_eq!(broken(&store, Some(&end)).await, (7, "it was cut off: there were 9 rows".into()));
}

async fn cut(place: &Place, rows: u64) {
    place
        .sql(&format!(
            "DELETE FROM audit WHERE seq > {rows}; UPDATE log SET audit_seq = {rows}, \
             audit_hash = (SELECT hash FROM audit WHERE seq = {rows})"
        ))
        .await;
}

async fn a_tail_that_was_replaced_is_found_by_what_was_noted_outside(place: Place) {
    let store = with_keys(&place, &[1]).await;
    add(&store, 9).await;
    let end = noted(&store).await;
    cut(&place, 6).await;
    // The server goes on, and signs, without knowing.
    let again = with_keys(&place, &[1]).await;
    let others = Batch { audit: vec![audit("other"); 5], ..Batch::default() };
    write(&again, others).await;
    let why = "it is not the row that the server noted outside the database".to_owned();
    assert_eq!(broken(&store, Some(&end)).await, (9, why));
}

async fn a_row_past_the_end_is_found(place: Place) {
    let store = with_keys(&place, &[1]).await;
    add(&store, 2).await;
    place
        .sql(
            "INSERT INTO audit SELECT 9, at, who, token, \"from\", method, what, target, outcome, \
             detail, prev, hash, \"key\", seals FROM audit WHERE seq = 2",
        )
        .await;
    assert_eq!(broken(&store, None).await, (9, "it lies past the end of the log".into()));
}

async fn a_last_row_that_was_moved_far_past_the_end_is_missed(place: Place) {
    let store = with_keys(&place, &[1]).await;
    add(&store, 3).await;
    place.sql("UPDATE audit SET seq = 4611686018427387904 WHERE seq = 3").await;
    let found = tokio::time::timeout(Duration::from_secs(60), broken(&store, None)).await;
    assert_eq!(found.expect("it comes to an end"), (3, "it is missing".into()));
}

async fn what_signed_rows_say_is_known_once_they_were_looked_at(place: Place) {
    add(&place.open().await, 1).await;
    let store = with_keys(&place, &[1]).await;
    write(&store, Batch { audit: vec![audit("seal")], ..Batch::default() }).await;
    let mut follower = AuditFollower::new(store, None);
    assert!(!follower.has_signed("seal"));
    assert!(matches!(follower.check().await.unwrap(), AuditCheck::Whole(_)));
    assert!(follower.has_signed("seal"));
    assert!(!follower.has_signed("submit 1"), "nobody vouches for a row without a signature");
}

async fn another_key_signs_and_old_rows_stay_verifiable(place: Place) {
    add(&with_keys(&place, &[1]).await, 2).await;
    let store = with_keys(&place, &[1, 2]).await;
    add(&store, 2).await;
    store.audit_keys().add("k3".to_owned(), &[3; 32]);
    add(&store, 2).await;
    assert_eq!(whole(&store).await.rows, 6);
    let keys: Vec<String> =
        store.audit_after(0, 9).await.unwrap().into_iter().map(|row| row.key).collect();
    assert_eq!(keys, ["k1", "k1", "k2", "k2", "k3", "k3"]);
}

async fn a_key_that_is_missing_is_named(place: Place) {
    add(&with_keys(&place, &[1]).await, 2).await;
    let why = "it was signed with key k1, which is not in the key file".to_owned();
    assert_eq!(broken(&with_keys(&place, &[2]).await, None).await, (1, why));
}

/// A key is changed because the old one leaked.
async fn a_key_that_is_out_of_use_signs_nothing_any_more(place: Place) {
    let store = with_keys(&place, &[1, 2]).await;
    add(&store, 2).await;
    add(&with_keys(&place, &[1]).await, 1).await;
    let why = "it was signed with a key that was out of use".to_owned();
    assert_eq!(broken(&store, None).await, (3, why));
}

fn user(name: &str, role: Option<&str>) -> UserRow {
    UserRow {
        name: name.into(),
        full_name: String::new(),
        role: role.map(str::to_owned),
        created: Time(1),
        disabled: None,
    }
}

fn member(team: &str, user: &str) -> MemberRow {
    MemberRow { team: team.into(), user: user.into(), role: "researcher".into(), created: Time(1) }
}

fn token(id: &str, user: &str) -> TokenRow {
    TokenRow {
        id: id.into(),
        user: user.into(),
        name: "laptop".into(),
        hash: "c0ffee".into(),
        scopes: "read".into(),
        created: Time(1),
        expires: None,
        revoked: None,
        last_used: None,
        parent: None,
        session: None,
    }
}

fn noted_change(fill: impl FnOnce(&mut Batch)) -> Batch {
    let mut batch = Batch { audit: vec![audit("change")], ..Batch::default() };
    fill(&mut batch);
    batch
}

/// Two people in a team, each with a token.
async fn peopled(place: &Place) -> Store {
    let store = with_keys(place, &[1]).await;
    let batch = noted_change(|batch| {
        let detail = "{}".into();
        batch.put(&TeamRow { name: "t".into(), queue: "t".into(), created: Time(1), detail });
        for name in ["ada", "eve"] {
            batch.put(&user(name, None));
            batch.put(&member("t", name));
            batch.put(&token(&format!("{name}1"), name));
        }
    });
    write(&store, batch).await;
    assert_eq!(whole(&store).await.rights, []);
    store
}

async fn rights(store: &Store) -> Vec<String> {
    let words = |one: RightsFinding| format!("{}: {}", one.what, one.why);
    whole(store).await.rights.into_iter().map(words).collect()
}

async fn a_role_that_was_changed_in_the_database_is_found(place: Place) {
    let store = peopled(&place).await;
    place.sql("UPDATE users SET role = 'admin' WHERE name = 'eve'").await;
    assert_eq!(rights(&store).await, ["user eve: it was changed"]);
    place.sql("UPDATE users SET role = NULL WHERE name = 'eve'").await;
    place.sql("UPDATE members SET role = 'team-lead' WHERE \"user\" = 'eve'").await;
    assert_eq!(rights(&store).await, ["eve in team t: it was changed"]);
    place.sql("UPDATE members SET role = 'researcher' WHERE \"user\" = 'eve'").await;
    for change in ["scopes = 'all'", "hash = 'f00d'", "expires = 9", "revoked = 9"] {
        let place = fresh(&place);
        let store = peopled(&place).await;
        place.sql(&format!("UPDATE tokens SET {change} WHERE id = 'eve1'")).await;
        assert_eq!(rights(&store).await, ["token eve1 of eve: it was changed"], "{change}");
    }
}

async fn a_token_a_member_and_a_user_that_were_added_or_taken_away_are_found(place: Place) {
    let store = peopled(&place).await;
    place
        .sql(
            "INSERT INTO users VALUES ('mal', '', 'admin', 1, NULL); \
             INSERT INTO members VALUES ('t', 'mal', 'team-lead', 1); \
             INSERT INTO tokens VALUES ('mal1', 'mal', 'x', 'f00d', 'all', 1, NULL, NULL, NULL, NULL, NULL); \
             DELETE FROM tokens WHERE id = 'ada1'",
        )
        .await;
    let mut found = rights(&store).await;
    found.sort();
    let expected = [
        "mal in team t: it was added",
        "token ada1 of ada: it is gone",
        "token mal1 of mal: it was added",
        "user mal: it was added",
    ];
    assert_eq!(found, expected);
}

/// A thief who kept a copy from when they were admin.
async fn an_old_row_that_was_put_back_is_found(place: Place) {
    let store = peopled(&place).await;
    write(&store, noted_change(|batch| batch.put(&user("eve", Some("admin"))))).await;
    write(&store, noted_change(|batch| batch.put(&user("eve", None)))).await;
    assert_eq!(rights(&store).await, [""; 0]);
    place.sql("UPDATE users SET role = 'admin' WHERE name = 'eve'").await;
    assert_eq!(rights(&store).await, ["user eve: it was changed"]);
}

async fn a_token_in_use_stays_sound_and_a_changed_one_does_not_become_so_by_use(place: Place) {
    let store = peopled(&place).await;
    let used = |row: TokenRow| TokenRow { last_used: Some(Time(9)), ..row };
    write(&store, noted_change(|batch| batch.touch(&used(token("eve1", "eve"))))).await;
    assert_eq!(rights(&store).await, [""; 0]);
    place.sql("UPDATE tokens SET scopes = 'all' WHERE id = 'eve1'").await;
    let changed = TokenRow { scopes: "all".into(), ..token("eve1", "eve") };
    write(&store, noted_change(|batch| batch.touch(&used(changed)))).await;
    assert_eq!(rights(&store).await, ["token eve1 of eve: it was changed"]);
}

async fn a_session_that_was_made_up_is_found_and_one_that_is_used_is_sound(place: Place) {
    let store = peopled(&place).await;
    write(&store, noted_change(|batch| batch.put(&session("s1", "eve")))).await;
    let used = SessionRow { last_used: Time(9), ..session("s1", "eve") };
    write(&store, noted_change(|batch| batch.touch(&used))).await;
    write(&store, noted_change(|batch| batch.put(&identity("i1", "eve")))).await;
    assert_eq!(rights(&store).await, [""; 0]);
    place.sql("UPDATE identities SET \"user\" = 'ada'").await;
    place.sql("UPDATE sessions SET id = 's2', \"user\" = 'ada'").await;
    let mut found = rights(&store).await;
    found.sort();
    let expected = [
        "identity i1 of ada: it was added",
        "identity i1 of eve: it is gone",
        "session s1 of eve: it is gone",
        "session s2 of ada: it was added",
    ];
    assert_eq!(found, expected);
}

async fn what_goes_with_a_user_or_a_team_is_not_missed(place: Place) {
    let store = peopled(&place).await;
    let signed_in = |batch: &mut Batch| {
        batch.put(&session("s1", "eve"));
        batch.put(&identity("i1", "eve"));
    };
    write(&store, noted_change(signed_in)).await;
    write(&store, noted_change(|batch| batch.delete::<UserRow>("eve"))).await;
    assert_eq!(rights(&store).await, [""; 0]);
    write(&store, noted_change(|batch| batch.delete::<TeamRow>("t"))).await;
    assert_eq!(rights(&store).await, [""; 0]);
    write(&store, noted_change(|batch| batch.delete::<TokenRow>("ada1"))).await;
    assert_eq!(rights(&store).await, [""; 0]);
}
