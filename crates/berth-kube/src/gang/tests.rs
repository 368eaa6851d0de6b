use super::*;
use std::fmt::Write;

mod any;
mod groups;
mod owners;

/// A pod `p` of namespace `ml` with those labels, annotations and owner, and more of its spec.
struct Sketch {
    labels: &'static str,
    annotations: &'static str,
    owner: &'static str,
    spec: &'static str,
}

const PLAIN: Sketch = Sketch { labels: "", annotations: "", owner: "", spec: "" };
const OF_JOB: &str = r#"{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u1", "controller": true}"#;

fn pod(sketch: &Sketch) -> Pod {
    let Sketch { labels, annotations, owner, spec } = sketch;
    serde_json::from_str(&format!(
        r#"{{"metadata": {{"name": "p", "namespace": "ml", "uid": "u0", "labels": {{{labels}}},
             "annotations": {{{annotations}}}, "ownerReferences": [{owner}]}}, "spec": {{{spec}}}}}"#
    ))
    .unwrap()
}

fn owner(json: &str) -> Owner {
    serde_json::from_str(json).unwrap()
}

fn job(labels: &str, annotations: &str, spec: &str) -> Owner {
    owner(&format!(
        r#"{{"apiVersion": "batch/v1", "kind": "Job", "metadata": {{"name": "train", "uid": "u1",
             "labels": {{{labels}}}, "annotations": {{{annotations}}}}}, "spec": {{{spec}}}}}"#
    ))
}

/// The mark in one line, without what it does not say.
fn line(mark: &GangAnnotations) -> String {
    let GroupKey { namespace, kind, name, uid } = &mark.key;
    let mut line = format!("{kind:?} {namespace}/{name}");
    if let Some(uid) = uid {
        write!(line, "#{uid}").unwrap();
    }
    let mut add = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            write!(line, " {key}={value}").unwrap();
        }
    };
    add("members", mark.members.map(|n| n.to_string()));
    add("min", mark.min.map(|n| n.to_string()));
    add("queue", mark.queue.as_ref().map(|n| n.to_string()));
    add("class", mark.priority_class.as_ref().map(|n| n.to_string()));
    add("priority", mark.priority.map(|n| n.to_string()));
    add("boost", (mark.boost != 0).then(|| mark.boost.to_string()));
    add("preemptible", mark.preemptible.map(|b| b.to_string()));
    add("min_runtime", mark.min_runtime.map(|s| s.to_string()));
    add("preempt_after", mark.preempt_after.map(|s| s.to_string()));
    add("time_limit", mark.time_limit.map(|s| s.to_string()));
    if let Some(topology) = &mark.topology {
        add("within", topology.within.as_ref().map(|n| n.to_string()));
        add("required", topology.required.as_ref().map(|n| n.to_string()));
        add("preferred", topology.preferred.as_ref().map(|n| n.to_string()));
        add("segment", topology.segment.as_ref().map(|s| format!("{}@{}", s.size, s.within)));
    }
    add("subgroup", mark.subgroup.as_ref().map(|s| format!("{}:{:?}", s.name, s.min)));
    let part = mark.subgroup.as_ref().and_then(|s| s.topology.as_ref()?.preferred.as_ref());
    let must = mark.subgroup.as_ref().and_then(|s| s.topology.as_ref()?.required.as_ref());
    let block = mark.subgroup.as_ref().and_then(|s| s.topology.as_ref()?.segment.as_ref());
    add("its_segment", block.map(|s| format!("{}@{}", s.size, s.within)));
    add("its_required", must.map(|n| n.to_string()));
    add("node_pool", mark.node_pool.as_ref().map(|n| n.to_string()));
    add("its_preferred", part.map(|n| n.to_string()));
    let above = mark.subgroup.iter().flat_map(|part| &part.above);
    let above: Vec<String> = above
        .map(|above| {
            let TopologyAsk { required, preferred, .. } = &above.topology;
            let level = required.as_ref().or(preferred.as_ref());
            format!("{}@{}", above.name, level.map(Name::as_str).unwrap_or_default())
        })
        .collect();
    add("above", (!above.is_empty()).then(|| above.join("/")));
    let needed: Vec<String> = mark.needed.iter().map(|(part, n)| format!("{part}:{n}")).collect();
    add("needed", (!needed.is_empty()).then(|| needed.join(",")));
    let ignored: Vec<&str> = mark.ignored.iter().map(|bad| bad.key.as_str()).collect();
    add("ignored", (!ignored.is_empty()).then(|| ignored.join(",")));
    line
}

