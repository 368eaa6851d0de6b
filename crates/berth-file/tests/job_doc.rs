//! The page about job files lists exactly the keys there are, and its examples are job files.

use berth_file::job::{KEYS, Key, Takes, read};

const PAGE: &str = include_str!("../../../docs/job-file.md");

fn row(key: &Key) -> String {
    let flag = match (key.takes, key.short) {
        (Takes::Rest, _) => "`-- COMMAND`".to_owned(),
        (_, Some(short)) => format!("`-{short}`, `--{}`", key.flag),
        (_, None) => format!("`--{}`", key.flag),
    };
    format!("| `{}` | {flag} | {} | `{}` |", key.name, key.help, key.example)
}

#[test]
fn the_table_of_keys_is_what_the_code_knows() {
    let (_, keys) = PAGE.split_once("## Keys").expect("a part about keys");
    let (keys, _) = keys.split_once("\n## ").expect("another part");
    let rows: Vec<&str> = keys.lines().filter(|line| line.starts_with("| `")).collect();
    let expect: Vec<String> = KEYS.iter().map(row).collect();
    assert_eq!(rows, expect, "write them like this:\n{}", expect.join("\n"));
}

#[test]
fn the_examples_of_the_page_are_job_files() {
    let blocks: Vec<&str> = PAGE
        .split("```yaml\n")
        .skip(1)
        .filter_map(|rest| Some(rest.split_once("```")?.0))
        .collect();
    assert!(blocks.len() >= 6);
    for block in blocks {
        if let Err(mistakes) = read(block) {
            panic!("{mistakes}\n{block}");
        }
    }
}
