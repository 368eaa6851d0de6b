use crate::place::{Place, audit, on_both};
use berth_store::{AuditCheck, AuditFilter, Batch, Broken, Store};

on_both!(
    an_untouched_chain_is_whole,
    the_chain_goes_on_with_the_next_writer,
    a_changed_row_is_found,
    a_row_that_was_taken_out_is_found,
    rows_that_were_cut_off_at_the_end_are_found,
    rows_that_changed_places_are_found,
    a_row_that_was_forged_with_its_own_hash_is_found,
    pages_go_back_from_the_newest,
);

async fn filled(place: &Place, rows: usize) -> Store {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    let audit = (1..=rows).map(|n| audit(&format!("submit {n}"))).collect();
    writer.commit(&Batch { audit, ..Batch::default() }).await.unwrap();
    writer.close().await.unwrap();
    store
}

async fn broken_at(store: &Store) -> u64 {
    match store.verify_audit().await.unwrap() {
        AuditCheck::Broken(Broken { seq, .. }) => seq,
        AuditCheck::Whole(verified) => panic!("nothing was found: {verified:?}"),
    }
}

async fn an_untouched_chain_is_whole(place: Place) {
    let empty = place.open().await.verify_audit().await.unwrap();
    assert!(matches!(empty, AuditCheck::Whole(verified) if verified.rows == 0));
    let store = filled(&place, 2_500).await;
    let newest = store.audit(&AuditFilter::default(), None, 1).await.unwrap().remove(0);
    let AuditCheck::Whole(verified) = store.verify_audit().await.unwrap() else {
        panic!("a break was found where there is none");
    };
    assert_eq!((verified.rows, verified.head), (2_500, newest.hash));
}

async fn the_chain_goes_on_with_the_next_writer(place: Place) {
    filled(&place, 3).await;
    let store = filled(&place, 2).await;
    let check = store.verify_audit().await.unwrap();
    assert!(matches!(check, AuditCheck::Whole(verified) if verified.rows == 5));
}

async fn a_changed_row_is_found(place: Place) {
    let store = filled(&place, 9).await;
    place.sql("UPDATE audit SET who = 'mallory' WHERE seq = 4").await;
    assert_eq!(broken_at(&store).await, 4);
}

async fn a_row_that_was_taken_out_is_found(place: Place) {
    let store = filled(&place, 9).await;
    place.sql("DELETE FROM audit WHERE seq = 4").await;
    assert_eq!(broken_at(&store).await, 4);
}

async fn rows_that_were_cut_off_at_the_end_are_found(place: Place) {
    let store = filled(&place, 9).await;
    place.sql("DELETE FROM audit WHERE seq > 6").await;
    assert_eq!(broken_at(&store).await, 7);
}

async fn rows_that_changed_places_are_found(place: Place) {
    let store = filled(&place, 9).await;
    place
        .sql(
            "UPDATE audit SET seq = 100 WHERE seq = 4; UPDATE audit SET seq = 4 WHERE seq = 5; \
             UPDATE audit SET seq = 5 WHERE seq = 100",
        )
        .await;
    assert_eq!(broken_at(&store).await, 4);
}

/// The hash of another row makes the forged one look right only until the next.
async fn a_row_that_was_forged_with_its_own_hash_is_found(place: Place) {
    let store = filled(&place, 9).await;
    place
        .sql(
            "UPDATE audit SET hash = (SELECT o.hash FROM audit AS o WHERE o.seq = 3) WHERE seq = 4",
        )
        .await;
    assert_eq!(broken_at(&store).await, 4);
}

async fn pages_go_back_from_the_newest(place: Place) {
    let store = filled(&place, 5).await;
    let seqs =
        |rows: Vec<berth_store::AuditRow>| rows.iter().map(|row| row.seq).collect::<Vec<_>>();
    let any = AuditFilter::default();
    assert_eq!(seqs(store.audit(&any, None, 2).await.unwrap()), [5, 4]);
    assert_eq!(seqs(store.audit(&any, Some(4), 2).await.unwrap()), [3, 2]);
    let one = AuditFilter { what: Some("submit 2".into()), ..any };
    assert_eq!(seqs(store.audit(&one, None, 9).await.unwrap()), [2]);
}
