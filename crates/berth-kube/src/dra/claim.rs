//! What claims ask for.

use super::cel::{DeviceSelector, UnsupportedExpression};
use super::device::DeviceId;
use crate::object::{List, Meta, Text};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A kind of device, as an administrator has described it.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct DeviceClass {
    pub metadata: Meta,
    spec: ClassSpec,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
struct ClassSpec {
    selectors: List<Written>,
    config: Vec<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
struct Written {
    cel: Option<Cel>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
struct Cel {
    expression: Text,
}

/// A claim on devices, with what was given for it.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct ResourceClaim {
    pub metadata: Meta,
    spec: ClaimSpec,
    status: Status,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
struct ClaimSpec {
    devices: Devices,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
struct Devices {
    requests: Vec<WrittenRequest>,
    constraints: Vec<Value>,
    config: Vec<Value>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WrittenRequest {
    name: Text,
    exactly: Option<Exact>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Exact {
    device_class_name: Text,
    selectors: List<Written>,
    allocation_mode: Text,
    count: Option<u32>,
    admin_access: Option<bool>,
    tolerations: Vec<Value>,
    capacity: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    allocation: Option<Allocated>,
    reserved_for: List<User>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
struct Allocated {
    devices: Results,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
struct Results {
    results: List<DeviceId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
struct User {
    uid: Text,
}

/// What a claim asks for, understood.
#[derive(Debug, Clone)]
pub struct ClaimRequests {
    pub requests: Vec<DeviceRequest>,
    /// Every device that is given has to satisfy these.
    pub selectors: Vec<DeviceSelector>,
    /// What the driver is to be told, as an allocation has it.
    pub config: Vec<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceRequest {
    pub name: Text,
    pub count: u32,
}

/// Why a claim cannot be allocated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    #[error("the claim {claim} has constraints between its devices, which Berth does not know")]
    Constraints { claim: Text },
    #[error("request {request} of the claim {claim}: {source}")]
    Request { claim: Text, request: Text, source: RequestError },
}

/// Why one request of a claim cannot be allocated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    #[error("alternatives are not known; say `exactly` one of them")]
    Alternatives,
    #[error("adminAccess, tolerations and capacity of requests are not known")]
    Fields,
    #[error("say how many devices: allocationMode ExactCount with a count")]
    AllocationMode,
    #[error("there is no DeviceClass {class} yet")]
    MissingClass { class: Text },
    #[error(transparent)]
    Selector(#[from] UnsupportedExpression),
}

impl ResourceClaim {
    /// The devices that were given for it.
    pub fn given(&self) -> &[DeviceId] {
        self.status.allocation.as_ref().map(|given| &*given.devices.results).unwrap_or_default()
    }

    /// The pods that use it, by their UIDs.
    pub fn users(&self) -> impl Iterator<Item = &str> {
        self.status.reserved_for.iter().map(|user| &*user.uid)
    }

    /// What it asks for, or why that is not understood.
    pub fn asked(
        &self,
        classes: &BTreeMap<Text, DeviceClass>,
    ) -> Result<ClaimRequests, ClaimError> {
        let claim = &self.metadata.name;
        let Devices { requests, constraints, config } = &self.spec.devices;
        if !constraints.is_empty() {
            return Err(ClaimError::Constraints { claim: claim.clone() });
        }
        let mut asked =
            ClaimRequests { requests: Vec::new(), selectors: Vec::new(), config: Vec::new() };
        for request in requests {
            read(request, classes, &mut asked).map_err(|source| {
                let (claim, request) = (claim.clone(), request.name.clone());
                ClaimError::Request { claim, request, source }
            })?;
        }
        asked.config.extend(config.iter().map(|one| from("FromClaim", one)));
        Ok(asked)
    }
}

/// Adds one request of a claim, with the selectors of its class.
fn read(
    request: &WrittenRequest,
    classes: &BTreeMap<Text, DeviceClass>,
    asked: &mut ClaimRequests,
) -> Result<(), RequestError> {
    let name = &request.name;
    let exact = request.exactly.as_ref().ok_or(RequestError::Alternatives)?;
    let is_plain = exact.tolerations.is_empty()
        && exact.capacity.is_none()
        && exact.admin_access != Some(true);
    if !is_plain {
        return Err(RequestError::Fields);
    }
    if !matches!(&*exact.allocation_mode, "" | "ExactCount") {
        return Err(RequestError::AllocationMode);
    }
    let class = classes.get(&exact.device_class_name);
    let class = class
        .ok_or_else(|| RequestError::MissingClass { class: exact.device_class_name.clone() })?;
    for written in class.spec.selectors.iter().chain(exact.selectors.iter()) {
        let text = written.cel.as_ref().map_or("", |cel| &*cel.expression);
        let selector = DeviceSelector::parse(text)?;
        if asked.selectors.iter().all(|known| known.text() != selector.text()) {
            asked.selectors.push(selector);
        }
    }
    asked.config.extend(class.spec.config.iter().map(|one| {
        let mut one = from("FromClass", one);
        one["requests"] = json!([&**name]);
        one
    }));
    asked.requests.push(DeviceRequest { name: name.clone(), count: exact.count.unwrap_or(1) });
    Ok(())
}

fn from(source: &str, config: &Value) -> Value {
    let mut config = config.clone();
    config["source"] = json!(source);
    config
}

impl ClaimRequests {
    pub fn count(&self) -> u32 {
        self.requests.iter().map(|request| request.count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes() -> BTreeMap<Text, DeviceClass> {
        let class: DeviceClass = serde_json::from_value(json!({
            "metadata": { "name": "gpu.nvidia.com" },
            "spec": {
                "selectors": [{ "cel": { "expression": "device.driver == 'gpu.nvidia.com'" } }],
                "config": [{ "opaque": { "driver": "gpu.nvidia.com", "parameters": {} } }],
            },
        }))
        .unwrap();
        BTreeMap::from([("gpu.nvidia.com".into(), class)])
    }

    fn claim(request: Value) -> ResourceClaim {
        serde_json::from_value(json!({
            "metadata": { "name": "c" },
            "spec": { "devices": { "requests": [request] } },
        }))
        .unwrap()
    }

    #[test]
    fn a_claim_asks_for_so_many_devices_of_a_class() {
        let exactly = json!({ "deviceClassName": "gpu.nvidia.com", "count": 2,
            "allocationMode": "ExactCount",
            "selectors": [{ "cel": { "expression": "device.driver != 'x'" } }] });
        let asked = claim(json!({ "name": "r", "exactly": exactly })).asked(&classes()).unwrap();
        assert_eq!((asked.count(), asked.selectors.len()), (2, 2));
        assert_eq!(asked.config[0]["source"], "FromClass");
        assert_eq!(asked.config[0]["requests"], json!(["r"]));
    }

    #[test]
    fn what_is_not_known_of_a_claim_is_said() {
        for (request, word) in [
            (json!({ "name": "r", "firstAvailable": [{}] }), "alternatives"),
            (json!({ "name": "r", "exactly": { "deviceClassName": "nic" } }), "no DeviceClass nic"),
            (
                json!({ "name": "r", "exactly":
                    { "deviceClassName": "gpu.nvidia.com", "allocationMode": "All" } }),
                "ExactCount",
            ),
            (
                json!({ "name": "r", "exactly":
                    { "deviceClassName": "gpu.nvidia.com", "adminAccess": true } }),
                "adminAccess",
            ),
            (
                json!({ "name": "r", "exactly": { "deviceClassName": "gpu.nvidia.com",
                    "selectors": [{ "cel": { "expression": "size(device) > 1" } }] } }),
                "not understood",
            ),
        ] {
            let error = claim(request).asked(&classes()).unwrap_err();
            assert!(error.to_string().contains(word), "{error}");
        }
    }
}
