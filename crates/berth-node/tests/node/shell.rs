//! Terminals beside tasks.

use super::*;
use berth_model::TaskEnd;
use berth_node::Size;
use std::io::{Read, Write};

const SIZE: Size = Size { rows: 24, columns: 80 };

fn started(machine: &Machine, line: &str) {
    let mut spec = shell_task(machine, 1, line);
    spec.env.insert("TOKEN".to_owned(), "hunter2".to_owned());
    machine.start(spec);
    wait_until("it runs", || machine.folder(1).join("started.json").exists());
}

fn words(line: &str) -> Vec<String> {
    vec!["sh".to_owned(), "-c".to_owned(), line.to_owned()]
}

#[test]
fn a_shell_has_a_terminal_and_the_environment_of_the_task() {
    let machine = machine();
    started(&machine, "exec sleep 1000");
    let line = "stty size; echo $TOKEN $TERM; pwd; read x; echo got $x; stty size";
    let shell = machine.driver().shell(lease(1), &words(line), "xterm", SIZE).unwrap();
    let terminal = std::os::fd::AsFd::as_fd(&shell).try_clone_to_owned().unwrap();
    let mut terminal = std::fs::File::from(terminal);
    let mut shown = String::new();
    let mut read_to = |terminal: &mut std::fs::File, what: &str| {
        let mut buffer = [0; 1024];
        while !shown.contains(what) {
            let length = terminal.read(&mut buffer).unwrap();
            shown.push_str(&String::from_utf8_lossy(&buffer[..length]));
        }
    };
    let directory = machine.dir.path().canonicalize().unwrap().display().to_string();
    read_to(&mut terminal, "24 80");
    read_to(&mut terminal, "hunter2 xterm");
    read_to(&mut terminal, &directory);
    shell.resize(Size { rows: 50, columns: 132 }).unwrap();
    terminal.write_all(b"hello\n").unwrap();
    read_to(&mut terminal, "got hello");
    read_to(&mut terminal, "50 132");
}

#[test]
fn a_shell_ends_with_its_task_even_if_it_was_told_not_to() {
    let machine = machine();
    started(&machine, "exec sleep 1000");
    let line = "trap '' HUP TERM; setsid sleep 1000 & echo $! > guest; echo $$ > shell; sleep 1000";
    let mut shell = machine.driver().shell(lease(1), &words(line), "dumb", SIZE).unwrap();
    let (own, guest) = (machine.number("shell"), machine.number("guest"));
    assert!(is_alive(own) && is_alive(guest));
    machine.stop(1, Span(0));
    assert_eq!(machine.end(1).end(), TaskEnd::Stopped);
    assert!(!is_alive(own) && !is_alive(guest));
    wait_until("its end is known", || shell.try_wait().unwrap().is_some());
}

#[test]
fn there_is_no_shell_for_what_does_not_run() {
    let machine = machine();
    machine.run(1, "exit 0");
    let error = machine.driver().shell(lease(1), &[], "dumb", SIZE).unwrap_err();
    assert!(error.to_string().contains("does not run"), "{error}");
}
