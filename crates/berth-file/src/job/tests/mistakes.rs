use super::super::{Mistakes, read, read_kept, write};

fn mistakes(text: &str) -> Mistakes {
    match read(text) {
        Ok(_) => panic!("this was taken:\n{text}"),
        Err(mistakes) => mistakes,
    }
}

/// One mistake, as a person sees it.
fn check(text: &str, expect: &str) {
    assert_eq!(mistakes(text).to_string(), expect, "{text}");
}

#[test]
fn an_unknown_key_is_named_with_its_line_and_the_key_that_was_meant() {
    check("run: x\ngpu: 1\n", "line 2, column 1: unknown key `gpu`; did you mean `gpus`?");
    check("rnu: x\n", "line 1, column 1: unknown key `rnu`; did you mean `run`?");
    check(
        "colour: red\n",
        "line 1, column 1: unknown key `colour`; docs/job-file.md lists the keys of a job file",
    );
}

#[test]
fn the_words_of_other_tools_lead_to_ours() {
    for (key, ours) in [("command", "run"), ("num_nodes", "nodes"), ("depends_on", "after")] {
        let message = format!("line 1, column 1: unknown key `{key}`; it is called `{ours}` here");
        check(&format!("{key}: x\n"), &message);
    }
}

#[test]
fn every_mistake_of_a_file_is_told_at_once_in_its_order() {
    let found = mistakes("gpus: 1.5\nkind: jbo\nnodes: 0\nwhat: x\n");
    let lines: Vec<usize> = found.0.iter().map(|mistake| mistake.at.line).collect();
    assert_eq!(lines, [1, 2, 3, 4]);
    let keys: Vec<&str> = found.0.iter().filter_map(|mistake| mistake.key.as_deref()).collect();
    assert_eq!(keys, ["gpus", "kind", "nodes", "what"]);
}

#[test]
fn an_unknown_key_inside_a_value_is_named_too() {
    check(
        "run: x\ncheckpoint:\n  path: c\n  evry: 30m\n",
        "line 4, column 3: `checkpoint`: unknown key `evry` in a checkpoint; did you mean `every`?",
    );
}

#[test]
fn a_value_that_makes_no_sense_is_shown_beside_what_was_expected() {
    for (text, says) in [
        ("kind: notebok", "expected job, notebook or service; did you mean `notebook`?"),
        ("name: 17", "a name that is not a job's number"),
        ("name: 17_3", "a name that is not a job's number"),
        ("name: my job", "a name of letters, digits"),
        ("time: 90", "such as 90s, 45m"),
        ("time: 12:30", "such as 90s, 45m"),
        ("time: 0s", "more than no time"),
        ("time: -3h", "such as 90s, 45m"),
        ("memory: 64", "with its unit, such as 64GB"),
        ("cpu: 0", "CPU cores above nothing"),
        ("nodes: 0", "a whole number from 1 to 100000"),
        ("nodes: many", "a whole number"),
        ("nodes: 4294967295", "a whole number from 1 to 100000"),
        ("ranks: 4294967295", "a whole number from 1 to 1024"),
        ("ranks: 4294967296", "a whole number from 1 to 1024"),
        ("cpu: 1000000000", "at most 100000"),
        ("memory: 8000TiB", "at most 1024TiB"),
        ("budget: 9000000000000", "up to a billion"),
        ("gpus: []", "an empty list"),
        ("gpus: H100:x", "GPUs such as 1, H100:8"),
        ("budget: -3", "an amount of dollars above nothing"),
        ("deadline: soon", "a moment such as 2026-12-01T09:00Z"),
        ("spot: sometimes", "never, auto or only"),
        ("port: 70000", "a port from 1 to 65535"),
        ("hold: maybe", "true or false"),
        ("sweep: {PATH: [1, 2]}", "`PATH` is a variable that programs need"),
        ("run: ''", "nothing to run"),
        ("run: []", "nothing to run"),
        ("env: {1A: x}", "the name of a variable"),
        ("env: {BERTH_JOB_ID: x}", "set by Berth itself"),
        ("env: [A=1]", "found a list, expected a map"),
        ("secrets: [team-hf]", "write {VARIABLE: team-hf}"),
        ("pull_secrets: [Team_A]", "expected the name of a Secret"),
        ("pull_secrets: [../a]", "expected the name of a Secret"),
        ("volumes: {home: home}", "a path that begins with /"),
        ("volumes: {/x/../etc: home}", "has no .."),
        ("data: {/d: dcv:c4}", "did you mean `dvc`?"),
        ("retry: {error: often}", "how often, or forever"),
        ("checkpoint: {signal: KILL}", "expected TERM"),
        ("checkpoint: {keep: 0}", "a whole number from 1 to 10000"),
        ("checkpoint: {keep: 4294967295}", "a whole number from 1 to 10000"),
        ("retry: {error: 4294967295}", "or forever; a number is at most 10000"),
        ("scale: {max: 4294967295}", "a whole number from 1 to 10000"),
        ("scale: {max: 2, pending: 4294967295}", "a whole number from 1 to 1000000"),
        ("sweep: {lr: [1], at_most: 4294967295}", "a whole number from 1 to 10000"),
        ("notify: [email:me]", "slack:#channel, webhook:name"),
        ("stop_when: []", "found an empty list, expected a rule such as"),
        ("stop_when: ''", "found the end of the rule, expected a rule such as"),
        ("stop_when: {val_loss: 3}", "found a map, expected a rule such as"),
        ("stop_when: val_loss", "found the end of the rule, expected above, below, is nan"),
        ("stop_when: val_loss abvoe 3", "did you mean `above`?"),
        ("stop_when: val_loss above high", "found `high`, expected a number such as 0.3"),
        ("stop_when: val_loss above inf", "found `inf`, expected a number such as 0.3"),
        ("stop_when: val_loss is not", "found `not`, expected nan"),
        ("stop_when: val_loss not beter for 5 evaluations", "did you mean `better`?"),
        ("stop_when: val_loss not better for 0 evaluations", "a whole number from 1 to 100000"),
        ("stop_when: val_loss not better for 5 epochs", "found `epochs`, expected evaluations"),
        ("stop_when: val_loss not better for 5", "found the end of the rule, expected evaluations"),
        ("stop_when: val_loss not better by -1 for 5 evaluations", "cannot be negative"),
        ("stop_when: val_loss not better than 0.3 after 2", "a length of time such as 45m"),
        (
            "stop_when: val_acc not better for 5 evaluations",
            "is a higher or lower `val_acc` better?",
        ),
        (
            "stop_when: val_acc above 3 (bigger is better)",
            "(higher is better) or (lower is better)",
        ),
        ("stop_when: loss above 3 or so", "found `or`, expected the end of the rule"),
        ("stop_when: metrics.loss above 3", "expected the metric's own name: `loss`"),
        ("array: 5-1", "elements such as 0-99"),
        ("array: 1,1", "each element once"),
        ("array: 0-9%0", "at least one element at once"),
        ("array: 0-10000", "more than 10000 elements"),
        ("sweep: {}", "a sweep needs a parameter with its values"),
        ("sweep: {at_most: 2}", "a sweep needs a parameter with its values"),
        ("sweep: {lr: 1}", "expected a list"),
        ("sweep: {lr: []}", "values to try"),
        ("sweep: {zip: {a: [1], b: [1, 2]}}", "lists of the same length"),
        ("after: {done: [x]}", "unknown key `done` in `after`"),
        ("schedule: 0 3 * *", "found 4 fields"),
        ("schedule: {cron: '@daily', timezone: Europe/Berlin}", "named time zones are not known"),
        ("idle: {below: 200%, for: 3m}", "from 0% to 100%"),
        ("ready: health", "a path that begins with /, or tcp"),
        ("scale: {min: 3, max: 2}", "more than its `max`"),
    ] {
        let found = mistakes(text).to_string();
        assert!(found.contains(says), "{text}: {found}");
    }
}

