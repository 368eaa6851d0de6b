//! `berth gpus --since`: one figure of all GPUs over time.

use super::metrics::spark_of;
use crate::context::Context;
use crate::fail::Result;
use crate::show::{Cell, Look, Page, Table};
use berth_api::wire::{At, ClusterFigureQuery, ClusterFigures};

pub async fn run(context: &Context, since: Option<At>, figure: Option<&str>) -> Result<()> {
    let query = ClusterFigureQuery {
        from: since,
        figure: figure.map(str::to_owned),
        ..ClusterFigureQuery::default()
    };
    let found = context.client()?.gpu_figures(&query).await?;
    let names = |found: &ClusterFigures| {
        found.rows.iter().map(|row| format!("{}/{}", row.node, row.gpu)).collect()
    };
    context.show(&Page::new(found, text, names).remarks(|found| found.notes.clone()))
}

fn text(found: &ClusterFigures, look: &Look) -> String {
    let mut table = Table::new(&["NODE", ">GPU", ">MEAN", ">MAX", "OVER TIME"]);
    let amount = |value: i64| match found.unit.as_str() {
        "thousandths" => format!("{}.{}%", value / 10, value % 10),
        unit => format!("{value} {unit}"),
    };
    for row in &found.rows {
        let known: Vec<i64> = row.values.iter().flatten().copied().collect();
        let mean = (!known.is_empty()).then(|| known.iter().sum::<i64>() / known.len() as i64);
        table.row(vec![
            row.node.as_str().into(),
            row.gpu.into(),
            mean.map(amount).into(),
            known.iter().max().map(|max| amount(*max)).into(),
            match known.is_empty() {
                true => Cell::from(""),
                false => spark_of(&row.values, &found.unit).into(),
            },
        ]);
    }
    table.or(look, "No GPUs.")
}
