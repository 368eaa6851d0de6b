//! The account of pods that hold GPUs has what their program uses, and nothing else.

use super::setup::Scene;
use crate::gpus::{HOLDER, RESERVATIONS, container, fraction, holders, say_which};
use crate::support::until;
use std::collections::BTreeSet;

const ACCOUNT: &str = "system:serviceaccount:berth-reservations:berth-reservation";
const RIGHT: &str = "patch pods";

#[test]
fn a_pod_that_holds_a_gpu_has_the_rights_it_uses_and_nothing_else() {
    let scene = Scene::new(&[]);
    let _berth = scene.berth();
    scene.cluster.apply(&fraction("half", "0.5"));
    until("a pod holds the GPU", || !holders(&scene.cluster).is_empty());
    let holder = holders(&scene.cluster).remove(0);

    let granted = scene.granted_by(HOLDER);
    assert_eq!(granted, BTreeSet::from([RIGHT.to_owned()]));
    let before = scene.take_from(HOLDER, RIGHT);
    let may = || scene.cluster.may(ACCOUNT, "patch", "pods", Some(RESERVATIONS));
    until("it is taken", || !may());
    let output = container(&scene.cluster, &holder, "GPU-1").wait_with_output();
    let output = output.expect("it ends without its right");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("patch"), "{said}");
    assert_eq!(scene.asked_by(ACCOUNT, HOLDER).1, granted, "it was asked for");

    scene.put(&before);
    until("it is given back", may);
    say_which(&scene.cluster, &holder, "GPU-1");
    until("it was used", || scene.asked_by(ACCOUNT, HOLDER).0 == granted);
}
