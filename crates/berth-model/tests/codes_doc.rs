//! The pages about reasons and rejections name every code, so that none is added without saying
//! what to do about it.

use berth_model::Reason;

const REASONS: &str = include_str!("../../../docs/reasons.md");
const REJECTIONS: &str = include_str!("../../../docs/rejections.md");
const REJECT_SOURCE: &str = include_str!("../src/reject.rs");

/// First cells of the tables of a page, without the marks around them.
fn codes_on(page: &str) -> Vec<&str> {
    page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect()
}

fn missing<'a>(wanted: &[&'a str], there: &[&str]) -> Vec<&'a str> {
    wanted.iter().copied().filter(|code| !there.contains(code)).collect()
}

/// The variants of a tagged enum, which serde lists when it meets one it does not know.
fn variants_of_reason() -> Vec<String> {
    let error = serde_json::from_str::<Reason>(r#"{"code": "?"}"#).unwrap_err().to_string();
    let (_, list) = error.split_once("expected one of ").expect("a list of variants");
    list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The codes that [`berth_model::Rejected::code`] gives, as it is written.
fn codes_of_rejected() -> Vec<&'static str> {
    let (_, body) = REJECT_SOURCE.split_once("fn code(").expect("a function that gives codes");
    body.lines()
        .filter_map(|line| line.split_once("=> \"")?.1.split_once('"').map(|(code, _)| code))
        .collect()
}

#[test]
fn every_reason_has_a_row() {
    let variants = variants_of_reason();
    // A bound of a queue has a code for each kind.
    let codes: Vec<&str> = variants
        .iter()
        .flat_map(|variant| match variant.as_str() {
            "queue-bound" => vec!["queue-limit", "borrow-limit", "user-limit"],
            other => vec![other],
        })
        .collect();
    assert!(codes.len() > 30, "{codes:?}");
    assert_eq!(missing(&codes, &codes_on(REASONS)), [""; 0], "not in docs/reasons.md");
}

#[test]
fn every_rejection_has_a_row() {
    let (codes, rows) = (codes_of_rejected(), codes_on(REJECTIONS));
    assert!(codes.len() > 20, "{codes:?}");
    assert_eq!(missing(&codes, &rows), [""; 0], "not in docs/rejections.md");
    assert_eq!(missing(&rows, &codes), [""; 0], "gone, but still in docs/rejections.md");
}
