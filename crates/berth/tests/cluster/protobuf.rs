//! Pods and nodes read in binary are those read in JSON, whatever they say.

use super::support::node;
use berth_kube::object::{Node, Pod, VolumeSource};
use berth_kube::{Api, Change, WatchUpdate, watch_objects, watch_objects_protobuf};
use berth_testbed::kube::{ADMIN, Cluster, Part};
use std::fmt::Debug;
use tokio::sync::mpsc;

const PODS: &str = "/api/v1/namespaces/default/pods";
const NODES: &str = "/api/v1/nodes";

/// Every field that is read of a pod, as far as the API server lets one say it.
const EVERYTHING: &str = "apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: low}
value: -7
preemptionPolicy: Never
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: kata}
handler: kata
overhead: {podFixed: {cpu: 250m, memory: 64Mi}}
---
apiVersion: v1
kind: Pod
metadata:
  name: everything
  labels: {app: trainer, empty: ''}
  annotations: {berth.dev/gang: g, long: 'a text that is longer than the room for short ones'}
  finalizers: [berth.dev/one, berth.dev/two]
  ownerReferences:
  - {apiVersion: v1, kind: ConfigMap, name: c, uid: '8'}
  - {apiVersion: batch/v1, kind: Job, name: j, uid: '9', controller: true}