#[track_caller]
fn check(sketch: Sketch, owners: &[Owner], group: Option<PodGroup>, expected: &str) {
    let owners: Vec<&Owner> = owners.iter().collect();
    let mark = read(&pod(&sketch), PodContext { owners: &owners, group: group.as_ref() });
    let found = match mark {
        Ok(mark) => line(&mark),
        Err(bad) => bad.iter().map(|b| format!("{b}")).collect::<Vec<_>>().join("\n"),
    };
    assert_eq!(found, expected);
}

#[test]
fn a_plain_pod_and_the_pods_of_a_plain_job_are_each_by_themselves() {
    check(PLAIN, &[], None, "Pod ml/p#u0 members=1 min=1");
    let four = [job("", "", r#""parallelism": 4"#)];
    let of_job = Sketch { owner: OF_JOB, ..PLAIN };
    check(of_job, &four, None, "Pod ml/p#u0 members=1 min=1");
}

#[test]
fn berths_own_marks_make_a_gang() {
    check(
        Sketch {
            labels: r#""berth.dev/queue": "vision", "berth.dev/gang": "run-7""#,
            annotations: r#""berth.dev/gang-size": "8", "berth.dev/gang-min": "4",
                "berth.dev/priority": "70", "berth.dev/preemptible": "false",
                "berth.dev/topology-required": "zone", "berth.dev/topology-preferred": "rack""#,
            ..PLAIN
        },
        &[],
        None,
        "Berth ml/run-7 members=8 min=4 queue=vision priority=70 preemptible=false \
         required=zone preferred=rack",
    );
    check(
        Sketch { annotations: r#""berth.dev/gang-size": "4""#, owner: OF_JOB, ..PLAIN },
        &[],
        None,
        "Job ml/train#u1 members=4 min=4",
    );
}

#[test]
fn nonsense_in_berths_marks_is_told_all_at_once() {
    check(
        Sketch {
            labels: r#""berth.dev/gang": "g", "berth.dev/preemptible": "maybe""#,
            annotations: r#""berth.dev/gang-size": "-3""#,
            ..PLAIN
        },
        &[],
        None,
        "`berth.dev/gang-size` is `-3`: write a number of pods between 1 and 100000\n\
         `berth.dev/preemptible` is `maybe`: write true or false",
    );
    check(
        Sketch { labels: r#""berth.dev/gang": "g""#, ..PLAIN },
        &[],
        None,
        "`berth.dev/gang` is `g`: say with berth.dev/gang-size how many pods make the gang whole",
    );
    check(
        Sketch { labels: r#""berth.dev/gang-size": "2""#, ..PLAIN },
        &[],
        None,
        "`berth.dev/gang-size` is `2`: nothing owns this pod, so name its gang with berth.dev/gang",
    );
    check(
        Sketch {
            labels: r#""berth.dev/gang": "g", "berth.dev/gang-size": "2", "berth.dev/gang-min": "3""#,
            ..PLAIN
        },
        &[],
        None,
        "`minimum of the gang` is `3`: the gang has 2 pods in all; ask for no more than these",
    );
}

#[test]
fn kais_marks_are_read_from_the_pod_and_from_its_job() {
    check(
        Sketch {
            labels: r#""kai.scheduler/queue": "team-a", "priorityClassName": "train",
                "kai.scheduler/node-pool": "gpus""#,
            annotations: r#""kai.scheduler/preemption-delay": "5m""#,
            ..PLAIN
        },
        &[],
        None,
        "Pod ml/p#u0 members=1 min=1 queue=team-a class=train priority=50 preemptible=true \
         preempt_after=5m node_pool=gpus",
    );
    let gang = job(
        r#""kai.scheduler/queue": "team-a", "kai.scheduler/preemptibility": "non-preemptible""#,
        r#""kai.scheduler/batch-min-member": "3", "kai.scheduler/topology": "network",
           "kai.scheduler/topology-required-placement": "zone",
           "kai.scheduler/segment-size": "2",
           "kai.scheduler/segment-topology-required-placement": "rack""#,
        r#""parallelism": 4"#,
    );
    check(
        Sketch { owner: OF_JOB, ..PLAIN },
        &[gang],
        None,
        "Job ml/train#u1 members=4 min=3 queue=team-a preemptible=false within=network \
         required=zone segment=2@rack",
    );
}

fn kai_group(spec: &str) -> Option<PodGroup> {
    let object = format!(r#"{{"metadata": {{"name": "pg"}}, "spec": {{{spec}}}}}"#);
    Some(PodGroup::Kai(serde_json::from_str(&object).unwrap()))
}

#[test]
fn what_has_no_effect_is_told_and_keeps_nobody_waiting() {
    check(
        Sketch {
            labels: r#""kai.scheduler/queue": "q""#,
            annotations: r#""kai.scheduler/staleness-grace-period": "5m",
                "kueue.x-k8s.io/pod-group-fast-admission": "true""#,
            ..PLAIN
        },
        &[],
        None,
        "Pod ml/p#u0 members=1 min=1 queue=q \
         ignored=kai.scheduler/staleness-grace-period,kueue.x-k8s.io/pod-group-fast-admission",
    );
}

#[test]
fn kais_nonsense_is_told() {
    check(
        Sketch {
            annotations: r#""kai.scheduler/preemption-delay": "300",
                "kai.scheduler/batch-min-member": "many", "kai.scheduler/segment-size": "4""#,
            ..PLAIN
        },
        &[],
        None,
        "`kai.scheduler/batch-min-member` is `many`: write a number of pods between 1 and 100000\n\
         `kai.scheduler/preemption-delay` is `300`: write a length of time such as 90s, 5m or 1h30m\n\
         `kai.scheduler/segment-size` is `4`: say with \
         kai.scheduler/segment-topology-required-placement where a segment must be together",
    );
    let greedy = [job("", r#""kai.scheduler/batch-min-member": "5""#, r#""parallelism": 4"#)];
    check(
        Sketch { owner: OF_JOB, ..PLAIN },
        &greedy,
        None,
        "`minimum of the gang` is `5`: the gang has 4 pods in all; ask for no more than these",
    );
}

#[test]
fn a_job_in_a_queue_of_kueue_is_a_gang_and_waits_suspended() {
    let queued = job(
        r#""kueue.x-k8s.io/queue-name": "user-queue", "kueue.x-k8s.io/priority-class": "prod",
           "kueue.x-k8s.io/max-exec-time-seconds": "3600""#,
        r#""kueue.x-k8s.io/job-min-parallelism": "2""#,
        r#""parallelism": 4, "completions": 3, "suspend": true"#,
    );
    check(
        Sketch {
            annotations: r#""kueue.x-k8s.io/podset-required-topology": "block",
                "kueue.x-k8s.io/podset-slice-required-topology": "rack",
                "kueue.x-k8s.io/podset-slice-size": "2""#,
            owner: OF_JOB,
            ..PLAIN
        },
        &[queued],
        None,
        "Job ml/train#u1 members=3 min=2 queue=user-queue class=prod time_limit=1h required=block \
         segment=2@rack",
    );
}

#[test]
fn plain_pods_in_a_group_of_kueue_are_a_gang() {
    check(
        Sketch {
            labels: r#""kueue.x-k8s.io/queue-name": "q", "kueue.x-k8s.io/pod-group-name": "g""#,
            annotations: r#""kueue.x-k8s.io/pod-group-total-count": "2""#,
            spec: r#""schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]"#,
            ..PLAIN
        },
        &[],
        None,
        "KueuePodGroup ml/g members=2 min=2 queue=q",
    );
    check(
        Sketch {
            labels: r#""kueue.x-k8s.io/pod-group-name": "g", "kueue.x-k8s.io/max-exec-time-seconds": "0""#,
            annotations: r#""kueue.x-k8s.io/podset-slice-size": "2", "kueue.x-k8s.io/priority-boost": "x""#,
            ..PLAIN
        },
        &[],
        None,
        "`kueue.x-k8s.io/max-exec-time-seconds` is `0`: write a whole number of seconds, 1 or more\n\
         `kueue.x-k8s.io/pod-group-name` is `g`: say kueue.x-k8s.io/pod-group-total-count as well\n\
         `kueue.x-k8s.io/podset-slice-size` is `2`: say \
         kueue.x-k8s.io/podset-slice-required-topology as well\n\
         `kueue.x-k8s.io/priority-boost` is `x`: write a whole number such as 10 or -5",
    );
    check(
        Sketch { annotations: r#""kueue.x-k8s.io/pod-group-total-count": "2""#, ..PLAIN },
        &[],
        None,
        "`kueue.x-k8s.io/pod-group-total-count` is `2`: name the group with \
         kueue.x-k8s.io/pod-group-name",
    );
}

fn volcano_group(spec: &str) -> Option<PodGroup> {
    let object = format!(r#"{{"metadata": {{"name": "pg"}}, "spec": {{{spec}}}}}"#);
    Some(PodGroup::Volcano(serde_json::from_str(&object).unwrap()))
}

#[test]
fn volcanos_minimum_on_an_owner_makes_a_gang_of_its_pods() {
    let of_set = r#"{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u2", "controller": true}"#;
    check(
        Sketch {
            annotations: r#""scheduling.volcano.sh/group-min-member": "3",
                "scheduling.volcano.sh/queue-name": "q""#,
            owner: of_set,
            ..PLAIN
        },
        &[owner(
            r#"{"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web", "uid": "u2"}, "spec": {"replicas": 5}}"#,
        )],
        None,
        "Owner ml/web#u2 members=5 min=3 queue=q",
    );
    check(
        Sketch { annotations: r#""volcano.sh/revocable-zone": "*""#, ..PLAIN },
        &[],
        None,
        "`volcano.sh/revocable-zone` is `*`: this is not supported; take the mark away",
    );
}

fn upstream_group(spec: &str) -> Option<PodGroup> {
    let object = format!(r#"{{"metadata": {{"name": "pg"}}, "spec": {{{spec}}}}}"#);
    Some(PodGroup::Upstream(serde_json::from_str(&object).unwrap()))
}

#[test]
fn the_scheduling_group_of_kubernetes_is_a_gang_if_its_policy_says_so() {
    let in_group = || Sketch { spec: r#""schedulingGroup": {"podGroupName": "pg"}"#, ..PLAIN };
    check(in_group(), &[], None, "PodGroup ml/pg");
    check(
        in_group(),
        &[],
        upstream_group(
            r#""schedulingPolicy": {"gang": {"minCount": 4}},
               "schedulingConstraints": {"topology": [{"key": "rack"}]}"#,
        ),
        "PodGroup ml/pg min=4 required=rack",
    );
    let basic = upstream_group(r#""schedulingPolicy": {"basic": {}}"#);
    check(in_group(), &[], basic, "Pod ml/p#u0 members=1 min=1");
    let workload = r#""workloadRef": {"name": "w", "podGroup": "g", "podGroupReplicaKey": "0"}"#;
    check(Sketch { spec: workload, ..PLAIN }, &[], None, "Workload ml/w/g/0");
}

#[test]
fn the_first_family_that_says_something_is_believed() {
    check(
        Sketch {
            labels: r#""berth.dev/queue": "ours", "kai.scheduler/queue": "theirs""#,
            annotations: r#""scheduling.k8s.io/group-name": "pg""#,
            spec: r#""schedulingGroup": {"podGroupName": "other"}, "priorityClassName": "high", "priority": 1000"#,
            ..PLAIN
        },
        &[],
        None,
        "VolcanoPodGroup ml/pg queue=ours class=high priority=1000",
    );
}

#[test]
fn the_object_to_look_up_is_named() {
    let group =
        |sketch: Sketch| pod_group_of(&pod(&sketch)).map(|key| (key.kind, key.name.to_string()));
    assert_eq!(group(PLAIN), None);
    let kai = Sketch { annotations: r#""pod-group-name": "a""#, ..PLAIN };
    assert_eq!(group(kai), Some((GangKind::KaiPodGroup, "a".to_owned())));
    let volcano = Sketch { annotations: r#""scheduling.volcano.sh/group-name": "b""#, ..PLAIN };
    assert_eq!(group(volcano), Some((GangKind::VolcanoPodGroup, "b".to_owned())));
}
