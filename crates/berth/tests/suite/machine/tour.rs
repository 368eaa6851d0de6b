//! The tour of the README, as somebody would type it.

use super::server::{BERTH, Server};
use std::process::Command;

const README: &str = include_str!("../../../../../README.md");

/// The commands of the section, block by block, without the alias that a script has no use for.
fn commands() -> String {
    let section = README.split("## Five minutes to a running job").nth(1).expect("it is there");
    let section = section.split("\n## ").next().expect("it has an end");
    let blocks = section.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.filter(|block| !block.starts_with("alias ")).collect()
}

#[test]
fn the_tour_of_the_readme_works_command_by_command() {
    let server = Server::start(&["--gpus", "2xL4"]);
    let script = format!("set -ex\nberth() {{ {BERTH} \"$@\"; }}\n{}", commands());
    let mut shell = Command::new("bash");
    shell.args(["-c", &script]).env("BERTH_HOME", server.home.path()).env("NO_COLOR", "1");
    let ran = shell.current_dir(server.work.path()).output().expect("bash runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&ran.stdout), text(&ran.stderr));
    assert!(ran.status.success(), "{out}\n{err}");
    for said in ["hello from a job", "step 3", "sweep"] {
        assert!(out.contains(said), "`{said}` is missing:\n{out}\n{err}");
    }
}