spec:
  schedulerName: berth
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  activeDeadlineSeconds: 600
  priority: -7
  priorityClassName: low
  preemptionPolicy: Never
  runtimeClassName: kata
  overhead: {cpu: 250m, memory: 64Mi}
  hostNetwork: true
  dnsPolicy: None
  dnsConfig: {nameservers: [10.0.0.1]}
  hostAliases: [{ip: 127.0.0.1, hostnames: [a]}, {ip: 127.0.0.2, hostnames: [b]}]
  imagePullSecrets: [{name: a}, {name: b}]
  readinessGates: [{conditionType: a/b}]
  shareProcessNamespace: true
  hostname: here
  subdomain: there
  setHostnameAsFQDN: true
  automountServiceAccountToken: false
  enableServiceLinks: false
  os: {name: linux}
  securityContext: {runAsUser: 1}
  nodeSelector: {zone: a, disk: ssd}
  schedulingGates: [{name: berth.dev/wait}, {name: berth.dev/more}]
  resourceClaims:
  - {name: mine, resourceClaimName: mine}
  - {name: made, resourceClaimTemplateName: template}
  schedulingGroup: {podGroupName: g}
  resources: {requests: {cpu: '4'}, limits: {memory: 9Gi}}
  tolerations:
  - {operator: Exists}
  - {key: gpu, value: 'yes', effect: NoSchedule}
  - {key: gone, operator: Exists, effect: NoExecute, tolerationSeconds: 0}
  topologySpreadConstraints:
  - maxSkew: 2
    topologyKey: zone
    whenUnsatisfiable: DoNotSchedule
    minDomains: 3
    nodeAffinityPolicy: Ignore
    nodeTaintsPolicy: Honor
    matchLabelKeys: [app]
    labelSelector: {matchLabels: {empty: ''}}
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions: [{key: gpu, operator: In, values: [h100, h200]}]
          matchFields: [{key: metadata.name, operator: NotIn, values: [n9]}]
        - matchExpressions: [{key: disk, operator: Exists}]
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 7, preference: {matchExpressions: [{key: age, operator: Gt, values: ['3']}]}}
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: rack
        namespaces: [default, other]
        labelSelector: {matchExpressions: [{key: app, operator: In, values: [trainer]}]}
        mismatchLabelKeys: [empty]
      preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 3
        podAffinityTerm:
          topologyKey: rack
          labelSelector: {matchLabels: {empty: ''}}
          matchLabelKeys: [app]
          namespaceSelector: {}
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: kubernetes.io/hostname
        labelSelector: {matchLabels: {app: trainer}}
        namespaceSelector: {matchLabels: {team: vision}}
      preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 9
        podAffinityTerm: {topologyKey: zone, labelSelector: {matchLabels: {app: trainer}}}
  volumes:
  - {name: claim, persistentVolumeClaim: {claimName: imagenet, readOnly: true}}
  - {name: empty, emptyDir: {}}
  - {name: nothing}
  - {name: host, hostPath: {path: /data}}
  - {name: settings, configMap: {name: settings}}
  - {name: words, secret: {secretName: words}}
  - {name: self, downwardAPI: {items: []}}
  - {name: joined, projected: {sources: []}}
  - {name: nfs, nfs: {server: a, path: /b}}
  - {name: csi, csi: {driver: a.b}}
  - name: own
    ephemeral:
      volumeClaimTemplate:
        spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
  initContainers:
  - {name: first, image: none}
  - {name: beside, image: none, restartPolicy: Always, resources: {requests: {cpu: 1.5}}}
  containers:
  - name: main
    image: none
    env:
    - {name: A, value: b}
    - name: NVIDIA_VISIBLE_DEVICES
      valueFrom: {fieldRef: {fieldPath: \"metadata.annotations['berth.dev/gpus']\"}}
    ports:
    - {containerPort: 80, hostPort: 80, hostIP: 10.0.0.7, protocol: UDP}
    - {containerPort: 65535, hostPort: 65535}
    resources:
      requests: {cpu: 100m, memory: 1e9, nvidia.com/gpu: 2}
      limits: {cpu: '2', memory: 2000000001, nvidia.com/gpu: 2}
  - {name: second, image: none, env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]}
";

const STATUS: &str = r#"{"status": {"phase": "Failed", "reason": "Evicted", "message": "long",
    "allocatedResources": {"cpu": "3"}, "resources": {"requests": {"cpu": "2"}},
    "initContainerStatuses": [
        {"name": "first", "image": "none", "imageID": "", "ready": true, "restartCount": 0,
         "allocatedResources": {"memory": "1Gi"}}],
    "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "Preempted"}],
    "resourceClaimStatuses": [{"name": "made", "resourceClaimName": "made-1"}, {"name": "mine"}],
    "containerStatuses": [
        {"name": "main", "image": "none", "imageID": "", "ready": false, "restartCount": 2,
         "allocatedResources": {"cpu": "2"}, "resources": {"requests": {"cpu": "1500m"}},
         "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled",
                                  "message": "last words"}}},
        {"name": "second", "image": "none", "imageID": "", "ready": false, "restartCount": 0,
         "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]}}"#;

/// The next that is told by both, which is the same.
async fn both<T: Debug + PartialEq>(
    json: &mut mpsc::Receiver<WatchUpdate<T>>,
    binary: &mut mpsc::Receiver<WatchUpdate<T>>,
) -> (bool, T) {
    let (json, mut binary) = (changes(json).await, changes(binary).await);
    assert_eq!(json, binary);
    binary.pop().expect("a change")
}

async fn listed<T>(told: &mut mpsc::Receiver<WatchUpdate<T>>) -> Vec<T> {
    match told.recv().await.expect("it is followed for as long as somebody listens") {
        WatchUpdate::Snapshot(all) => all,
        WatchUpdate::Changes(_) => panic!("a list comes first"),
    }
}

/// What has changed, and whether it is still there.
async fn changes<T>(told: &mut mpsc::Receiver<WatchUpdate<T>>) -> Vec<(bool, T)> {
    let Some(WatchUpdate::Changes(changes)) = told.recv().await else {
        panic!("a change cannot be read, and everything is listed again")
    };
    let last = |change| match change {
        Change::Applied(object) => (true, object),
        Change::Deleted(object) => (false, object),
    };
    changes.into_iter().map(last).collect()
}

#[test]
fn pods_and_nodes_are_the_same_in_binary_and_in_json() {
    let cluster = Cluster::builder()
        .bare_admission()
        .flag(Part::ApiServer, "--feature-gates=GenericWorkload=true")
        .flag(Part::ApiServer, "--runtime-config=scheduling.k8s.io/v1alpha2=true")
        .start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let api = runtime.block_on(Api::connect(Some(&cluster.kubeconfig(ADMIN)), None)).unwrap();
    let channels = || (mpsc::channel::<WatchUpdate<Pod>>(9), mpsc::channel::<WatchUpdate<Node>>(9));
    let (((pods, mut json_pods), (nodes, mut json_nodes)), binary) = (channels(), channels());
    let ((binary_pods, mut pods_seen), (binary_nodes, mut nodes_seen)) = binary;
    runtime.spawn(watch_objects(api.clone(), PODS.to_owned(), String::new(), pods));
    runtime.spawn(watch_objects(api.clone(), NODES.to_owned(), String::new(), nodes));
    runtime.spawn(watch_objects_protobuf(api.clone(), PODS.to_owned(), String::new(), binary_pods));
    runtime.spawn(watch_objects_protobuf(
        api.clone(),
        NODES.to_owned(),
        String::new(),
        binary_nodes,
    ));
    runtime.block_on(async {
        assert!(listed(&mut json_pods).await.is_empty() && listed(&mut pods_seen).await.is_empty());
        assert_eq!(listed(&mut json_nodes).await, listed(&mut nodes_seen).await);
    });
    let mut pods = || runtime.block_on(both(&mut json_pods, &mut pods_seen));
    let mut nodes = || runtime.block_on(both(&mut json_nodes, &mut nodes_seen));

    cluster.apply(EVERYTHING);
    let (_, made) = pods();
    let spec = &made.spec;
    assert!(spec.unknown.is_empty(), "{:?}", spec.unknown);
    assert_eq!(spec.volumes.len(), 11);
    assert_eq!(spec.volumes[0].source, VolumeSource::Claim("imagenet".into()));
    assert!(spec.scheduling_group.is_some() && spec.resources.is_some());
    assert!(spec.containers[0].has_gpu_variable && !spec.containers[1].has_gpu_variable);
    cluster.patch(&["pod", "everything", "--subresource=status", "-p", STATUS]);
    let (_, ended) = pods();
    assert!(ended.status.is_over());
    assert_eq!(ended.status.container_statuses.len(), 2);
    cluster.delete(&["pod", "everything", "--wait=false"]);
    let (is_there, stopping) = pods();
    assert!(is_there && stopping.metadata.deletion_timestamp.is_some());

    let taints = "[{key: gpu, value: 'yes', effect: NoSchedule}, {key: spot, effect: NoExecute}]";
    cluster.apply(&node("n1", "{zone: a, nvidia.com/gpu.product: H100}", taints));
    assert_eq!(nodes().1.spec.taints.len(), 2);
    cluster.patch(&["node", "n1", "-p", r#"{"spec": {"unschedulable": true}}"#]);
    let (_, cordoned) = nodes();
    assert!(cordoned.spec.unschedulable);
    assert!(cordoned.status.allocatable.contains("nvidia.com/gpu"));

    // In lists they are what they became.
    let lists = runtime.block_on(async {
        let (tell_pods, mut pods) = mpsc::channel::<WatchUpdate<Pod>>(9);
        let (tell_nodes, mut nodes) = mpsc::channel::<WatchUpdate<Node>>(9);
        let following = [
            tokio::spawn(watch_objects_protobuf(
                api.clone(),
                PODS.to_owned(),
                String::new(),
                tell_pods,
            )),
            tokio::spawn(watch_objects_protobuf(
                api.clone(),
                NODES.to_owned(),
                String::new(),
                tell_nodes,
            )),
        ];
        let lists = (listed(&mut pods).await, listed(&mut nodes).await);
        following.iter().for_each(tokio::task::JoinHandle::abort);
        lists
    });
    assert_eq!(lists, (vec![stopping], vec![cordoned]));

    cluster.patch(&["pod", "everything", "-p", r#"{"metadata": {"finalizers": null}}"#]);
    let (is_there, gone) = pods();
    assert!(!is_there && &*gone.metadata.name == "everything");

    // All of it was in binary: two lists and a watch of each kind.
    let watched = api.metrics().watched();
    assert!(watched["pods"].in_binary >= 3 && watched["nodes"].in_binary >= 3, "{watched:?}");
}
