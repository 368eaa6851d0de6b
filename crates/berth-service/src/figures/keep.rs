//! Writing figures, finding them again after a start, and letting go of old ones. None of it goes
//! through the event log: figures decide nothing.

use super::energy::flush_energy;
use super::points::{decode, encode};
use crate::fault::Fault;
use crate::figure_book::KeepFigures;
use crate::service::Service;
use berth_engine::{Write, clock};
use berth_figures::{Level, Piece, Points, Recorder, Series};
use berth_model::{Span, Time};
use berth_store::{Batch, FigureKey, FigureQuery, FigureRow, Store};
use std::time::Duration;

/// Rows that are written in one transaction, or deleted.
const ROWS_PER_STEP: usize = 200;
/// The pause for others after it.
const PAUSE: Duration = Duration::from_millis(200);
/// Chunks of a series that are looked at when a server starts: more than an outage leaves.
const MOST_CHUNKS: u32 = 400;

/// Writes what is not in the database yet. What could not be written is tried again the next time.
pub async fn flush(service: &Service) -> Result<(), Fault> {
    let Some(book) = service.host.figures() else { return Ok(()) };
    let pending = book.pending();
    let mut pending = pending.iter().peekable();
    while pending.peek().is_some() {
        let (mut batch, mut together, mut rows) = (Batch::default(), Vec::new(), 0);
        while let Some((series, pieces)) = pending.next_if(|_| rows < ROWS_PER_STEP) {
            pieces.iter().for_each(|piece| batch.put(&row(series, piece)));
            rows += pieces.len();
            together.push((series, pieces));
        }
        service.engine.write(Write::unnoted(batch)).await?;
        together.iter().for_each(|(series, pieces)| book.written(series, pieces));
    }
    book.forget_ended();
    flush_energy(service).await
}

fn row(series: &Series, piece: &Piece) -> FigureRow {
    let data = encode(&piece.points);
    FigureRow {
        series: series.to_string(),
        level: piece.level.number(),
        start: piece.start,
        end: piece.end,
        bytes: data.len() as u64,
        data,
    }
}

/// Takes up what an earlier server did not make minutes of. Series of tasks that have ended
/// meanwhile end with the next look.
pub async fn recover(service: &Service) -> Result<(), Fault> {
    let Some(book) = service.host.figures() else { return Ok(()) };
    let store = &service.store;
    for name in store.unthinned_figures().await? {
        let Ok(series) = name.parse::<Series>() else { continue };
        let chunks = async |level: Level, from: Time, limit: u32| {
            let (series, level, to) = (name.as_str(), level.number(), Time(i64::MAX));
            store.figures(FigureQuery { series, level, from, to, limit }).await
        };
        let minutes = chunks(Level::Minutes, Time(i64::MIN), 1).await?.pop();
        let hours = chunks(Level::Hours, Time(i64::MIN), 1).await?.pop();
        let thinned_to = minutes.as_ref().map_or(Time(i64::MIN), |row| row.end);
        let raw = chunks(Level::Raw, thinned_to, MOST_CHUNKS).await?;
        let read = |row: Option<FigureRow>| {
            row.map_or_else(Points::default, |row| decode(&row.series, &row.data))
        };
        let raw: Vec<Points> = raw.into_iter().map(|row| read(Some(row))).collect();
        book.resume(series, Recorder::resumed(read(minutes), read(hours), raw));
    }
    Ok(())
}

/// Lets go of figures that are older than is kept, and then of the oldest until all that is left is
/// no larger than it may be. In small steps: the loop has other things to write.
pub async fn tidy(service: &Service) -> Result<(), Fault> {
    let Some(book) = service.host.figures() else { return Ok(()) };
    let now = clock::now();
    // A clock that was set ahead must not delete anything.
    let now = now.min(clock::to_wall(now));
    loop {
        let keys = expendable(&service.store, book.keep, now).await?;
        if keys.is_empty() {
            return Ok(());
        }
        service.engine.write(Write::unnoted(deletion(&keys))).await?;
        tokio::time::sleep(PAUSE).await;
    }
}

