use super::*;
use serde_json::Map;
use std::collections::BTreeSet;
use std::path::Path;

/// Everything a kind's spec can say, by key.
fn properties(kind: Kind) -> Map<String, Value> {
    let schema = whole_object(kind);
    schema["properties"]["spec"]["properties"].as_object().cloned().unwrap()
}

#[test]
fn the_committed_definitions_are_those_the_program_prints() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/helm/berth/crds/berth.yaml");
    let expect = crds();
    if std::env::var_os("BERTH_WRITE_DOCS").is_some() {
        std::fs::write(&path, &expect).expect("the chart's folder can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expect,
        "deploy/helm/berth/crds/berth.yaml is not what `berth kube crds` prints; write it anew \
         with BERTH_WRITE_DOCS=1 cargo test -p berth-server crd::schema, and look at the difference"
    );
}

#[test]
fn a_spec_has_the_keys_that_documents_and_job_files_have() {
    for kind in Kind::ALL {
        let described: BTreeSet<String> =
            properties(kind).into_iter().map(|(key, _)| key).collect();
        let read: BTreeSet<String> = kind.keys().into_iter().map(str::to_owned).collect();
        assert_eq!(described, read, "{}", kind.word());
    }
}

#[test]
fn every_key_is_explained() {
    for kind in Kind::ALL {
        for (key, schema) in properties(kind) {
            let says = schema["description"].as_str().unwrap_or_default();
            assert!(!says.is_empty(), "{} has nothing to say of `{key}`", kind.word());
        }
    }
}

/// What a column shows must be kept: the API server drops what no schema has.
#[test]
fn every_column_shows_something_that_is_kept() {
    for kind in Kind::ALL {
        let schema = whole_object(kind);
        let columns = columns::of(kind);
        let paths = columns.as_array().unwrap().iter().map(|column| &column["jsonPath"]);
        for path in paths.filter_map(Value::as_str) {
            let (part, key) = path.trim_start_matches('.').split_once('.').unwrap();
            let key = key.split('[').next().unwrap();
            let kept = &schema["properties"][part]["properties"][key];
            assert!(part == "metadata" || kept.is_object(), "{}: {path}", kind.word());
        }
    }
}
