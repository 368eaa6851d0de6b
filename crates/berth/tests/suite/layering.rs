//! The architecture, held by the build.
//!
//! A plan can be replayed only while nothing below it reads a clock, a socket or a hash order. One
//! convenient dependency is enough to lose that, and nobody notices until a replay differs. So the
//! crates' edges, the closure of each pure crate and the bans in its `clippy.toml` are checked here,
//! against what cargo itself says about the workspace.

mod edges;

use edges::ALLOWED_EDGES;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The crate that may have unsafe code, and the file that it is in.
const WITH_UNSAFE: (&str, &str) = ("berth-gpucheck", "src/cuda.rs");

const PURE: &[&str] =
    &["berth-model", "berth-ledger", "berth-core", "berth-figures", "berth-file", "berth-sim"];

/// Pure crates in which a float may not even be named, because it would rank jobs or count money.
/// The model has to accept one from a parser, and the simulator shows ratios in its reports.
const WITHOUT_FLOATS: &[&str] = &["berth-ledger", "berth-core", "berth-figures"];

/// Crates that bring a runtime, the network, a database or chance. A name covers
/// its family too: `kube` stands for `kube-client` as well.
const IMPURE: &[&str] =
    &["axum", "getrandom", "hyper", "kube", "mio", "rand", "reqwest", "socket2", "sqlx", "tokio"];

const BANNED_METHODS: &[&str] = &[
    "std::time::SystemTime::now",
    "std::time::Instant::now",
    "std::thread::spawn",
    "std::env::var",
    "std::env::var_os",
    "std::env::vars",
    "std::fs::read",
    "std::fs::read_to_string",
    "std::fs::write",
    "std::fs::File::open",
    "std::fs::File::create",
];

const BANNED_TYPES: &[&str] = &[
    "std::collections::HashMap",
    "std::collections::HashSet",
    "std::fs::File",
    "std::net::TcpListener",
    "std::net::TcpStream",
    "std::net::UdpSocket",
    "std::process::Command",
];

const BANNED_MACROS: &[&str] = &["std::print", "std::println", "std::eprint", "std::eprintln"];

