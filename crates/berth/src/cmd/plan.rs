//! What would become of a job, on a page.

use crate::show::{Look, Page, Table, Tone, words};
use berth_api::wire::{Blocker, Eta, Placement, Plan};
use std::collections::BTreeMap;
use std::fmt::Write;

pub fn page(plan: Plan) -> Page<Plan> {
    Page::new(plan, text, |plan| vec![plan.name.clone()])
}

fn text(plan: &Plan, look: &Look) -> String {
    let mut out = String::new();
    let elements = match plan.elements {
        0 | 1 => String::new(),
        many => format!(", {many} elements"),
    };
    let declared = if plan.declared { " (declared GPUs, not real ones)" } else { "" };
    let _ = writeln!(
        out,
        "{} of {}: {}{elements}{declared}",
        plan.name,
        plan.team,
        words::asks(&plan.asks)
    );
    out.push_str(&table(plan, look).text(look));
    for Blocker { text, code, binding } in &plan.blockers {
        let mark = if *binding { "  <- main blocker" } else { "" };
        let (waits, text) = (look.paint(Tone::Busy, "waits:"), look.local(text));
        let _ = writeln!(out, "{waits} {text} [{code}]{mark}");
    }
    out
}

/// A row for each machine; what is about the whole stands in the first.
fn table(plan: &Plan, look: &Look) -> Table {
    let mut table =
        Table::new(&["PLACE", "GPUS", ">PRICE/H", ">TIME", ">TOTAL", ">AT MOST", "STARTS"]);
    let mut places = places(&plan.places).into_iter();
    let (place, gpus) = places.next().unwrap_or_default();
    table.row(vec![
        place.into(),
        gpus.into(),
        words::maybe_money(plan.price_micros_per_hour).into(),
        plan.estimate_ms.map_or_else(|| "no end".to_owned(), words::span).into(),
        words::maybe_money(plan.total_micros).into(),
        words::maybe_money(plan.most_micros).into(),
        starts(plan, look).into(),
    ]);
    for (place, gpus) in places {
        table.row(vec![place.into(), gpus.into()]);
    }
    table
}

fn starts(plan: &Plan, look: &Look) -> String {
    match (&plan.eta, plan.starts_now) {
        (_, true) => "now".to_owned(),
        (Some(eta), false) => moments(eta, look),
        (None, false) => "no start time yet".to_owned(),
    }
}

/// `~16:40 (P90 18:05)`.
pub fn moments(eta: &Eta, look: &Look) -> String {
    match (eta.p50, eta.p90) {
        (Some(p50), Some(p90)) => format!("~{} (P90 {})", look.at(p50), look.at(p90)),
        (Some(p50), None) => format!("~{} (P90 not known)", look.at(p50)),
        (None, _) => "no start time yet".to_owned(),
    }
}

/// Machines with what is used of each: `n1`, `8 x H100`.
fn places(places: &[Placement]) -> Vec<(String, String)> {
    let mut nodes: BTreeMap<&str, (usize, Option<&str>)> = BTreeMap::new();
    for place in places {
        let (gpus, model) = nodes.entry(&place.node).or_default();
        *gpus += place.gpus.len();
        *model = model.or(place.model.as_deref());
    }
    let gpus = |(count, model): (usize, Option<&str>)| match (count, model) {
        (0, _) => String::new(),
        (count, Some(model)) => format!("{count} x {model}"),
        (count, None) => count.to_string(),
    };
    nodes.into_iter().map(|(node, used)| (node.to_owned(), gpus(used))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::Format;

    fn plan() -> Plan {
        let place = |task, node: &str| Placement {
            task,
            node: node.into(),
            model: Some("H100-80GB".into()),
            gpus: vec![0, 1],
        };
        Plan {
            name: "bert".into(),
            team: "nlp".into(),
            asks: "2 x H100:2".into(),
            elements: 1,
            starts_now: true,
            places: vec![place(0, "n1"), place(1, "n2")],
            eta: None,
            blockers: Vec::new(),
            price_micros_per_hour: Some(12_400_000),
            total_micros: Some(37_200_000),
            estimate_ms: Some(10_800_000),
            most_micros: Some(892_800_000),
            warnings: Vec::new(),
            declared: false,
        }
    }

    fn shown(plan: Plan) -> String {
        page(plan).print(Format::Table, &Look::fixed()).unwrap()
    }

    #[test]
    fn a_plan_shows_place_price_total_and_start() {
        let expect = "\
bert of nlp: 2 x H100:2
PLACE  GPUS           PRICE/H  TIME   TOTAL  AT MOST  STARTS
n1     2 x H100-80GB   $12.40    3h  $37.20  $892.80  now
n2     2 x H100-80GB        -     -       -        -  -
";
        assert_eq!(shown(plan()), expect);
    }

    #[test]
    fn a_plan_that_has_to_wait_says_why_and_until_when() {
        let at = |text: &str| Some(text.parse().unwrap());
        let eta = Eta { p50: at("2026-11-15T15:40:00Z"), p90: None, age_ms: 3 };
        let blocker = Blocker { code: "R01".into(), text: "no room".into(), binding: true };
        let waits = Plan {
            starts_now: false,
            places: Vec::new(),
            eta: Some(eta),
            blockers: vec![blocker],
            declared: true,
            elements: 3,
            ..plan()
        };
        let text = shown(waits);
        assert!(text.contains(", 3 elements (declared GPUs, not real ones)"), "{text}");
        assert!(text.contains("~16:40 (P90 not known)"), "{text}");
        assert!(text.contains("waits: no room [R01]  <- main blocker"), "{text}");
    }
}
