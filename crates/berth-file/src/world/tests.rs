//! Worlds there and back.

use super::*;
use berth_model::{
    Cause, Event, GpuAsk, Health, JobRef, Micros, MigSlot, Milli, NodeState, Share, Slice,
};

fn load(text: &str) -> Loaded {
    World::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// What is written reads back as the same snapshot, in both forms.
fn check_round_trip(snapshot: &Snapshot) {
    for text in [write(snapshot), write_json(snapshot)] {
        let read = load(&text).snapshot;
        assert!(read == *snapshot, "{text}\n{read:#?}\n{snapshot:#?}");
    }
}

const EVERY_KEY: &str = include_str!("../../../../examples/every-key.yaml");

#[test]
fn a_world_with_every_key_survives_writing_and_reading() {
    check_round_trip(&load(EVERY_KEY).snapshot);
    check_round_trip(&load("").snapshot);
    check_round_trip(&Snapshot::default());
}

#[test]
fn writing_is_stable() {
    let once = write(&load(EVERY_KEY).snapshot);
    assert_eq!(write(&load(&once).snapshot), once);
}

#[test]
fn json_and_yaml_have_the_same_names() {
    let yaml = "{now: 2026-11-15T09:00:00Z, nodes: [{name: a, gpus: 8, model: H100-80GB}]}";
    let json = "{\"now\": \"2026-11-15T09:00:00Z\",\n\t\"nodes\": [{\"name\": \"a\", \"gpus\": 8, \"model\": \"H100-80GB\"}]}";
    assert_eq!(load(yaml).snapshot, load(json).snapshot);
}

#[test]
fn what_is_left_out_has_the_documented_defaults() {
    let text = "
now: 2026-11-15T09:00:00Z
nodes: [{name: a, gpus: 2, model: H100-80GB}, {name: b, gpus: 1, model: L4-24GB}]
jobs:
  - {name: runs, groups: [{gpus: 1, tasks: [{node: a}]}]}
  - {name: waits, groups: [{count: 3, gpus: 1}]}";
    let Snapshot { now, classes, queues, nodes, jobs, .. } = load(text).snapshot;
    assert_eq!(classes, default_classes());
    assert_eq!(queues.iter().map(|q| q.spec.name.as_str()).collect::<Vec<_>>(), ["default"]);
    assert_eq!((nodes[0].spec.cpu, nodes[0].spec.memory), (None, None));
    assert_eq!((nodes[0].idle_since, nodes[1].idle_since), (None, Some(now)));
    let [runs, waits] = jobs.as_slice() else { panic!("two jobs") };
    assert_eq!((runs.id(), waits.id()), (JobId::new(1), JobId::new(2)));
    assert_eq!((runs.started, waits.started), (Some(now), None));
    assert_eq!((runs.spec.submitted, runs.last_checkpoint), (now, None));
    assert!(runs.spec.preemptible && runs.spec.priority == 50);
    assert_eq!((waits.spec.groups[0].count, waits.spec.groups[0].min), (3, 3));
    assert_eq!(runs.leases[0].price, Micros(2_500_000));
}

#[test]
fn a_count_makes_numbered_nodes_and_is_written_as_one_again() {
    let snapshot = load("nodes: [{name: b, count: 15, gpus: 8, model: H100-80GB}]").snapshot;
    assert_eq!(snapshot.nodes.len(), 15);
    assert_eq!(snapshot.nodes[14].spec.name.as_str(), "b-14");
    assert!(write(&snapshot).contains("{name: b, count: 15, gpus: 8, model: H100-80GB}"));
}

#[test]
fn busy_and_idle_nodes_of_one_kind_share_a_line() {
    let text = "
nodes: [{name: b, count: 3, gpus: 1, model: L4-24GB}]
jobs: [{name: j, groups: [{gpus: 1, tasks: [{node: b-1}]}]}]";
    let snapshot = load(text).snapshot;
    assert!(write(&snapshot).contains("{name: b, count: 3, gpus: 1, model: L4-24GB}"));
    check_round_trip(&snapshot);
}

#[test]
fn tasks_that_name_no_gpus_take_the_first_that_nobody_names() {
    let text = "
nodes:
  - name: a
    gpus: [{model: H100-80GB, health: failed}, {model: H100-80GB}, {model: H100-80GB}, {model: H100-80GB}]
jobs:
  - {name: any, groups: [{count: 2, gpus: 1, tasks: [{node: a}, {node: a}]}]}
  - {name: named, groups: [{gpus: 1, tasks: [{node: a, gpus: [2]}]}]}";
    let held: Vec<Vec<u32>> = load(text).snapshot.jobs[0]
        .leases
        .iter()
        .map(|lease| lease.slices.iter().map(|slice| slice.gpu).collect())
        .collect();
    assert_eq!(held, [[1], [3]]);
}

#[test]
fn each_kind_of_share_is_read_as_such() {
    let snapshot = load(EVERY_KEY).snapshot;
    let shares: Vec<Share> = snapshot.jobs[2]
        .leases
        .iter()
        .flat_map(|lease| lease.slices.iter().map(|slice| slice.share.clone()))
        .collect();
    let mig = MigSlot { profile: Name::new("1g.5gb"), start: 0 };
    let memory = Share::Fraction(Milli(125));
    assert_eq!(
        shares,
        [
            Share::Mig(mig),
            Share::Mps(Milli(250)),
            Share::TimeSlice(Milli(250)),
            memory.clone(),
            memory
        ]
    );
    assert_eq!(snapshot.jobs[2].spec.groups[1].gpus, GpuAsk::Mps { percent: 25, count: 1 });
}

#[test]
fn counted_mig_instances_are_placed_where_they_leave_the_most_room() {
    let snapshot = load(EVERY_KEY).snapshot;
    let machine = snapshot.nodes.iter().find(|node| node.spec.name.as_str() == "m").unwrap();
    let starts: Vec<u8> =
        machine.spec.gpus[1].mig.as_ref().unwrap().iter().map(|slot| slot.start).collect();
    assert_eq!(starts, [6, 4, 5, 0]);
    assert_eq!(machine.spec.gpus[2].health, Health::Failed);
}

#[test]
fn a_running_and_a_stopping_task_are_leases_and_a_failed_one_is_none() {
    let train = &load(EVERY_KEY).snapshot.jobs[0];
    assert_eq!(train.leases.iter().map(|lease| lease.task).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(train.leases[0].slices, [Slice { gpu: 1, share: Share::Whole }]);
    assert!(!train.leases[2].bound);
    let stopping = train.leases[3].stopping.as_ref().unwrap();
    assert_eq!((stopping.cause, stopping.for_job), (Cause::Reclaim, Some(JobId::new(6))));
    assert_eq!(train.spec.after[0].job, JobRef::Name(Name::new("prepare")));
}

#[test]
fn events_come_in_the_order_of_their_times_with_offsets_from_now() {
    let text = "
now: 2026-11-15T09:00:00Z
jobs: [{name: old, groups: [{gpus: 1}]}]
events:
  - {at: 9m, node: {name: a, state: leaving, leaves_at: 2m}}
  - {at: 5m, submit: {name: new, duration: 1h, groups: [{gpus: 1}]}}
  - {at: 2026-11-15T09:05:00Z, cancel: new}";
    let loaded = load(text);
    let minutes: Vec<i64> =
        loaded.events.iter().map(|event| (event.at - loaded.snapshot.now).as_secs() / 60).collect();
    assert_eq!(minutes, [5, 5, 9]);
    let Action::Event(first) = &loaded.events[0].action else { panic!("an event") };
    let Event::JobSubmitted { spec } = &**first else { panic!("a submission") };
    assert_eq!((spec.id, spec.submitted), (JobId::new(2), loaded.events[0].at));
    assert_eq!(loaded.scripts[&JobId::new(2)].duration, Some(Span::hours(1)));
    let leaving = NodeState::Leaving { at: loaded.snapshot.now + Span::mins(11) };
    let Action::Event(last) = &loaded.events[2].action else { panic!("an event") };
    assert_eq!(**last, Event::NodeChanged { node: Name::new("a"), state: leaving });
}

#[test]
fn a_policy_set_in_two_steps_keeps_the_first() {
    let text = "
events:
  - {at: 2m, set: {policy: {stale: 30s}}}
  - {at: 1m, set: {policy: {grace: 1m}}}";
    let loaded = load(text);
    let Action::Event(last) = &loaded.events[1].action else { panic!("an event") };
    let Event::PolicySet { policy } = &**last else { panic!("a policy") };
    assert_eq!((policy.version, policy.grace, policy.stale), (3, Span::mins(1), Span::secs(30)));
}

#[test]
fn names_that_look_like_something_else_stay_names() {
    let names = [
        "007",
        "true",
        "null",
        "1e5",
        "~",
        "",
        "a: b",
        "# no",
        "é\u{1f600}",
        "two\nlines",
        "17_3",
        "-",
        "a,b",
        "{x}",
        "\u{85}\u{2028}",
        "0x1f",
        "\\\"",
        "@5",
        "yes",
    ];
    for odd in names {
        let mut snapshot = load(
            "{nodes: [{name: n, gpus: 1, model: L4-24GB}], jobs: [{name: j, groups: [{gpus: 1}]}]}",
        )
        .snapshot;
        snapshot.jobs[0].spec.name = Name::new(odd);
        snapshot.jobs[0].spec.labels.insert(Name::new(odd), Name::new(odd));
        snapshot.jobs[0].spec.after.push(berth_model::Dependency {
            after: berth_model::After::Any,
            job: JobRef::Name(Name::new(odd)),
        });
        snapshot.nodes[0].spec.name = Name::new(odd);
        snapshot.jobs[0].set_aside = Some(odd.to_owned());
        check_round_trip(&snapshot);
    }
}

#[test]
fn an_array_is_its_elements_and_those_that_are_alike_share_an_entry() {
    let text = "
nodes: [{name: a, gpus: 1, model: L4-24GB}]
jobs:
  - {name: sweep, id: 5, array: 0-9%2, elements: '0,2-9', groups: [{gpus: 1}]}
  - {name: sweep, id: 5, array: 0-9%2, element: 1, groups: [{gpus: 1, tasks: [{node: a}]}]}
  - {name: whole, array: '1-3', groups: [{gpus: 1}]}
events: [{at: 1m, cancel: sweep}, {at: 2m, cancel: sweep_3}, {at: 2m, cancel: whole_2}]";
    let loaded = load(text);
    let jobs = &loaded.snapshot.jobs;
    assert_eq!(jobs.len(), 13);
    assert_eq!(jobs[9].id(), JobId::new(5).element(1));
    assert_eq!(jobs[12].id(), JobId::new(3).element(3));
    let cancelled: Vec<String> = loaded
        .events
        .iter()
        .map(|event| match &event.action {
            Action::Event(event) => match &**event {
                Event::JobCancelled { job } => job.to_string(),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(cancelled, ["5", "5_3", "3_2"]);
    assert!(write(&loaded.snapshot).contains("array: 1-3, groups: [{gpus: 1}]}"));
    check_round_trip(&loaded.snapshot);
}

#[test]
fn a_path_leads_to_the_line_of_the_nearest_part() {
    let lines =
        load("jobs:\n  - {name: a, groups: [{gpus: 1}]}\n  - {name: b, groups: [{}]}").lines;
    assert_eq!(lines.find("jobs[1].groups[0].count").map(|at| at.line), Some(3));
    assert_eq!(lines.find("policy"), None);
}

#[test]
fn anchors_repeat_and_cannot_explode() {
    let text = "
nodes: [{name: a, gpus: 8, model: &big H100-80GB}, {name: b, gpus: 8, model: *big}]";
    assert_eq!(load(text).snapshot.nodes[1].spec.gpus[0].model.as_str(), "H100-80GB");
    let mut bomb = String::from("nodes:\n - &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for i in 1..9 {
        let again = format!("*a{}, ", i - 1).repeat(9);
        bomb.push_str(&format!(" - &a{i} [{again}*a{}]\n", i - 1));
    }
    let error = World::parse(&bomb).unwrap_err();
    assert!(error.message.contains("aliases repeat"), "{error}");
}

const PAGE: &str = include_str!("../../../../docs/world-file.md");

/// The part of the page from one heading to the next.
fn section(title: &str) -> &'static str {
    let from = PAGE.find(&format!("\n{title}\n")).unwrap_or_else(|| panic!("no {title}"));
    let rest = &PAGE[from + title.len() + 2..];
    &rest[..rest.find("\n## ").unwrap_or(rest.len())]
}

#[test]
fn the_page_names_every_key_where_it_belongs() {
    let checks: Vec<&str> = expect::CHECKS.to_vec();
    for (title, keys) in [
        ("## The world", read::WORLD),
        ("## Nodes", nodes::KEYS),
        ("## Pools and claims", pools::POOL),
        ("## Pools and claims", pools::OFFERING),
        ("## Pools and claims", pools::CLAIM),
        ("## Queues", queues::QUEUE),
        ("## Jobs", jobs::JOB),
        ("### Groups", groups::GROUP),
        ("### Tasks", runs::TASK),
        ("## Reservations", queues::RESERVATION),
        ("### Events", &events::ACTIONS),
        ("### Expectations", &checks),
    ] {
        for key in keys {
            let named = [format!("`{key}`"), format!("`{key}: ")];
            let there = named.iter().any(|named| section(title).contains(named.as_str()));
            assert!(there, "docs/world-file.md does not name `{key}` under {title}");
        }
    }
}
