use super::*;
use berth_model::{Amount, Bytes, Cpu, GpuQuota, Milli, QueueOrder, Quota, Span};

fn gpus(n: i64) -> Option<Amount<Milli>> {
    Some(Amount::Of(Milli::whole(n)))
}

fn words(reading: &ImportedQueue) -> String {
    reading.unmapped.iter().map(|bad| bad.to_string()).collect::<Vec<_>>().join("\n")
}

fn kai(spec: &str) -> ImportedQueue {
    let object = format!(r#"{{"metadata": {{"name": "team-a"}}, "spec": {spec}}}"#);
    kai::read(&serde_json::from_str(&object).unwrap())
}

#[test]
fn a_queue_of_kai_has_its_quota_limit_and_weight() {
    let reading = kai(r#"{"parentQueue": "dept", "priority": 200, "preemptMinRuntime": "10m",
            "resources": {"gpu": {"quota": 2.5, "limit": -1, "overQuotaWeight": 3, "lendingLimit": 1},
                          "cpu": {"quota": 4000, "limit": 8000, "overQuotaWeight": 3},
                          "memory": {"quota": -1, "limit": -1, "overQuotaWeight": 3}}}"#);
    assert_eq!(words(&reading), "");
    let spec = &reading.spec;
    assert_eq!(spec.parent.as_deref(), Some("dept"));
    assert_eq!((spec.priority, spec.weight), (200, Milli(3_000)));
    assert_eq!(spec.quota.gpu.total, Some(Amount::Of(Milli(2_500))));
    assert_eq!(spec.quota.cpu, Some(Amount::Of(Cpu::cores(4))));
    assert_eq!(spec.quota.memory, Some(Amount::Unlimited));
    assert_eq!((spec.limit.gpu.total, spec.limit.cpu), (None, Some(Amount::Of(Cpu::cores(8)))));
    assert_eq!(spec.lend.gpu.total, gpus(1));
    assert_eq!(spec.min_runtime, Some(Span::mins(10)));
}

#[test]
fn a_limit_that_kai_is_not_told_is_the_quota() {
    let reading = kai(r#"{"resources": {"gpu": {"quota": 4}, "memory": {"quota": 1000}}}"#);
    assert_eq!(reading.spec.limit.gpu.total, gpus(4));
    assert_eq!(reading.spec.limit.memory, Some(Amount::Of(Bytes::gb(1))));
    assert_eq!(reading.spec.priority, 100);
}

#[test]
fn what_a_queue_of_kai_cannot_have_here_is_told() {
    let reading = kai(r#"{"preemptMinRuntime": "1m", "reclaimMinRuntime": "2m",
            "resources": {"gpu": {"quota": -5, "overQuotaWeight": 1}, "cpu": {"overQuotaWeight": 2}}}"#);
    assert_eq!(
        words(&reading),
        "`Queue team-a: resources.cpu.overQuotaWeight` is `2`: a queue has one weight for all \
         resources; write that of gpu here too\n\
         `Queue team-a: resources.gpu.quota` is `-5`: `-5` is not a quantity; write a number such \
         as 500m, 2, 1.5Gi or 1e3\n\
         `Queue team-a: preemptMinRuntime and reclaimMinRuntime` is `different`: there is one \
         least runtime for both, and the longer one is used"
    );
    assert_eq!(reading.spec.min_runtime, Some(Span::mins(2)));
}

fn cluster_queue(spec: &str) -> ImportedQueue {
    let object = format!(r#"{{"metadata": {{"name": "cq"}}, "spec": {spec}}}"#);
    let flavors = [
        r#"{"metadata": {"name": "h100"}, "spec": {"nodeLabels": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}}}"#,
        r#"{"metadata": {"name": "any"}}"#,
    ];
    let flavors = flavors.map(|flavor| serde_json::from_str(flavor).unwrap());
    kueue::cluster_queue(&serde_json::from_str(&object).unwrap(), &flavors)
}

#[test]
fn a_cluster_queue_sums_its_flavors_and_knows_their_models() {
    let reading = cluster_queue(
        r#"{"cohortName": "all", "queueingStrategy": "StrictFIFO", "fairSharing": {"weight": "2"},
            "resourceGroups": [{"coveredResources": ["cpu", "nvidia.com/gpu"], "flavors": [
                {"name": "h100", "resources": [
                    {"name": "cpu", "nominalQuota": 9, "borrowingLimit": 3},
                    {"name": "nvidia.com/gpu", "nominalQuota": "8", "lendingLimit": 2}]},
                {"name": "any", "resources": [
                    {"name": "cpu", "nominalQuota": "1"},
                    {"name": "nvidia.com/gpu", "nominalQuota": 4, "lendingLimit": 1}]}]}]}"#,
    );
    assert_eq!(words(&reading), "");
    let spec = &reading.spec;
    assert_eq!(spec.parent.as_deref(), Some("all"));
    assert_eq!(spec.quota.gpu.total, gpus(12));
    assert_eq!(spec.quota.gpu.models.get("H100-80GB").copied(), gpus(8));
    assert_eq!(spec.quota.cpu, Some(Amount::Of(Cpu::cores(10))));
    assert_eq!(spec.borrow, Quota::default(), "one flavor may borrow without bound");
    assert_eq!(spec.lend.gpu.total, gpus(3));
    assert_eq!((spec.order, spec.weight), (Some(QueueOrder::Strict), Milli(2_000)));
}

#[test]
fn a_cluster_queue_alone_neither_borrows_nor_lends_and_a_stopped_one_starts_nothing() {
    let quota = r#""resourceGroups": [{"flavors": [{"name": "any", "resources": [
        {"name": "nvidia.com/gpu", "nominalQuota": 4}, {"name": "pods", "nominalQuota": 9}]}]}]"#;
    let reading = cluster_queue(&format!(r#"{{"stopPolicy": "Hold", {quota}}}"#));
    assert_eq!((reading.spec.borrow.gpu.total, reading.spec.lend.gpu.total), (gpus(0), gpus(0)));
    assert_eq!(reading.spec.limit.gpu.total, gpus(0));
    assert_eq!(reading.spec.order, Some(QueueOrder::Fifo));
    assert_eq!(
        words(&reading),
        "`ClusterQueue cq: flavor any` is `pods`: Berth counts GPUs, CPU and memory in queues; \
         leave this one out"
    );
}

#[test]
fn a_cohort_is_a_queue_without_a_quota_of_its_own() {
    let cohort = |groups: &str| {
        let object = format!(
            r#"{{"metadata": {{"name": "all"}}, "spec": {{"parentName": "org", "resourceGroups": {groups}}}}}"#
        );
        kueue::cohort(&serde_json::from_str(&object).unwrap())
    };
    let plain = cohort("[]");
    assert_eq!(plain.spec.parent.as_deref(), Some("org"));
    assert_eq!((plain.spec.quota, plain.unmapped), (Quota::default(), Vec::new()));
    let rich = cohort(
        r#"[{"flavors": [{"name": "any", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 4, "borrowingLimit": 1}]}]}]"#,
    );
    assert!(words(&rich).contains("give this to one of them"), "{}", words(&rich));
    assert_eq!(rich.spec.borrow.gpu, GpuQuota { total: gpus(1), ..GpuQuota::default() });
}

#[test]
fn a_local_queue_is_another_name() {
    let local = r#"{"metadata": {"name": "user-queue", "namespace": "ml"}, "spec": {"clusterQueue": "cq"}}"#;
    let alias = kueue::alias(&serde_json::from_str(local).unwrap());
    assert_eq!((&*alias.namespace, &*alias.name, &*alias.queue), ("ml", "user-queue", "cq"));
}

fn volcano(spec: &str) -> ImportedQueue {
    let object = format!(r#"{{"metadata": {{"name": "q"}}, "spec": {spec}}}"#);
    volcano::read(&serde_json::from_str(&object).unwrap())
}

#[test]
fn a_queue_of_volcano_lends_what_is_not_guaranteed() {
    let reading = volcano(
        r#"{"weight": 4, "parent": "root", "priority": 7, "dequeueStrategy": "fifo", "reclaimable": true,
            "capability": {"nvidia.com/gpu": 16, "cpu": "64"}, "deserved": {"nvidia.com/gpu": "8"},
            "guarantee": {"resource": {"nvidia.com/gpu": "2", "memory": "1Gi"}}}"#,
    );
    assert_eq!(words(&reading), "");
    let spec = &reading.spec;
    assert_eq!((&spec.parent, spec.priority, spec.weight), (&None, 7, Milli(4_000)));
    assert_eq!((spec.quota.gpu.total, spec.lend.gpu.total), (gpus(8), gpus(6)));
    assert_eq!(spec.quota.memory, Some(Amount::Of(Bytes::gib(1))));
    assert_eq!(spec.lend.memory, Some(Amount::Of(Bytes(0))));
    assert_eq!((spec.limit.gpu.total, spec.order), (gpus(16), Some(QueueOrder::Strict)));
}

#[test]
fn what_a_queue_of_volcano_cannot_have_here_is_told() {
    let reading = volcano(
        r#"{"weight": 0, "reclaimable": false, "affinity": {"nodeGroupAffinity": {}},
            "capability": {"nvidia.com/mig-1g.5gb": 1, "cpu": "lots"}}"#,
    );
    for word in ["weight", "reclaimable", "affinity", "nvidia.com/mig-1g.5gb", "lots"] {
        assert!(words(&reading).contains(word), "{word}: {}", words(&reading));
    }
}
