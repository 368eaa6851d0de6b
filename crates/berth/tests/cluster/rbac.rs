//! The chart's roles are exactly what Berth needs: the API server writes down everything that is
//! asked of it, and by which rule it was allowed.
//!
//! For a new right: a line in deploy/helm/berth/files/rights.yaml, and a step that needs it.

mod jobs;
mod reservations;
mod setup;
mod steps;
mod storage;
mod writes;

use super::chart::ACCOUNT;
use super::support::until;
use berth_testbed::{Server, eventually};
use setup::{PEERS, Scene};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use steps::Step;
use tempfile::TempDir;

/// Everything that can be on.
const ALL: [&str; 4] = ["jobs", "kai", "kueue", "volcano"];

#[test]
fn the_chart_grants_what_berth_uses_and_nothing_else() {
    let scene = Scene::new(&ALL);
    let berth = scene.berth();
    show(&scene, &berth);
    figures_are_told(&berth);
}

#[test]
fn in_the_place_of_each_peer_alone_and_without_jobs_berth_has_what_it_uses_and_nothing_else() {
    for peer in PEERS {
        let scene = Scene::new(&[peer]);
        let berth = scene.berth();
        let granted = show(&scene, &berth);
        for right in ["create secrets", "create pods/exec", "create namespaces", "get pods"] {
            assert!(!granted.contains(right), "{peer}: {right}");
        }
        assert_eq!(granted.contains("patch pods"), peer != "kai", "{peer}");
        let refused = berth.berth(&["run", "-d", "--", "true"]);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(3) && said.contains("BRT0028"), "{said}");
    }
}

/// Has Berth do all that it does, and sees that what it was granted is what it used.
fn show(scene: &Scene, berth: &Server) -> BTreeSet<String> {
    for (at, step) in steps::all().enumerate().filter(|(_, step)| scene.is_on(step.when)) {
        let name = format!("step{at}");
        (step.act)(scene, berth, &name, step.data);
        until(&format!("step {at} for {:?}", step.rights), || {
            (step.is_done)(scene, berth, &name, step.data)
        });
        scene.clear();
    }
    let granted = scene.granted();
    // What is renewed every few seconds may come last.
    let used = eventually(|| scene.asked().0.is_superset(&granted));
    let (allowed, forbidden) = scene.asked();
    let unused: Vec<&String> = granted.difference(&allowed).collect();
    assert!(used, "granted and not used: {unused:?}; used: {allowed:?}");
    assert!(forbidden.is_empty(), "asked for and not granted: {forbidden:?}\n{}", berth.log());
    assert!(!berth.log().contains("may not"), "{}", berth.log());
    for right in granted.iter().filter(|right| !is_vital(right)) {
        assert!(step_of(scene, right).is_some(), "no step needs {right}: add one");
    }
    granted
}

/// What an operator reads of it.
fn figures_are_told(berth: &Server) {
    assert!(figure(berth, "berth_bindings_total{outcome=\"bound\"}") >= 3.0);
    assert!(figure(berth, "berth_binding_duration_seconds_sum") > 0.0);
    assert!(figure(berth, "berth_watch_starts_total{resource=\"pods\"}") >= 1.0);
    assert!(figure(berth, "berth_leader") > 0.0);
}

/// One of the figures that the server tells.
fn figure(berth: &Server, name: &str) -> f64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let page = runtime.expect("a runtime").block_on(berth.client().metrics());
    let page = page.expect("the server tells its figures");
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name}: {page}"))
}

#[test]
fn a_start_without_a_right_it_must_have_tells_of_the_others_that_are_missing_too() {
    let scene = Scene::new(&ALL);
    let (vital, other) = ("watch pods", "create services");
    for right in [vital, other] {
        scene.take(right);
        until("it is taken", || !scene.may(right));
    }
    let said = refusal(&scene);
    for right in [vital, other] {
        assert!(said.contains(&format!("{ACCOUNT} may not {right}")), "{right}: {said}");
    }
}

#[test]
#[ignore = "sixty rights are revoked one after another, which takes minutes; make test-long runs it"]
fn a_right_that_is_taken_away_is_told_and_what_needs_it_waits() {
    let scene = Scene::new(&ALL);
    let mut berth = scene.berth();
    for right in scene.granted() {
        let before = scene.take(&right);
        until("it is taken", || !scene.may(&right));
        let told = format!("{ACCOUNT} may not {right}");
        if is_vital(&right) {
            let said = refusal(&scene);
            assert!(said.contains(&told) && said.contains("Helm chart"), "{said}");
            scene.put(&before);
            until("it is given back", || scene.may(&right));
            continue;
        }
        let step =
            step_of(&scene, &right).unwrap_or_else(|| panic!("no step needs {right}: add one"));
        berth.kill();
        berth.start_again();
        until("the log says what is missing", || {
            berth.log().contains(&format!("{told}, which is for"))
        });
        let name = right.replace([' ', '/', '.'], "-").chars().take(40).collect::<String>();
        (step.act)(&scene, &berth, &name, step.data);
        until("it was asked for", || {
            // Some steps are pushed on by whoever looks whether they are done.
            let _ = (step.is_done)(&scene, &berth, &name, step.data);
            scene.asked().1.contains(&right)
        });
        assert!(!(step.is_done)(&scene, &berth, &name, step.data), "{right} was not needed");
        until("the log says so", || berth.log().contains(&format!("may not {right}, so what")));
        scene.put(&before);
        if step.is_made_up_for {
            until("it is done without a restart", || {
                (step.is_done)(&scene, &berth, &name, step.data)
            });
        }
        scene.clear();
    }
}

fn step_of(scene: &Scene, right: &str) -> Option<&'static Step> {
    steps::all().find(|step| scene.is_on(step.when) && step.rights.contains(&right))
}

/// Berth does not start without these.
fn is_vital(right: &str) -> bool {
    right.starts_with("list ") || right.starts_with("watch ") || right.contains(" leases.")
}

/// What a server says that does not start.
fn refusal(scene: &Scene) -> String {
    let home = TempDir::with_prefix("berth-home-").expect("a temporary folder");
    let mut child = Command::new(env!("CARGO_BIN_EXE_berth"))
        .args(["kube", "--listen", "127.0.0.1:0"])
        .args(scene.flags())
        .args([Path::new("--home"), home.path(), Path::new("--kubeconfig"), &scene.account])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("berth starts");
    let ended = eventually(|| matches!(child.try_wait(), Ok(Some(_))));
    if !ended {
        child.kill().expect("it runs");
    }
    let output = child.wait_with_output().expect("it ended");
    assert!(ended && !output.status.success(), "it started");
    String::from_utf8_lossy(&output.stderr).into_owned()
}
