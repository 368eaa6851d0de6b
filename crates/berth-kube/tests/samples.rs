//! Manifests in the style of other schedulers' documentation, read unchanged.
//!
//! Each file of `samples/` is read object by object, and what Berth makes of it is compared with a
//! few lines of text.

use berth_kube::gang::{self, GangAnnotations, PodContext, PodGroup};
use berth_kube::hypernode::{HyperNode, HyperNodeTree};
use berth_kube::object::{Labels, List, Meta, Owner, Pod, PodStatus};
use berth_kube::pod::requests::ResourceRequests;
use berth_kube::queue::{self, ImportedQueue, kueue};
use berth_model::{Amount, Name, Quota};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TypeMeta {
    api_version: String,
    kind: String,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples")
}

fn parse<T: DeserializeOwned>(document: &str) -> T {
    serde_saphyr::from_str(document).unwrap_or_else(|error| panic!("{error}\n{document}"))
}

/// A file object by object: what is around pods first, then a line for each of the others.
fn read(file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder().join(file)).unwrap();
    let documents: Vec<&str> = text.split("\n---\n").collect();
    let kinds: Vec<TypeMeta> = documents.iter().map(|document| parse(document)).collect();
    let all = || documents.iter().zip(&kinds);
    let group = all().find_map(|(document, kind)| group(kind, document));
    let flavors: Vec<kueue::ResourceFlavor> = all()
        .filter(|(_, kind)| kind.kind == "ResourceFlavor")
        .map(|(document, _)| parse(document))
        .collect();
    all().flat_map(|(document, kind)| lines(kind, document, group.as_ref(), &flavors)).collect()
}

fn group(kind: &TypeMeta, document: &str) -> Option<PodGroup> {
    let (group, _) = kind.api_version.split_once('/')?;
    match (group, &*kind.kind) {
        ("scheduling.run.ai", "PodGroup") => Some(PodGroup::Kai(parse(document))),
        ("scheduling.volcano.sh", "PodGroup") => Some(PodGroup::Volcano(parse(document))),
        ("scheduling.k8s.io", "PodGroup") => Some(PodGroup::Upstream(parse(document))),
        _ => None,
    }
}

fn lines(
    kind: &TypeMeta,
    document: &str,
    group: Option<&PodGroup>,
    flavors: &[kueue::ResourceFlavor],
) -> Vec<String> {
    match (&*kind.api_version, &*kind.kind) {
        (_, "PodGroup" | "ResourceFlavor") => Vec::new(),
        ("v1", "Pod") => vec![pod(&parse(document), PodContext { owners: &[], group })],
        ("scheduling.run.ai/v2", "Queue") => vec![queue(&queue::kai::read(&parse(document)))],
        ("scheduling.volcano.sh/v1beta1", "Queue") => {
            vec![queue(&queue::volcano::read(&parse(document)))]
        }
        (_, "ClusterQueue") => vec![queue(&kueue::cluster_queue(&parse(document), flavors))],
        ("topology.volcano.sh/v1alpha1", "HyperNode") => vec![hypernode(&parse(document))],
        (_, "Cohort") => vec![queue(&kueue::cohort(&parse(document)))],
        (_, "LocalQueue") => {
            let alias = kueue::alias(&parse(document));
            vec![format!("{}/{} is {}", alias.namespace, alias.name, alias.queue)]
        }
        ("apps/v1", _) => {
            let owner = parse::<Owner>(document);
            let count = owner.spec.replicas.unwrap_or(1);
            let context = PodContext { owners: &[&owner], group };
            vec![format!("{count}× {}", pod(&kept(&owner), context))]
        }
        _ => {
            let owner = parse::<Owner>(document);
            let made = gang::templates(&owner);
            assert!(!made.is_empty(), "nothing is made of {}", kind.kind);
            let context = PodContext { owners: &[&owner], group };
            made.iter().map(|(each, count)| format!("{count}× {}", pod(each, context))).collect()
        }
    }
}

#[derive(Deserialize)]
struct WithSpec {
    metadata: Meta,
    spec: HyperNode,
}

fn hypernode(WithSpec { metadata, spec }: &WithSpec) -> String {
    let all = BTreeMap::from([(Name::new(&metadata.name), spec)]);
    // Those that are its members are in other documents.
    let (tree, _) = HyperNodeTree::new(&all);
    let names: Vec<&Name> = tree.names.keys().collect();
    let nodes = ["n0", "n1", "n2", "n3"];
    let has = |node: &&&str| !tree.around(node, &Labels::default()).0.is_empty();
    let nodes: Vec<&&str> = nodes.iter().filter(has).collect();
    format!("{} tier {} called {names:?} around {nodes:?}", metadata.name, spec.tier)
}

