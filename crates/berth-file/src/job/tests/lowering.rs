use super::super::{Abilities, Command, Models, Port, Times, lower};
use super::{EXAMPLES, defaults, file, lowered, now, refused};
use berth_model::{Bytes, GpuAsk, JobId, Lifecycle, Milli, Name, Span};

fn models(text: &str) -> Vec<String> {
    let spec = lowered(text).spec(JobId::new(1));
    spec.groups[0].models.iter().map(|ask| format!("{}@{}", ask.model, ask.speed)).collect()
}

#[test]
fn what_a_file_leaves_open_comes_from_the_defaults() {
    let job = lowered("run: python src/train.py --x").spec(JobId::new(7));
    assert_eq!(job.id, JobId::new(7));
    assert_eq!((job.name.as_str(), job.queue.as_str()), ("train", "research"));
    assert_eq!((job.user.as_str(), job.project.as_str()), ("kim", "misc"));
    assert_eq!((job.priority, job.preemptible, job.hold), (50, true, false));
    assert_eq!((job.submitted, job.time_limit, job.lifecycle), (now(), None, None));
    assert_eq!(job.groups[0].gpus, GpuAsk::None);
}

#[test]
fn a_job_without_a_name_is_called_after_its_script_or_program() {
    for (run, name) in [
        ("python -u a/train.py", "train"),
        ("./go.sh", "go"),
        ("[nvidia-smi]", "nvidia-smi"),
        ("\"# first\\n\\nsleep 5\"", "sleep"),
        ("/bin/17", "job"),
        ("'$X'", "X"),
        ("'()'", "job"),
    ] {
        assert_eq!(lowered(&format!("run: {run}")).spec(JobId::new(1)).name.as_str(), name);
    }
}

#[test]
fn a_short_name_stands_for_every_model_of_the_family_the_clusters_own_first() {
    assert_eq!(models("gpus: h100:2\nrun: x"), ["H100-80GB@1", "H100-94GB@1"]);
    assert_eq!(models("gpus: H100-94GB\nrun: x"), ["H100-94GB@1"]);
    let alternatives = models("gpus: [H100-80GB:8, A100-40GB:8]\nrun: x");
    assert_eq!(alternatives, ["H100-80GB@1", "A100-40GB@0.42"]);
    assert_eq!(models("gpus: A100/1g.5gb\nrun: x"), ["A100-40GB@1"]);
    assert_eq!(models("gpus: 8\nrun: x"), [""; 0]);
}

#[test]
fn gpus_of_each_node_become_what_one_task_asks() {
    let group = |text: &str| lowered(text).spec(JobId::new(1)).groups.remove(0);
    assert_eq!(group("nodes: 4\ngpus: H100:8\nrun: x").gpus, GpuAsk::Whole { count: 8 });
    assert_eq!(group("nodes: 4\nrun: x").min, 4);
    let half = GpuAsk::Fraction { milli: Milli(500), count: 1 };
    assert_eq!(group("gpus: 0.5\nrun: x").gpus, half);
    let part = GpuAsk::Memory { bytes: Bytes::gb(10), count: 1 };
    assert_eq!(group("gpus: H100:10GB\nrun: x").gpus, part);
    let large = group("gpus: 24GB+:2\nrun: x");
    assert_eq!(large.min_gpu_memory.unwrap().to_string(), "24GB");
    assert!(large.models.is_empty());
    let rack = group("place: rack\nrun: x").topology.unwrap();
    assert_eq!(rack.required, Some(Name::new("rack")));
    assert_eq!(group("place: apart\nrun: x").spread.unwrap().at_most, 1);
}

#[test]
fn spot_time_and_deadline_reach_the_scheduler() {
    let spec = |text: &str| lowered(&format!("{text}\nrun: x")).spec(JobId::new(1));
    assert_eq!(spec("spot: never").lifecycle, Some(Lifecycle::OnDemand));
    assert_eq!(spec("spot: auto").lifecycle, None);
    assert_eq!(spec("spot: only").lifecycle, Some(Lifecycle::Spot));
    assert_eq!(spec("time: 2h").time_limit, Some(Span::hours(2)));
    assert_eq!(spec("deadline: 2d").deadline, Some(now() + Span::days(2)));
    assert_eq!(spec("priority: high").priority, 100);
    assert!(spec("kind: service").time_limit.unwrap() > Span::days(1_000));
}

