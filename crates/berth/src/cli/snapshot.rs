//! The texts of help and of errors, as files that a review can read. `BERTH_WRITE_DOCS=1` writes
//! them again.

use super::tests::leaves;
use super::*;
use crate::fail::Failure;
use berth_api::{Code, Problem};
use clap::CommandFactory;
use std::fmt::Write;
use std::path::Path;

fn check(name: &str, text: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/snapshots");
    let path = folder.join(name);
    if std::env::var_os("BERTH_WRITE_DOCS").is_some() {
        std::fs::create_dir_all(&folder).expect("a folder for snapshots");
        std::fs::write(&path, text).expect("a file that can be written");
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = kept.lines().zip(text.lines()).find(|(kept, now)| kept != now);
    assert!(
        kept == text,
        "{} is not what the program says; write it with BERTH_WRITE_DOCS=1. First difference: \
         {differs:?}",
        path.display()
    );
}

/// The value that a variable has now is no part of the text.
fn without_values(help: &str) -> String {
    let mut out = String::new();
    let mut rest = help;
    while let Some((before, after)) = rest.split_once("[env: ") {
        let (name, after) = after.split_once(']').unwrap_or((after, ""));
        let name = name.split('=').next().unwrap_or(name);
        let _ = write!(out, "{before}[env: {name}]");
        rest = after;
    }
    out.push_str(rest);
    out
}

#[test]
fn the_help_of_every_command_is_as_in_the_snapshot() {
    let mut command = Cli::command();
    command.build();
    let mut text = without_values(&command.render_help().to_string());
    for leaf in leaves(&Cli::command(), "") {
        let words: Vec<&str> = leaf.split(' ').collect();
        let found = words.iter().try_fold(&mut command, |at, word| at.find_subcommand_mut(word));
        let help = found.expect("a leaf is a command").render_help().to_string();
        let _ = write!(text, "\n== berth {leaf}\n\n{}", without_values(&help));
    }
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    check("help.txt", &format!("{}\n", lines.join("\n")));
}

/// Command lines with a mistake, and what the program says.
const MISTAKES: [&str; 14] = [
    "sop 17",
    "stop",
    "run -g 1 python train.py",
    "run --gpus 1.5 -- true",
    "run --export A=1 -- true",
    "cost --by colour",
    "logs 17 --since yesterday",
    "ps --columns colour",
    "ps --label owner",
    "ps -n 0",
    "member set nlp kim king",
    "budget set nlp much",
    "token create laptop --scope everything",
    "completion tcsh",
];

#[test]
fn the_texts_of_errors_are_as_in_the_snapshot() {
    let mut text = String::new();
    for line in MISTAKES {
        let error = match Cli::try_parse_from(std::iter::once("berth").chain(line.split(' '))) {
            Ok(_) => panic!("berth {line} was read"),
            Err(error) => error.to_string(),
        };
        let _ = write!(text, "== berth {line}\n\n{error}\n");
    }
    for code in Code::ALL {
        let failure = Failure::from(Problem::new(*code, "the detail of this request"));
        let _ = write!(text, "== {}\n\n{failure}\n\n", code.code());
    }
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    check("errors.txt", &format!("{}\n", lines.join("\n")));
}

#[test]
fn help_texts_are_plain_english() {
    let riddles = [
        "nobody",
        "somebody",
        "one may",
        "one's",
        "one is",
        "was told",
        "is none",
        "said to be",
        "whoever",
        "people",
    ];
    let mut command = Cli::command();
    command.build();
    let mut found = Vec::new();
    for leaf in leaves(&Cli::command(), "") {
        let words: Vec<&str> = leaf.split(' ').collect();
        let at = words.iter().try_fold(&mut command, |at, word| at.find_subcommand_mut(word));
        let help = at.expect("a leaf is a command").render_help().to_string().to_lowercase();
        let odd = riddles.iter().filter(|riddle| help.contains(**riddle));
        found.extend(odd.map(|riddle| format!("berth {leaf}: {riddle}")));
    }
    assert!(found.is_empty(), "{found:#?}");
}