/// One of the pods that something keeps running.
fn kept(owner: &Owner) -> Pod {
    let made = owner.spec.template.clone().expect("it has a template");
    let metadata = Meta {
        name: format!("{}-pod", owner.metadata.name).into(),
        namespace: owner.metadata.namespace.clone(),
        owner_references: List::from_iter([owner.controller()]),
        ..made.metadata
    };
    Pod { metadata, spec: made.spec, status: PodStatus::default() }
}

fn pod(pod: &Pod, context: PodContext) -> String {
    let named = gang::pod_group_of(pod).map(|key| key.name);
    assert_eq!(named.is_some(), context.group.is_some(), "the group object is asked for");
    let annotations = gang::read(pod, context).unwrap();
    let need = need(&ResourceRequests::of(pod).unwrap());
    let lines = [
        format!("{}: {}", pod.metadata.name, gang(&annotations)),
        treatment(&annotations),
        place(&annotations),
        need,
    ];
    let present: Vec<String> = lines.into_iter().filter(|line| !line.is_empty()).collect();
    present.join("\n ")
}

/// ` key=value` for each value there is.
fn fields<const N: usize>(pairs: [(&str, Option<String>); N]) -> String {
    let there = pairs.into_iter().filter_map(|(key, value)| Some(format!(" {key}={}", value?)));
    there.collect()
}

fn text<T: ToString>(value: &Option<T>) -> Option<String> {
    value.as_ref().map(T::to_string)
}

fn gang(annotations: &GangAnnotations) -> String {
    let counts = fields([("members", text(&annotations.members)), ("min", text(&annotations.min))]);
    let part = annotations.subgroup.as_ref().map_or(String::new(), |part| {
        fields([("part", Some(part.name.to_string())), ("part_min", text(&part.min))])
    });
    format!("{:?} {}{counts}{part}", annotations.key.kind, annotations.key.name)
}

fn treatment(annotations: &GangAnnotations) -> String {
    fields([
        ("queue", text(&annotations.queue)),
        ("class", text(&annotations.priority_class)),
        ("priority", text(&annotations.priority)),
        ("preemptible", text(&annotations.preemptible)),
        ("min_runtime", text(&annotations.min_runtime)),
        ("preempt_after", text(&annotations.preempt_after)),
        ("time_limit", text(&annotations.time_limit)),
        ("ignored", annotations.ignored.first().map(|bad| bad.key.clone())),
    ])
}

fn place(annotations: &GangAnnotations) -> String {
    let part =
        annotations.subgroup.as_ref().and_then(|part| part.topology.clone()).unwrap_or_default();
    let topology = annotations.topology.clone().unwrap_or_default();
    fields([
        ("required", text(&topology.required)),
        ("preferred", text(&topology.preferred)),
        ("segment", topology.segment.map(|s| format!("{} in {}", s.size, s.within))),
        ("part_required", text(&part.required)),
    ])
}

fn need(need: &ResourceRequests) -> String {
    let mut text = format!(" cpu {} memory {} {:?}", need.cpu, need.memory, need.gpus);
    for (resource, count) in &need.other {
        text += &format!(" {resource} {count}");
    }
    text
}

fn queue(reading: &ImportedQueue) -> String {
    let spec = &reading.spec;
    let mut text = spec.name.to_string();
    text.extend(spec.parent.as_ref().map(|parent| format!(" under {parent}")));
    text += &format!(" weight {} priority {}", spec.weight, spec.priority);
    text.extend(spec.order.map(|order| format!(" order {order:?}")));
    text.extend(spec.min_runtime.map(|span| format!(" min_runtime {span}")));
    for (name, quota) in [
        ("quota", &spec.quota),
        ("limit", &spec.limit),
        ("borrow", &spec.borrow),
        ("lend", &spec.lend),
    ] {
        text += &amounts(name, quota);
    }
    text.extend(reading.unmapped.iter().map(|bad| format!("\n  {bad}")));
    text
}

fn amounts(name: &str, quota: &Quota) -> String {
    fn one<T: std::fmt::Display>(resource: &str, amount: Option<Amount<T>>) -> Option<String> {
        Some(match amount? {
            Amount::Of(amount) => format!(" {resource}={amount}"),
            Amount::Share(share) => format!(" {resource}={share} of the whole"),
            Amount::Unlimited => format!(" {resource}=unlimited"),
        })
    }
    let models = quota.gpu.models.iter().map(|(model, amount)| one(model, Some(*amount)));
    let all = [one("gpu", quota.gpu.total), one("cpu", quota.cpu), one("memory", quota.memory)];
    let text: String = all.into_iter().chain(models).flatten().collect();
    if text.is_empty() { text } else { format!("\n  {name}{text}") }
}

