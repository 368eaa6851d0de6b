//! What PodGroups of others say about the parts of a gang.

use super::*;

#[test]
fn a_pod_group_of_kai_says_what_its_pods_do_not() {
    let in_group = || Sketch {
        labels: r#""kai.scheduler/subgroup-name": "decode""#,
        annotations: r#""pod-group-name": "pg""#,
        ..PLAIN
    };
    check(in_group(), &[], None, "KaiPodGroup ml/pg subgroup=decode:None");
    let spec = r#""minMember": 6, "queue": "q", "priorityClassName": "inference",
        "topologyConstraint": {"topology": "t", "requiredTopologyLevel": "zone"},
        "subGroups": [{"name": "prefill", "minMember": 2},
            {"name": "decode", "minMember": 4,
             "topologyConstraint": {"topology": "t", "preferredTopologyLevel": "rack"}}]"#;
    check(
        in_group(),
        &[],
        kai_group(spec),
        "KaiPodGroup ml/pg min=6 queue=q class=inference priority=125 preemptible=false within=t \
         required=zone subgroup=decode:Some(4) its_preferred=rack needed=prefill:2,decode:4",
    );
    check(
        in_group(),
        &[],
        kai_group(r#""minMember": -1, "minSubGroup": 2, "preemptibility": "semi""#),
        "`PodGroup pg: minMember` is `-1`: write a number of pods between 1 and 100000\n\
         `PodGroup pg: minSubGroup` is `2`: say the number of the subgroups there are, or nothing: \
         all of them are needed\n\
         `PodGroup pg: preemptibility` is `semi`: write preemptible or non-preemptible\n\
         `kai.scheduler/subgroup-name` is `decode`: PodGroup pg has no such subgroup",
    );
}

#[test]
fn volcanos_group_is_read_with_its_tasks_and_its_network() {
    let in_group = || Sketch {
        annotations: r#""scheduling.k8s.io/group-name": "pg", "volcano.sh/task-spec": "worker",
            "volcano.sh/preemptable": "true", "volcano.sh/cooldown-time": "600s",
            "volcano.sh/sla-waiting-time": "1h""#,
        ..PLAIN
    };
    check(
        in_group(),
        &[],
        volcano_group(
            r#""minMember": 4, "queue": "q", "priorityClassName": "high",
               "minTaskMember": {"worker": 3, "master": 1},
               "networkTopology": {"mode": "soft", "highestTierName": "block"},
               "subGroupPolicy": [{"name": "s", "subGroupSize": 2,
                   "networkTopology": {"highestTierName": "rack"}}]"#,
        ),
        "VolcanoPodGroup ml/pg min=4 queue=q class=high preemptible=true min_runtime=10m \
         preferred=block segment=2@rack subgroup=worker:Some(3) \
         needed=master:1,worker:3 ignored=volcano.sh/sla-waiting-time",
    );
    check(
        in_group(),
        &[],
        volcano_group(
            r#""minMember": -3, "networkTopology": {"mode": "hard", "highestTierAllowed": -2}"#,
        ),
        "`PodGroup pg: minMember` is `-3`: write a number of pods between 1 and 100000\n\
         `PodGroup pg: networkTopology` is `highestTierAllowed -2`: write a tier from 0 on",
    );
}

#[test]
fn tiers_of_volcano_by_their_numbers_are_levels() {
    let of = |labels: &'static str| Sketch {
        labels,
        annotations: r#""scheduling.k8s.io/group-name": "pg""#,
        ..PLAIN
    };
    let group = |mode: &str, keys: &str| {
        volcano_group(&format!(
            r#""minMember": 4, "networkTopology": {{"mode": "{mode}", "highestTierAllowed": 2}},
               "subGroupPolicy": [{{"name": "s", "subGroupSize": 2, {keys}
                   "networkTopology": {{"mode": "hard", "highestTierAllowed": 1}}}}]"#
        ))
    };
    check(
        of(""),
        &[],
        group("hard", ""),
        "VolcanoPodGroup ml/pg min=4 required=volcano.sh/tier-2 segment=2@volcano.sh/tier-1",
    );
    check(
        of(r#""shard": "1""#),
        &[],
        group("soft", r#""matchLabelKeys": ["shard"],"#),
        "VolcanoPodGroup ml/pg min=4 preferred=volcano.sh/tier-2 subgroup=s:None \
         above=s/1@volcano.sh/tier-1",
    );
}

#[test]
fn kubelets_align_pods_as_well_as_they_can_and_nobody_promises_more() {
    let of = |annotations: &'static str| Sketch { annotations, ..PLAIN };
    check(
        of(r#""volcano.sh/numa-topology-policy": "best-effort""#),
        &[],
        None,
        "Pod ml/p#u0 members=1 min=1 ignored=volcano.sh/numa-topology-policy",
    );
    check(
        of(r#""volcano.sh/numa-topology-policy": "single-numa-node""#),
        &[],
        None,
        "`volcano.sh/numa-topology-policy` is `single-numa-node`: this is not supported; take the \
         mark away",
    );
}

fn in_part(labels: &'static str) -> Sketch {
    Sketch { labels, annotations: r#""pod-group-name": "pg""#, ..PLAIN }
}

/// Two parts on one spine, each in a rack, and a third by itself, all in one zone.
fn tree(root: &str, middle: &str) -> Option<PodGroup> {
    kai_group(&format!(
        r#"{root} "topologyConstraint": {{"topology": "t", "requiredTopologyLevel": "zone"}},
           "subGroups": [
             {{"name": "ab", {middle} "topologyConstraint": {{"topology": "t", "requiredTopologyLevel": "spine"}}}},
             {{"name": "a", "minMember": 1, "parent": "ab",
               "topologyConstraint": {{"topology": "t", "requiredTopologyLevel": "rack"}}}},
             {{"name": "b", "minMember": 2, "parent": "ab"}},
             {{"name": "c", "minMember": 3}}]"#
    ))
}

#[test]
fn the_pods_of_a_tree_of_subgroups_are_counted_in_its_leaves() {
    let a = || in_part(r#""kai.scheduler/subgroup-name": "a""#);
    let whole = "KaiPodGroup ml/pg min=6 within=t required=zone";
    let needed = "needed=a:1,b:2,c:3";
    for (root, middle) in
        [("", ""), (r#""minSubGroup": 2,"#, r#""minSubGroup": 2,"#), (r#""minMember": 0,"#, "")]
    {
        check(
            a(),
            &[],
            tree(root, middle),
            &format!("{whole} subgroup=a:Some(1) its_required=rack above=ab@spine {needed}"),
        );
    }
    check(
        in_part(r#""kai.scheduler/subgroup-name": "c""#),
        &[],
        tree("", ""),
        &format!("{whole} subgroup=c:Some(3) {needed}"),
    );
}

#[test]
fn a_subgroup_that_needs_no_pod_keeps_nobody_waiting() {
    let spec = r#""subGroups": [{"name": "a", "minMember": 2}, {"name": "more", "minMember": 0}]"#;
    check(
        in_part(r#""kai.scheduler/subgroup-name": "more""#),
        &[],
        kai_group(spec),
        "KaiPodGroup ml/pg min=2 subgroup=more:Some(1) needed=a:2",
    );
    check(in_part(""), &[], kai_group(r#""minMember": 0"#), "KaiPodGroup ml/pg min=1");
}

#[test]
fn the_parts_of_a_pod_group_say_nothing_of_a_gang_that_another_mark_makes() {
    check(
        in_part(
            r#""kai.scheduler/subgroup-name": "c", "berth.dev/gang": "g", "berth.dev/gang-size": "2""#,
        ),
        &[],
        kai_group(r#""subGroups": [{"name": "a", "minMember": 2}, {"name": "c", "minMember": 1}]"#),
        "Berth ml/g members=2 min=2 subgroup=c:Some(1)",
    );
}

#[test]
fn what_cannot_be_in_a_tree_of_subgroups_is_told() {
    const ALL: &str =
        "say the number of the subgroups there are, or nothing: all of them are needed";
    check(
        in_part(r#""kai.scheduler/subgroup-name": "ab""#),
        &[],
        tree(r#""minSubGroup": 1,"#, r#""minMember": 3, "minSubGroup": 1,"#),
        &format!(
            "`PodGroup pg: minSubGroup` is `1`: {ALL}\n\
             `PodGroup pg: subGroups ab: minMember` is `3`: say it of the subgroups below this one: \
             pods are in these\n\
             `PodGroup pg: subGroups ab: minSubGroup` is `1`: {ALL}\n\
             `kai.scheduler/subgroup-name` is `ab`: this one has subgroups of its own; name one of \
             these"
        ),
    );
    let spec = r#""subGroups": [{"name": "a", "minMember": 1, "parent": "lost"},
        {"name": "b", "minMember": 1, "parent": "c"}, {"name": "c", "parent": "b"}]"#;
    let what = "name a subgroup that there is, and none that is below this one";
    check(
        in_part(r#""kai.scheduler/subgroup-name": "a""#),
        &[],
        kai_group(spec),
        &format!(
            "`PodGroup pg: subGroups a: parent` is `lost`: {what}\n\
             `PodGroup pg: subGroups b: minMember` is `1`: say it of the subgroups below this one: \
             pods are in these\n\
             `PodGroup pg: subGroups b: parent` is `c`: {what}\n\
             `PodGroup pg: subGroups c: parent` is `b`: {what}"
        ),
    );
}

#[test]
fn a_policy_of_volcano_is_for_the_pods_it_selects() {
    let of = |labels: &'static str| Sketch {
        labels,
        annotations: r#""scheduling.k8s.io/group-name": "pg""#,
        ..PLAIN
    };
    let group = |more: &str| {
        volcano_group(&format!(
            r#""minMember": 8, "networkTopology": {{"highestTierName": "block"}},
               "subGroupPolicy": [
                 {{"name": "blocks", "subGroupSize": 2, "networkTopology": {{"highestTierName": "rack"}},
                   "labelSelector": {{"matchLabels": {{"role": "worker"}}}}{more}}},
                 {{"name": "other", "matchLabelKeys": ["shard", "half"],
                   "networkTopology": {{"mode": "soft", "highestTierName": "rack"}}}}]"#
        ))
    };
    let whole = "VolcanoPodGroup ml/pg min=8 required=block";
    check(
        of(r#""role": "worker""#),
        &[],
        group(""),
        &format!("{whole} subgroup=blocks:None its_segment=2@rack"),
    );
    // One that nothing selects is where the group is.
    check(of(r#""role": "master", "shard": "1""#), &[], group(""), whole);
    // Labels that tell subgroups apart: each of these is in one place.
    check(
        of(r#""role": "worker", "shard": "1""#),
        &[],
        group(r#", "matchLabelKeys": ["shard"]"#),
        &format!("{whole} subgroup=blocks:None above=blocks/1@rack"),
    );
    check(
        of(r#""role": "worker", "shard": "1", "half": "a""#),
        &[],
        group(r#", "matchLabelKeys": ["else"]"#),
        &format!("{whole} subgroup=other:None above=other/1/a@rack"),
    );
    check(
        of(r#""role": "worker""#),
        &[],
        volcano_group(
            r#""minMember": 8, "subGroupPolicy": [{"name": "s",
                "networkTopology": {"mode": "soft", "highestTierName": "rack"}}]"#,
        ),
        "VolcanoPodGroup ml/pg min=8 ignored=PodGroup pg: subGroupPolicy s",
    );
}

#[test]
fn slices_of_kueue_in_one_layer_are_read_and_in_several_refused() {
    let of = |annotations: &'static str| Sketch { annotations, ..PLAIN };
    const KEY: &str = "kueue.x-k8s.io/podset-slice-required-topology-constraints";
    for annotations in [
        r#""kueue.x-k8s.io/podset-slice-required-topology-constraints": "[{\"topology\": \"rack\", \"size\": 4}]""#,
        r#""kueue.x-k8s.io/podset-slice-required-topology-constraints": "[{\"topology\": \"rack\", \"size\": \"4\"}]""#,
    ] {
        check(of(annotations), &[], None, "Pod ml/p#u0 members=1 min=1 segment=4@rack");
    }
    let two = r#""kueue.x-k8s.io/podset-slice-required-topology-constraints": "[{\"topology\": \"block\", \"size\": 8}, {\"topology\": \"rack\", \"size\": 4}]""#;
    let layers = r#"[{"topology": "block", "size": 8}, {"topology": "rack", "size": 4}]"#;
    check(
        of(two),
        &[],
        None,
        &format!(
            "`{KEY}` is `{layers}`: there is one layer of slices here; keep the innermost, and say \
             with kueue.x-k8s.io/podset-required-topology where all of them have to be"
        ),
    );
    check(
        of(r#""kueue.x-k8s.io/podset-slice-required-topology-constraints": "rack=4""#),
        &[],
        None,
        &format!(
            r#"`{KEY}` is `rack=4`: write a list such as [{{"topology": "LEVEL", "size": 4}}]"#
        ),
    );
    check(
        of(r#""kueue.x-k8s.io/podset-slice-required-topology-constraints": "[]",
              "kueue.x-k8s.io/podset-slice-size": "4""#),
        &[],
        None,
        &format!(
            "`{KEY}` is `[]`: say this, or kueue.x-k8s.io/podset-slice-required-topology with \
             kueue.x-k8s.io/podset-slice-size"
        ),
    );
}

#[test]
fn a_slice_of_a_job_set_is_one_of_its_jobs_where_nothing_else_is_said() {
    let set = owner(
        r#"{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "s"},
            "spec": {"replicatedJobs": [{"name": "workers", "replicas": 2,
                "template": {"spec": {"parallelism": 4}}}]}}"#,
    );
    check(
        Sketch {
            labels: r#""jobset.sigs.k8s.io/jobset-name": "s", "jobset.sigs.k8s.io/replicatedjob-name": "workers""#,
            annotations: r#""kueue.x-k8s.io/podset-slice-required-topology": "rack""#,
            owner: OF_JOB,
            ..PLAIN
        },
        &[set],
        None,
        "JobSet ml/s members=8 min=8 subgroup=workers:None its_segment=4@rack",
    );
}
