//! When spot machines could be had, and what they cost, from CSV text.

use super::error::Result;
use super::prices::dollars;
use super::table::{Schema, Table, Use};
use berth_file::error::or_list;
use berth_model::{Micros, Span};
use std::collections::BTreeSet;

static SPOT: Schema = Schema {
    what: "spot traces",
    columns: &[
        ("t_s", Use::Needed),
        ("nodes_available", Use::Read),
        ("usd_per_h", Use::Read),
        ("trace", Use::Read),
        ("zone", Use::Read),
        ("instance", Use::Ignored),
    ],
};

/// Changes, counted from the beginning of the series.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpotSeries {
    pub there: Vec<(Span, bool)>,
    /// Dollars an hour, the whole machine.
    pub prices: Vec<(Span, Micros)>,
}

/// Reads one series from the text of `file`, which may hold several, told apart by a column
/// `trace` or `zone`. `file` is only for messages.
pub fn spot(file: &str, text: &str, series: Option<&str>) -> Result<SpotSeries> {
    let mut table = Table::open(file, text, &SPOT)?;
    let column = ["trace", "zone"].into_iter().find(|name| table.has(name));
    let mut names: BTreeSet<String> = BTreeSet::new();
    let mut seen = SpotSeries::default();
    while let Some(row) = table.next_row()? {
        if let Some(name) = column.and_then(|column| row.text(column)) {
            names.insert(name.to_owned());
            if series.is_some_and(|wanted| wanted != name) {
                continue;
            }
        }
        let at = row.number("t_s", "seconds such as 90 or 12.5", |ms| ms >= 0)?;
        let at = Span(at.ok_or_else(|| row.wrong("t_s", "seconds such as 90 or 12.5"))?);
        // The end of a record says nothing about what came after.
        if row.text("nodes_available").is_some_and(|text| text != "end") {
            let nodes = row.count("nodes_available")?;
            seen.there.extend(nodes.map(|nodes| (at, nodes > 0)));
        }
        seen.prices.extend(dollars(&row, "usd_per_h")?.map(|price| (at, price)));
    }
    match series {
        Some(wanted) if !names.contains(wanted) => {
            let there = or_list(names.iter().take(8).map(String::as_str));
            Err(table.whole(format!("there is no series `{wanted}`; there is {there}")))
        }
        None if names.len() > 1 => {
            let some = or_list(names.iter().take(8).map(String::as_str));
            Err(table.whole(format!("the file holds {} series: choose {some}", names.len())))
        }
        _ => Ok(seen),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_tells_when_machines_could_be_had() {
        let text = "trace,t_s,nodes_available\na,0,1\na,600,0\nb,0,0\na,900,end\n";
        let seen = spot("s.csv", text, Some("a")).unwrap();
        assert_eq!(seen.there, [(Span::ZERO, true), (Span::mins(10), false)]);
        let wrong = spot("s.csv", text, None).unwrap_err().to_string();
        assert_eq!(wrong, "s.csv: the file holds 2 series: choose a or b");
    }

    #[test]
    fn prices_may_stand_beside_or_alone() {
        let seen = spot("s.csv", "t_s,usd_per_h\n0,9.5\n60,10\n", None).unwrap();
        assert_eq!(seen.prices[1], (Span::mins(1), Micros::dollars(10)));
        assert!(seen.there.is_empty());
    }
}
