//! The page about documents has a part for each kind, and its examples are documents.

use berth_file::documents::read;

const PAGE: &str = include_str!("../../../docs/apply.md");

#[test]
fn the_examples_of_the_page_are_documents() {
    let blocks = PAGE.split("```yaml\n").skip(1).filter_map(|rest| Some(rest.split_once("```")?.0));
    let mut seen = 0;
    for block in blocks {
        match read(block) {
            Ok(documents) => seen += documents.len(),
            Err(mistakes) => panic!("{mistakes:?}\n{block}"),
        }
    }
    assert!(seen >= 9, "{seen} documents");
}

/// The message about an unknown kind lists all kinds, so the page cannot leave one out.
#[test]
fn every_kind_has_a_part_of_the_page() {
    let mistakes = read("name: nothing\n").unwrap_err();
    let message = mistakes[0].to_string();
    let (_, kinds) = message.split_once("`kind`: ").expect("a list of kinds");
    let words = kinds.split([',', ' ']).filter(|word| !word.is_empty() && *word != "or");
    let mut seen = 0;
    for word in words {
        let word = word.trim_matches('`');
        assert!(PAGE.contains(&format!("\n## `kind: {word}`\n")), "no part about {word}");
        seen += 1;
    }
    assert!(seen >= 9, "{message}");
}
