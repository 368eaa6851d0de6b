//! Links between Markdown files lead to files and headings that exist, and the book has every page.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Folders with what others wrote, or what a build made.
const LEFT_OUT: &[&str] = &["target", "node_modules", "book", "dist"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The Markdown files below a folder.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of pages") {
            let entry = entry.expect("an entry");
            let name = entry.file_name().to_string_lossy().into_owned();
            // Links to folders are not followed: they may lead in a circle.
            if entry.file_type().expect("a type").is_dir() {
                let is_ours = !name.starts_with('.') && !LEFT_OUT.contains(&name.as_str());
                folders.extend(is_ours.then(|| entry.path()));
            } else if name.ends_with(".md") {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

/// A page without its blocks of code: what is in them is neither a link nor a heading.
fn prose(text: &str) -> String {
    let mut is_code = false;
    let mut kept = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// Targets of links to files and headings of the repository.
fn targets(prose: &str) -> Vec<&str> {
    let after = prose.split("](").skip(1);
    let targets = after.filter_map(|rest| Some(rest.split_once(')')?.0));
    targets.filter(|target| !target.contains("://") && !target.starts_with("mailto:")).collect()
}

/// What a heading is called in an address, on GitHub and in the book alike.
fn slug(heading: &str) -> String {
    let mut words = String::new();
    for (nth, part) in heading.split("](").enumerate() {
        // Of a link in a heading only its words count.
        let part =
            if nth == 0 { part } else { part.split_once(')').map_or(part, |(_, rest)| rest) };
        words.push_str(part);
    }
    let kept = words.trim().chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        _ => letter.is_alphanumeric().then_some(letter),
    });
    kept.flat_map(char::to_lowercase).collect()
}

/// The anchors of a page. A heading that is there again gets a number.
fn anchors(prose: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    for line in prose.lines().filter(|line| line.starts_with('#')) {
        let slug = slug(line.trim_start_matches('#'));
        let before = seen.entry(slug.clone()).or_default();
        anchors.insert(if *before == 0 { slug } else { format!("{slug}-{before}") });
        *before += 1;
    }
    anchors
}

/// Links of the pages that lead nowhere.
fn dead_links(pages: &[PathBuf]) -> Vec<String> {
    let mut dead = Vec::new();
    for page in pages {
        let text = prose(&read(page));
        let folder = page.parent().expect("a page lies in a folder");
        for target in targets(&text) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let to = if file.is_empty() { page.clone() } else { folder.join(file) };
            let is_page = to.extension().is_some_and(|end| end == "md");
            let is_there = to.exists()
                && (anchor.is_empty() || !is_page || anchors(&prose(&read(&to))).contains(anchor));
            if !is_there {
                dead.push(format!("{} → {target}", page.display()));
            }
        }
    }
    dead
}

#[test]
fn every_link_leads_to_a_file_and_a_heading_that_exist() {
    let pages = pages(&root());
    assert!(pages.len() > 80, "{pages:?}");
    assert_eq!(dead_links(&pages), [""; 0]);
}

#[test]
fn every_page_is_in_the_book() {
    let docs = root().join("docs");
    let summary = prose(&read(&docs.join("SUMMARY.md")));
    let listed: BTreeSet<PathBuf> = targets(&summary).into_iter().map(|to| docs.join(to)).collect();
    let missing: Vec<PathBuf> =
        pages(&docs).into_iter().filter(|page| !listed.contains(page)).collect();
    assert_eq!(missing, [docs.join("SUMMARY.md")], "docs/SUMMARY.md lists every other page");
}

// The checks above pass on healthy pages whatever they do. This one looks at sick ones.
#[test]
fn a_dead_link_and_a_dead_heading_are_found() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("links");
    fs::create_dir_all(&folder).expect("a folder");
    let page = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).expect("a page");
        path
    };
    let good = "# `berth up`, [and](x.md) more\n## Twice\n## Twice\n\
                [a](#berth-up-and-more) [b](other.md#twice-1) [c](https://x.example/#y)\n\
                ```sh\n# no heading\n[d](nowhere.md)\n```\n";
    let one = page("x.md", good);
    let other = page("other.md", good);
    assert_eq!(dead_links(&[one, other.clone()]), [""; 0]);
    let bad = page("bad.md", "[a](nowhere.md) [b](other.md#no-heading) [c](#thrice)\n");
    let found = dead_links(&[bad, other]).join("\n");
    for target in ["→ nowhere.md", "→ other.md#no-heading", "→ #thrice"] {
        assert!(found.contains(target), "no {target} in:\n{found}");
    }
    assert_eq!(found.lines().count(), 3, "{found}");
}
