//! The container of a pod that fetches the code and the data of its job before the command starts.
//!
//! It runs this program in the image of the server, as an account without rights, and shares no more
//! with the command than the folders. Its token is in the Secret of the pod, is good for the code and
//! the data of the job alone, and never gets to the command.

use super::launch::literal;
use crate::options::{Fetch, NodeData};
use crate::state::pod_orders::CreatePod;
use crate::view::FETCH;
use berth_model::{Bytes, CodeId, DataRef};
use berth_service::job_token::JobTokens;
use berth_service::pem::certificates;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// The keys of the token and the certificates in the Secret of the pod. No variable of a job can have such
/// a name.
const TOKEN: &str = "berth.fetch-token";
const CERTIFICATES: &str = "berth.fetch-ca";
/// Where the container finds the certificates.
const TRUST: &str = "/berth-trust";
const TRUST_FILE: &str = "ca.pem";
/// An account that owns nothing, as in the chart.
const ACCOUNT: u32 = 10_117;
/// Where the container leaves data.
pub const FETCHED: &str = "/berth-data";
/// Unpacking needs so much, however little the job asks for.
const LEAST_LIMIT: Bytes = Bytes::mib(256);

/// The container, which leaves the code and the data of the job in folders of volumes.
pub fn container(
    create: &CreatePod,
    code: Option<(&CodeId, &Path)>,
    data: Vec<(DataRef, PathBuf)>,
    (fetch, node_data): (&Fetch, Option<&NodeData>),
    mut mounts: Vec<Value>,
) -> Value {
    let start = &create.start;
    let token = json!({ "name": create.secret, "key": TOKEN });
    let mut env = vec![
        json!({ "name": "BERTH_URL", "value": literal(&fetch.url) }),
        json!({ "name": "BERTH_TOKEN", "valueFrom": { "secretKeyRef": token } }),
    ];
    if fetch.certificate.is_some() {
        env.push(json!({ "name": "BERTH_CA", "value": format!("{TRUST}/{TRUST_FILE}") }));
        mounts.push(json!({ "name": FETCH, "mountPath": TRUST, "readOnly": true }));
    }
    // As much as the command asks for, so that the pod as a whole asks for no more.
    let cpu = format!("{}m", start.cpu.map_or(0, |cpu| cpu.0));
    let memory = start.memory.map_or(0, |memory| memory.0).to_string();
    let limit = start.memory.map(|memory| memory.max(LEAST_LIMIT).0.to_string());
    let mut args = vec!["fetch-code".to_owned(), literal(&start.team)];
    if let Some((code, folder)) = code {
        args.extend([code.to_string(), folder.display().to_string()]);
    }
    for (data, folder) in data {
        args.extend(["--data".to_owned(), format!("{data}={}", folder.display())]);
    }
    if let Some(NodeData { most, .. }) = node_data {
        let cache = [("--cache", FETCHED.to_owned()), ("--cache-size", most.0.to_string())];
        let since = ("--cache-since", create.at.0.to_string());
        let in_use = create.data_in_use.iter().map(|data| ("--in-use", literal(data)));
        let flags = cache.into_iter().chain([since]).chain(in_use);
        args.extend(flags.flat_map(|(flag, value)| [flag.to_owned(), value]));
    }
    json!({
        "name": FETCH,
        "image": fetch.image,
        "args": args,
        "env": env,
        "resources": {
            "requests": { "cpu": cpu, "memory": memory },
            "limits": limit.map_or_else(|| json!({}), |limit| json!({ "memory": limit })),
        },
        "volumeMounts": mounts,
        "securityContext": security(node_data.is_some()),
        // The node then says why it failed.
        "terminationMessagePolicy": "FallbackToLogsOnError",
    })
}

/// A folder of the node belongs to its root, which has no other rights here.
fn security(writes_to_node: bool) -> Value {
    let account = if writes_to_node { 0 } else { ACCOUNT };
    json!({
        "allowPrivilegeEscalation": false,
        "readOnlyRootFilesystem": true,
        "runAsNonRoot": !writes_to_node,
        "runAsUser": account,
        "runAsGroup": account,
        "capabilities": { "drop": ["ALL"] },
    })
}

/// The volume with the certificates of the server, where it has any.
pub fn volume(create: &CreatePod, fetch: &Fetch) -> Option<Value> {
    fetch.certificate.as_ref()?;
    let items = json!([{ "key": CERTIFICATES, "path": TRUST_FILE }]);
    Some(json!({ "name": FETCH, "secret": { "secretName": create.secret, "items": items } }))
}

/// What the Secret of the pod has for that container.
pub fn sealed(
    create: &CreatePod,
    fetch: &Fetch,
    tokens: &JobTokens,
) -> io::Result<BTreeMap<String, String>> {
    let mut sealed = BTreeMap::new();
    sealed.insert(TOKEN.to_owned(), tokens.mint_for_code(create.start.lease));
    if let Some(certificate) = &fetch.certificate {
        sealed.insert(CERTIFICATES.to_owned(), trusted(certificate)?);
    }
    Ok(sealed)
}

/// The certificates of the server, and that of the authority that made them where it is beside them,
/// as in Secrets of cert-manager.
pub fn trusted(certificate: &Path) -> io::Result<String> {
    let mut all = certificates(&std::fs::read_to_string(certificate)?);
    match std::fs::read_to_string(certificate.with_file_name("ca.crt")) {
        Ok(authority) => all.push_str(&certificates(&authority)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_pod_trusts_has_the_authority_beside_the_certificate_and_no_key() {
        let folder = tempfile::tempdir().unwrap();
        let pem = |kind: &str, text: &str| {
            format!("-----BEGIN {kind}-----\n{text}\n-----END {kind}-----\n")
        };
        let (own, authority) = (pem("CERTIFICATE", "b3du"), pem("CERTIFICATE", "Y2E="));
        let file = folder.path().join("tls.crt");
        std::fs::write(&file, format!("{own}{}", pem("PRIVATE KEY", "a2V5"))).unwrap();
        assert_eq!(trusted(&file).unwrap(), own);
        std::fs::write(folder.path().join("ca.crt"), &authority).unwrap();
        assert_eq!(trusted(&file).unwrap(), format!("{own}{authority}"));
        assert!(trusted(&folder.path().join("gone.crt")).is_err());
    }
}
