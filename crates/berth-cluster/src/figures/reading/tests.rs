use super::*;

/// As dcgm-exporter 4 writes it with its default counters and one more.
const DEFAULT: &str = include_str!("default.prom");
/// As later releases write it, by the new names.
const LATER: &str = include_str!("later.prom");
/// A GPU in three instances, one of which is nobody's.
const MIG: &str = include_str!("mig.prom");

fn pod(namespace: &str, name: &str) -> PodName {
    PodName { namespace: namespace.to_owned(), name: name.to_owned() }
}

#[test]
fn an_exporter_as_it_comes_tells_what_gpus_do_and_who_has_them() {
    let reading = Reading::of(DEFAULT);
    assert_eq!(reading.gpus.keys().copied().collect::<Vec<_>>(), [0, 1]);
    let gpu = &reading.gpus[&0];
    assert_eq!(gpu.uuid.as_deref(), Some("GPU-5a1b2c3d-0000-1111-2222-333344445555"));
    assert_eq!(gpu.model.as_deref(), Some("NVIDIA H100 80GB HBM3"));
    assert_eq!(gpu.pods, [pod("berth-nlp", "train-j7-0-0")].into());
    let expect = [
        (Figure::Utilization, 970),
        (Figure::TensorActive, 875),
        (Figure::DramActive, 180),
        (Figure::GpuMemory, 71_424),
        (Figure::Power, 652_381),
        (Figure::Energy, 1_234_567_890_123),
        (Figure::SmClock, 1_553),
        (Figure::Temperature, 61),
        // It is not told by default.
        (Figure::SmClockMax, 1_980),
    ];
    assert_eq!(gpu.values, expect.into());
    let idle = &reading.gpus[&1];
    assert!(idle.pods.is_empty());
    // Its profiling is no number, and its energy is what DCGM has for what it does not know.
    assert_eq!(idle.values.get(&Figure::TensorActive), None);
    assert_eq!(idle.values.get(&Figure::Energy), None);
    assert_eq!(idle.values.get(&Figure::Utilization), Some(&0));
}

#[test]
fn the_new_names_mean_the_same() {
    let reading = Reading::of(LATER);
    let gpu = &reading.gpus[&0];
    let expect = [
        (Figure::Utilization, 970),
        (Figure::SmActive, 916),
        (Figure::TensorActive, 875),
        (Figure::DramActive, 180),
        (Figure::GpuMemory, 71_424),
        (Figure::Power, 652_381),
        (Figure::Energy, 1_234_567_890_123),
        (Figure::SmClock, 1_553),
        (Figure::SmClockMax, 1_755),
        (Figure::ClockReasons, 4),
        (Figure::Temperature, 61),
    ];
    assert_eq!(gpu.values, expect.into());
    assert_eq!(gpu.pods, [pod("ml", "bert-0")].into());
    assert!(reading.names_pods());
}

#[test]
fn instances_have_activity_and_memory_of_their_own_and_the_gpu_has_the_rest() {
    let reading = Reading::of(MIG);
    let parts: Vec<_> = reading.parts.keys().copied().collect();
    assert_eq!(parts, [(0, 1), (0, 7), (0, 8)]);
    let part = &reading.parts[&(0, 1)];
    let expect = [
        // There is no utilization of an instance, so that of its engine counts.
        (Figure::Utilization, 640),
        (Figure::SmActive, 512),
        (Figure::TensorActive, 300),
        (Figure::DramActive, 90),
        (Figure::GpuMemory, 30_000),
    ];
    assert_eq!(part.values, expect.into());
    assert_eq!(part.pods, [pod("ml", "half")].into());
    assert!(reading.parts[&(0, 8)].pods.is_empty());
    let gpu = &reading.gpus[&0];
    let expect = [
        (Figure::GpuMemory, 30_000 + 4_000 + 12),
        (Figure::Power, 250_000),
        (Figure::SmClock, 1_400),
        (Figure::SmClockMax, 1_410),
    ];
    assert_eq!(gpu.values, expect.into());
    assert_eq!(gpu.pods, [pod("ml", "half"), pod("ml", "small")].into());
}

#[test]
fn pods_that_share_a_gpu_are_all_named_and_parts_of_its_figures_do_not_add_up() {
    let line = |pod: &str, value: u32| {
        format!("DCGM_FI_DEV_FB_USED{{gpu=\"0\",pod=\"{pod}\",namespace=\"ml\"}} {value}\n")
    };
    let reading = Reading::of(&[line("a", 9_000), line("b", 3_000), line("c", 6_000)].concat());
    let gpu = &reading.gpus[&0];
    assert_eq!(gpu.pods.len(), 3);
    assert_eq!(gpu.values, [(Figure::GpuMemory, 9_000)].into());
}

#[test]
fn labels_have_had_other_names() {
    let old = "DCGM_FI_DEV_GPU_UTIL{gpu=\"3\",uuid=\"GPU-3\",container_name=\"main\",\
               pod_namespace=\"ml\",pod_name=\"old\"} 5\n\
               DCGM_FI_DEV_GPU_UTIL{gpu=\"4\",namespace=\"\",pod=\"\",exported_namespace=\"ml\",\
               exported_pod=\"led\"} 5";
    let reading = Reading::of(old);
    assert_eq!(reading.gpus[&3].pods, [pod("ml", "old")].into());
    assert_eq!(reading.gpus[&3].uuid.as_deref(), Some("GPU-3"));
    assert_eq!(reading.gpus[&4].pods, [pod("ml", "led")].into());
}

#[test]
fn whatever_is_not_of_a_gpu_or_makes_no_sense_is_left_out() {
    let metric =
        |labels: &str, value: &str| format!("DCGM_FI_PROF_SM_ACTIVE{{{labels}}} {value}\n");
    for (labels, value) in [
        ("", "0.5"),
        ("gpu=\"x\"", "0.5"),
        ("gpu=\"63\"", "0.5"),
        ("gpu=\"-1\"", "0.5"),
        ("gpu=\"0\",GPU_I_ID=\"x\"", "0.5"),
        ("nvlink=\"0\"", "0.5"),
    ] {
        assert_eq!(Reading::of(&metric(labels, value)), Reading::default(), "{labels}");
    }
    for value in ["NaN", "-0.1", "+Inf", "9223372036854775794", "7"] {
        let reading = Reading::of(&metric("gpu=\"0\"", value));
        assert_eq!(reading.gpus[&0].values, BTreeMap::new(), "{value}");
    }
    let cut = Reading::of(&metric("gpu=\"0\"", "1.2"));
    assert_eq!(cut.gpus[&0].values, [(Figure::SmActive, 1_000)].into());
    for text in ["", "<html>not found</html>", "{}", "DCGM_FI_DEV_GPU_UTIL"] {
        assert_eq!(Reading::of(text), Reading::default(), "{text}");
    }
}
