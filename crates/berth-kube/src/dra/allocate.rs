//! Writing down which devices a claim was given.

use super::device::DeviceId;
use super::{CLAIMS, GROUP};
use crate::client::Api;
use crate::client::{Error, Result};
use crate::object::Text;
use berth_model::PodRef;
use serde_json::{Value, json};

/// Keeps a claim from being deleted while its devices are in use.
const FINALIZER: &str = "resource.kubernetes.io/delete-protection";
/// Others write to claims as well.
const TRIES: u32 = 10;

/// The devices that a claim is to be given on a node.
#[derive(Debug, Clone, PartialEq)]
pub struct Allocation {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub node: String,
    /// Each request with the devices for it.
    pub devices: Vec<(Text, DeviceId)>,
    pub config: Vec<Value>,
}

impl Allocation {
    fn written(&self) -> Value {
        let results = self.devices.iter().map(|(request, id)| {
            json!({
                "request": &**request,
                "driver": &*id.driver,
                "pool": &*id.pool,
                "device": &*id.device,
            })
        });
        let mut devices = json!({ "results": results.collect::<Vec<Value>>() });
        if !self.config.is_empty() {
            devices["config"] = json!(self.config);
        }
        let field = json!({ "key": "metadata.name", "operator": "In", "values": [self.node] });
        json!({
            "devices": devices,
            "nodeSelector": { "nodeSelectorTerms": [{ "matchFields": [field] }] },
        })
    }
}

impl Api {
    /// Allocates devices to a claim, for that pod. Doing it again has no effect. Other devices that
    /// were allocated before are taken back first, if no pod uses them.
    pub async fn allocate(&self, wanted: &Allocation, pod: &PodRef) -> Result<()> {
        let Allocation { namespace, name, .. } = wanted;
        let path = format!("{GROUP}/namespaces/{namespace}/{}/{name}", kind());
        let mut left = TRIES;
        loop {
            match self.try_to_allocate(&path, wanted, pod).await {
                Err(error) if error.is_conflict() && left > 0 => left -= 1,
                done => return done,
            }
        }
    }

    async fn try_to_allocate(&self, path: &str, wanted: &Allocation, pod: &PodRef) -> Result<()> {
        let mut claim: Value = self.get(path).await?;
        if claim["metadata"]["uid"] != wanted.uid.as_str() {
            return Err(refused(path, 404, "it is another claim of that name"));
        }
        let user = json!({ "resource": "pods", "name": pod.name, "uid": pod.uid });
        let status = claim["status"].clone();
        let users = status["reservedFor"].as_array().cloned().unwrap_or_default();
        let is_ours = users.iter().any(|known| known["uid"] == user["uid"]);
        let given = &status["allocation"]["devices"]["results"];
        let is_same = same_devices(given, &wanted.written()["devices"]["results"]);
        if is_ours && is_same {
            return Ok(());
        }
        if users.iter().any(|known| known["uid"] != user["uid"]) {
            return Err(refused(path, 409, "it is used by another pod"));
        }
        if !status["allocation"].is_null() && !is_same {
            claim["status"] = json!({});
            claim = self.replace(&format!("{path}/status"), &claim).await?;
        }
        let finalizers = claim["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        if !finalizers.iter().any(|known| known == FINALIZER) {
            let all: Vec<Value> = finalizers.into_iter().chain([json!(FINALIZER)]).collect();
            claim["metadata"]["finalizers"] = json!(all);
            claim = self.replace(path, &claim).await?;
        }
        claim["status"] = json!({ "allocation": wanted.written(), "reservedFor": [user] });
        self.replace(&format!("{path}/status"), &claim).await.map(drop)
    }

    async fn replace(&self, path: &str, object: &Value) -> Result<Value> {
        let answer = self.put(path, object).await?;
        crate::client::decode(path, &answer)
    }
}

fn kind() -> &'static str {
    CLAIMS.trim_start_matches(GROUP).trim_start_matches('/')
}

/// Whether the same devices were given; the API server adds fields of its own.
fn same_devices(given: &Value, wanted: &Value) -> bool {
    let ids = |list: &Value| -> Vec<[Value; 4]> {
        let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
        let keys = ["request", "driver", "pool", "device"];
        list.iter().map(|one| keys.map(|key| one[key].clone())).collect()
    };
    ids(given) == ids(wanted)
}

fn refused(path: &str, code: u16, message: &str) -> Error {
    let reason = String::new();
    let message = message.to_owned();
    Error::Refused { what: path.to_owned(), code, reason, message, retry_after: None }
}
