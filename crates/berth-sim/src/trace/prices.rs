//! A price list from CSV text.

use super::error::Result;
use super::table::{Row, Schema, Table, Use};
use crate::prices::PriceList;
use berth_model::{Micros, Name};

static PRICES: Schema = Schema {
    what: "price lists",
    columns: &[
        ("gpu_type", Use::Needed),
        ("usd_per_gpu_h", Use::Needed),
        ("spot_usd_per_gpu_h", Use::Read),
        ("idle_w", Use::Read),
        ("busy_w", Use::Read),
    ],
};

/// Reads prices from the text of `file`. What a row does not tell is as in the built-in list.
/// `file` is only for messages.
pub fn prices(file: &str, text: &str) -> Result<PriceList> {
    let mut table = Table::open(file, text, &PRICES)?;
    let mut list = PriceList::default();
    while let Some(row) = table.next_row()? {
        let model = row.text("gpu_type");
        let model = model.ok_or_else(|| row.wrong("gpu_type", "a GPU model such as A100"))?;
        let mut rate = list.rate(model);
        if let Some(price) = dollars(&row, "usd_per_gpu_h")? {
            rate.on_demand = price;
        }
        if let Some(price) = dollars(&row, "spot_usd_per_gpu_h")? {
            rate.spot = price;
        }
        if let Some(watts) = row.count("idle_w")? {
            rate.idle_watts = i64::from(watts);
        }
        if let Some(watts) = row.count("busy_w")? {
            rate.busy_watts = i64::from(watts);
        }
        list.set(Name::new(model), rate);
    }
    Ok(list)
}

pub(super) fn dollars(row: &Row<'_, '_>, name: &str) -> Result<Option<Micros>> {
    let Some(text) = row.text(name) else { return Ok(None) };
    match text.parse::<Micros>() {
        Ok(price) if price.0 >= 0 => Ok(Some(price)),
        _ => Err(row.wrong(name, "dollars such as 2.5")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_tells_what_differs_from_the_built_in_one() {
        let text = "gpu_type,usd_per_gpu_h,idle_w\nA100,2.125,\nmine,0.5,30\n";
        let list = prices("p.csv", text).unwrap();
        assert_eq!(list.rate("A100").on_demand, Micros(2_125_000));
        assert_eq!(list.rate("A100").busy_watts, 400);
        assert_eq!(list.rate("mine").idle_watts, 30);
    }

    #[test]
    fn a_price_that_is_none_is_named_with_its_place() {
        let wrong = prices("p.csv", "gpu_type,usd_per_gpu_h\nA100,cheap\n").unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "p.csv, line 2, column 2 (usd_per_gpu_h): found `cheap`, expected dollars such as 2.5"
        );
    }
}