/// Both without the line breaks at either end, so that what is expected stands as a block.
#[track_caller]
fn check(file: &str, expected: &str) {
    assert_eq!(read(file).join("\n"), expected.trim_matches('\n'));
}

#[test]
fn every_sample_is_read_by_a_test() {
    let tests = include_str!("samples.rs");
    let mut count = 0;
    for family in std::fs::read_dir(folder()).unwrap() {
        let family = family.unwrap();
        for file in std::fs::read_dir(family.path()).unwrap() {
            let (family, file) = (family.file_name(), file.unwrap().file_name());
            let name = format!("\"{}/{}\"", family.to_string_lossy(), file.to_string_lossy());
            assert!(tests.contains(&name), "{name} is read by no test");
            count += 1;
        }
    }
    assert!(count > 10);
}

#[test]
fn queues_of_kai_become_a_tree_with_quotas() {
    check(
        "kai/queues.yaml",
        r#"
research weight 1 priority 100
  quota gpu=unlimited cpu=unlimited memory=unlimited
vision under research weight 2 priority 150 min_runtime 10m
  quota gpu=8 cpu=unlimited memory=unlimited
speech under research weight 1 priority 100
  quota gpu=4.5 cpu=32 memory=64GB
  limit gpu=6
"#,
    );
}

#[test]
fn pods_for_kai_ask_for_whole_gpus_and_for_shares() {
    check(
        "kai/pods.yaml",
        r#"
whole: Pod whole members=1 min=1
  queue=vision class=build priority=100 preemptible=false
  cpu 0 memory 0B Whole { vendor: Nvidia, count: 1 }
half: Pod half members=1 min=1
  queue=vision preemptible=false
  cpu 0 memory 0B Fraction { milli: Milli(500), count: 1 }
memory: Pod memory members=1 min=1
  queue=vision preempt_after=5m
  cpu 0 memory 0B Memory { bytes: Bytes(2097152000), least: Milli(0), count: 2 }
"#,
    );
}

#[test]
fn a_job_for_kai_is_a_gang_with_a_place() {
    check(
        "kai/gang-job.yaml",
        r#"
6× pretrain-pod: Job pretrain members=6 min=4
  queue=vision class=train priority=50 preemptible=true
  required=topology.kubernetes.io/zone preferred=topology.kubernetes.io/rack segment=2 in topology.kubernetes.io/rack
  cpu 16 memory 128GiB Whole { vendor: Nvidia, count: 8 }
"#,
    );
}

#[test]
fn a_pod_group_of_kai_has_parts() {
    check(
        "kai/pod-group.yaml",
        r#"
decode-0: KaiPodGroup serving min=3 part=decode part_min=2
  queue=speech class=inference priority=125 preemptible=false
  required=topology.kubernetes.io/zone part_required=topology.kubernetes.io/rack
  cpu 0 memory 0B Mig { profile: Name("3g.40gb"), count: 1 }
"#,
    );
}

#[test]
fn queues_of_kueue_become_queues_under_their_cohort() {
    check(
        "kueue/queues.yaml",
        r#"
team-a-cq under all-teams weight 2 priority 0 order Fifo
  quota gpu=8 cpu=40 memory=400GiB H100-80GB=8
  borrow gpu=8
  lend gpu=4
alone-cq weight 1 priority 0 order Strict
  quota gpu=2
  limit gpu=0 cpu=0 memory=0B
  borrow gpu=0
  lend gpu=0
  `ClusterQueue alone-cq: flavor default-flavor` is `pods`: Berth counts GPUs, CPU and memory in queues; leave this one out
all-teams under company weight 1 priority 0
team-a/user-queue is team-a-cq
"#,
    );
}

#[test]
fn a_job_for_kueue_is_read_while_it_is_suspended() {
    check(
        "kueue/job.yaml",
        r#"
4× sample-job-pod: Job sample-job members=4 min=3
  queue=user-queue class=prod-priority time_limit=2h
  preferred=cloud.provider.com/topology-block segment=2 in cloud.provider.com/topology-rack
  cpu 1 memory 200MiB Whole { vendor: Nvidia, count: 1 }
"#,
    );
}

