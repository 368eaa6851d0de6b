//! Recorded availability, and the windows in which others have looked at it.

use crate::csv::Table;
use anyhow::{Context, Result};
use berth_sim::spot::Market;
use std::collections::BTreeMap;
use std::path::Path;

/// One series: when what is available changed.
pub struct Series {
    step_s: i64,
    samples: i64,
    /// Seconds from the start, and whether machines could be had from there on.
    changes: Vec<(i64, bool)>,
}

impl Series {
    /// The same, sample by sample.
    pub fn market(&self) -> Market {
        let mut changes = self.changes.iter().peekable();
        let mut up = false;
        let samples = (0..self.samples).map(|sample| {
            while let Some((_, now)) = changes.next_if(|(at, _)| *at <= sample * self.step_s) {
                up = *now;
            }
            up
        });
        Market { step_s: self.step_s, zones: vec![samples.collect()] }
    }
}

pub fn read(folder: &Path) -> Result<BTreeMap<String, Series>> {
    let mut all: BTreeMap<String, Series> = BTreeMap::new();
    for row in Table::open(folder, "spot_availability_index")?.rows()? {
        let (step_s, samples) = (row.integer("gap_s")?, row.integer("samples")?);
        let series = Series { step_s, samples, changes: Vec::new() };
        all.insert(row.text("trace")?.to_owned(), series);
    }
    for row in Table::open(folder, "spot_availability")?.rows()? {
        let name = row.text("trace")?;
        let series = all.get_mut(name).with_context(|| format!("{name} is not in the index"))?;
        if row.text("nodes_available")? != "end" {
            let available = row.integer("nodes_available")?;
            series.changes.push((row.integer("t_s")?, available > 0));
        }
    }
    // The index names series that are not here.
    all.retain(|_, series| !series.changes.is_empty());
    Ok(all)
}

/// First samples of the windows, by series.
pub fn windows(folder: &Path) -> Result<BTreeMap<String, Vec<usize>>> {
    let mut all: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for row in Table::open(folder, "spot_cantbelate_windows")?.rows()? {
        let start = row.integer("start_sample")? as usize;
        all.entry(row.text("trace")?.to_owned()).or_default().push(start);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_holds_from_its_sample_until_the_next() {
        let changes = vec![(0, false), (600, true), (1_500, false)];
        let market = Series { step_s: 600, samples: 5, changes }.market();
        assert_eq!(market.zones, [[false, true, true, false, false]]);
    }
}
