//! Whatever stands in a mark, reading it ends with a mark or with words.

use super::*;
use crate::object::{Map, Text};
use crate::pod::requests::{self, ResourceRequests};
use proptest::prelude::*;

/// Every mark with a value to be understood.
const KEYS: [&str; 24] = [
    "berth.dev/gang",
    "berth.dev/gang-size",
    "berth.dev/gang-min",
    "berth.dev/priority",
    "berth.dev/preemptible",
    "gpu-fraction",
    "gpu-memory",
    "gpu-fraction-num-devices",
    "pod-group-name",
    "kai.scheduler/batch-min-member",
    "kai.scheduler/preemptibility",
    "kai.scheduler/preemption-delay",
    "kai.scheduler/segment-size",
    "kueue.x-k8s.io/job-min-parallelism",
    "kueue.x-k8s.io/max-exec-time-seconds",
    "kueue.x-k8s.io/pod-group-total-count",
    "kueue.x-k8s.io/priority-boost",
    "kueue.x-k8s.io/podset-slice-size",
    "scheduling.volcano.sh/group-min-member",
    "volcano.sh/preemptable",
    "volcano.sh/cooldown-time",
    "volcano.sh/sla-waiting-time",
    "leaderworkerset.sh/size",
    "leaderworkerset.sh/group-key",
];

fn value() -> impl Strategy<Value = String> {
    let odd =
        ["-1", "0", "1", "99999999999999999999", "1e9", "NaN", "0x10", "true", "5m", " 4 ", ""];
    prop_oneof![
        prop::sample::select(odd.to_vec()).prop_map(str::to_owned),
        "[0-9]{1,30}(\\.[0-9]{1,5})?[a-z]{0,2}",
        "\\PC{0,8}",
    ]
}

proptest! {
    #[test]
    fn no_value_of_a_mark_is_too_odd_to_be_read_or_refused(
        marks in prop::collection::vec((prop::sample::select(KEYS.to_vec()), value()), 1..5),
        owned in any::<bool>(),
        counts in prop::collection::vec(any::<i64>(), 4),
    ) {
        let mut pod = pod(&Sketch { owner: if owned { OF_JOB } else { "" }, ..PLAIN });
        let map: Map<Text> =
            marks.iter().map(|(key, value)| (*key, value.as_str().into())).collect();
        pod.metadata.labels = map.clone();
        pod.metadata.annotations = map;
        let mut job = job("", "", "");
        job.spec.parallelism = Some(counts[0]);
        job.spec.completions = Some(counts[1]);
        let group = kai_group(&format!(
            r#""minMember": {}, "subGroups": [{{"name": "a", "minMember": {}}}, {{"name": "b", "minMember": {}}}]"#,
            counts[1], counts[2], counts[3]
        ));
        let context = PodContext { owners: &[&job], group: group.as_ref() };
        if let Err(bad) = read(&pod, context) {
            prop_assert!(!bad.is_empty());
            prop_assert!(bad.iter().all(|bad| !bad.what_to_do.is_empty()));
        }
        if let Err(error) = ResourceRequests::of(&pod) {
            prop_assert!(matches!(error, requests::Error::Annotation(_)), "{}", error);
        }
    }
}
