use super::super::{Command, JobKind, Launch, Priority, Spot, Times, When, read};
use super::{EXAMPLES, file};
use berth_model::{After, Cpu, JobId, JobRef, Micros, Name, Span};

#[test]
fn the_four_examples_are_read() {
    let [one, many, notebook, service] = EXAMPLES.map(file);
    assert_eq!(one.run, Some(Command::Shell("python train.py --epochs 3".into())));
    assert_eq!(many.nodes, Some(4));
    assert_eq!(many.gpus[0].to_string(), "H100:8");
    assert_eq!((many.spot, many.budget), (Some(Spot::Auto), Some(Micros::dollars(4_000))));
    assert_eq!(many.retry.unwrap().infra, Some(Times::Forever));
    assert_eq!(many.data["/data"], "dvc:c4@v3");
    assert_eq!(notebook.kind, Some(JobKind::Notebook));
    assert_eq!(notebook.open.len(), 3);
    assert_eq!(service.ready.unwrap().check, super::super::ReadyCheck::Http("/health".into()));
    assert_eq!(service.scale.unwrap().max, 8);
}

#[test]
fn json_is_read_like_yaml() {
    let json = r#"{"name": "a", "gpus": ["H100:8", "A100:8"], "env": {"N": 3}, "run": ["x", "y"]}"#;
    let yaml = "name: a\ngpus: [H100:8, A100:8]\nenv: {N: 3}\nrun: [x, y]\n";
    assert_eq!(file(json), file(yaml));
}

#[test]
fn lengths_of_time_are_read_with_units_and_as_slurm_writes_them() {
    for (text, span) in [
        ("90m", Span::mins(90)),
        ("3d", Span::days(3)),
        ("1h30m", Span::mins(90)),
        ("1-12:30:00", Span::hours(36) + Span::mins(30)),
        ("2-6", Span::hours(54)),
        ("1-00:30", Span::days(1) + Span::mins(30)),
        ("12:00:00", Span::hours(12)),
    ] {
        assert_eq!(file(&format!("time: {text}")).time, Some(span), "{text}");
    }
}

#[test]
fn a_moment_is_named_or_counted_from_the_submission() {
    assert_eq!(file("begin: 6h").begin, Some(When::In(Span::hours(6))));
    assert_eq!(file("begin: +2d").begin, Some(When::In(Span::days(2))));
    let named = "2026-12-01T09:00:00Z".parse().unwrap();
    assert_eq!(file("deadline: 2026-12-01T10:00+01:00").deadline, Some(When::At(named)));
}

#[test]
fn dependencies_are_jobs_that_ended_well_unless_said_otherwise() {
    let after = file("after: [prep, 17, 18_3]").after;
    assert!(after.iter().all(|dependency| dependency.after == After::Ok));
    assert_eq!(after[0].job, JobRef::Name(Name::new("prep")));
    assert_eq!(after[1].job, JobRef::Id(JobId::new(17)));
    assert_eq!(after[2].job, JobRef::Id(JobId::new(18).element(3)));
    assert_eq!(file("after: prep").after, file("after: {ok: prep}").after);
    let other = file("after: {notok: [a], start: b}").after;
    assert_eq!(other.iter().map(|d| d.after).collect::<Vec<_>>(), [After::NotOk, After::Start]);
}

#[test]
fn secrets_are_a_list_of_names_or_variables_with_names() {
    assert_eq!(file("secrets: [HF_TOKEN]").secrets["HF_TOKEN"], "HF_TOKEN");
    assert_eq!(file("secrets: {HF_TOKEN: team-hf}").secrets["HF_TOKEN"], "team-hf");
}

#[test]
fn short_forms_stand_for_the_long_ones() {
    assert_eq!(file("checkpoint: ckpt"), file("checkpoint: {path: ckpt}"));
    assert_eq!(file("retry: 2"), file("retry: {error: 2}"));
    assert_eq!(file("ready: /h"), file("ready: {check: /h}"));
    assert_eq!(file("schedule: '@daily'"), file("schedule: {cron: '@daily', timezone: UTC}"));
    assert_eq!(file("sweep: {a: [1, 2]}"), file("sweep: {product: {a: [1, 2]}}"));
    assert_eq!(file("notify: slack:#x"), file("notify: [{to: 'slack:#x', on: []}]"));
    assert_eq!(file("gpus: H100"), file("gpus: [H100:1]"));
}

#[test]
fn small_values_are_read_as_what_they_are() {
    let file =
        file("launch: ranks\npriority: high\ncpu: 0.5\nhold: true\nenv: {EMPTY: , A: 'x y'}");
    assert_eq!(file.launch, Some(Launch::Ranks));
    assert_eq!(file.priority, Some(Priority::Class(Name::new("high"))));
    assert_eq!((file.cpu, file.hold), (Some(Cpu(500)), Some(true)));
    assert_eq!((file.env["EMPTY"].as_str(), file.env["A"].as_str()), ("", "x y"));
}

#[test]
fn a_key_without_a_value_says_nothing() {
    assert_eq!(file("name:\nrun: x\n"), file("run: x\n"));
    assert_eq!(file(""), super::JobFile::default());
}

#[test]
fn the_place_of_each_value_is_remembered() {
    let parsed = read("name: a\npriority:   high\n").unwrap();
    let at = parsed.at("priority").unwrap();
    assert_eq!((at.line, at.column), (2, 13));
    assert_eq!(parsed.at("gpus"), None);
}

#[test]
fn values_of_variables_and_addresses_of_webhooks_are_not_shown() {
    let file = file("env: {KEY: hush}\nnotify: ['https://hooks.example/hush', 'slack:#open']");
    let shown = format!("{file:?}");
    assert!(shown.contains("KEY") && shown.contains("#open"), "{shown}");
    assert!(!shown.contains("hush"), "{shown}");
}

#[test]
fn an_object_for_kubernetes_is_the_job_file_of_its_spec() {
    let object = "apiVersion: berth.dev/v1alpha1\nkind: Job\nmetadata: {name: a, namespace: nlp}\n\
                  spec:\n  kind: service\n  gpus: [H100:8]\n  run: [x, y]\n";
    let plain = "name: a\nkind: service\ngpus: [H100:8]\nrun: [x, y]\n";
    assert_eq!(file(object), file(plain));
    let odd = read(&object.replace("gpus", "gpu")).unwrap_err();
    assert_eq!((odd.0.len(), odd.0[0].at.line), (1, 6), "{odd}");
    let queue = read(&object.replace("kind: Job", "kind: Queue")).unwrap_err();
    assert!(queue.to_string().contains("berth apply"), "{queue}");
}
