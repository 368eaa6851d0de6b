//! Formats the report of an import or export.

use crate::show::{Look, Table, words};
use berth_import::{Report, Totals};

/// The maximum number of problems and differences to print. `-o json` has more.
const SHOWN: usize = 20;

fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

pub fn report(report: &Report, look: &Look) -> String {
    let mut out = experiments(report, look);
    let of = &report.registered;
    if of.models + of.versions + of.versions_before + of.aliases > 0 {
        let count = |number: u64, thing: &str| words::count(number, thing);
        out.push_str(&format!(
            "Registered: {}, {}, {}\n",
            count(of.models, "model"),
            count(of.versions, "version"),
            match of.aliases {
                1 => "1 alias".to_owned(),
                many => format!("{} aliases", words::thousands(many)),
            }
        ));
    }
    out.push_str(&problems(report));
    out.push_str(&differences(report));
    out.push_str(match (report.dry_run, report.complete) {
        (true, _) => "Nothing was written.\n",
        (false, true) if was_compared(report) => "Both sides are the same.\n",
        (false, true) => "Done. Nothing was compared.\n",
        (false, false) => "",
    });
    out
}

fn was_compared(report: &Report) -> bool {
    report.experiments.iter().all(|of| of.at_target.is_some())
}

fn experiments(report: &Report, look: &Look) -> String {
    let mut table = Table::new(&[
        "EXPERIMENT",
        "RUNS",
        "THERE",
        "POINTS",
        "PARAMS",
        "TAGS",
        "MODELS",
        "FILES",
        "SIZE",
        "SAME",
    ]);
    for of in &report.experiments {
        // The counts from the comparison, if there was one.
        let totals = |figure: fn(&Totals) -> u64| of.at_target.as_ref().map(figure);
        let size = of.at_target.as_ref().map(|totals| i64::try_from(totals.bytes));
        let same = of.at_target.as_ref().map(|there| match of.at_source.as_ref() == Some(there) {
            true => "yes",
            false => "no",
        });
        table.row(vec![
            plain(&of.target).into(),
            of.runs.into(),
            of.runs_before.into(),
            totals(|of| of.points).into(),
            totals(|of| of.params).into(),
            totals(|of| of.tags).into(),
            of.logged_models.into(),
            totals(|of| of.files).into(),
            size.map_or_else(String::new, |size| words::bytes(size.unwrap_or(i64::MAX))).into(),
            same.unwrap_or_default().into(),
        ]);
    }
    table.or(look, "No experiments.")
}

fn problems(report: &Report) -> String {
    let mut out = String::new();
    if report.problem_count > 0 {
        out.push_str(&format!("Left out: {}\n", words::thousands(report.problem_count)));
        for one in report.problems.iter().take(SHOWN) {
            out.push_str(&format!("  {}: {}\n", plain(&one.what), plain(&one.why)));
        }
        out.push_str(&more(report.problem_count));
    }
    out
}

fn differences(report: &Report) -> String {
    let mut out = String::new();
    if report.difference_count > 0 {
        out.push_str(&format!("Differences: {}\n", words::thousands(report.difference_count)));
        for one in report.differences.iter().take(SHOWN) {
            let (what, part) = (plain(&one.what), plain(&one.part));
            let (source, target) = (plain(&one.source), plain(&one.target));
            out.push_str(&format!(
                "  {what}, {part}: {source} at the source, {target} at the target\n"
            ));
        }
        out.push_str(&more(report.difference_count));
    }
    out
}

fn more(all: u64) -> String {
    match all.saturating_sub(SHOWN as u64) {
        0 => String::new(),
        more => format!("  and {} more\n", words::thousands(more)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_import::{Difference, ExperimentReport, Problem};

    #[test]
    fn a_report_names_what_was_left_out_and_what_differs() {
        let totals = |points| Totals { runs: 1, points, ..Totals::default() };
        let mut told = Report {
            experiments: vec![ExperimentReport {
                name: "digits".to_owned(),
                target: "old/digits".to_owned(),
                runs: 1,
                at_source: Some(totals(3)),
                at_target: Some(totals(2)),
                ..ExperimentReport::default()
            }],
            problems: vec![Problem { what: "run a".to_owned(), why: "no\u{1b}file".to_owned() }],
            problem_count: 30,
            ..Report::default()
        };
        told.differs(Difference {
            what: "run b".to_owned(),
            part: "points".to_owned(),
            source: "3".to_owned(),
            target: "2".to_owned(),
        });
        let shown = report(&told, &Look::fixed());
        assert!(shown.contains("old/digits") && shown.contains("no"), "{shown}");
        assert!(shown.contains("  run a: no file\n  and 10 more\n"), "{shown}");
        assert!(shown.contains("run b, points: 3 at the source, 2 at the target"), "{shown}");
        assert!(!shown.contains("Both sides are the same"), "{shown}");
    }
}
