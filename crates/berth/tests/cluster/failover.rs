//! What runs already when a server starts, and what becomes of pods that are not wanted any more.

use super::support::{add_nodes, berth, cluster, gang, node_of, nodes_of, pod, until};
use berth_testbed::Server;
use berth_testbed::kube::ADMIN;
use serde_json::Value;
use std::path::Path;

fn uids(cluster: &berth_testbed::kube::Cluster) -> Vec<Value> {
    let pods = cluster.get(&["pods"]);
    let pods = pods["items"].as_array().cloned().unwrap_or_default();
    pods.iter().map(|pod| pod["metadata"]["uid"].clone()).collect()
}

#[test]
fn a_server_without_its_database_takes_over_what_runs_as_it_is() {
    let cluster = cluster();
    add_nodes(&cluster, &["a", "b"]);
    let program = Path::new(env!("CARGO_BIN_EXE_berth"));
    let kubeconfig = cluster.kubeconfig(ADMIN);
    let mut first = Server::start_on(program, &kubeconfig, &["--lease-duration", "1s"]);
    let runs = "  annotations: {testbed.berth.dev/runs: 1h}";
    cluster.apply(&gang("trains", 2, 6));
    cluster.apply(&pod("serves", 2, runs, ""));
    until("the gang is bound", || nodes_of(&cluster, "trains", 2).iter().all(Option::is_some));
    until("the other is bound", || node_of(&cluster, "serves").is_some());
    let (before, places) = (uids(&cluster), nodes_of(&cluster, "trains", 2));
    first.kill();

    // Another folder, and an empty database in it.
    let second = Server::start_on(program, &kubeconfig, &["--lease-duration", "1s"]);
    until("it leads", || second.is_ready());
    until("both run in the books", || {
        let jobs = second.jobs();
        jobs.len() == 2 && jobs.iter().all(|job| job["state"] == "running")
    });
    cluster.apply(&pod("more", 4, "", ""));
    cluster.apply(&pod("fits", 2, "", ""));
    until("what is left is given", || node_of(&cluster, "fits").is_some());
    assert_eq!(node_of(&cluster, "more"), None, "two and two are left, on two nodes");
    assert!(uids(&cluster).iter().filter(|uid| before.contains(uid)).count() == before.len());
    assert_eq!(nodes_of(&cluster, "trains", 2), places);
}

#[test]
fn a_job_that_is_stopped_before_it_ran_takes_its_pods_with_it() {
    let cluster = cluster();
    add_nodes(&cluster, &["a"]);
    let mut berth = berth(&cluster);
    cluster.apply(&gang("wide", 3, 8));
    until("it waits in the books", || berth.jobs().len() == 1);
    berth.run_ok(&["stop", "wide"]);
    until("its pods are gone", || uids(&cluster).is_empty());
    berth.kill();
    berth.start_again();
    assert_eq!(berth.jobs().len(), 0);
}

#[test]
fn a_replica_that_stands_by_leads_when_the_other_one_stops() {
    let cluster = cluster();
    add_nodes(&cluster, &["a"]);
    let postgres = berth_testbed::Postgres::start();
    let database = postgres.database();
    let program = Path::new(env!("CARGO_BIN_EXE_berth"));
    let args = ["--database", database.as_str(), "--lease-duration", "2s"];
    let mut first = Server::start_on(program, &cluster.kubeconfig(ADMIN), &args);
    let second = Server::start_on(program, &cluster.kubeconfig(ADMIN), &args);
    assert!(first.is_ready() && !second.is_ready());
    cluster.apply(&pod("before", 1, "", ""));
    until("the first binds", || node_of(&cluster, "before").is_some());
    let lease = cluster.get(&["lease", "berth"]);
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap().to_owned();
    first.kill();
    until("the second leads", || second.is_ready());
    cluster.apply(&pod("after", 1, "", ""));
    until("the second binds", || node_of(&cluster, "after").is_some());
    let lease = cluster.get(&["lease", "berth"]);
    assert_ne!(lease["spec"]["holderIdentity"].as_str(), Some(holder.as_str()));
    // What the first one decided is in the books of the second.
    let jobs = second.all_jobs();
    assert_eq!(jobs.len(), 2, "{jobs:?}");
    first.start_again();
    assert!(second.is_ready() && !first.is_ready());
}
