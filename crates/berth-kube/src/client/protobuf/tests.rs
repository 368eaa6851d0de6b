use super::decode::DecodeError;
use super::encode::{bytes, entry, number, wrapped};
use super::{
    Cardinality, Field, FieldType, MessageSchema, POD_RESOURCES, ProtobufObject, STATUS, decode,
    event, frame, is_protobuf,
};
use crate::client::error::Status;
use crate::object::{Node, Pod, PodAddress, PodSpec, VolumeSource};
use proptest::prelude::*;
use std::time::Duration;

fn spec(fields: &[Vec<u8>]) -> Result<PodSpec, DecodeError> {
    let pod = wrapped(&bytes(2, fields.concat()));
    decode::<Pod>(Pod::SCHEMA.one, &pod).map(|pod| pod.spec)
}

/// A pod that says a bit of everything, and the same in JSON.
fn pod() -> (Vec<u8>, &'static str) {
    let toleration = |key: &str, seconds: Option<i64>| {
        let seconds = seconds.map(|seconds| number(5, seconds)).unwrap_or_default();
        bytes(22, [bytes(1, key), bytes(2, "Exists"), bytes(3, ""), seconds].concat())
    };
    let volume =
        |name: &str, source: Vec<u8>| bytes(1, [bytes(1, name), bytes(2, source)].concat());
    let claim = bytes(10, [bytes(1, "imagenet"), number(2, 0)].concat());
    let rbd = [bytes(1, "m1"), bytes(1, "m2"), bytes(2, "i"), bytes(4, "pool"), number(8, 1)];
    let meta = [
        bytes(1, "trainer"),
        // What JSON leaves out because it is empty.
        bytes(2, ""),
        bytes(3, "vision"),
        bytes(8, [number(1, 1_763_200_800), number(2, 0)].concat()),
        // A timestamp that was never set.
        bytes(9, ""),
        entry(11, "team", "vision"),
        entry(11, "app", ""),
        bytes(14, "one"),
        bytes(14, "two"),
        // The managed fields, which Berth does not read.
        bytes(17, [0xff; 40]),
    ];
    let spec = [
        volume("data", claim),
        volume("scratch", bytes(29, "")),
        volume("gce", bytes(3, [bytes(1, "pd-1"), number(4, 1)].concat())),
        volume("ebs", bytes(4, [bytes(1, "vol-1"), number(4, 0)].concat())),
        volume("iscsi", bytes(8, [bytes(1, "portal"), bytes(2, "iqn.x"), number(6, 1)].concat())),
        volume("rbd", bytes(11, rbd.concat())),
        toleration("gpu", Some(-1)),
        bytes(10, "n1"),
        number(25, -7),
        entry(32, "cpu", bytes(1, "100m")),
        volume("plain", Vec::new()),
        // Items of a list may stand apart.
        toleration("spot", None),
        number(11, 1),
        bytes(18, bytes(1, "")),
    ];
    let pod = [bytes(1, meta.concat()), bytes(2, spec.concat()), bytes(3, bytes(1, "Running"))];
    let json = r#"{
        "metadata": {"name": "trainer", "namespace": "vision", "finalizers": ["one", "two"],
            "creationTimestamp": "2025-11-15T10:00:00Z", "labels": {"app": "", "team": "vision"}},
        "spec": {"nodeName": "n1", "priority": -7, "hostNetwork": true, "overhead": {"cpu": "100m"},
            "affinity": {"nodeAffinity": {}},
            "tolerations": [{"key": "gpu", "operator": "Exists", "tolerationSeconds": -1},
                {"key": "spot", "operator": "Exists"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "imagenet"}},
                {"name": "scratch", "ephemeral": {}},
                {"name": "gce", "gcePersistentDisk": {"pdName": "pd-1", "readOnly": true}},
                {"name": "ebs", "awsElasticBlockStore": {"volumeID": "vol-1"}},
                {"name": "iscsi", "iscsi": {"iqn": "iqn.x", "readOnly": true}},
                {"name": "rbd", "rbd": {"monitors": ["m1", "m2"], "image": "i", "pool": "pool",
                    "readOnly": true}},
                {"name": "plain"}]},
        "status": {"phase": "Running"}}"#;
    (wrapped(&pod.concat()), json)
}

#[test]
fn an_object_reads_in_binary_as_it_does_in_json() {
    let (binary, json) = pod();
    assert!(is_protobuf(&binary) && !is_protobuf(json.as_bytes()));
    let read: Pod = decode(Pod::SCHEMA.one, &binary).unwrap();
    assert_eq!(read, serde_json::from_str::<Pod>(json).unwrap());
    assert_eq!(read.spec.volumes[0].source, VolumeSource::Claim("imagenet".into()));
}

#[test]
fn the_address_of_a_pod_reads_in_binary_as_it_does_in_json() {
    let port = bytes(6, [bytes(1, "metrics"), number(2, 0), number(3, 9_400)].concat());
    let spec = [bytes(2, [bytes(1, "exporter"), port].concat()), bytes(10, "n1")];
    let status = [bytes(1, "Running"), bytes(5, "10.0.0.1"), bytes(6, "10.1.2.3")];
    let parts = [bytes(1, bytes(1, "x7")), bytes(2, spec.concat()), bytes(3, status.concat())];
    let read: PodAddress = decode(PodAddress::SCHEMA.one, &wrapped(&parts.concat())).unwrap();
    let json = r#"{"metadata": {"name": "x7"}, "spec": {"nodeName": "n1", "containers":
        [{"ports": [{"name": "metrics", "containerPort": 9400}]}]},
        "status": {"phase": "Running", "hostIP": "10.0.0.1", "podIP": "10.1.2.3"}}"#;
    assert_eq!(read, serde_json::from_str::<PodAddress>(json).unwrap());
    assert_eq!(read.port("metrics"), Some(9_400));
}