#[test]
fn a_mistake_in_a_rule_points_at_the_word_that_is_wrong() {
    check(
        "run: x\nstop_when: val_loss above high\n",
        "line 2, column 27: `stop_when`: found `high`, expected a number such as 0.3 or 1e-4",
    );
    check(
        "run: x\nstop_when:\n- loss is nan\n- 'loss nto better for 5 evaluations'\n",
        "line 4, column 9: `stop_when`: found `nto`, expected above, below, is nan, not better for \
         or not better than; did you mean `not`?",
    );
}

#[test]
fn text_that_is_no_job_file_is_refused_where_it_goes_wrong() {
    for (text, says) in [
        ("run: [a, b\n", "this is not YAML"),
        ("- a\n- b\n", "found a list, expected keys with values"),
        ("just words", "expected keys with values"),
        ("run: x\nrun: y\n", "line 2, column 1: found `run` twice"),
        ("run: x\n---\nrun: y\n", "found a second document"),
        ("schedule: */5 * * * *\n", "line 1, column 11: this is not YAML"),
        ("run: \"a\\0b\"\n", "found a NUL character"),
    ] {
        let found = mistakes(text).to_string();
        assert!(found.contains(says), "{text}: {found}");
    }
}

#[test]
fn a_text_made_to_fill_memory_or_stack_is_refused() {
    let nested = |levels| mistakes(&format!("run: {}{}", "[".repeat(levels), "]".repeat(levels)));
    assert!(nested(30).to_string().contains("nested deeper than 20 levels"));
    assert!(nested(100_000).to_string().contains("this is not YAML"));
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..9 {
        let alias = format!("*a{}, ", level - 1).repeat(10);
        bomb.push_str(&format!("a{level}: &a{level} [{}]\n", alias.trim_end_matches(", ")));
    }
    assert!(mistakes(&bomb).to_string().contains("aliases repeat"));
    let long = format!("comment: {}", "x".repeat(2 << 20));
    assert!(mistakes(&long).to_string().contains("at most 1 MiB"));
}

#[test]
fn a_list_that_no_one_would_write_by_hand_is_refused() {
    let many = |key: &str, most: usize| {
        let items: Vec<String> = (1..=most + 1).map(|n| n.to_string()).collect();
        mistakes(&format!("{key}: [{}]", items.join(", "))).to_string()
    };
    for (key, most) in [("ports", 100), ("tags", 100), ("gpus", 100), ("after", 1_000)] {
        let found = many(key, most);
        let says = format!("found {} entries, expected {most} at most", most + 1);
        assert!(found.contains(&says), "{key}: {found}");
    }
}

#[test]
fn a_script_of_almost_a_mebibyte_is_read_and_reads_back_when_berth_has_indented_it() {
    let text = format!("{{\"run\": \"{}\"}}", "x\\n".repeat(300_000));
    let parsed = read(&text).unwrap();
    let kept = write(&parsed.file);
    assert!(kept.len() > 1 << 20, "{}", kept.len());
    assert!(read(&kept).is_err());
    assert_eq!(read_kept(&kept).unwrap().file, parsed.file);
}
