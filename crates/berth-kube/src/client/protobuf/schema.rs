//! The numbers of the fields we read, as `generated.proto` of Kubernetes has them. A number is never
//! given to another field.

use super::{Cardinality, Field, FieldType, MessageSchema, ObjectSchema};

/// Of what is wrapped around every object, the object itself.
pub const WRAPPED: u32 = 2;
/// Of an event of a watch.
pub const EVENT_KIND: u32 = 1;
pub const EVENT_OBJECT: u32 = 2;
pub const RAW: u32 = 1;
/// Of an entry of a map.
pub const ENTRY_KEY: u32 = 1;
pub const ENTRY_VALUE: u32 = 2;
/// Of a timestamp, since 1970.
pub const SECONDS: u32 = 1;
/// Of a quantity, its text.
pub const QUANTITY: u32 = 1;

pub static PODS: ObjectSchema = ObjectSchema { one: &POD, list: &POD_LIST };
/// Of the same messages as pods, with less of each.
pub static POD_ADDRESSES: ObjectSchema =
    ObjectSchema { one: &POD_ADDRESS, list: &POD_ADDRESS_LIST };
pub static NODES: ObjectSchema = ObjectSchema { one: &NODE, list: &NODE_LIST };

/// What an answer that is no success says.
pub static STATUS: MessageSchema = some(&[
    text(3, "message"),
    text(4, "reason"),
    object(5, "details", &some(&[number(5, "retryAfterSeconds")])),
    number(6, "code"),
]);

/// What the kubelet says of the devices of its pods, as `podresources/v1` has it.
pub static POD_RESOURCES: MessageSchema = some(&[list(
    1,
    "pod_resources",
    &some(&[text(1, "name"), text(2, "namespace"), list(3, "containers", &CONTAINER_DEVICES)]),
)]);

static CONTAINER_DEVICES: MessageSchema = some(&[
    list(2, "devices", &some(&[text(1, "resource_name"), texts(2, "device_ids")])),
    list(5, "dynamic_resources", &some(&[list(4, "claim_resources", &CLAIMED)])),
]);

static CLAIMED: MessageSchema = some(&[text(2, "driver_name"), text(4, "device_name")]);

static POD_LIST: MessageSchema = some(&[object(1, "metadata", &LIST_META), list(2, "items", &POD)]);
static NODE_LIST: MessageSchema =
    some(&[object(1, "metadata", &LIST_META), list(2, "items", &NODE)]);
static LIST_META: MessageSchema = some(&[text(2, "resourceVersion"), text(3, "continue")]);

static POD: MessageSchema = some(&[
    object(1, "metadata", &META),
    object(2, "spec", &POD_SPEC),
    object(3, "status", &POD_STATUS),
]);

static POD_ADDRESS_LIST: MessageSchema =
    some(&[object(1, "metadata", &LIST_META), list(2, "items", &POD_ADDRESS)]);

static POD_ADDRESS: MessageSchema = some(&[
    object(1, "metadata", &META),
    object(2, "spec", &some(&[list(2, "containers", &LISTENING), text(10, "nodeName")])),
    object(3, "status", &some(&[text(1, "phase"), text(6, "podIP")])),
]);

static LISTENING: MessageSchema =
    some(&[list(6, "ports", &some(&[text(1, "name"), number(3, "containerPort")]))]);

static NODE: MessageSchema = some(&[
    object(1, "metadata", &META),
    object(2, "spec", &NODE_SPEC),
    object(3, "status", &NODE_STATUS),
]);

static META: MessageSchema = some(&[
    text(1, "name"),
    text(3, "namespace"),
    text(5, "uid"),
    text(6, "resourceVersion"),
    time(8, "creationTimestamp"),
    time(9, "deletionTimestamp"),
    number(10, "deletionGracePeriodSeconds"),
    texts_by_key(11, "labels"),
    texts_by_key(12, "annotations"),
    list(13, "ownerReferences", &OWNER),
    texts(14, "finalizers"),
]);

static OWNER: MessageSchema = some(&[
    text(1, "kind"),
    text(3, "name"),
    text(4, "uid"),
    text(5, "apiVersion"),
    flag(6, "controller"),
]);

