use super::*;
use berth_model::{MigSlot, Share};

fn pod(spec: &str) -> Pod {
    serde_json::from_str(&format!(r#"{{"spec": {spec}}}"#)).unwrap()
}

fn need(spec: &str) -> ResourceRequests {
    ResourceRequests::of(&pod(spec)).unwrap()
}

fn marked(annotations: &str, resources: &str) -> Result<GpuRequest, Error> {
    let pod: Pod = serde_json::from_str(&format!(
        r#"{{"metadata": {{"annotations": {annotations}}},
             "spec": {{"containers": [{{"resources": {{"limits": {resources}}}}}]}}}}"#
    ))
    .unwrap();
    ResourceRequests::of(&pod).map(|need| need.gpus)
}

#[test]
fn containers_add_up_and_overhead_comes_on_top() {
    let need = need(
        r#"{"containers": [
              {"resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}},
              {"resources": {"requests": {"cpu": 2, "memory": "512Mi", "rdma/hca": "1"}}}],
            "overhead": {"cpu": "250m", "memory": "120Mi"}}"#,
    );
    assert_eq!(need.cpu, Cpu(2_750));
    assert_eq!(need.memory, Bytes::mib(1024 + 512 + 120));
    assert_eq!(need.other, BTreeMap::from([("rdma/hca".into(), 1)]));
    assert_eq!(need.gpus, GpuRequest::None);
}

#[test]
fn a_limit_counts_where_no_request_is_made() {
    let need = need(
        r#"{"containers": [{"resources": {
              "requests": {"cpu": "1"}, "limits": {"cpu": "4", "memory": "2Gi"}}}]}"#,
    );
    assert_eq!((need.cpu, need.memory), (Cpu::cores(1), Bytes::gib(2)));
}

#[test]
fn the_largest_init_container_counts_only_if_it_needs_more_than_all_the_rest() {
    let with_init = |cpu: &str| {
        need(&format!(
            r#"{{"initContainers": [{{"resources": {{"requests": {{"cpu": "{cpu}"}}}}}},
                                    {{"resources": {{"requests": {{"cpu": "1"}}}}}}],
                 "containers": [{{"resources": {{"requests": {{"cpu": "2"}}}}}},
                                {{"resources": {{"requests": {{"cpu": "2"}}}}}}]}}"#
        ))
        .cpu
    };
    assert_eq!(with_init("3"), Cpu::cores(4));
    assert_eq!(with_init("6"), Cpu::cores(6));
}