#[test]
fn a_field_nobody_knows_makes_a_spec_unreadable_and_elsewhere_is_passed_over() {
    let unknown = |number, beside| DecodeError::Field { number, beside };
    assert!(spec(&[bytes(10, "n1")]).is_ok());
    assert_eq!(spec(&[bytes(10, "n1"), number(99, 1)]), Err(unknown(99, "volumes")));
    // A volume of a kind that is new.
    assert_eq!(spec(&[bytes(1, bytes(2, bytes(77, "x")))]), Err(unknown(77, "hostPath")));
    let pod = wrapped(&[bytes(2, ""), bytes(99, "x")].concat());
    assert!(decode::<Pod>(Pod::SCHEMA.one, &pod).is_ok());
}

#[test]
fn what_is_cut_or_of_another_kind_is_said_to_be_so() {
    let whole = wrapped(&bytes(2, bytes(10, "n1")));
    assert_eq!(decode::<Pod>(Pod::SCHEMA.one, &whole[..whole.len() - 8]), Err(DecodeError::Cut));
    assert_eq!(decode::<Pod>(Pod::SCHEMA.one, b"{}"), Err(DecodeError::Magic));
    assert_eq!(spec(&[number(10, 1)]), Err(DecodeError::FieldType));
    assert_eq!(spec(&[vec![0x53]]), Err(DecodeError::Wire), "groups are of another age");
}

#[test]
fn what_is_no_text_or_no_time_is_read_as_it_is_in_json_and_stops_nobody() {
    let note = bytes(12, [bytes(1, "note"), bytes(2, [b'a', 0xff])].concat());
    let late = bytes(9, number(1, 999_999_999_999));
    let pod = wrapped(&bytes(1, [note, late].concat()));
    let json = r#"{"metadata": {"annotations": {"note": "a\ufffd"},
                   "deletionTimestamp": "33658-09-27T01:46:39Z"}}"#;
    let read: Pod = decode(Pod::SCHEMA.one, &pod).unwrap();
    assert_eq!(read, serde_json::from_str::<Pod>(json).unwrap());
}

#[test]
fn a_refusal_in_binary_is_told_in_the_same_words() {
    let details = bytes(5, [bytes(1, "a"), number(5, 3)].concat());
    let status =
        [bytes(2, "Failure"), bytes(3, "too old"), bytes(4, "Expired"), details, number(6, 410)];
    let error = Status::read(500, &wrapped(&status.concat())).error("/pods");
    assert!(error.is_expired(), "{error}");
    assert_eq!(error.retry_after(), Some(Duration::from_secs(3)));
    assert_eq!(error.to_string(), "/pods: the API server answered 410 Expired: too old");
}

proptest! {
    #[test]
    fn no_bytes_make_reading_panic(noise: Vec<u8>, at: prop::sample::Index, byte: u8) {
        let (mut pod, _) = pod();
        let at = at.index(pod.len());
        let _: Result<Pod, _> = decode(Pod::SCHEMA.one, &pod[..at]);
        pod[at] = byte;
        let _: Result<Pod, _> = decode(Pod::SCHEMA.one, &pod);
        let _: Result<Node, _> = decode(Node::SCHEMA.one, &pod);
        let _ = Status::read(500, &pod);
        if let Some((first, _)) = frame(&noise) {
            let _ = event(first);
        }
        let _: Result<Pod, _> = decode(Pod::SCHEMA.one, &[b"k8s\0", noise.as_slice()].concat());
    }
}

/// Calls it for a form and all forms inside it.
fn each(
    form: &'static MessageSchema,
    seen: &mut Vec<&'static MessageSchema>,
    look: &mut impl FnMut(&'static MessageSchema),
) {
    if seen.iter().any(|known| std::ptr::eq(*known, form)) {
        return;
    }
    seen.push(form);
    look(form);
    for Field { kind, .. } in form.fields {
        if let FieldType::Object(inner) | FieldType::Inline(inner) = kind {
            each(inner, seen, look);
        }
    }
}

#[test]
fn a_form_has_each_number_and_each_name_once_and_few_enough_fields_to_remember_which_came() {
    for form in
        [Pod::SCHEMA.list, Node::SCHEMA.list, PodAddress::SCHEMA.list, &STATUS, &POD_RESOURCES]
    {
        each(form, &mut Vec::new(), &mut |form| {
            assert!(form.fields.len() <= 64);
            for (at, field) in form.fields.iter().enumerate() {
                let before = &form.fields[..at];
                assert!(before.iter().all(|other| other.number < field.number), "{field:?}");
                assert!(before.iter().all(|other| other.name != field.name), "{field:?}");
                assert!(
                    !matches!(field.kind, FieldType::Inline(_)) || field.count == Cardinality::One
                );
            }
        });
    }
}

#[test]
fn every_field_of_a_spec_has_a_name_that_json_has_for_it() {
    let FieldType::Object(form) = Pod::SCHEMA.one.fields[1].kind else { panic!("a spec") };
    for field in form.fields {
        let written = match (field.kind, field.count) {
            (FieldType::Number | FieldType::Flag, _) => number(field.number, 1),
            (_, Cardinality::Map) => entry(field.number, "a", ""),
            _ => bytes(field.number, ""),
        };
        let spec = spec(&[written]).unwrap();
        assert!(spec.unknown.is_empty(), "{:?}", spec.unknown);
    }
}