/// All of them, up to Kubernetes 1.37: whatever else a spec says may bear on scheduling.
static POD_SPEC: MessageSchema = all(&[
    list(1, "volumes", &VOLUME),
    list(2, "containers", &CONTAINER),
    text(3, "restartPolicy"),
    number(4, "terminationGracePeriodSeconds"),
    number(5, "activeDeadlineSeconds"),
    unread(6, "dnsPolicy"),
    texts_by_key(7, "nodeSelector"),
    unread(8, "serviceAccountName"),
    unread(9, "serviceAccount"),
    text(10, "nodeName"),
    unread(11, "hostNetwork"),
    unread(12, "hostPID"),
    unread(13, "hostIPC"),
    unread(14, "securityContext"),
    unread(15, "imagePullSecrets"),
    unread(16, "hostname"),
    unread(17, "subdomain"),
    object(18, "affinity", &AFFINITY),
    text(19, "schedulerName"),
    list(20, "initContainers", &CONTAINER),
    unread(21, "automountServiceAccountToken"),
    list(22, "tolerations", &TOLERATION),
    unread(23, "hostAliases"),
    text(24, "priorityClassName"),
    number(25, "priority"),
    unread(26, "dnsConfig"),
    unread(27, "shareProcessNamespace"),
    unread(28, "readinessGates"),
    unread(29, "runtimeClassName"),
    unread(30, "enableServiceLinks"),
    text(31, "preemptionPolicy"),
    quantities(32, "overhead"),
    list(33, "topologySpreadConstraints", &SPREAD),
    unread(34, "ephemeralContainers"),
    unread(35, "setHostnameAsFQDN"),
    unread(36, "os"),
    unread(37, "hostUsers"),
    list(38, "schedulingGates", &some(&[text(1, "name")])),
    list(39, "resourceClaims", &RESOURCE_CLAIM),
    object(40, "resources", &RESOURCES),
    unread(41, "hostnameOverride"),
    // Only in 1.35.
    object(42, "workloadRef", &WORKLOAD_REF),
    object(43, "schedulingGroup", &some(&[text(1, "podGroupName")])),
    unread(44, "evictionResponders"),
]);

static RESOURCE_CLAIM: MessageSchema =
    some(&[text(1, "name"), text(3, "resourceClaimName"), text(4, "resourceClaimTemplateName")]);

static WORKLOAD_REF: MessageSchema =
    some(&[text(1, "name"), text(2, "podGroup"), text(3, "podGroupReplicaKey")]);

static CONTAINER: MessageSchema = some(&[
    text(1, "name"),
    list(6, "ports", &PORT),
    list(7, "env", &ENV),
    object(8, "resources", &RESOURCES),
    text(24, "restartPolicy"),
]);

static PORT: MessageSchema = some(&[
    number(2, "hostPort"),
    number(3, "containerPort"),
    text(4, "protocol"),
    text(5, "hostIP"),
]);

static ENV: MessageSchema = some(&[text(1, "name"), object(3, "valueFrom", &ENV_SOURCE)]);
static ENV_SOURCE: MessageSchema = some(&[object(1, "fieldRef", &some(&[text(2, "fieldPath")]))]);

static RESOURCES: MessageSchema = some(&[quantities(1, "limits"), quantities(2, "requests")]);

static VOLUME: MessageSchema = some(&[text(1, "name"), inline(2, &VOLUME_SOURCE)]);

/// All of them, up to Kubernetes 1.37: the name of the field is the kind of the volume.
static VOLUME_SOURCE: MessageSchema = all(&[
    unread(1, "hostPath"),
    unread(2, "emptyDir"),
    object(3, "gcePersistentDisk", &some(&[text(1, "pdName"), flag(4, "readOnly")])),
    object(4, "awsElasticBlockStore", &some(&[text(1, "volumeID")])),
    unread(5, "gitRepo"),
    unread(6, "secret"),
    unread(7, "nfs"),
    object(8, "iscsi", &some(&[text(2, "iqn"), flag(6, "readOnly")])),
    unread(9, "glusterfs"),
    object(10, "persistentVolumeClaim", &some(&[text(1, "claimName")])),
    object(11, "rbd", &RBD),
    unread(12, "flexVolume"),
    unread(13, "cinder"),
    unread(14, "cephfs"),
    unread(15, "flocker"),
    unread(16, "downwardAPI"),
    unread(17, "fc"),
    unread(18, "azureFile"),
    unread(19, "configMap"),
    unread(20, "vsphereVolume"),
    unread(21, "quobyte"),
    unread(22, "azureDisk"),
    unread(23, "photonPersistentDisk"),
    unread(24, "portworxVolume"),
    unread(25, "scaleIO"),
    unread(26, "projected"),
    unread(27, "storageos"),
    unread(28, "csi"),
    unread(29, "ephemeral"),
    unread(30, "image"),
]);

static RBD: MessageSchema =
    some(&[texts(1, "monitors"), text(2, "image"), text(4, "pool"), flag(8, "readOnly")]);

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

static AFFINITY: MessageSchema = some(&[
    object(1, "nodeAffinity", &NODE_AFFINITY),
    object(2, "podAffinity", &POD_AFFINITY),
    object(3, "podAntiAffinity", &POD_AFFINITY),
]);

static NODE_AFFINITY: MessageSchema = some(&[
    object(1, REQUIRED, &some(&[list(1, "nodeSelectorTerms", &NODE_TERM)])),
    list(2, PREFERRED, &some(&[number(1, "weight"), object(2, "preference", &NODE_TERM)])),
]);

static NODE_TERM: MessageSchema =
    some(&[list(1, "matchExpressions", &REQUIREMENT), list(2, "matchFields", &REQUIREMENT)]);

