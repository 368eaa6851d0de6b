//! Plays every scenario of the core and of the simulator.
//!
//! A file is a test: its name is the sentence it shows, and the list of failures names each file.

#![allow(clippy::disallowed_methods, reason = "a test reads its fixtures")]

use berth_sim::scenario;
use berth_sim::world::{World, write};
use std::fs;
use std::path::{Path, PathBuf};

fn scenarios() -> Vec<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = [here.join("tests/scenarios"), here.join("../berth-core/tests/scenarios")];
    let mut files: Vec<PathBuf> = folders
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flatten()
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "yaml" || end == "json"))
        .collect();
    files.sort();
    files
}

/// What is wrong with one scenario.
fn play(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("a readable scenario");
    let loaded = match World::parse(&text) {
        Ok(loaded) => loaded,
        Err(error) => return vec![error.to_string()],
    };
    let mut wrong = Vec::new();
    match (scenario::check(&loaded), scenario::check(&loaded)) {
        (Ok(first), Ok(second)) => {
            wrong.extend(first.failures.iter().map(ToString::to_string));
            if first != second {
                wrong.push("a second run went differently".to_owned());
            }
        }
        (Err(error), _) | (_, Err(error)) => wrong.push(error.to_string()),
    }
    match World::parse(&write(&loaded.snapshot)) {
        Ok(again) if again.snapshot == loaded.snapshot => {}
        Ok(_) => wrong.push("written and read, it is another world".to_owned()),
        Err(error) => wrong.push(format!("written, it cannot be read: {error}")),
    }
    wrong
}

#[test]
fn every_scenario_goes_as_expected_twice() {
    let files = scenarios();
    assert!(!files.is_empty(), "there are no scenarios");
    let mut failed = Vec::new();
    for path in &files {
        let wrong = play(path);
        if !wrong.is_empty() {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            failed.push(format!("{name}\n    {}", wrong.join("\n    ")));
        }
    }
    assert!(
        failed.is_empty(),
        "{} of {} failed:\n{}",
        failed.len(),
        files.len(),
        failed.join("\n")
    );
}

#[test]
fn the_examples_of_the_page_are_worlds() {
    let page = include_str!("../../../docs/world-file.md");
    let blocks: Vec<&str> =
        page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        let loaded = World::parse(block).unwrap_or_else(|error| panic!("{error}\n{block}"));
        let verdict = scenario::check(&loaded).unwrap();
        assert!(verdict.passed(), "{:?}", verdict.failures);
    }
}
