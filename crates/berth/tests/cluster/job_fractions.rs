//! Parts of GPUs for Berth's own jobs. No device plugin runs here: what it would be asked for is read
//! from the pods, and what it would say is said by the program of the pods that hold GPUs.

use super::chart::install_reservations;
use super::gpus::{H100, RESERVATIONS, add_node, holders, say_which};
use super::jobs::{IMAGE, finish, name, pods, run, state, until_runs, variable};
use super::support::{berth_with, cluster, until};
use super::teams::set_up;
use berth_testbed::Server;
use berth_testbed::kube::Cluster;
use serde_json::{Value, json};

/// Runs a job that asks for such GPUs, and its number.
fn job(berth: &Server, gpus: &str) -> String {
    run(berth, &["-g", gpus, "--name", "part", "--", "sleep", "600"])
}

/// What the container of a pod asks of device plugins.
fn devices(pod: &Value) -> Value {
    let limits = pod["spec"]["containers"][0]["resources"]["limits"].as_object().cloned();
    let limits = limits.unwrap_or_default().into_iter();
    limits.filter(|(resource, _)| resource.starts_with("nvidia.com/")).collect()
}

/// The GPU that a pod was told of, in each of the ways by which something learns it.
fn told(pod: &Value) -> Vec<&str> {
    let env = pod["spec"]["containers"][0]["env"].as_array().expect("it has variables");
    let told = env.iter().filter(|one| {
        one["name"] == "NVIDIA_VISIBLE_DEVICES" || one["name"] == "CUDA_VISIBLE_DEVICES"
    });
    let told = told.map(|one| &one["value"]);
    let told = told.chain([&pod["metadata"]["annotations"]["berth.dev/gpus"]]);
    told.map(|gpu| gpu.as_str().unwrap_or_default()).collect()
}

fn uid(pod: &Value) -> Value {
    pod["metadata"]["uid"].clone()
}

/// The job runs in the books and as a pod, which is returned.
fn until_one_runs(cluster: &Cluster, berth: &Server, job: &str) -> Value {
    let pod = until_runs(cluster, job, 1).remove(0);
    until("it runs in the books", || state(berth, job) == "running");
    pod
}

/// The job says why it waits, and has no pod.
fn until_waits(cluster: &Cluster, berth: &Server, job: &str) {
    until("it says why it waits", || {
        let shown = berth.job(job);
        shown["reason"].as_str().is_some_and(|reason| !reason.is_empty())
    });
    assert_eq!(state(berth, job), "pending");
    assert!(pods(cluster, job).is_empty());
}

#[test]
fn jobs_share_a_gpu_through_restarts_and_give_it_back_at_the_end() {
    let cluster = cluster();
    add_node(&cluster, "a", H100, "nvidia.com/gpu: 1");
    let mut berth = berth_with(&cluster, IMAGE);
    let first = job(&berth, "0.5");
    until("nothing holds GPUs yet", || berth.job(&first).to_string().contains("could not be held"));
    install_reservations(&cluster);
    until("a pod holds the GPU", || holders(&cluster).len() == 1);
    let holder = holders(&cluster).remove(0);
    let held = || uid(&cluster.get(&["pod", &holder, "-n", RESERVATIONS]));
    let held_before = held();

    // Whoever leads next waits for the same GPU.
    berth.kill();
    berth.start_again();
    let second = job(&berth, "H100:40GB");
    assert!(pods(&cluster, &first).is_empty(), "its GPU is not known yet");
    say_which(&cluster, &holder, "GPU-1");
    let made = [&first, &second].map(|job| until_one_runs(&cluster, &berth, job));
    for pod in &made {
        assert_eq!(told(pod), ["GPU-1"; 3], "{pod}");
        assert_eq!(devices(pod), json!({}), "another pod holds it");
        assert_eq!(variable(pod, "BERTH_GPUS")["value"], "0");
    }
    until("it says so no longer", || !berth.job(&first).to_string().contains("could not be held"));
    let third = job(&berth, "0.5");
    until_waits(&cluster, &berth, &third);

    berth.kill();
    berth.start_again();
    until("the first runs in the books", || state(&berth, &first) == "running");
    until_waits(&cluster, &berth, &third);
    for (job, before) in [&first, &second].into_iter().zip(&made) {
        let now = pods(&cluster, job);
        assert_eq!(now.iter().map(uid).collect::<Vec<Value>>(), [uid(before)]);
    }
    assert_eq!(holders(&cluster), std::slice::from_ref(&holder));

    // One ends while nobody looks.
    berth.kill();
    finish(&cluster, name(&made[0]));
    until("it has ended", || pods(&cluster, &first)[0]["status"]["phase"] == "Succeeded");
    berth.start_again();
    until("it is done", || state(&berth, &first) == "done");
    let pod = until_one_runs(&cluster, &berth, &third);
    assert_eq!(told(&pod), ["GPU-1"; 3]);
    assert_eq!(held(), held_before, "the same pod has held it all the time");

    // With the last part the GPU is whole again, and not before.
    let whole = job(&berth, "1");
    until_waits(&cluster, &berth, &whole);
    finish(&cluster, name(&pod));
    berth.run_ok(&["stop", &second]);
    until("the whole GPU is given", || !pods(&cluster, &whole).is_empty());
    assert!(holders(&cluster).is_empty(), "nobody holds it any more");
    assert_eq!(devices(&until_one_runs(&cluster, &berth, &whole)), json!({"nvidia.com/gpu": "1"}));
}

