//! The pages about reasons and rejections name every code, so that none is added without saying
//! what to do about it.

const REASONS: &str = include_str!("../../../docs/reasons.md");
const REJECTIONS: &str = include_str!("../../../docs/rejections.md");
const REASON_SOURCE: &str = include_str!("../src/reason/mod.rs");
const REJECT_SOURCE: &str = include_str!("../src/reject.rs");

/// First cells of the tables of a page, without the marks around them.
fn codes_on(page: &str) -> Vec<&str> {
    page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect()
}

/// The codes that a type's `code` function gives, as it is written: whatever a variant is called,
/// this is what people see.
fn codes_in(source: &str) -> Vec<&str> {
    let (_, body) = source.split_once("fn code(").expect("a function that gives codes");
    let (body, _) = body.split_once("\n    }").expect("its end");
    body.lines()
        .filter_map(|line| line.split_once("=> \"")?.1.split_once('"').map(|(code, _)| code))
        .collect()
}

fn check(source: &str, page: &str, name: &str) {
    let (codes, rows) = (codes_in(source), codes_on(page));
    assert!(codes.len() > 20, "{codes:?}");
    let missing: Vec<_> = codes.iter().filter(|code| !rows.contains(code)).collect();
    let gone: Vec<_> = rows.iter().filter(|row| !codes.contains(row)).collect();
    assert!(missing.is_empty(), "{missing:?} not in {name}");
    assert!(gone.is_empty(), "{gone:?} still in {name}");
}

#[test]
fn every_reason_has_a_row() {
    check(REASON_SOURCE, REASONS, "docs/reasons.md");
}

#[test]
fn every_rejection_has_a_row() {
    check(REJECT_SOURCE, REJECTIONS, "docs/rejections.md");
}
