//! What pods take of their nodes, whatever they ask for.

use super::support::{add_nodes, berth, cluster, node_of, pod, until, why};
use berth_testbed::kube::Cluster;

/// A pod of so much CPU and no GPU.
fn of_cpu(name: &str, cpu: u32, spec: &str) -> String {
    pod(name, 0, "", spec).replace("nvidia.com/gpu: 0", &format!("cpu: {cpu}"))
}

/// What a kubelet says of a container while its resources are changed in place.
fn runs_with(cluster: &Cluster, pod: &str, cpu: u32) {
    let status = format!(
        r#"{{"status": {{"containerStatuses": [{{
            "name": "main", "image": "none", "imageID": "", "ready": true, "restartCount": 0,
            "state": {{"running": {{}}}}, "allocatedResources": {{"cpu": "{cpu}"}},
            "resources": {{"requests": {{"cpu": "{cpu}"}}}}}}]}}}}"#
    );
    cluster.patch(&["pod", pod, "--subresource=status", "--type=merge", "-p", &status]);
}

fn resize(cluster: &Cluster, pod: &str, cpu: u32) {
    let spec = format!(
        r#"{{"spec": {{"containers": [{{"name": "main", "resources":
            {{"requests": {{"cpu": "{cpu}"}}, "limits": {{"cpu": "{cpu}"}}}}}}]}}}}"#
    );
    cluster.patch(&["pod", pod, "--subresource=resize", "-p", &spec]);
}

#[test]
fn a_pod_whose_marks_make_no_sense_counts_as_used_where_it_runs() {
    let cluster = cluster();
    add_nodes(&cluster, &["a"]);
    let odd = pod("odd", 8, "  annotations: {gpu-fraction: '1'}", "  nodeName: a");
    cluster.apply(&odd.replace("schedulerName: berth", "schedulerName: another"));
    let _berth = berth(&cluster);
    cluster.apply(&pod("first", 1, "", ""));
    until("the first one waits", || !why(&cluster, "first").is_empty());
    assert_eq!(node_of(&cluster, "first"), None);
    cluster.delete(&["pod", "odd", "--force", "--grace-period=0"]);
    until("it is bound when the other is gone", || node_of(&cluster, "first").is_some());
}

#[test]
fn a_pod_that_is_made_smaller_counts_as_large_until_it_is_and_one_of_ours_that_grows_as_larger() {
    let cluster = cluster();
    add_nodes(&cluster, &["a"]);
    let foreign = of_cpu("foreign", 60, "  nodeName: a");
    cluster.apply(&foreign.replace("schedulerName: berth", "schedulerName: another"));
    until("it runs", || cluster.get(&["pod", "foreign"])["status"]["phase"] == "Running");
    runs_with(&cluster, "foreign", 60);
    resize(&cluster, "foreign", 2);
    let _berth = berth(&cluster);
    cluster.apply(&of_cpu("first", 16, ""));
    until("the first one waits", || !why(&cluster, "first").is_empty());
    assert_eq!(node_of(&cluster, "first"), None);
    runs_with(&cluster, "foreign", 2);
    until("it is bound when there is room", || node_of(&cluster, "first").is_some());

    until("it runs", || cluster.get(&["pod", "first"])["status"]["phase"] == "Running");
    runs_with(&cluster, "first", 16);
    resize(&cluster, "first", 56);
    runs_with(&cluster, "first", 56);
    // Beside it half of the node is kept for the GPUs that are free.
    cluster.apply(&of_cpu("second", 12, ""));
    until("the second one waits", || !why(&cluster, "second").is_empty());
    assert_eq!(node_of(&cluster, "second"), None);
    resize(&cluster, "first", 16);
    runs_with(&cluster, "first", 16);
    until("it is bound when there is room", || node_of(&cluster, "second").is_some());
}
