use super::super::{JobFile, KEYS, Takes};
use super::file;
use std::collections::BTreeSet;

fn set(flags: &[(&str, &[&str])]) -> JobFile {
    let mut file = JobFile::default();
    for (key, values) in flags {
        let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
        file.set(key, &values).unwrap();
    }
    file
}

#[test]
fn flags_say_the_same_as_keys() {
    let flags = set(&[
        ("gpus", &["H100:8"]),
        ("env", &["A=1", "B=x=y"]),
        ("secrets", &["HF_TOKEN", "KEY=team-key"]),
        ("sweep", &["lr=1e-4, 3e-4", "seed=1"]),
        ("checkpoint", &["{path: c, every: 30m}"]),
        ("tags", &["a", "b"]),
        ("pull_secrets", &["registry", "mirror.example"]),
        ("hold", &[]),
        ("stop_when", &["loss is nan", "acc (higher is better) not better for 2 evaluations"]),
        ("schedule", &["*/5 * * * *"]),
        ("run", &["python", "train.py", "--lr", "$lr"]),
    ]);
    let text = "gpus: H100:8\nenv: {A: 1, B: x=y}\nsecrets: {HF_TOKEN: HF_TOKEN, KEY: team-key}\n\
        sweep: {lr: [1e-4, 3e-4], seed: [1]}\ncheckpoint: {path: c, every: 30m}\ntags: [a, b]\n\
        pull_secrets: [registry, mirror.example]\nhold: true\nstop_when: [loss is nan, acc not better for 2 evaluations max]\nschedule: '*/5 * * * *'\nrun: [python, train.py, --lr, $lr]\n";
    assert_eq!(flags, file(text));
}

#[test]
fn one_flag_may_name_alternatives() {
    assert_eq!(set(&[("gpus", &["[H100:8, A100:8]"])]), file("gpus: [H100:8, A100:8]"));
    assert_eq!(set(&[("gpus", &["H100:8", "A100:8"])]), file("gpus: [H100:8, A100:8]"));
}

#[test]
fn a_sweep_on_the_command_line_can_zip_its_parameters() {
    let flags = set(&[("sweep", &["zip={lr: [1e-4, 3e-4], seed: [1, 2]}", "at_most=1"])]);
    let text = "sweep: {zip: {lr: [1e-4, 3e-4], seed: [1, 2]}, at_most: 1}\n";
    assert_eq!(flags, file(text));
    let flags = set(&[("sweep", &["name=[a, 'b,c']"])]);
    assert_eq!(flags, file("sweep: {name: [a, 'b,c']}\n"));
}

#[test]
fn a_parameter_that_is_given_twice_is_told_to_become_one_list() {
    let values = ["lr=1".to_owned(), "lr=2".to_owned()];
    let error = JobFile::default().set("sweep", &values).unwrap_err().to_string();
    assert_eq!(error, "--sweep: `lr` appears twice; put all its values into one list");
}

#[test]
fn a_mistake_names_the_flag() {
    for (key, value, says) in [
        ("gpus", "1.5", "--gpus: found `1.5`, expected whole GPUs"),
        ("env", "A", "--env: found `A`, expected NAME=VALUE"),
        ("secrets", "a-b", "--secret: found `a-b`, expected the name of a variable"),
        ("colour", "red", "--colour: unknown key `colour`"),
    ] {
        let error = JobFile::default().set(key, &[value.to_owned()]).unwrap_err().to_string();
        assert!(error.starts_with(says), "{error}");
    }
}

#[test]
fn what_lies_over_a_template_wins_and_maps_are_joined() {
    let template =
        file("gpus: 8\nenv: {A: 1, B: 2}\ntags: [a]\ntime: 1h\nlabels: {x: 1}\nrun: a\n");
    let over = file("gpus: 1\nenv: {B: 3, C: 4}\ntags: [b]\nrun: b\n");
    let expect = "gpus: 1\nenv: {A: 1, B: 3, C: 4}\ntags: [b]\ntime: 1h\nlabels: {x: 1}\nrun: b\n";
    assert_eq!(template.merge(&over), file(expect));
    assert_eq!(template.merge(&JobFile::default()), template);
}

#[test]
fn no_two_keys_share_a_name_or_a_flag() {
    let names: BTreeSet<&str> = KEYS.iter().map(|key| key.name).collect();
    let flags: BTreeSet<&str> = KEYS.iter().map(|key| key.flag).collect();
    let shorts: Vec<char> = KEYS.iter().filter_map(|key| key.short).collect();
    let different: BTreeSet<char> = shorts.iter().copied().collect();
    assert_eq!((names.len(), flags.len()), (KEYS.len(), KEYS.len()));
    assert_eq!(different.len(), shorts.len());
    assert!(KEYS.iter().any(|key| key.takes == Takes::Rest));
}
