//! Points of a series, from the database and from what is not written yet.

use super::window::Window;
use crate::fault::Fault;
use crate::service::Service;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use berth_figures::{Chunk, Level, Points, Series};
use berth_store::FigureQuery;

/// Chunks that one answer reads of a series.
const MOST_CHUNKS: u32 = 600;

pub fn encode(points: &Points) -> String {
    STANDARD_NO_PAD.encode(Chunk::encode(points).0)
}

/// Nothing of a chunk that cannot be read: the others still can.
pub fn decode(series: &str, data: &str) -> Points {
    let bytes = STANDARD_NO_PAD.decode(data).map_err(|error| error.to_string());
    let points = bytes.and_then(|bytes| Chunk(bytes).decode().map_err(|error| error.to_string()));
    points.unwrap_or_else(|error| {
        tracing::warn!(series, error, "figures cannot be read");
        Points::default()
    })
}

/// The points of a series in a window, and how fine they are. Where the level that suits the window
/// has nothing any more, the next coarser one may.
pub async fn read(
    service: &Service,
    series: &Series,
    window: &Window,
) -> Result<(Points, Level), Fault> {
    let levels = Level::ALL.into_iter().filter(|level| *level >= window.level);
    for level in levels {
        let points = read_level(service, series, window, level).await?;
        if !points.is_empty() {
            return Ok((points, level));
        }
    }
    Ok((Points::default(), window.level))
}

async fn read_level(
    service: &Service,
    series: &Series,
    window: &Window,
    level: Level,
) -> Result<Points, Fault> {
    // First what is in memory: what is written between the two looks is then seen twice, and not
    // never.
    let open = service.host.figures().map(|book| book.view(series, level)).unwrap_or_default();
    let name = series.to_string();
    let (from, to) = (window.from, window.to);
    let query = FigureQuery { series: &name, level: level.number(), from, to, limit: MOST_CHUNKS };
    let mut kept = Points::default();
    for row in service.store.figures(query).await? {
        kept.extend(&decode(&name, &row.data));
    }
    Ok(kept.overlaid(&open).between(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_figures::{Figure, Sample};
    use berth_model::Time;

    #[test]
    fn points_come_back_from_text_and_damage_costs_one_chunk() {
        let mut points = Points::default();
        points.push(&Sample { at: Time(5), values: [(Figure::Cpu, 1)].into() });
        assert_eq!(decode("x", &encode(&points)), points);
        for text in ["!", "AQ", "====", "/////w"] {
            assert!(decode("x", text).is_empty(), "{text}");
        }
    }
}
