use super::super::{JobFile, KEYS, write, write_json};
use super::{EXAMPLES, file};

fn check(text: &str) {
    let read = file(text);
    let written = write(&read);
    assert_eq!(file(&written), read, "written as\n{written}");
    assert_eq!(file(&write_json(&read)), read);
    let json = serde_json::to_string(&read).unwrap();
    assert_eq!(serde_json::from_str::<JobFile>(&json).unwrap(), read, "{json}");
}

#[test]
fn the_examples_are_written_as_what_reads_back_the_same() {
    EXAMPLES.iter().for_each(|text| check(text));
}

#[test]
fn every_key_is_written_as_what_reads_back_the_same() {
    for key in KEYS {
        let text = format!("{}: {}\n", key.name, key.example);
        check(&text);
        assert_ne!(file(&text), JobFile::default(), "{} has no place in a file", key.name);
    }
}

#[test]
fn other_forms_are_written_as_what_reads_back_the_same() {
    for text in [
        "gpus: [H100:8, 24GB+:8, 8]",
        "gpus: A100/1g.10gb:2",
        "gpus: [L4:10GB, L4/shared]",
        "deadline: 6h",
        "priority: 70",
        "stop_when: [val_loss above 10, val_loss is nan, val_acc below 0.1 after 30m]",
        "stop_when: val_acc not better than 0.9 after 2h (higher is better)",
        "stop_when: val_acc max not better by 0.001 for 3 evaluations",
        "stop_when: '\"eval loss\" not better for 1 evaluation'",
        "after: {ok: [a, 7, 7_1], notok: b}",
        "notify: [{to: 'webhook:ops', on: [start, budget]}, 'https://hooks.example/x']",
        "sweep: {zip: {a: [1, 2], b: ['x y', '']}, at_most: 1}",
        "retry: {infra: 3, error: forever}",
        "ready: {check: tcp, within: 10m}",
        "schedule: {cron: '*/5 * * * 1-5', timezone: '-08:30'}",
        "array: 1,3,5-9%2",
        "run: [python, '-c', 'print(1)', '']",
        "comment: '# not a comment: at all'",
        "env: {A: 'true', B: '007', C: \"two\\nlines\"}",
    ] {
        check(text);
    }
}

#[test]
fn a_script_keeps_its_lines() {
    for script in ["a\nb\n", "a\nb", "a\n\n  b\n", " a\nb", "a\n\n", "a\tb\nc \n", "a\r\nb"] {
        let yaml = format!("run: {}\n", serde_json::to_string(script).unwrap());
        check(&yaml);
    }
    assert_eq!(
        write(&file("run: |\n  set -e\n  python x.py\n")),
        "run: |\n  set -e\n  python x.py\n"
    );
}