#[test]
fn a_job_that_is_stopped_before_its_gpu_is_known_leaves_nothing_behind() {
    let cluster = cluster();
    install_reservations(&cluster);
    add_node(&cluster, "a", H100, "nvidia.com/gpu: 1");
    let berth = berth_with(&cluster, IMAGE);
    let job = job(&berth, "0.25");
    until("a pod holds the GPU", || holders(&cluster).len() == 1);
    berth.run_ok(&["stop", &job]);
    until("it has ended", || state(&berth, &job) == "cancelled");
    until("the GPU is given back", || holders(&cluster).is_empty());
    assert!(pods(&cluster, &job).is_empty());
}

#[test]
fn jobs_are_given_mig_instances_by_the_resource_that_their_node_has() {
    let cluster = cluster();
    let mixed = format!("{H100}, nvidia.com/gpu.count: '2', nvidia.com/mig.strategy: mixed");
    add_node(&cluster, "mixed", &mixed, "nvidia.com/gpu: 1, nvidia.com/mig-1g.10gb: 2");
    let berth = berth_with(&cluster, IMAGE);
    let two = until_one_runs(&cluster, &berth, &job(&berth, "H100/1g.10gb:2"));
    assert_eq!(devices(&two), json!({"nvidia.com/mig-1g.10gb": "2"}));
    let more = job(&berth, "H100/1g.10gb");
    until_waits(&cluster, &berth, &more);
    let whole = until_one_runs(&cluster, &berth, &job(&berth, "1"));
    assert_eq!(devices(&whole), json!({"nvidia.com/gpu": "1"}));
    let none = berth.berth(&["run", "-d", "-g", "H100/2g.20gb", "--", "true"]);
    let said = String::from_utf8_lossy(&none.stderr).into_owned();
    assert!(said.contains("(MIG 1g.10gb, whole GPUs)"), "{said}");

    // Where all instances are alike they are called GPUs.
    let single = "nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3-MIG-1g.10gb, \
                  nvidia.com/gpu.memory: '9856', nvidia.com/mig.strategy: single";
    add_node(&cluster, "single", single, "nvidia.com/gpu: 7");
    let pod = until_one_runs(&cluster, &berth, &more);
    assert_eq!(pod["spec"]["nodeName"], "single");
    assert_eq!(devices(&pod), json!({"nvidia.com/gpu": "1"}));
    // A limit counts them as what they are, and so does the quota of the namespace.
    set_up(&berth, &[("vision", "limit: {gpu: 1}")]);
    let small = ["--team", "vision", "-g", "H100/1g.10gb", "--", "true"];
    let jobs = [run(&berth, &small), run(&berth, &small), run(&berth, &small)];
    for job in &jobs {
        until("it runs", || state(&berth, job) == "running");
    }
}

#[test]
fn jobs_are_given_shares_as_often_as_there_are() {
    let cluster = cluster();
    let berth = berth_with(&cluster, IMAGE);
    let slices = format!(
        "{H100}, nvidia.com/gpu.replicas: '3', nvidia.com/gpu.sharing-strategy: time-slicing"
    );
    add_node(&cluster, "slices", &slices, "nvidia.com/gpu.shared: 3");
    let mps = "nvidia.com/gpu.product: NVIDIA-L4-SHARED, nvidia.com/gpu.memory: '23034', \
               nvidia.com/gpu.replicas: '13', nvidia.com/gpu.sharing-strategy: mps";
    add_node(&cluster, "mps", mps, "nvidia.com/gpu: 13");
    until("both nodes are known", || {
        let nodes = berth.get("/v1/nodes").to_string();
        nodes.contains("slices") && nodes.contains("mps")
    });
    for _ in 0..3 {
        let pod = until_one_runs(&cluster, &berth, &job(&berth, "H100/shared"));
        assert_eq!(pod["spec"]["nodeName"], "slices");
        assert_eq!(devices(&pod), json!({"nvidia.com/gpu.shared": "1"}));
    }
    until_waits(&cluster, &berth, &job(&berth, "H100/shared"));
    let pod = until_one_runs(&cluster, &berth, &job(&berth, "L4/shared"));
    assert_eq!(pod["spec"]["nodeName"], "mps");
    assert_eq!(devices(&pod), json!({"nvidia.com/gpu": "1"}));
    let half = berth.berth(&["run", "-d", "-g", "0.5", "--", "true"]);
    let said = String::from_utf8_lossy(&half.stderr).into_owned();
    assert!(said.contains("it needs whole GPUs, which no node hands out"), "{said}");
}