/// The next chunks to go; none when all that is left is to be kept.
async fn expendable(store: &Store, keep: KeepFigures, now: Time) -> Result<Vec<FigureKey>, Fault> {
    let oldest = async |level: Level, before: Time| {
        store.oldest_figures(level.number(), before, ROWS_PER_STEP as u32).await
    };
    for level in Level::ALL {
        let Some(age) = keep.age(level) else { continue };
        let old = oldest(level, now - age - level.chunk()).await?;
        if !old.is_empty() {
            return Ok(old.into_iter().map(|(key, _)| key).collect());
        }
    }
    let Some(most) = keep.size else { return Ok(Vec::new()) };
    let too_much = signed(store.figure_bytes().await?) - most.0;
    for level in Level::ALL.into_iter().filter(|_| too_much > 0) {
        // The chunk that is open would come again with the next write.
        let old = oldest(level, level.chunk_start(now)).await?;
        let needed = surplus(&old, too_much);
        if needed > 0 {
            return Ok(old.into_iter().take(needed).map(|(key, _)| key).collect());
        }
    }
    if too_much > 0 {
        tracing::warn!(bytes = too_much, "figures take more than --keep-figures-size allows");
    }
    Ok(Vec::new())
}

/// How many of the oldest make up for so much.
fn surplus(old: &[(FigureKey, u64)], too_much: i64) -> usize {
    let mut left = too_much;
    let needed = old.iter().take_while(|(_, bytes)| {
        let is_needed = left > 0;
        left -= signed(*bytes);
        is_needed
    });
    needed.count()
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

fn deletion(keys: &[FigureKey]) -> Batch {
    let mut batch = Batch::default();
    for (series, level, start) in keys {
        batch.delete::<FigureRow>((series, *level, *start));
    }
    batch
}

/// Between two rounds of [`tidy`].
pub const TIDY_EVERY: Span = Span::hours(1);

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::Bytes;

    /// What is left, by level: days before now.
    async fn left_by(keep: KeepFigures, rows: &[(u32, i64)]) -> Vec<(u32, i64)> {
        let now = Time(Span::days(20_000).0);
        let folder = tempfile::tempdir().unwrap();
        let url = berth_store::sqlite_url(&folder.path().join("berth.db"));
        let store = Store::open(&url, berth_store::Options::default()).await.unwrap();
        let mut writer = store.writer("test").await.unwrap();
        let mut batch = Batch::default();
        for (level, days) in rows {
            let start = now - Span::days(*days);
            let (series, end, data) = ("gpu/box/0".to_owned(), start + Span(1), "x".repeat(100));
            batch.put(&FigureRow { series, level: *level, start, end, bytes: 100, data });
        }
        writer.commit(&batch).await.unwrap();
        loop {
            let keys = expendable(&store, keep, now).await.unwrap();
            if keys.is_empty() {
                break;
            }
            writer.commit(&deletion(&keys)).await.unwrap();
        }
        let left = store.every::<FigureRow>().await.unwrap();
        left.iter().map(|row| (row.level, (now - row.start).0 / Span::days(1).0)).collect()
    }

    #[tokio::test]
    async fn each_level_is_kept_for_its_time() {
        let rows = [(0, 0), (0, 1), (0, 3), (1, 3), (1, 29), (1, 40), (2, 40), (2, 900)];
        let left = left_by(KeepFigures::default(), &rows).await;
        assert_eq!(left, [(0, 1), (0, 0), (1, 29), (1, 3), (2, 40)]);
        let forever = KeepFigures { raw: None, minutes: None, hours: None, size: None };
        assert_eq!(left_by(forever, &rows).await.len(), rows.len());
    }

    #[tokio::test]
    async fn the_finest_and_oldest_go_when_there_is_too_much() {
        let rows = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 40)];
        let keep = |bytes| KeepFigures { size: Some(Bytes(bytes)), ..KeepFigures::default() };
        assert_eq!(left_by(keep(600), &rows).await.len(), 6);
        assert_eq!(left_by(keep(450), &rows).await, [(0, 0), (1, 2), (1, 1), (2, 40)]);
        assert_eq!(left_by(keep(250), &rows).await, [(0, 0), (2, 40)]);
        // What is open stays, however little is allowed.
        assert_eq!(left_by(keep(1), &rows).await, [(0, 0)]);
    }

    #[test]
    fn no_more_goes_than_has_to() {
        let key = |start| (("gpu/box/0".to_owned(), 0, Time(start)), 100);
        let old: Vec<(FigureKey, u64)> = (0..5).map(key).collect();
        assert_eq!([1, 100, 101, 10_000].map(|bytes| surplus(&old, bytes)), [1, 1, 2, 5]);
        assert_eq!(surplus(&old, 0), 0);
    }
}