#[test]
fn plain_pods_for_kueue_are_one_gang_behind_a_gate() {
    check(
        "kueue/pod-group.yaml",
        r#"
leader: KueuePodGroup sample-group members=2 min=2
  queue=user-queue
  cpu 3 memory 0B None
worker: KueuePodGroup sample-group members=2 min=2
  queue=user-queue
  required=cloud.provider.com/topology-rack
  cpu 3 memory 0B Whole { vendor: Nvidia, count: 2 }
"#,
    );
}

#[test]
fn queues_of_volcano_keep_what_is_guaranteed() {
    check(
        "volcano/queues.yaml",
        r#"
training weight 1 priority 100 order Strict
  quota gpu=16 cpu=64 memory=512GiB
  limit gpu=32 cpu=128 memory=1TiB
  lend gpu=12
best-effort weight 3 priority 0 order Fifo
  `Queue best-effort: reclaimable` is `false`: others get back what they lent; mark jobs as not preemptible instead
"#,
    );
}

#[test]
fn a_pod_group_of_volcano_has_tasks_and_a_network() {
    check(
        "volcano/pod-group.yaml",
        r#"
worker-0: VolcanoPodGroup tf-dist min=3 part=worker part_min=2
  queue=training class=high-priority preemptible=true min_runtime=10m
  required=topology.kubernetes.io/block segment=2 in topology.kubernetes.io/rack
  cpu 4 memory 16GiB Whole { vendor: Nvidia, count: 2 }
"#,
    );
}

#[test]
fn pods_for_volcano_ask_for_parts_of_gpus_by_resources() {
    check(
        "volcano/vgpu.yaml",
        r#"
first: Pod first members=1 min=1
  cpu 0 memory 0B Memory { bytes: Bytes(41943040000), least: Milli(0), count: 1 }
second: Pod second members=1 min=1
  cpu 0 memory 0B Memory { bytes: Bytes(41943040000), least: Milli(300), count: 1 }
pair: Pod pair members=1 min=1
  cpu 2 memory 0B Fraction { milli: Milli(250), count: 2 }
alone: Pod alone members=1 min=1
  cpu 0 memory 0B Fraction { milli: Milli(1000), count: 1 }
"#,
    );
}

#[test]
fn hypernodes_of_volcano_have_tiers_and_a_group_names_one() {
    check(
        "volcano/hypernodes.yaml",
        r#"
leaf-a tier 1 called [Name("leaf")] around ["n0", "n1"]
leaf-b tier 1 called [Name("leaf")] around ["n2", "n3"]
spine tier 2 called [Name("spine")] around []
"#,
    );
    check(
        "volcano/ring.yaml",
        r#"
ring-0: VolcanoPodGroup ring min=2
  required=volcano.sh/tier-1
  cpu 0 memory 0B Whole { vendor: Nvidia, count: 8 }
ring-1: VolcanoPodGroup ring min=2
  required=volcano.sh/tier-1
  cpu 0 memory 0B Whole { vendor: Nvidia, count: 8 }
"#,
    );
}

#[test]
fn replicas_for_volcano_are_a_gang_from_their_minimum_on() {
    check(
        "volcano/replicas.yaml",
        r#"
4× ps-pod: Owner ps members=4 min=3
  queue=training ignored=volcano.sh/sla-waiting-time
  cpu 0.5 memory 1GiB None
"#,
    );
}

#[test]
fn a_scheduling_group_of_kubernetes_is_a_gang() {
    check(
        "kubernetes/pod-group.yaml",
        r#"
worker-0: PodGroup workers min=4
  queue=vision priority=80
  required=topology.kubernetes.io/rack
  cpu 8.25 memory 33144MiB Whole { vendor: Nvidia, count: 8 } rdma/hca 1
"#,
    );
}

#[test]
fn owners_make_gangs_without_marks_and_a_plain_job_does_not() {
    check(
        "kubernetes/training.yaml",
        r#"
1× bert-master: Kubeflow bert members=4 min=4 part=master
  cpu 0 memory 0B Whole { vendor: Nvidia, count: 1 }
3× bert-worker: Kubeflow bert members=4 min=4 part=worker
  cpu 0 memory 0B Whole { vendor: Nvidia, count: 1 }
1× pipeline-driver: JobSet pipeline members=9 min=9 part=driver
  cpu 1 memory 0B None
8× pipeline-workers: JobSet pipeline members=9 min=9 part=workers
  cpu 0 memory 0B Whole { vendor: Nvidia, count: 4 }
10× sweep-pod: Pod sweep-pod members=1 min=1
  cpu 0 memory 0B Shared { count: 1 }
"#,
    );
}