#[test]
fn a_sidecar_counts_beside_the_init_containers_after_it_and_not_those_before() {
    let sidecar = r#"{"restartPolicy": "Always", "resources": {"requests": {"cpu": "2"}}}"#;
    let init = r#"{"resources": {"requests": {"cpu": "5"}}}"#;
    let main = r#"{"resources": {"requests": {"cpu": "1"}}}"#;
    let before =
        need(&format!(r#"{{"initContainers": [{init}, {sidecar}], "containers": [{main}]}}"#));
    let after =
        need(&format!(r#"{{"initContainers": [{sidecar}, {init}], "containers": [{main}]}}"#));
    assert_eq!(before.cpu, Cpu::cores(5));
    assert_eq!(after.cpu, Cpu::cores(7));
}

#[test]
fn amounts_of_the_pod_as_a_whole_win_resource_by_resource() {
    let need = need(
        r#"{"containers": [{"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
            "resources": {"requests": {"cpu": "6"}, "limits": {"memory": "8Gi"}},
            "overhead": {"cpu": "1"}}"#,
    );
    assert_eq!(need.cpu, Cpu::cores(7));
    assert_eq!(need.memory, Bytes::gib(1));
}

#[test]
fn gpus_of_every_kind_are_told_apart() {
    let whole = GpuRequest::Whole { vendor: GpuVendor::Nvidia, count: 8 };
    assert_eq!(marked("{}", r#"{"nvidia.com/gpu": 8}"#), Ok(whole));
    let amd = GpuRequest::Whole { vendor: GpuVendor::Amd, count: 4 };
    assert_eq!(marked("{}", r#"{"amd.com/gpu": "4"}"#), Ok(amd));
    let mig = GpuRequest::Mig { profile: "1g.10gb+me".into(), count: 2 };
    assert_eq!(marked("{}", r#"{"nvidia.com/mig-1g.10gb.me": 2}"#), Ok(mig));
    assert_eq!(
        marked("{}", r#"{"nvidia.com/gpu.shared": 1}"#),
        Ok(GpuRequest::Shared { count: 1 })
    );
    assert_eq!(marked("{}", r#"{"nvidia.com/gpu": 0}"#), Ok(GpuRequest::None));
}

#[test]
fn shares_of_a_gpu_are_read_from_annotations() {
    let half = GpuRequest::Fraction { milli: Milli(500), count: 1 };
    assert_eq!(marked(r#"{"gpu-fraction": "0.5"}"#, "{}"), Ok(half));
    let memory = GpuRequest::Memory { bytes: Bytes::mib(4096), least: Milli(0), count: 2 };
    let two = r#"{"gpu-memory": "4096", "gpu-fraction-num-devices": "2"}"#;
    assert_eq!(marked(two, "{}"), Ok(memory));
}

#[test]
fn nonsense_in_a_share_says_what_to_write() {
    for (annotations, key) in [
        (r#"{"gpu-fraction": "lots"}"#, "gpu-fraction"),
        (r#"{"gpu-fraction": "1.5"}"#, "gpu-fraction"),
        (r#"{"gpu-fraction": "0"}"#, "gpu-fraction"),
        (r#"{"gpu-fraction": "0.5", "gpu-memory": "10"}"#, "gpu-fraction"),
        (r#"{"gpu-memory": "4Gi"}"#, "gpu-memory"),
        (r#"{"gpu-memory": "-1"}"#, "gpu-memory"),
        (r#"{"gpu-fraction-num-devices": "2"}"#, "gpu-fraction-num-devices"),
        (r#"{"gpu-fraction": "0.5", "gpu-fraction-num-devices": "0"}"#, "gpu-fraction-num-devices"),
    ] {
        let Err(Error::Annotation(bad)) = marked(annotations, "{}") else {
            panic!("{annotations}")
        };
        assert_eq!(bad.key, key, "{annotations}");
        assert!(!bad.what_to_do.is_empty());
    }
}

/// What a pod asks for whose containers have these limits, by words for `volcano.sh/vgpu-…`.
fn vgpu(containers: &[&str], init: &[&str]) -> Result<ResourceRequests, Error> {
    let list = |limits: &[&str]| {
        let each = limits.iter().map(|limits| {
            let limits = limits.replace('~', "volcano.sh/vgpu-");
            format!(r#"{{"resources": {{"limits": {limits}, "requests": {limits}}}}}"#)
        });
        each.collect::<Vec<String>>().join(", ")
    };
    let (containers, init) = (list(containers), list(init));
    ResourceRequests::of(&pod(&format!(
        r#"{{"containers": [{containers}], "initContainers": [{init}]}}"#
    )))
}

#[test]
fn shares_of_a_gpu_are_read_from_volcanos_resources_which_no_node_has_to_have() {
    let fraction = |milli, count| GpuRequest::Fraction { milli: Milli(milli), count };
    let memory = |mib, least, count| GpuRequest::Memory {
        bytes: Bytes::mib(mib),
        least: Milli(least),
        count,
    };
    for (limits, gpus) in [
        (r#"{"~number": 2}"#, fraction(1_000, 2)),
        (r#"{"~memory": 3000}"#, memory(3_000, 0, 1)),
        (r#"{"~memory": 3000, "~number": 2}"#, memory(3_000, 0, 2)),
        (r#"{"~memory": 3000, "~number": 1, "~cores": 50}"#, memory(3_000, 500, 1)),
        // Volcano passes over a percentage beside an amount.
        (r#"{"~memory": 3000, "~memory-percentage": 80}"#, memory(3_000, 0, 1)),
        (r#"{"~number": 1, "~memory-percentage": 30}"#, fraction(300, 1)),
        (r#"{"~number": 1, "~memory-percentage": 30, "~cores": 40}"#, fraction(400, 1)),
        // Whoever says nothing of memory may use all of it.
        (r#"{"~number": 1, "~cores": 40}"#, fraction(1_000, 1)),
        (r#"{"~number": 0}"#, GpuRequest::None),
    ] {
        let need = vgpu(&[limits], &[]).unwrap();
        assert_eq!(need.gpus, gpus, "{limits}");
        assert_eq!(need.other, BTreeMap::new(), "{limits}");
    }
}

#[test]
fn containers_of_a_pod_have_their_parts_of_the_same_gpus() {
    let quarter = r#"{"~number": 2, "~memory-percentage": 25}"#;
    let gpus = |containers: &[&str], init: &[&str]| vgpu(containers, init).map(|need| need.gpus);
    let both = GpuRequest::Fraction { milli: Milli(500), count: 2 };
    assert_eq!(gpus(&[quarter, "{}", quarter], &[quarter]), Ok(both));
    let before = r#"{"~number": 2, "~memory-percentage": 60}"#;
    assert_eq!(
        gpus(&[quarter], &[before]),
        Ok(GpuRequest::Fraction { milli: Milli(600), count: 2 })
    );
    for other in [r#"{"~number": 1}"#, r#"{"~number": 2, "~memory": 5}"#, r#"{"~number": 2}"#] {
        assert!(matches!(gpus(&[quarter, other], &[]), Err(Error::Annotation(_))), "{other}");
    }
}

#[test]
fn nonsense_in_volcanos_resources_says_what_to_write() {
    for (limits, key) in [
        (r#"{"~number": 1, "~memory-percentage": 101}"#, "memory-percentage"),
        (r#"{"~number": 1, "~memory-percentage": 0}"#, "memory-percentage"),
        (r#"{"~number": 1, "~cores": 200}"#, "cores"),
        (r#"{"~number": 1, "~memory": -1}"#, "memory"),
        (r#"{"~number": 1, "~memory": "8Pi"}"#, "memory"),
        (r#"{"~cores": 50}"#, "cores"),
        (r#"{"~memory-percentage": 50}"#, "memory-percentage"),
    ] {
        let Err(Error::Annotation(bad)) = vgpu(&[limits], &[]) else { panic!("{limits}") };
        assert_eq!(bad.key, format!("volcano.sh/vgpu-{key}"), "{limits}");
        assert!(!bad.what_to_do.is_empty());
    }
    assert!(matches!(vgpu(&[r#"{"~number": "500m"}"#], &[]), Err(Error::Parts { .. })));
    assert!(matches!(vgpu(&[r#"{"~number": -1}"#], &[]), Err(Error::Parts { .. })));
    let mixed = vgpu(&[r#"{"~number": 1, "nvidia.com/gpu": 1}"#], &[]);
    assert!(matches!(mixed, Err(Error::MixedGpus { .. })), "{mixed:?}");
}

#[test]
fn two_kinds_of_gpu_in_one_pod_are_refused_with_both_names() {
    let error = marked(r#"{"gpu-fraction": "0.5"}"#, r#"{"nvidia.com/gpu": 1}"#).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the pod asks for GPUs as gpu-fraction and as nvidia.com/gpu; ask for one kind in one pod"
    );
    assert!(marked("{}", r#"{"nvidia.com/gpu": 1, "nvidia.com/mig-1g.5gb": 1}"#).is_err());
    assert!(marked("{}", r#"{"nvidia.com/mig-2g.10gb": 1, "nvidia.com/mig-1g.5gb": 1}"#).is_err());
}

#[test]
fn parts_of_a_device_and_unreadable_amounts_are_refused() {
    assert!(matches!(marked("{}", r#"{"nvidia.com/gpu": "500m"}"#), Err(Error::Parts { .. })));
    let error = marked("{}", r#"{"cpu": "many"}"#).unwrap_err();
    assert!(error.to_string().starts_with("resource cpu: `many` is not a quantity"), "{error}");
}

#[test]
fn what_a_gpu_resource_is_depends_on_the_node() {
    let plain = DevicePluginResources::default();
    let slices = GpuSharing { strategy: SharingStrategy::TimeSlice, replicas: 4 };
    let mps = GpuSharing { strategy: SharingStrategy::Mps, replicas: 4 };
    let shared = GpuRequest::Shared { count: 1 };
    let sharing = |sharing| DevicePluginResources {
        shared: Some(sharing),
        ..DevicePluginResources::default()
    };
    assert_eq!(shared.ask(&sharing(slices)), Some(GpuAsk::TimeSlice { of: 4, count: 1 }));
    assert_eq!(shared.ask(&sharing(mps)), Some(GpuAsk::Mps { percent: 25, count: 1 }));
    assert_eq!(shared.ask(&plain), None);
    let whole = GpuRequest::Whole { vendor: GpuVendor::Nvidia, count: 2 };
    let unit = |gpu| DevicePluginResources { gpu, shared: None };
    assert_eq!(whole.ask(&plain), Some(GpuAsk::Whole { count: 2 }));
    assert_eq!(
        whole.ask(&unit(GpuUnit::Replica(slices))),
        Some(GpuAsk::TimeSlice { of: 4, count: 2 })
    );
    assert_eq!(
        whole.ask(&unit(GpuUnit::Instance("1g.5gb".into()))),
        Some(GpuAsk::Mig { profile: "1g.5gb".into(), count: 2 })
    );
}

#[test]
fn a_piece_of_a_gpu_is_asked_for_by_the_resource_it_has_on_its_node() {
    let slices = GpuSharing { strategy: SharingStrategy::TimeSlice, replicas: 4 };
    let (plain, slice) = (DevicePluginResources::default(), Share::TimeSlice(Milli(250)));
    let instance = |profile: &str| Share::Mig(MigSlot { profile: profile.into(), start: 0 });
    let renamed =
        DevicePluginResources { shared: Some(slices), ..DevicePluginResources::default() };
    let replicas = DevicePluginResources { gpu: GpuUnit::Replica(slices), shared: None };
    let single = DevicePluginResources { gpu: GpuUnit::Instance("1g.10gb".into()), shared: None };
    for (on, share, resource) in [
        (&plain, Share::Whole, Some("nvidia.com/gpu")),
        (&plain, Share::Fraction(Milli(500)), None),
        (&plain, instance("1g.10gb+me"), Some("nvidia.com/mig-1g.10gb.me")),
        (&single, instance("1g.10gb"), Some("nvidia.com/gpu")),
        (&renamed, slice.clone(), Some("nvidia.com/gpu.shared")),
        (&renamed, Share::Whole, Some("nvidia.com/gpu")),
        (&replicas, slice, Some("nvidia.com/gpu")),
        (&replicas, Share::Mps(Milli(250)), Some("nvidia.com/gpu")),
    ] {
        assert_eq!(on.resource(&share).as_deref(), resource, "{share:?}");
    }
    let me = plain.resource(&instance("1g.10gb+me")).and_then(|resource| mig_profile(&resource));
    assert_eq!(me.as_deref(), Some("1g.10gb+me"));
}
