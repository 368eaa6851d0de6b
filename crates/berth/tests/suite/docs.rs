//! The pages stay true: their links lead somewhere, and the simulator's example does what it says.

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The Markdown files at the top and under `docs`.
fn pages() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("docs")];
    let mut look = |folder: &Path, deeper: Option<&mut Vec<PathBuf>>| {
        let entries = std::fs::read_dir(folder).expect("a folder of pages");
        let paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        let page = |path: &&PathBuf| path.extension().is_some_and(|end| end == "md");
        found.extend(paths.iter().filter(page).cloned());
        if let Some(deeper) = deeper {
            deeper.extend(paths.into_iter().filter(|path| path.is_dir()));
        }
    };
    look(&root(), None);
    while let Some(folder) = folders.pop() {
        look(&folder, Some(&mut folders));
    }
    found.sort();
    found
}

/// Targets of links to other files of the repository.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')').map(|(target, _)| target))
        .filter(|target| !target.contains("://") && !target.starts_with('#'))
        .map(|target| target.split('#').next().expect("at least one part"))
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
fn every_link_between_pages_and_code_leads_somewhere() {
    let pages = pages();
    assert!(pages.len() > 8, "{pages:?}");
    let mut broken = Vec::new();
    for page in pages {
        let folder = page.parent().expect("a page lies in a folder");
        let text = read(&page);
        let dead = links(&text).filter(|target| !folder.join(target).exists());
        broken.extend(dead.map(|target| format!("{} → {target}", page.display())));
    }
    assert_eq!(broken, [""; 0]);
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
