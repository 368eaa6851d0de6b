use super::*;
use crate::estimate::Estimate;
use crate::metrics::Setting;
use crate::peers::{self, Policy};
use crate::prices::PriceList;
use crate::site::Site;
use crate::trace::{self, Select};
use crate::workload::Workload;

fn page() -> String {
    let jobs = trace::jobs("sample", trace::BUNDLED, &Select::default()).unwrap();
    let workload = Workload::new(&jobs, Estimate::Exact).unwrap();
    let site = Site::from(Fleet::like(3, 8, "A100"));
    let pictures: Vec<RunSummary> = [Policy::Fifo, Policy::Srtf]
        .into_iter()
        .map(|policy| {
            let timeline = peers::run_at(policy, &site, &workload.jobs, &[]);
            let setting = Setting { gpus: 24, ..Setting::default() };
            let report = Report::new(&timeline.outcomes, &setting);
            let prices = PriceList::default();
            let account = Account::new(&timeline, &site.fleet, &workload.jobs, &prices);
            RunSummary::new(policy.word(), &timeline, &site.fleet, 4, report, account)
        })
        .collect();
    let quotas = workload.quotas_by_demand();
    let about = ["a <line> & more".to_owned()];
    let teams = &workload.teams;
    Page { title: "A \"title\"", about: &about, teams, quotas: &quotas, pictures: &pictures }.html()
}

/// Every element that is opened is closed in its turn, and no text holds markup.
fn check_elements(html: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = html.strip_prefix("<!doctype html>").expect("a document type");
    while let Some(at) = rest.find('<') {
        assert!(
            !rest[..at].contains('>'),
            "a stray > before {}",
            &rest[at..][..20.min(rest.len() - at)]
        );
        let end = rest[at..].find('>').expect("a tag ends") + at;
        let tag = &rest[at + 1..end];
        assert_eq!(tag.matches('"').count() % 2, 0, "quotes of <{tag}>");
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "</{name}>"),
            None if tag.ends_with('/') => {}
            None => open.push(tag.split_whitespace().next().unwrap()),
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn the_page_is_well_formed_and_asks_nobody_for_anything() {
    let html = page();
    check_elements(&html);
    for address in ["http:", "https:", "url(", "src=", "href=", "@import", "<script"] {
        assert!(!html.contains(address), "{address}");
    }
    assert!(html.contains("a &lt;line&gt; &amp; more"));
}

#[test]
fn the_page_holds_every_plot_in_both_themes_and_numbers_that_are_numbers() {
    let html = page();
    assert_eq!(html.matches("<svg").count(), 8, "six charts and two Gantt charts");
    assert!(html.contains("prefers-color-scheme:dark"));
    for word in ["NaN", "inf", "Utilization", "Distribution", "Shares", "Cost", "Who ran where"] {
        let expected = !matches!(word, "NaN" | "inf");
        assert_eq!(html.contains(word), expected, "{word}");
    }
    // The policy that keeps places has bars on its nodes.
    let fifo = html.split("Gantt chart of fifo").nth(1).unwrap().split("</svg>").next().unwrap();
    assert!(fifo.matches("<rect").count() > 50);
}