#[test]
fn every_crate_depends_only_on_the_layers_below_it() {
    let found = forbidden_edges(&Workspace::load().graph, ALLOWED_EDGES);
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

/// An edge that stays in the table when its last use is gone would let the dependency come back
/// without a review.
#[test]
fn every_edge_in_the_table_is_a_dependency_that_exists() {
    let found = unused_edges(&Workspace::load().graph, ALLOWED_EDGES);
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn no_pure_crate_reaches_a_runtime_the_network_a_database_or_chance() {
    let graph = Workspace::load().graph;
    let found: Vec<String> =
        PURE.iter().flat_map(|pure| impure_paths(&graph, pure, IMPURE)).collect();
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn every_pure_crate_bans_the_outside_in_its_clippy_toml() {
    let workspace = Workspace::load();
    let mut found = Vec::new();
    for pure in PURE {
        let path = workspace.directory(pure).join("clippy.toml");
        let Ok(text) = std::fs::read_to_string(&path) else {
            found
                .push(format!("{pure} has no clippy.toml, so nothing bans clocks and files in it"));
            continue;
        };
        let config = parse_toml(&path, &text);
        let floats: &[&str] = if WITHOUT_FLOATS.contains(pure) { &["f32", "f64"] } else { &[] };
        let types = [BANNED_TYPES, floats].concat();
        found.extend(missing_bans(pure, &config, "disallowed-methods", BANNED_METHODS));
        found.extend(missing_bans(pure, &config, "disallowed-types", &types));
        found.extend(missing_bans(pure, &config, "disallowed-macros", BANNED_MACROS));
    }
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

/// The bans are lints, and a lint can be switched off where it bites. Tests may
/// do that to read a fixture; the code that ships may not.
#[test]
fn no_pure_crate_lets_its_own_source_off_the_bans() {
    let workspace = Workspace::load();
    let mut found = Vec::new();
    for pure in PURE {
        for file in rust_files(&workspace.directory(pure).join("src")) {
            for (index, line) in read(&file).lines().enumerate() {
                if line.contains("clippy::disallowed_") {
                    found.push(format!("{pure} lifts a ban at {}:{}", file.display(), index + 1));
                }
            }
        }
    }
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

/// clippy.toml bans a float that is named. Only this attribute catches one that is inferred, and a
/// manifest cannot carry it, because the tests of these crates may calculate with floats.
#[test]
fn every_crate_that_decides_or_counts_money_denies_float_arithmetic() {
    let workspace = Workspace::load();
    for name in ["berth-model", "berth-ledger", "berth-core"] {
        let root = workspace.directory(name).join("src/lib.rs");
        assert!(
            read(&root)
                .lines()
                .any(|line| line == "#![cfg_attr(not(test), deny(clippy::float_arithmetic))]"),
            "{} does not deny float arithmetic",
            root.display()
        );
        for file in rust_files(&workspace.directory(name).join("src")) {
            assert!(
                !read(&file).contains("allow(clippy::float_arithmetic"),
                "{} allows float arithmetic",
                file.display()
            );
        }
    }
}

#[test]
fn unsafe_code_is_forbidden_in_every_crate() {
    let workspace = Workspace::load();
    let root = workspace.root.join("Cargo.toml");
    let lints = &parse_toml(&root, &read(&root))["workspace"]["lints"];
    assert_eq!(
        lints["rust"]["unsafe_code"].as_str(),
        Some("forbid"),
        "the workspace lints must forbid unsafe code, and `deny` can be lifted by an attribute"
    );
    for lint in ["disallowed_methods", "disallowed_types", "disallowed_macros"] {
        assert_eq!(
            lints["clippy"][lint].as_str(),
            Some("deny"),
            "clippy.toml only lists what is banned: {lint} makes it an error"
        );
    }

    let mut found = Vec::new();
    for name in workspace.graph.members.iter() {
        let path = workspace.directory(name).join("Cargo.toml");
        let manifest = parse_toml(&path, &read(&path));
        if name == WITH_UNSAFE.0 {
            found.extend(laxer_lints(name, &manifest["lints"], lints));
            continue;
        }
        let inherits = manifest.get("lints").and_then(|lints| lints.get("workspace"));
        if inherits.and_then(toml::Value::as_bool) != Some(true) {
            found.push(format!(
                "{name} does not take the workspace's lints: add `[lints]` with `workspace = true`"
            ));
        }
    }
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

/// No compiler vouches for kernels on GPUs: each place says why it is sound.
#[test]
fn the_one_crate_with_unsafe_code_keeps_it_in_one_file() {
    let workspace = Workspace::load();
    let (name, only) = WITH_UNSAFE;
    for folder in ["src", "examples"] {
        for file in rust_files(&workspace.directory(name).join(folder)) {
            assert_eq!(read(&file).contains("(unsafe_code"), file.ends_with(only), "{file:?}");
        }
    }
    let path = workspace.directory(name).join("Cargo.toml");
    let lints = &parse_toml(&path, &read(&path))["lints"]["clippy"];
    assert_eq!(lints["undocumented_unsafe_blocks"].as_str(), Some("deny"));
}

// The checks above pass on a healthy workspace whatever they do. These fail on a sick one.

#[test]
fn a_crate_with_lints_of_its_own_that_are_laxer_is_reported() {
    let workspace = parse_toml(
        Path::new("Cargo.toml"),
        "rust = { unsafe_code = \"forbid\", must_use = \"deny\" }\nclippy = { todo = \"deny\" }",
    );
    let own = parse_toml(Path::new("Cargo.toml"), "rust = { unsafe_code = \"allow\" }");
    let found = laxer_lints("a", &toml::Value::Table(own), &toml::Value::Table(workspace));
    assert_eq!(found.len(), 3, "{found:?}");
    assert_eq!(found[2], "a: rust has unsafe_code = Some(\"allow\"), expected Some(\"deny\")");
}

#[test]
fn an_edge_that_is_not_in_the_table_is_reported() {
    let graph = graph(&["a", "b"], &[("a", "b"), ("b", "a"), ("b", "serde")]);
    let table: &[(&str, &[&str])] = &[("a", &[]), ("b", &["a"])];
    assert_eq!(
        forbidden_edges(&graph, table),
        ["a gained a dependency on b; it may depend on: nothing in this workspace"]
    );
}

#[test]
fn an_edge_in_the_table_that_no_crate_uses_is_reported() {
    let graph = graph(&["a", "b"], &[("b", "a")]);
    let table: &[(&str, &[&str])] = &[("a", &["b"]), ("b", &["a"]), ("gone", &["a"])];
    assert_eq!(
        unused_edges(&graph, table),
        [
            "a does not depend on b: take the edge out of ALLOWED_EDGES",
            "gone does not depend on a: take the edge out of ALLOWED_EDGES",
        ]
    );
}

#[test]
fn a_crate_without_a_row_in_the_table_is_reported() {
    let graph = graph(&["a", "new"], &[]);
    assert_eq!(
        forbidden_edges(&graph, &[("a", &[])]),
        ["new has no row in ALLOWED_EDGES: decide which layer it belongs to"]
    );
}

#[test]
fn an_impure_crate_several_steps_away_is_reported_with_the_path_to_it() {
    let graph = graph(&["a", "b"], &[("a", "b"), ("b", "client"), ("client", "kube-client")]);
    assert_eq!(
        impure_paths(&graph, "a", &["kube"]),
        ["a gained kube-client by a -> b -> client -> kube-client"]
    );
}

#[test]
fn a_crate_whose_name_only_begins_like_an_impure_one_is_let_through() {
    let graph = graph(&["a"], &[("a", "random-access"), ("a", "rand_core")]);
    assert_eq!(impure_paths(&graph, "a", &["rand"]), Vec::<String>::new());
}

#[test]
fn a_ban_without_a_reason_is_reported() {
    let config = r#"disallowed-types = [{ path = "A", reason = "why" }, "B", { path = "C" }]"#;
    let config = parse_toml(Path::new("clippy.toml"), config);
    assert_eq!(
        missing_bans("a", &config, "disallowed-types", &["A", "B", "C", "D"]),
        [
            "a: disallowed-types has no entry for B with a reason",
            "a: disallowed-types has no entry for C with a reason",
            "a: disallowed-types has no entry for D with a reason",
        ]
    );
}

/// What a crate with a table of lints of its own leaves out of the workspace's. `unsafe` may be lifted
/// there, but only where an attribute says so.
fn laxer_lints(name: &str, own: &toml::Value, workspace: &toml::Value) -> Vec<String> {
    let mut found = Vec::new();
    for (tool, wanted) in workspace.as_table().into_iter().flatten() {
        for (lint, level) in wanted.as_table().into_iter().flatten() {
            let level = if lint == "unsafe_code" { Some("deny") } else { level.as_str() };
            let here = own.get(tool).and_then(|lints| lints.get(lint)?.as_str());
            if here != level {
                found.push(format!("{name}: {tool} has {lint} = {here:?}, expected {level:?}"));
            }
        }
    }
    found
}

/// Who depends on whom when the code is built, tests left out: what a test links
/// never reaches a decision.
struct Graph {
    members: BTreeSet<String>,
    edges: BTreeMap<String, BTreeSet<String>>,
}

fn forbidden_edges(graph: &Graph, table: &[(&str, &[&str])]) -> Vec<String> {
    let mut found = Vec::new();
    for from in &graph.members {
        let Some((_, allowed)) = table.iter().find(|(name, _)| name == from) else {
            found.push(format!(
                "{from} has no row in ALLOWED_EDGES: decide which layer it belongs to"
            ));
            continue;
        };
        let may = if allowed.is_empty() {
            "nothing in this workspace".to_owned()
        } else {
            allowed.join(", ")
        };
        for to in graph.edges.get(from).into_iter().flatten() {
            if graph.members.contains(to) && !allowed.contains(&to.as_str()) {
                found.push(format!("{from} gained a dependency on {to}; it may depend on: {may}"));
            }
        }
    }
    found
}

fn unused_edges(graph: &Graph, table: &[(&str, &[&str])]) -> Vec<String> {
    let mut found = Vec::new();
    for (from, allowed) in table {
        for to in *allowed {
            if !graph.edges.get(*from).is_some_and(|targets| targets.contains(*to)) {
                found.push(format!(
                    "{from} does not depend on {to}: take the edge out of ALLOWED_EDGES"
                ));
            }
        }
    }
    found
}

/// Every impure crate that `start` reaches, each with the shortest way there. The
/// search does not go on behind an impure crate: what tokio brings along is not
/// the news.
fn impure_paths(graph: &Graph, start: &str, impure: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::from([start.to_owned()]);
    let mut waiting = VecDeque::from([vec![start.to_owned()]]);
    while let Some(path) = waiting.pop_front() {
        let last = path.last().expect("a path has at least its start");
        for next in graph.edges.get(last).into_iter().flatten() {
            if !seen.insert(next.clone()) {
                continue;
            }
            let mut longer = path.clone();
            longer.push(next.clone());
            if impure.iter().any(|family| is_in_family(next, family)) {
                found.push(format!("{start} gained {next} by {}", longer.join(" -> ")));
            } else {
                waiting.push_back(longer);
            }
        }
    }
    found
}

fn is_in_family(name: &str, family: &str) -> bool {
    name.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

fn missing_bans(name: &str, config: &toml::Table, key: &str, wanted: &[&str]) -> Vec<String> {
    let with_reason: BTreeSet<&str> = config
        .get(key)
        .and_then(toml::Value::as_array)
        .into_iter()
        .flatten()
        .filter(|entry| {
            let reason = entry.get("reason").and_then(toml::Value::as_str);
            reason.is_some_and(|reason| !reason.is_empty())
        })
        .filter_map(|entry| entry.get("path").and_then(toml::Value::as_str))
        .collect();
    wanted
        .iter()
        .filter(|path| !with_reason.contains(*path))
        .map(|path| format!("{name}: {key} has no entry for {path} with a reason"))
        .collect()
}

struct Workspace {
    root: PathBuf,
    directories: BTreeMap<String, PathBuf>,
    graph: Graph,
}

impl Workspace {
    /// All features and all platforms, so that a dependency cannot hide behind a
    /// switch that is off on the machine where the test runs.
    fn load() -> Workspace {
        // `--offline` is left out: cargo fetches for this platform only, so a
        // fresh checkout may lack a crate that only another platform needs. With
        // everything already fetched, this command does not use the network.
        let output = Command::new(env!("CARGO"))
            .args(["metadata", "--format-version", "1", "--locked", "--all-features"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .expect("cargo metadata starts");
        assert!(
            output.status.success(),
            "cargo metadata failed:\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let metadata = serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
        Workspace::from_metadata(&metadata)
    }

    fn from_metadata(metadata: &Value) -> Workspace {
        let packages: BTreeMap<&str, &Value> =
            items(&metadata["packages"]).map(|package| (text(&package["id"]), package)).collect();
        let name_of = |id: &Value| text(&packages[text(id)]["name"]).to_owned();

        let mut members = BTreeSet::new();
        let mut directories = BTreeMap::new();
        for id in items(&metadata["workspace_members"]) {
            let manifest = Path::new(text(&packages[text(id)]["manifest_path"]));
            let directory = manifest.parent().expect("a manifest lies in a directory");
            directories.insert(name_of(id), directory.to_owned());
            members.insert(name_of(id));
        }

        let mut edges = BTreeMap::<String, BTreeSet<String>>::new();
        for node in items(&metadata["resolve"]["nodes"]) {
            // Two versions of one crate become one vertex: the rules name crates,
            // not versions.
            let targets = edges.entry(name_of(&node["id"])).or_default();
            for dependency in items(&node["deps"]) {
                let mut kinds = items(&dependency["dep_kinds"]);
                if kinds.any(|kind| kind["kind"] != "dev") {
                    targets.insert(name_of(&dependency["pkg"]));
                }
            }
        }

        let root = PathBuf::from(text(&metadata["workspace_root"]));
        Workspace { root, directories, graph: Graph { members, edges } }
    }

    fn directory(&self, name: &str) -> &Path {
        self.directories.get(name).unwrap_or_else(|| panic!("{name} is not in the workspace"))
    }
}

fn graph(members: &[&str], edges: &[(&str, &str)]) -> Graph {
    let mut graph = Graph {
        members: members.iter().map(|name| (*name).to_owned()).collect(),
        edges: BTreeMap::new(),
    };
    for (from, to) in edges {
        graph.edges.entry((*from).to_owned()).or_default().insert((*to).to_owned());
    }
    graph
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().expect("a list in cargo metadata").iter()
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a string in cargo metadata")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn parse_toml(path: &Path, text: &str) -> toml::Table {
    toml::from_str(text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let entries = std::fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    for entry in entries {
        let path = entry.expect("a readable directory entry").path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}
