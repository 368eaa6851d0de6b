//! Worlds that make no sense are refused with the line, what was found and what was expected.

use berth_sim::world::World;

fn refused(text: &str) -> String {
    match World::parse(text) {
        Ok(_) => "accepted".to_owned(),
        Err(error) => error.to_string(),
    }
}

fn check(cases: &[(&str, &str)]) {
    let mut wrong = Vec::new();
    for (text, expected) in cases {
        let found = refused(text);
        if found != *expected {
            wrong.push(format!("{text}\n   expected: {expected}\n   found:    {found}\n"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn text_that_is_no_yaml_is_refused_with_its_line() {
    check(&[
        ("seq: 1\nnodes: [{name: a\n", "line 2, column 9: this is not YAML: unclosed bracket '{'"),
        ("- a\n- b", "line 1, column 1: the world: found a list, expected a map"),
        ("seq: 1\nseq: 2", "line 2, column 1: found `seq` twice in one map, first at line 1"),
        ("a: 1\n---\nb: 2", "line 3, column 1: found a second document"),
    ]);
}

#[test]
fn an_unknown_key_comes_with_a_suggestion() {
    check(&[
        ("quues: []", "line 1, column 1: unknown key `quues` in the world; did you mean `queues`?"),
        (
            "nodes:\n  - {name: a, gpu: 8}",
            "line 2, column 15: unknown key `gpu` in node a; did you mean `gpus`?",
        ),
        (
            "jobs:\n  - name: x\n    prioritiy: 5",
            "line 3, column 5: unknown key `prioritiy` in job x; did you mean `priority`?",
        ),
        (
            "policy: {gracee: 5m}",
            "line 1, column 10: unknown key `gracee` in the policy; did you mean `grace`?",
        ),
        (
            "queues: [{name: q, quota: {gpus: 4}}]",
            "line 1, column 28: `quota` of queue q: unknown key `gpus` in an amount per resource; did you mean `gpu`?",
        ),
        (
            "events:\n  - {at: 5m, sumbit: {}}",
            "line 2, column 14: found the event `sumbit`, expected submit, cancel, change, hold, release, finish, fail, checkpoint, node, gpu, data, spot_notice, claim_ready, claim_failed, set, reserve, remove or tick; did you mean `submit`?",
        ),
        (
            "reservations: [{name: x, colour: red}]",
            "line 1, column 26: unknown key `colour` in a reservation; expected name, owner, nodes, from, to, job, at, places or firm",
        ),
    ]);
}

#[test]
fn a_value_of_the_wrong_form_says_what_was_expected() {
    check(&[
        (
            "now: yesterday",
            "line 1, column 6: `now` of the world: found `yesterday`, expected a moment such as 2026-11-15T09:00:00Z",
        ),
        (
            "policy: {grace: soon}",
            "line 1, column 17: `grace` of the policy: found `soon`, expected a length of time such as 90s, 5m, 1h30m or 2d",
        ),
        (
            "policy: {passes: [plaice]}",
            "line 1, column 19: `passes` of the policy: found `plaice`, expected settle, serve, share, place, backfill, defragment, reclaim, pools, preempt or grow; did you mean `place`?",
        ),
        (
            "nodes: [{name: a, gpus: many, model: L4-24GB}]",
            "line 1, column 25: `gpus` of node a: found `many`, expected a whole number",
        ),
        ("nodes: [{name: a, gpus: 1}]", "line 1, column 9: node a has no `model`, which it needs"),
        (
            "nodes: [{name: a, gpus: 1, model: mystery}]",
            "line 1, column 25: the memory of GPU model `mystery` is not known: say gpu_memory",
        ),
        (
            "nodes: [{gpus: 1, model: L4-24GB}]",
            "line 1, column 9: a node has no `name`, which it needs",
        ),
        (
            "nodes: [{name: a, state: leaving}]",
            "line 1, column 9: node a is leaving: say leaves_at",
        ),
        (
            "queues: [{name: q, quota: {gpu: 40 percent}}]",
            "line 1, column 33: `quota` of queue q: `gpu` of an amount per resource: found `40 percent`, expected a number of GPUs, a percentage such as 40%, or unlimited",
        ),
        (
            "queues: [{name: q, quota: 4}]",
            "line 1, column 27: `quota` of queue q: found `4`, expected a map such as {gpu: 4}, or unlimited",
        ),
        (
            "jobs: [{name: j, groups: [{gpus: 0.5}]}]",
            "line 1, column 34: job j: `gpus` of a group: found `0.5`, expected whole GPUs; write a share as fraction: 0.5",
        ),
        (
            "jobs: [{name: j, groups: [{fraction: 0.5, mig: 1g.5gb}]}]",
            "line 1, column 27: job j: a group asks for fraction and for mig: choose one",
        ),
        ("jobs: [{name: j}]", "line 1, column 8: job j has no `groups`, which it needs"),
        (
            "jobs: [{name: j, array: 9-0, groups: [{}]}]",
            "line 1, column 25: `array` of job j: found `9-0`, expected elements such as 0-99, 1,3,5-9 or 0-99%10 for ten at once",
        ),
        (
            "jobs: [{name: j, preemptible: perhaps, groups: [{}]}]",
            "line 1, column 31: `preemptible` of job j: found `perhaps`, expected true or false",
        ),
        (
            "events: [{at: noon, tick: true}]",
            "line 1, column 15: found `noon`, expected a moment such as 2026-11-15T09:00:00Z, or an offset from now such as 5m or -1h",
        ),
        ("events: [{at: -5m, tick: true}]", "line 1, column 10: an event lies before `now`"),
        ("events: [{tick: true}]", "line 1, column 10: an event has no `at`, which it needs"),
        (
            "expect: [{running: []}]",
            "line 1, column 10: an expectation has `at` or `between`, one of them",
        ),
    ]);
}

#[test]
fn names_that_lead_nowhere_are_refused() {
    check(&[
        (
            "queues:\n  - {name: research}\n  - {name: nlp, parent: reserch}",
            "line 3, column 5: queue nlp has the parent `reserch`, which is not there; did you mean `research`?",
        ),
        (
            "queues: [{name: a, parent: b}, {name: b, parent: a}]",
            "line 1, column 10: queue a lies below itself",
        ),
        (
            "queues: [{name: prod}]\njobs: [{name: j, queue: prd, groups: [{}]}]",
            "line 2, column 25: job j waits in the queue `prd`, which is not there; did you mean `prod`?",
        ),
        (
            "jobs: [{name: j, priority: urgent, groups: [{}]}]",
            "line 1, column 28: `priority` of job j: found `urgent`, expected a number, or one of the classes critical, high, low or normal",
        ),
        (
            "jobs: [{name: j, priority: hihg, groups: [{}]}]",
            "line 1, column 28: `priority` of job j: found `hihg`, expected a number, or one of the classes critical, high, low or normal; did you mean `high`?",
        ),
        (
            "nodes: [{name: node-a, gpus: 1, model: L4-24GB}]\njobs:\n  - name: j\n    groups:\n      - gpus: 1\n        tasks: [{node: node-b}]",
            "line 6, column 24: `node` of a task of group main of job j: there is no node `node-b`; did you mean `node-a`?",
        ),
        (
            "nodes: [{name: a, gpus: 2, model: L4-24GB}]\njobs: [{name: j, groups: [{gpus: 1, tasks: [{node: a, gpus: [2]}]}]}]",
            "line 2, column 62: `gpus` of a task of group main of job j: found `2`, expected a GPU from 0 to 1: node a has 2",
        ),
        (
            "nodes: [{name: m, gpus: [{model: A100-40GB, mig: {1g.10g: 1}}]}]",
            "line 1, column 59: `mig` of a GPU of node m: A100-40GB has no MIG profile `1g.10g`; it has 1g.5gb, 1g.5gb+me, 1g.10gb, 2g.10gb, 3g.20gb, 4g.20gb, 7g.40gb; did you mean `1g.10gb`?",
        ),
        (
            "nodes: [{name: m, gpus: [{model: L4-24GB, mig: {1g.5gb: 1}}]}]",
            "line 1, column 57: `mig` of a GPU of node m: found MIG profile `1g.5gb`, but L4-24GB has no MIG",
        ),
        (
            "events: [{at: 1m, cancel: nobody}]",
            "line 1, column 27: event `cancel`: there is no job `nobody`",
        ),
        (
            "jobs: [{name: train, groups: [{}]}]\nexpect: [{at: 1m, running: [trian]}]",
            "line 2, column 29: `running` of an expectation: there is no job `trian`; did you mean `train`?",
        ),
        (
            "pools: [{name: p, max: 1, offerings: [{type: big, gpus: 1, model: L4-24GB, price: 1}], claims: [{name: c, offering: bog}]}]",
            "line 1, column 117: claim c: pool p has no offering `bog`; did you mean `big`?",
        ),
        (
            "reservations: [{name: r, nodes: [nowhere], to: 1h}]",
            "line 1, column 34: a reservation: there is no node `nowhere`",
        ),
    ]);
}

#[test]
fn what_is_there_twice_is_refused() {
    check(&[
        (
            "nodes:\n  - {name: a, gpus: 2, model: L4-24GB}\njobs:\n  - {name: one, groups: [{gpus: 1, tasks: [{node: a, gpus: [1]}]}]}\n  - {name: two, groups: [{gpus: 1, tasks: [{node: a, gpus: [1]}]}]}",
            "line 5, column 44: GPU 1 of node a is held twice: by group main of job one and by group main of job two",
        ),
        (
            "nodes: [{name: a, gpus: 1, model: L4-24GB}]\njobs:\n  - {name: one, groups: [{fraction: 0.5, tasks: [{node: a}]}]}\n  - {name: two, groups: [{fraction: 0.6, tasks: [{node: a, gpus: [0]}]}]}",
            "line 3, column 50: node a has no room left for a task of group main of job one: name other GPUs, or another node",
        ),
        (
            "nodes: [{name: a, gpus: 1, model: A100-40GB}]\njobs:\n  - {name: one, groups: [{mig: 3g.20gb, tasks: [{node: a, gpus: [{index: 0, mig: {profile: 3g.20gb, start: 4}}]}]}]}\n  - {name: two, groups: [{mig: 1g.5gb, tasks: [{node: a, gpus: [{index: 0, mig: {profile: 1g.5gb, start: 5}}]}]}]}",
            "line 4, column 48: GPU 0 of node a is held twice: by group main of job one and by group main of job two",
        ),
        (
            "nodes:\n  - {name: a, gpus: 1, model: L4-24GB}\n  - {name: a, gpus: 1, model: L4-24GB}",
            "line 3, column 5: there are two nodes called `a`, the first at line 2",
        ),
        ("queues: [{name: q}, {name: q}]", "line 1, column 21: there are two queues called `q`"),
        (
            "jobs:\n  - {name: a, id: 2, groups: [{}]}\n  - {name: b, groups: [{}]}",
            "line 3, column 5: job b has the id 2, which the job at line 2 has; ids left out are positions in the file",
        ),
        (
            "nodes: [{name: a, gpus: 1, model: L4-24GB}]\njobs: [{name: j, groups: [{gpus: 1, tasks: [{node: a}, {node: a}]}]}]",
            "line 2, column 56: group main of job j has the tasks 0 to 0; this is task 1",
        ),
        (
            "nodes: [{name: m, gpus: [{model: A100-40GB, mig: [{profile: 3g.20gb, start: 4}, {profile: 1g.5gb, start: 4}]}]}]",
            "line 1, column 81: `mig` of a GPU of node m: 1g.5gb cannot start at 4 here: it may start at 0, 1, 2, 3, 4, 5 or 6, where no other instance lies",
        ),
        (
            "jobs:\n  - {name: a, groups: [{}]}\n  - {name: a, groups: [{}]}\nevents: [{at: 1m, cancel: a}]",
            "line 4, column 27: event `cancel`: several jobs are called `a`: name one by its id",
        ),
    ]);
}
