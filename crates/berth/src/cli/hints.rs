//! Commands that messages, help texts and pages of errors name exist, with their flags.

use super::*;
use clap::error::ErrorKind;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(folder: &Path, end: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => files(&path, end, found),
            false if path.extension().is_some_and(|is| is == end) => found.push(path),
            false => {}
        }
    }
}

/// The text with what stands in one literal on one line, and without comments.
fn literals(source: &str) -> String {
    let mut text = String::new();
    let mut joins = false;
    for line in source.lines() {
        let line = if joins { line.trim_start() } else { line };
        // A doc comment of clap is a help text.
        let is_comment =
            line.trim_start().starts_with("//") && !line.trim_start().starts_with("///");
        joins = line.ends_with('\\') && !is_comment;
        if !is_comment {
            text.push_str(line.strip_suffix('\\').unwrap_or(line));
        }
        if !joins {
            text.push('\n');
        }
    }
    text
}

/// Commands in backticks: `` `berth ps --all` ``.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for rest in text.split("`berth ").skip(1) {
        if let Some((command, _)) = rest.split_once('`')
            && !command.contains('\n')
            && !command.contains("\" +")
        {
            found.push(command.to_owned());
        }
    }
    found
}

/// A value for each part that is filled in later.
fn filled(command: &str) -> Vec<String> {
    let mut out = String::new();
    let mut depth = 0;
    for c in command.chars() {
        match c {
            '{' => depth += 1,
            '}' => {
                depth -= 1;
                out.push('1');
            }
            _ if depth == 0 => out.push(c),
            _ => {}
        }
    }
    let own = out.split_whitespace().take_while(|word| !["|", ">", "<", "&&", ";"].contains(word));
    let words = own.map(|word| word.trim_matches(['[', ']', ',', '…']));
    words.filter(|word| !word.is_empty() && *word != "...").map(str::to_owned).collect()
}

/// Why a command that a text names is none.
fn mistake(command: &str) -> Option<String> {
    let words = filled(command);
    // Flags of other commands may follow a placeholder such as `berth COMMAND --help`.
    if words.first().is_none_or(|word| word.chars().all(|c| c.is_ascii_uppercase())) {
        return None;
    }
    let error = Cli::try_parse_from(std::iter::once("berth".to_owned()).chain(words)).err()?;
    match error.kind() {
        ErrorKind::InvalidSubcommand | ErrorKind::UnknownArgument | ErrorKind::ArgumentConflict => {
            Some(error.to_string())
        }
        // A hint may name a verb without its values.
        _ => None,
    }
}

#[test]
fn every_command_that_a_message_or_help_text_names_exists() {
    let mut sources = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).expect("crates") {
        let source = entry.expect("an entry").path().join("src");
        if source.is_dir() {
            files(&source, "rs", &mut sources);
        }
    }
    let is_test = |path: &PathBuf| {
        let name = path.to_string_lossy();
        name.contains("/tests") || name.ends_with("hints.rs")
    };
    let (mut mistakes, mut seen) = (Vec::new(), 0);
    for path in sources.iter().filter(|path| !is_test(path)) {
        let text = std::fs::read_to_string(path).expect("a source");
        let text = text.split("#[cfg(test)]\nmod tests").next().expect("a first part").to_owned();
        for command in commands(&literals(&text)) {
            seen += 1;
            if let Some(why) = mistake(&command) {
                mistakes.push(format!("{}: `berth {command}`: {why}", path.display()));
            }
        }
    }
    assert!(seen > 80, "{seen} commands");
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}

#[test]
fn every_command_on_a_page_exists() {
    let mut pages = Vec::new();
    files(&root().join("docs"), "md", &mut pages);
    pages.push(root().join("README.md"));
    let mut mistakes = Vec::new();
    for path in pages {
        let text = std::fs::read_to_string(&path).expect("a page").replace('\n', " ");
        for command in commands(&text) {
            if let Some(why) = mistake(&command) {
                mistakes.push(format!("{}: `berth {command}`: {why}", path.display()));
            }
        }
    }
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}

#[test]
fn a_command_that_does_not_exist_is_noticed() {
    assert!(mistake("project make {project} --team {team}").is_some());
    assert!(mistake("ps --wat").is_some());
    assert!(mistake("why {job}").is_none() && mistake("budget").is_none());
    assert_eq!(
        commands(&literals("\"try `berth set JOB \\\n    priority=high`\"")),
        ["set JOB priority=high"]
    );
}