static REQUIREMENT: MessageSchema =
    some(&[text(1, "key"), text(2, "operator"), texts(3, "values")]);

static POD_AFFINITY: MessageSchema = some(&[
    list(1, REQUIRED, &POD_TERM),
    list(2, PREFERRED, &some(&[number(1, "weight"), object(2, "podAffinityTerm", &POD_TERM)])),
]);

static POD_TERM: MessageSchema = some(&[
    object(1, "labelSelector", &LABEL_SELECTOR),
    texts(2, "namespaces"),
    text(3, "topologyKey"),
    object(4, "namespaceSelector", &LABEL_SELECTOR),
    texts(5, "matchLabelKeys"),
    texts(6, "mismatchLabelKeys"),
]);

static LABEL_SELECTOR: MessageSchema =
    some(&[texts_by_key(1, "matchLabels"), list(2, "matchExpressions", &REQUIREMENT)]);

static TOLERATION: MessageSchema = some(&[
    text(1, "key"),
    text(2, "operator"),
    text(3, "value"),
    text(4, "effect"),
    number(5, "tolerationSeconds"),
]);

static SPREAD: MessageSchema = some(&[
    number(1, "maxSkew"),
    text(2, "topologyKey"),
    text(3, "whenUnsatisfiable"),
    object(4, "labelSelector", &LABEL_SELECTOR),
    number(5, "minDomains"),
    text(6, "nodeAffinityPolicy"),
    text(7, "nodeTaintsPolicy"),
    texts(8, "matchLabelKeys"),
]);

static POD_STATUS: MessageSchema = some(&[
    text(1, "phase"),
    list(2, "conditions", &CONDITION),
    text(4, "reason"),
    list(8, "containerStatuses", &CONTAINER_STATUS),
    list(10, "initContainerStatuses", &CONTAINER_STATUS),
    list(15, "resourceClaimStatuses", &some(&[text(1, "name"), text(2, "resourceClaimName")])),
    quantities(19, "allocatedResources"),
    object(20, "resources", &RESOURCES),
]);

/// Of pods and of nodes.
static CONDITION: MessageSchema = some(&[text(1, "type"), text(2, "status"), text(5, "reason")]);

static CONTAINER_STATUS: MessageSchema = some(&[
    text(1, "name"),
    object(2, "state", &CONTAINER_STATE),
    quantities(10, "allocatedResources"),
    object(11, "resources", &RESOURCES),
]);

static CONTAINER_STATE: MessageSchema = some(&[
    object(1, "waiting", &some(&[text(1, "reason"), text(2, "message")])),
    object(3, "terminated", &some(&[number(1, "exitCode"), text(3, "reason"), text(4, "message")])),
]);

static NODE_SPEC: MessageSchema = some(&[
    text(3, "providerID"),
    flag(4, "unschedulable"),
    list(5, "taints", &some(&[text(1, "key"), text(2, "value"), text(3, "effect")])),
]);

static NODE_STATUS: MessageSchema = some(&[
    quantities(1, "capacity"),
    quantities(2, "allocatable"),
    list(4, "conditions", &CONDITION),
]);

const fn all(fields: &'static [Field]) -> MessageSchema {
    MessageSchema { fields, all: true }
}

const fn some(fields: &'static [Field]) -> MessageSchema {
    MessageSchema { fields, all: false }
}

const fn one(number: u32, name: &'static str, kind: FieldType) -> Field {
    Field { number, name, kind, count: Cardinality::One }
}

const fn text(number: u32, name: &'static str) -> Field {
    one(number, name, FieldType::Text)
}

const fn number(number: u32, name: &'static str) -> Field {
    one(number, name, FieldType::Number)
}

const fn flag(number: u32, name: &'static str) -> Field {
    one(number, name, FieldType::Flag)
}

const fn time(number: u32, name: &'static str) -> Field {
    one(number, name, FieldType::Time)
}

const fn unread(number: u32, name: &'static str) -> Field {
    one(number, name, FieldType::Unread)
}

const fn object(number: u32, name: &'static str, form: &'static MessageSchema) -> Field {
    one(number, name, FieldType::Object(form))
}

const fn inline(number: u32, form: &'static MessageSchema) -> Field {
    one(number, "", FieldType::Inline(form))
}

const fn list(number: u32, name: &'static str, form: &'static MessageSchema) -> Field {
    Field { number, name, kind: FieldType::Object(form), count: Cardinality::List }
}

const fn texts(number: u32, name: &'static str) -> Field {
    Field { number, name, kind: FieldType::Text, count: Cardinality::List }
}

const fn texts_by_key(number: u32, name: &'static str) -> Field {
    Field { number, name, kind: FieldType::Text, count: Cardinality::Map }
}

const fn quantities(number: u32, name: &'static str) -> Field {
    Field { number, name, kind: FieldType::Quantity, count: Cardinality::Map }
}
