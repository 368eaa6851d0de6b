use super::*;

#[test]
fn sets_of_jobs_start_together_unless_they_follow_one_another() {
    let in_set = || Sketch {
        labels: r#""jobset.sigs.k8s.io/jobset-name": "s", "jobset.sigs.k8s.io/replicatedjob-name": "workers""#,
        owner: OF_JOB,
        ..PLAIN
    };
    let set = |more: &str| {
        owner(&format!(
            r#"{{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {{"name": "s"}},
                "spec": {{{more} "replicatedJobs": [
                    {{"name": "driver", "template": {{"spec": {{}}}}}},
                    {{"name": "workers", "replicas": 2, "template": {{"spec": {{"parallelism": 4}}}}}}]}}}}"#
        ))
    };
    check(in_set(), &[], None, "JobSet ml/s subgroup=workers:None");
    check(in_set(), &[set("")], None, "JobSet ml/s members=9 min=9 subgroup=workers:None");
    check(
        in_set(),
        &[set(r#""startupPolicy": {"startupPolicyOrder": "InOrder"},"#)],
        None,
        "JobSet ml/s/workers members=8 min=8 subgroup=workers:None",
    );
}

#[test]
fn each_group_of_a_leader_worker_set_is_a_gang() {
    let group = || Sketch {
        labels: r#""leaderworkerset.sh/name": "llm", "leaderworkerset.sh/group-index": "1",
            "leaderworkerset.sh/group-key": "ab12""#,
        annotations: r#""leaderworkerset.sh/size": "4""#,
        ..PLAIN
    };
    check(group(), &[], None, "LeaderWorkerSet ml/llm-1#ab12 members=4 min=4");
    let leader_first = owner(
        r#"{"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
            "spec": {"startupPolicy": "LeaderReady"}}"#,
    );
    check(group(), &[leader_first], None, "LeaderWorkerSet ml/llm-1#ab12 members=4 min=1");
}

#[test]
fn kubeflow_and_ray_tell_the_size_of_their_gangs() {
    let worker = || Sketch {
        labels: r#""training.kubeflow.org/job-name": "bert", "training.kubeflow.org/replica-type": "worker""#,
        ..PLAIN
    };
    let torch = |more: &str| {
        owner(&format!(
            r#"{{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "spec": {{{more}
                "pytorchReplicaSpecs": {{"Master": {{"replicas": 1}}, "Worker": {{"replicas": 3}}}}}}}}"#
        ))
    };
    check(worker(), &[], None, "Kubeflow ml/bert subgroup=worker:None");
    check(worker(), &[torch("")], None, "Kubeflow ml/bert members=4 min=4 subgroup=worker:None");
    check(
        worker(),
        &[torch(r#""elasticPolicy": {"minReplicas": 1},"#)],
        None,
        "Kubeflow ml/bert members=4 min=2 subgroup=worker:None",
    );
    check(
        worker(),
        &[torch(
            r#""runPolicy": {"schedulingPolicy": {"minAvailable": 3, "queue": "q", "priorityClass": "high"}},"#,
        )],
        None,
        "Kubeflow ml/bert members=4 min=3 queue=q class=high subgroup=worker:None",
    );
    let cluster = owner(
        r#"{"apiVersion": "ray.io/v1", "kind": "RayCluster", "spec": {"enableInTreeAutoscaling": true,
            "workerGroupSpecs": [{"replicas": 4, "minReplicas": 1, "numOfHosts": 2}]}}"#,
    );
    check(
        Sketch { labels: r#""ray.io/cluster": "r", "ray.io/group": "gpu""#, ..PLAIN },
        &[cluster],
        None,
        "Ray ml/r members=9 min=3 subgroup=gpu:None",
    );
}

#[test]
fn a_suspended_job_is_read_from_its_template() {
    let job = owner(
        r#"{"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "train", "namespace": "ml", "uid": "u1",
                         "labels": {"kueue.x-k8s.io/queue-name": "q"}},
            "spec": {"parallelism": 2, "suspend": true, "template": {
                "metadata": {"labels": {"app": "x"}},
                "spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": 1}}}]}}}}"#,
    );
    let made = templates(&job);
    let [(pod, count)] = &made[..] else { panic!("{made:?}") };
    assert_eq!((*count, pod.metadata.label("app")), (2, Some("x")));
    let owners = [&job];
    let mark = read(pod, PodContext { owners: &owners, group: None }).unwrap();
    assert_eq!(line(&mark), "Job ml/train#u1 members=2 min=2 queue=q");
}

