//! Findings that a known limit explains. Each names its line of the page, word for word: when the
//! limit is lifted and the line goes, the finding counts again.

use super::check::Outcome;
use super::finding::{Finding, What};
use std::collections::BTreeSet;

const PAGE: &str = include_str!("../../../../docs/operate/kubernetes/limits.md");

struct Explanation {
    what: What,
    line: &'static str,
    /// Whether it is about a case like this one.
    applies: fn(&Finding, &Outcome) -> bool,
}

const EXPLANATIONS: [Explanation; 1] = [Explanation {
    what: What::LeftWithoutPreempting,
    line: "Berth preempts no pod for a rule about other pods, for a spread or for a volume.",
    applies: |finding, berth| {
        berth
            .after
            .pods
            .get(&finding.about)
            .is_some_and(|pod| pod.has_rules() || !pod.claims().is_empty())
    },
}];

/// Marks what is explained.
pub fn explain(findings: &mut [Finding], berth: &Outcome) {
    let page = words(PAGE);
    for finding in findings {
        let explanation = EXPLANATIONS.iter().find(|one| {
            one.what == finding.what
                && page.contains(&words(one.line))
                && (one.applies)(finding, berth)
        });
        finding.explained_by = explanation.map(|one| one.line);
    }
}

/// Lines of explanations that the page does not have any more. They explain nothing; remove them.
pub fn stale() -> BTreeSet<&'static str> {
    let page = words(PAGE);
    EXPLANATIONS.iter().map(|one| one.line).filter(|line| !page.contains(&words(line))).collect()
}

/// Without line breaks and marks.
fn words(text: &str) -> String {
    let plain = text.replace("**", "");
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}