#[test]
fn a_sweep_is_an_array_whose_elements_stand_for_values() {
    let shell = lowered("sweep: {lr: [1e-4, 3e-4], n: [1, 2, 3], at_most: 2}\nrun: t --lr $lr");
    let array = shell.spec(JobId::new(1)).array.unwrap();
    assert_eq!((array.elements.len(), array.at_most), (6, Some(2)));
    let run = shell.run.of_element(Some(4));
    assert_eq!((run.env["lr"].as_str(), run.env["n"].as_str()), ("3e-4", "2"));
    assert_eq!(run.command, Command::Shell("t --lr $lr".into()));
    let program = lowered("sweep: {lr: [1e-4, 3e-4]}\nrun: [t, '--lr=$lr', $HOME]");
    let words = ["t", "--lr=3e-4", "$HOME"].map(str::to_owned).to_vec();
    assert_eq!(program.run.of_element(Some(1)).command, Command::Program(words));
}

#[test]
fn processes_per_node_follow_the_gpus_unless_said_otherwise() {
    let ranks = |text: &str| lowered(&format!("{text}\nrun: x")).run.ranks;
    assert_eq!(ranks("gpus: 8"), 1);
    assert_eq!(ranks("gpus: 8\nlaunch: ranks"), 8);
    assert_eq!(ranks("gpus: 8\nlaunch: torchrun\nranks: 2"), 2);
    assert_eq!(ranks("launch: ranks"), 1);
}

#[test]
fn notebooks_and_services_have_a_port_and_are_watched_until_they_listen() {
    let notebook = lowered("kind: notebook").run;
    assert_eq!((notebook.port, notebook.ready.is_some()), (Port::Any, true));
    assert!(matches!(notebook.command, Command::Shell(text) if text.contains("jupyter lab")));
    let service = lowered("kind: service\nport: 8000\nrun: serve").run;
    assert_eq!((service.port, service.ready.is_some()), (Port::At(8000), true));
    let job = lowered("run: x").run;
    assert_eq!((job.port, job.ready), (Port::None, None));
}

#[test]
fn trouble_with_machines_is_retried_forever_and_a_failure_never_by_default() {
    let retry = lowered("run: x").run.retry;
    assert_eq!((retry.infra, retry.error, retry.oom), (Times::Forever, Times::At(0), Times::At(0)));
    assert_eq!(lowered("retry: 3\nrun: x").run.retry.error, Times::At(3));
}

#[test]
fn a_longer_grace_than_the_cluster_gives_is_cut_and_told() {
    let lowered = lowered("checkpoint: {grace: 1h}\nrun: x");
    assert_eq!(lowered.run.grace, Span::mins(5));
    assert_eq!(lowered.spec(JobId::new(1)).grace, Some(Span::mins(5)));
    assert_eq!(lowered.warnings[0].key, "checkpoint");
}

#[test]
fn what_has_no_effect_here_is_told() {
    let keys = |text: &str| -> Vec<&str> {
        lowered(text).warnings.iter().map(|warning| warning.key).collect()
    };
    assert_eq!(keys(EXAMPLES[2]), ["idle", "open"]);
    assert_eq!(keys("data: {/d: dvc:c4}\nscale: {max: 2}\nrun: x"), ["data", "scale"]);
    assert_eq!(keys("data: {/d: home}\nopen: jupyter\nrun: x"), [""; 0]);
    let rule = "stop_when: loss is nan\nrun: x";
    assert_eq!(keys(rule), [""; 0]);
    assert_eq!(keys(&format!("network: none\n{rule}")), ["stop_when"]);
    let elsewhere = format!("env: {{MLFLOW_TRACKING_URI: 'https://mlflow.example'}}\n{rule}");
    assert_eq!(keys(&elsewhere), ["stop_when"]);
    let able = Abilities { idle: true, tools: true, ..Abilities::default() };
    let defaults = super::Defaults { abilities: able, ..defaults() };
    assert!(lower(&file(EXAMPLES[2]), &defaults, now()).unwrap().1.is_empty());
}