#[test]
fn templates_of_sets_find_the_same_gang_as_their_pods_will() {
    let torch = owner(
        r#"{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "bert", "namespace": "ml"},
            "spec": {"pytorchReplicaSpecs": {"Master": {"template": {}}, "Worker": {"replicas": 3, "template": {}}}}}"#,
    );
    let marks = |owner: &Owner| -> Vec<String> {
        let context = PodContext { owners: &[owner], group: None };
        let made = templates(owner);
        let lines = made.iter().map(|(pod, count)| (count, line(&read(pod, context).unwrap())));
        lines.map(|(count, line)| format!("{count}× {line}")).collect()
    };
    assert_eq!(
        marks(&torch),
        [
            "1× Kubeflow ml/bert members=4 min=4 subgroup=master:None",
            "3× Kubeflow ml/bert members=4 min=4 subgroup=worker:None"
        ]
    );
    let ray = |autoscaling: bool| {
        owner(&format!(
            r#"{{"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {{"name": "r", "namespace": "ml"}},
                "spec": {{"enableInTreeAutoscaling": {autoscaling}, "headGroupSpec": {{"template": {{}}}},
                "workerGroupSpecs": [{{"groupName": "gpu", "replicas": 2, "numOfHosts": 2, "template": {{}}}}]}}}}"#
        ))
    };
    assert_eq!(
        marks(&ray(false)),
        [
            "1× Ray ml/r members=5 min=5 subgroup=headgroup:None",
            "4× Ray ml/r members=5 min=5 subgroup=gpu:None"
        ]
    );
    assert_eq!(marks(&ray(true)), [""; 0], "its operator adds containers to its pods");
}

#[test]
fn in_kueue_each_role_has_a_place_of_its_own_unless_they_are_one_group() {
    let role = |annotations: &'static str| Sketch {
        labels: r#""ray.io/cluster": "r", "ray.io/group": "gpu""#,
        annotations,
        ..PLAIN
    };
    check(
        role(r#""kueue.x-k8s.io/podset-required-topology": "rack""#),
        &[],
        None,
        "Ray ml/r subgroup=gpu:None its_required=rack",
    );
    check(
        role(
            r#""kueue.x-k8s.io/podset-required-topology": "rack",
               "kueue.x-k8s.io/podset-group-name": "together""#,
        ),
        &[],
        None,
        "Ray ml/r required=rack subgroup=gpu:None",
    );
}

