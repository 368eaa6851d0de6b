//! Which crate may depend on which.

/// Each crate and the crates of this workspace it may depend on.
///
/// A new crate needs a row first, so that its place in the layers is decided once, in a review.
pub const ALLOWED_EDGES: &[(&str, &[&str])] = &[
    ("berth-model", &[]),
    ("berth-fs", &[]),
    // What is kept by its content; who may have it is known elsewhere.
    ("berth-blobs", &[]),
    ("berth-code", &["berth-model"]),
    ("berth-ledger", &["berth-model"]),
    ("berth-core", &["berth-model", "berth-ledger"]),
    ("berth-figures", &["berth-model"]),
    ("berth-file", &["berth-model", "berth-ledger"]),
    ("berth-sim", &["berth-model", "berth-ledger", "berth-core", "berth-file"]),
    ("berth-api", &["berth-model", "berth-file"]),
    ("berth-store", &["berth-model"]),
    // An ordinary client: it only depends on the routes.
    ("berth-import", &["berth-api"]),
    ("berth-portal", &[]),
    // What is tracked knows nothing of jobs, and scheduling nothing of it.
    ("berth-tracker", &[]),
    ("berth-tracker-store", &["berth-tracker"]),
    ("berth-kube", &["berth-model"]),
    ("berth-sandbox", &[]),
    ("berth-gpucheck", &[]),
    ("berth-node", &["berth-model", "berth-gpucheck", "berth-sandbox"]),
    (
        "berth-engine",
        &[
            "berth-model",
            "berth-ledger",
            "berth-core",
            // Only types on the wire: events and problems.
            "berth-api",
            "berth-store",
        ],
    ),
    (
        "berth-service",
        &[
            "berth-model",
            "berth-ledger",
            "berth-core",
            "berth-figures",
            "berth-blobs",
            "berth-file",
            "berth-fs",
            "berth-api",
            "berth-store",
            "berth-engine",
        ],
    ),
    // The two sites: a machine and a cluster. Neither sees the other.
    (
        "berth-machine",
        &[
            "berth-blobs",
            "berth-code",
            "berth-model",
            "berth-core",
            "berth-figures",
            "berth-file",
            "berth-node",
            // Where the data of a version is.
            "berth-store",
            "berth-engine",
            "berth-service",
        ],
    ),
    (
        "berth-cluster",
        &[
            "berth-model",
            "berth-core",
            "berth-figures",
            "berth-file",
            "berth-api",
            "berth-store",
            "berth-kube",
            "berth-node",
            "berth-engine",
            "berth-service",
        ],
    ),
    // Connects jobs with tracking. It depends on no site and no server.
    (
        "berth-record",
        &[
            "berth-code",
            "berth-model",
            "berth-ledger",
            "berth-file",
            "berth-api",
            "berth-store",
            "berth-engine",
            "berth-service",
            "berth-tracker",
        ],
    ),
    // A site that only pretends, for tests and measurements.
    (
        "berth-history",
        &[
            "berth-model",
            "berth-figures",
            "berth-fs",
            "berth-sim",
            "berth-api",
            "berth-store",
            "berth-node",
            "berth-engine",
            "berth-service",
        ],
    ),
    (
        "berth-server",
        &[
            "berth-blobs",
            "berth-model",
            "berth-core",
            "berth-figures",
            "berth-fs",
            "berth-api",
            "berth-store",
            "berth-kube",
            "berth-node",
            "berth-engine",
            "berth-service",
            "berth-machine",
            "berth-cluster",
            "berth-portal",
            "berth-record",
            "berth-tracker",
            "berth-tracker-store",
        ],
    ),
    (
        "berth",
        &[
            // The sums that data is known by.
            "berth-blobs",
            "berth-code",
            "berth-import",
            "berth-model",
            "berth-file",
            "berth-fs",
            "berth-sim",
            "berth-agent",
            "berth-api",
            // To become the helper that looks after a task, and to check a GPU without a server.
            "berth-node",
            "berth-server",
        ],
    ),
    // Beside the server: it tells what a node's GPUs do, and knows nothing else.
    ("berth-agent", &["berth-figures", "berth-kube", "berth-node"]),
    // For tests, as a dev-dependency, and for figures; nothing that ships may depend on it.
    ("berth-testbed", &["berth-model", "berth-ledger", "berth-api"]),
    // Reproduces published figures; nothing may depend on it.
    (
        "berth-evidence",
        &[
            "berth-model",
            "berth-core",
            "berth-fs",
            "berth-sim",
            "berth-api",
            "berth-kube",
            "berth-testbed",
        ],
    ),
];
