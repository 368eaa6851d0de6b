//! The pages stay true: the simulator's example does what it says.

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The code blocks of a language, in order.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let start = format!("```{language}\n");
    text.split(&start).skip(1).filter_map(|rest| Some(rest.split_once("```")?.0)).collect()
}

/// What a page says is printed.
fn printed_lines(page: &str) -> Vec<&str> {
    let lines = blocks(page, "text").into_iter().flat_map(str::lines);
    lines.map(str::trim_end).filter(|line| !line.is_empty()).collect()
}

/// Runs `berth sim` and gives back what it printed.
fn sim(arguments: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_berth")).arg("sim").args(arguments).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {printed}{complaints}");
    printed
}

#[test]
fn the_world_and_the_scenario_of_the_simulators_page_do_what_it_says() {
    let page = read(&root().join("docs/simulator.md"));
    let blocks = blocks(&page, "yaml");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().expect("a plain path").to_owned()
    };
    let world = file("page-world.yaml", blocks[0]);
    let scenario = file("page-reclaim.yaml", blocks[1]);
    let plan = sim(&["once", &world]);
    for line in printed_lines(&page) {
        assert!(plan.lines().any(|printed| printed.trim_end() == line), "no {line:?} in:\n{plan}");
    }
    let settled = sim(&["settle", &world]);
    assert!(settled.lines().any(|line| line.contains("start") && line.contains("finetune")));
    assert!(sim(&["once", &world, "--why", "huge"]).contains("even the empty cluster"));
    assert!(sim(&["once", &world, "-o", "json"]).contains("\"decisions\""));
    sim(&["check", &scenario]);
}
