//! Teams as namespaces.

use super::jobs::{run, state};
use super::support::{add_nodes, berth_with, cluster, until};
use berth_testbed::Server;

/// Makes teams, each with what is said of its queue.
pub fn set_up(berth: &Server, teams: &[(&str, &str)]) {
    let file = berth.home.path().join("teams.yaml");
    let team = |(name, queue): &(&str, &str)| {
        format!("kind: team\nname: {name}\n---\nkind: queue\nname: {name}\n{queue}\n---\n")
    };
    std::fs::write(&file, teams.iter().map(team).collect::<String>()).unwrap();
    berth.run_ok(&["apply", "-f", file.to_str().unwrap()]);
}

#[test]
fn every_team_has_a_namespace_that_holds_it_to_its_limit() {
    let cluster = cluster();
    add_nodes(&cluster, &["a"]);
    let berth = berth_with(&cluster, &["--image", "x", "--teams"]);
    set_up(&berth, &[("vision", "limit: {gpu: 2}")]);
    berth.run_ok(&["user", "add", "kim"]);
    berth.run_ok(&["member", "set", "vision", "kim", "researcher"]);
    let team = "berth-vision";
    until("its quota is its limit", || {
        let quota = cluster.find(&["resourcequota", "-n", team, "berth"]).unwrap_or_default();
        quota["status"]["hard"]["requests.nvidia.com/gpu"] == "2"
    });
    let may =
        |verb: &str, what: &str, namespace: &str| cluster.may("kim", verb, what, Some(namespace));
    until("its members may look at its pods", || may("get", "pods/log", team));
    assert!(!may("delete", "pods", team) && !may("get", "pods", "default"));

    let job = run(&berth, &["--team", "vision", "-g", "2", "--name", "one", "--", "true"]);
    until("it runs", || state(&berth, &job) == "running");
    let refused = |spec: &str, why: &str| {
        let pod = super::support::pod("other", 1, &format!("  namespace: {team}"), spec);
        let file = berth.home.path().join("pod.yaml");
        std::fs::write(&file, pod).unwrap();
        let made = cluster.kubectl(&["apply", "-f", file.to_str().unwrap()]);
        let said = String::from_utf8_lossy(&made.stderr).into_owned();
        assert!(said.contains(why), "{said}");
    };
    refused("", "exceeded quota");
    refused("  hostNetwork: true", "violates PodSecurity");
    // The next one needs the room of the last one, which the quota gives back a moment later.
    let next = run(&berth, &["--team", "vision", "-g", "2", "--name", "two", "--", "true"]);
    berth.run_ok(&["stop", &job]);
    until("the next one runs", || state(&berth, &next) == "running");
}

#[test]
fn a_namespace_of_somebody_else_is_taken_only_when_it_says_so_and_stops_no_other_team() {
    let cluster = cluster();
    add_nodes(&cluster, &["a"]);
    cluster.create_namespace("berth-vision");
    let berth = berth_with(&cluster, &["--image", "x", "--teams"]);
    set_up(&berth, &[("reservations", ""), ("vision", ""), ("zoology", "")]);
    let exists = |namespace: &str, what: &[&str]| {
        cluster.find(&[&["-n", namespace], what].concat()).is_some()
    };
    let policy = ["networkpolicy", "berth"];
    let members = ["rolebinding", "berth-members"];
    until("the last team has its namespace", || exists("berth-zoology", &members));
    cluster.delete(&["-n", "berth-zoology", policy[0], policy[1]]);
    cluster.delete(&["-n", "berth-zoology", "resourcequota", "berth"]);

    let fails = |team: &str, why: &str| {
        let job = run(&berth, &["--team", team, "-g", "1", "--", "true"]);
        until("it has failed", || state(&berth, &job) == "failed");
        let shown = berth.job(&job).to_string();
        assert!(shown.contains(why), "{shown}");
    };
    fails("vision", "kubectl annotate namespace berth-vision berth.dev/team=vision");
    fails("reservations", "the namespace berth-reservations is no team's");
    assert!(!exists("berth-vision", &policy), "it is as it was");
    assert!(!exists("berth-reservations", &policy), "it is not even made");

    cluster.annotate(&["namespace", "berth-vision", "berth.dev/team=vision"]);
    let job = run(&berth, &["--team", "vision", "-g", "1", "--", "true"]);
    until("it runs", || state(&berth, &job) == "running");
    let namespace = cluster.get(&["namespace", "berth-vision"]);
    assert_eq!(namespace["metadata"]["labels"]["berth.dev/team"], "vision");
    until("what was deleted is put back", || {
        exists("berth-zoology", &policy) && exists("berth-zoology", &["resourcequota", "berth"])
    });
}

#[test]
fn volumes_are_claims_that_berth_neither_lists_nor_makes_nor_deletes() {
    let cluster = cluster();
    let berth = berth_with(&cluster, &["--image", "x"]);
    berth.run_ok(&["team", "add", "vision"]);
    for args in [
        &["volume", "list"][..],
        &["volume", "create", "data", "--team", "vision"],
        &["volume", "delete", "data", "--team", "vision", "-y"],
    ] {
        let refused = berth.berth(args);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(3) && said.contains("BRT0028"), "{args:?}: {said}");
        assert!(said.contains("kubectl get pvc"), "{said}");
    }
    berth.run_ok(&["team", "rm", "vision"]);
}