#[test]
fn a_launcher_that_is_made_when_the_workers_are_ready_is_none_they_wait_for() {
    let of = |labels: &'static str| Sketch { labels, ..PLAIN };
    let worker =
        r#""training.kubeflow.org/job-name": "pi", "training.kubeflow.org/job-role": "worker""#;
    let launcher =
        r#""training.kubeflow.org/job-name": "pi", "training.kubeflow.org/job-role": "launcher""#;
    let mpi = |more: &str| {
        owner(&format!(
            r#"{{"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "spec": {{{more}
                "mpiReplicaSpecs": {{"Launcher": {{}}, "Worker": {{"replicas": 3}}}}}}}}"#
        ))
    };
    let together = "Kubeflow ml/pi members=4 min=4 subgroup=launcher:None";
    check(of(launcher), &[mpi("")], None, together);
    check(of(launcher), &[mpi(r#""launcherCreationPolicy": "AtStartup","#)], None, together);
    // That the launcher works as well changes nothing: it is not there before the workers run. Nor
    // does a minimum that counts it in.
    for more in [
        "",
        r#""runLauncherAsWorker": true,"#,
        r#""runPolicy": {"schedulingPolicy": {"minAvailable": 4}},"#,
    ] {
        let last = || [mpi(&format!(r#"{more} "launcherCreationPolicy": "WaitForWorkersReady","#))];
        check(of(worker), &last(), None, "Kubeflow ml/pi members=3 min=3 subgroup=worker:None");
        check(
            of(launcher),
            &last(),
            None,
            "Kubeflow ml/pi/launcher members=1 min=1 subgroup=launcher:None",
        );
    }
}

#[test]
fn a_suspended_mpi_job_with_a_late_launcher_is_read_as_its_pods_will_be() {
    let mpi = owner(
        r#"{"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "pi", "namespace": "ml"},
            "spec": {"launcherCreationPolicy": "WaitForWorkersReady",
                "mpiReplicaSpecs": {"Launcher": {"template": {}}, "Worker": {"replicas": 2, "template": {}}}}}"#,
    );
    let owners = [&mpi];
    let read = |pod: &Pod| line(&read(pod, PodContext { owners: &owners, group: None }).unwrap());
    let marks: Vec<String> = templates(&mpi).iter().map(|(pod, _)| read(pod)).collect();
    assert_eq!(
        marks,
        [
            "Kubeflow ml/pi/launcher members=1 min=1 subgroup=launcher:None",
            "Kubeflow ml/pi members=2 min=2 subgroup=worker:None"
        ]
    );
}

#[test]
fn a_set_that_a_train_job_makes_is_begun_job_by_job() {
    let of = |job: &'static str| Sketch { labels: job, owner: OF_JOB, ..PLAIN };
    let set = owner(
        r#"{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "tune"},
            "spec": {"replicatedJobs": [
                {"name": "dataset-initializer", "template": {"spec": {}}},
                {"name": "node", "dependsOn": [{"name": "dataset-initializer", "status": "Complete"}],
                 "template": {"spec": {"parallelism": 4, "completions": 4}}}]}}"#,
    );
    let train = owner(
        r#"{"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
            "metadata": {"name": "tune", "labels": {"kai.scheduler/queue": "q"}}, "spec": {"trainer": {"numNodes": 4}}}"#,
    );
    let owners = [job("", "", r#""parallelism": 4"#), set, train];
    check(
        of(
            r#""jobset.sigs.k8s.io/jobset-name": "tune", "jobset.sigs.k8s.io/replicatedjob-name": "dataset-initializer""#,
        ),
        &owners,
        None,
        "JobSet ml/tune/dataset-initializer members=1 min=1 queue=q subgroup=dataset-initializer:None",
    );
    check(
        of(
            r#""jobset.sigs.k8s.io/jobset-name": "tune", "jobset.sigs.k8s.io/replicatedjob-name": "node""#,
        ),
        &owners,
        None,
        "JobSet ml/tune/node members=4 min=4 queue=q subgroup=node:None",
    );
}

#[test]
fn pods_that_something_keeps_running_are_each_by_themselves_unless_a_mark_says_otherwise() {
    let with = |policy: &str, kind: &str, name: &str, uid: &str, marks: &str| {
        owner(&format!(
            r#"{{"apiVersion": "apps/v1", "kind": "{kind}", "metadata": {{"name": "{name}", "uid": "{uid}",
                "annotations": {{{marks}}}, "labels": {{"kai.scheduler/queue": "q"}}}}, "spec": {{"replicas": 3, "podManagementPolicy": "{policy}"}}}}"#
        ))
    };
    let by =
        |kind: &str, name: &str, uid: &str, marks: &str| with("Parallel", kind, name, uid, marks);
    let of_set = r#"{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "u3", "controller": true}"#;
    let of_replicas = r#"{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7d9f", "uid": "u2", "controller": true}"#;
    let least = r#""scheduling.volcano.sh/group-min-member": "2""#;
    let alone = "Pod ml/p#u0 members=1 min=1 queue=q";
    let in_set = || Sketch { owner: of_set, ..PLAIN };
    check(in_set(), &[by("StatefulSet", "db", "u3", "")], None, alone);
    check(
        in_set(),
        &[by("StatefulSet", "db", "u3", least)],
        None,
        "Owner ml/db#u3 members=3 min=2 queue=q",
    );
    // One that makes a pod when the one before it runs cannot have a gang.
    let slow = |marks: &str| [with("OrderedReady", "StatefulSet", "db", "u3", marks)];
    check(in_set(), &slow(""), None, alone);
    check(
        in_set(),
        &slow(least),
        None,
        "`StatefulSet: podManagementPolicy` is `OrderedReady`: its pods cannot begin together, as \
         each is made when the one before it is ready; write Parallel",
    );
    let replicas = || {
        owner(
            r#"{"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web-7d9f", "uid": "u2"}, "spec": {"replicas": 3}}"#,
        )
    };
    let in_replicas = || Sketch { owner: of_replicas, ..PLAIN };
    check(in_replicas(), &[replicas(), by("Deployment", "web", "u1", "")], None, alone);
    check(
        in_replicas(),
        &[replicas(), by("Deployment", "web", "u1", least)],
        None,
        "Owner ml/web-7d9f#u2 members=3 min=2 queue=q",
    );
}