#[test]
fn a_share_is_one_of_those_that_nodes_hand_out() {
    let shares = vec![
        (Name::new("L4-24GB"), GpuAsk::TimeSlice { of: 4, count: 1 }),
        (Name::new("H100-80GB"), GpuAsk::Mps { percent: 12, count: 1 }),
    ];
    let models = Models::new([]).with_shared(shares);
    let defaults = super::Defaults { models, ..defaults() };
    let ask = |gpus: &str| {
        let lowered = lower(&file(&format!("gpus: {gpus}\nrun: x")), &defaults, now());
        lowered.map(|(mut request, _)| request.groups.remove(0).gpus)
    };
    let slices = |count| Ok(GpuAsk::TimeSlice { of: 4, count });
    assert_eq!(ask("shared"), slices(1), "the most frequent ones");
    assert_eq!(ask("L4/shared:2"), slices(2));
    let mps = Ok(GpuAsk::Mps { percent: 12, count: 1 });
    assert_eq!(ask("H100/shared"), mps);
    assert_eq!(ask("40GB+/shared"), mps);
    assert_eq!(ask("[A100/shared, H100/shared]"), mps, "the first that there are any of");
    let refused = ask("A100/shared").unwrap_err().to_string();
    assert!(refused.contains("ask for a part such as 0.5"), "{refused}");
}

#[test]
fn what_would_be_wrong_to_ignore_is_refused_with_what_to_do() {
    for (text, says) in [
        ("name: a", "`run`: there is nothing to run"),
        (EXAMPLES[1], "`image`: there are no containers on this cluster; leave it out"),
        ("pull_secrets: [a]\nrun: x", "`pull_secrets`: there are no containers on this cluster"),
        (EXAMPLES[3], "`model`: there is no model registry on this cluster"),
        ("priority: hgih\nrun: x", "did you mean `high`?"),
        (
            "gpus: H1000\nrun: x",
            "there is no GPU model `H1000` (`berth gpus` lists those there are); did you mean `H100`?",
        ),
        ("gpus: [H100:8, A100:16]\nrun: x", "differ in more than the model"),
        ("gpus: H100/1g.5gb\nrun: x", "has no MIG profile 1g.5gb; it has 1g.10gb"),
        ("gpus: L4/1g.5gb\nrun: x", "L4-24GB cannot be divided by MIG"),
        ("gpus: shared\nrun: x", "no node hands out shares of such GPUs"),
        ("place: rak\nrun: x", "expected any, apart, node, nvlink or rack; did you mean `rack`?"),
        ("ranks: 2\nrun: x", "`ranks`: it needs `launch: ranks`"),
        ("ready: /x\nrun: x", "`ready`: there is no port to look at"),
        ("array: 0-3\nsweep: {a: [1]}\nrun: x", "leave out `array` or `sweep`"),
        ("deadline: 2020-01-01T00:00Z\nrun: x", "it is over already"),
        ("workdir: code\nrun: x", "a path that begins with /"),
        ("env: {A: 1}\nsecrets: [A]\nrun: x", "`A` is given a value elsewhere too"),
    ] {
        let found = refused(text);
        assert!(found.contains(says), "{text}: {found}");
    }
}

#[test]
fn what_linux_would_start_no_program_with_is_refused() {
    let long = "x".repeat(128 << 10);
    assert!(refused(&format!("run: [echo, {long}]")).contains("at most 128 KiB"));
    let named = refused(&format!("run: x\nenv: {{LONG: {long}}}"));
    assert!(named.contains("`LONG` is longer than 128 KiB"), "{named}");
    // A script is handed over in pieces.
    let script = format!("run: echo {long}");
    assert!(matches!(lowered(&script).run.command, Command::Shell(_)));
}
