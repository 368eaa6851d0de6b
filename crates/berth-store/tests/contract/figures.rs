use crate::place::{Place, on_both};
use berth_model::Time;
use berth_store::{Batch, FigureQuery, FigureRow, Store, Writer};

on_both!(
    an_open_chunk_is_replaced_in_place_and_chunks_are_read_by_time,
    series_that_a_server_left_unthinned_are_found,
    the_oldest_of_a_level_are_found_and_the_size_of_all,
);

fn chunk(series: &str, level: u32, start: i64, end: i64) -> FigureRow {
    let data = "AQID".repeat(4);
    let (start, end, bytes) = (Time(start), Time(end), data.len() as u64);
    FigureRow { series: series.into(), level, start, end, bytes, data }
}

async fn write(writer: &mut Writer, rows: &[FigureRow]) {
    let mut batch = Batch::default();
    rows.iter().for_each(|row| batch.put(row));
    writer.commit(&batch).await.unwrap();
}

async fn starts(store: &Store, series: &str, level: u32, from: i64, to: i64) -> Vec<i64> {
    let query = FigureQuery { series, level, from: Time(from), to: Time(to), limit: 100 };
    store.figures(query).await.unwrap().iter().map(|row| row.start.0).collect()
}

async fn an_open_chunk_is_replaced_in_place_and_chunks_are_read_by_time(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    let open = chunk("gpu/box/0", 0, 900, 950);
    write(&mut writer, &[chunk("gpu/box/0", 0, 0, 900), open.clone()]).await;
    write(&mut writer, &[chunk("gpu/box/1", 0, 900, 950), chunk("gpu/box/0", 1, 0, 900)]).await;
    let grown = FigureRow { end: Time(1_000), data: "AQIDBA".into(), bytes: 6, ..open };
    write(&mut writer, std::slice::from_ref(&grown)).await;
    assert_eq!(starts(&store, "gpu/box/0", 0, 0, 2_000).await, [0, 900]);
    assert_eq!(starts(&store, "gpu/box/0", 0, 900, 2_000).await, [900], "the other ends before");
    assert_eq!(starts(&store, "gpu/box/0", 0, 0, 900).await, [0]);
    assert_eq!(starts(&store, "gpu/box/0", 2, 0, 2_000).await, [0; 0]);
    let query =
        FigureQuery { series: "gpu/box/0", level: 0, from: Time(0), to: Time(5_000), limit: 1 };
    assert_eq!(store.figures(query).await.unwrap(), [grown], "the newest, as it is now");
}

async fn series_that_a_server_left_unthinned_are_found(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    write(
        &mut writer,
        &[
            chunk("gpu/box/0", 0, 0, 900),
            chunk("gpu/box/0", 1, 0, 900),
            chunk("gpu/box/1", 0, 0, 900),
            chunk("gpu/box/1", 0, 900, 1_000),
            chunk("gpu/box/1", 1, 0, 900),
            chunk("task/1/0#1", 0, 0, 300),
        ],
    )
    .await;
    assert_eq!(store.unthinned_figures().await.unwrap(), ["gpu/box/1", "task/1/0#1"]);
}

async fn the_oldest_of_a_level_are_found_and_the_size_of_all(place: Place) {
    let store = place.open().await;
    let mut writer = store.writer("a").await.unwrap();
    assert_eq!(store.figure_bytes().await.unwrap(), 0);
    let rows = [
        chunk("gpu/box/1", 0, 0, 900),
        chunk("gpu/box/0", 0, 900, 1_800),
        chunk("gpu/box/0", 0, 0, 900),
        chunk("gpu/box/0", 1, 0, 1_800),
    ];
    write(&mut writer, &rows).await;
    assert_eq!(store.figure_bytes().await.unwrap(), 4 * 16);
    let old = store.oldest_figures(0, Time(900), 10).await.unwrap();
    let key = |series: &str, start| ((series.to_owned(), 0, Time(start)), 16);
    assert_eq!(old, [key("gpu/box/0", 0), key("gpu/box/1", 0)]);
    assert_eq!(store.oldest_figures(0, Time(i64::MAX), 1).await.unwrap(), old[..1]);
    let mut batch = Batch::default();
    for ((series, level, start), _) in &old {
        batch.delete::<FigureRow>((series, *level, *start));
    }
    writer.commit(&batch).await.unwrap();
    assert_eq!(starts(&store, "gpu/box/0", 0, 0, 5_000).await, [900]);
    assert_eq!(store.figure_bytes().await.unwrap(), 2 * 16);
}
