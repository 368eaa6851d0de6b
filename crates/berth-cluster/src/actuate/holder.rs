//! The program of a reservation pod: it reports which GPU it was given, and stays.

use berth_kube::pod::gpu_sharing;
use berth_kube::{Api, PatchType};
use berth_node::{Device, Probe};
use futures_util::future::LocalBoxFuture;
use serde_json::json;
use std::path::Path;
use std::time::Duration;

const RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// Why a pod cannot say which GPU it holds.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    #[error("{0} is not set; Berth sets it in the pods it makes, and this runs nowhere else")]
    NoName(&'static str),
    #[error(
        "it is not known which GPU this is: NVIDIA_VISIBLE_DEVICES names none, and the driver \
         shows {seen}; a pod that holds a GPU asks for exactly one nvidia.com/gpu"
    )]
    NotOne { seen: usize },
    #[error(transparent)]
    Api(berth_kube::Error),
}

/// Says on this pod which GPU it was given. An API server that is away is tried again.
pub fn hold_gpu<'a>(
    kubeconfig: Option<&'a Path>,
    env: Env<'a>,
) -> LocalBoxFuture<'a, Result<String, HoldError>> {
    Box::pin(hold(kubeconfig, env))
}

/// The variables of the environment.
type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

async fn hold(kubeconfig: Option<&Path>, env: Env<'_>) -> Result<String, HoldError> {
    let named = |key: &'static str| env(key).ok_or(HoldError::NoName(key));
    let (name, namespace) = (named("POD_NAME")?, named("POD_NAMESPACE")?);
    let uuid = given(env("NVIDIA_VISIBLE_DEVICES").as_deref(), || Probe::load().devices())?;
    let api = Api::connect(kubeconfig, None).await.map_err(HoldError::Api)?;
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
    let patch = json!({ "metadata": { "annotations": { gpu_sharing::UUID: uuid } } });
    loop {
        match api.patch(&path, PatchType::Merge, &patch).await {
            Ok(_) => return Ok(uuid),
            Err(error) if error.is_transient() => tokio::time::sleep(RETRY_INTERVAL).await,
            Err(error) => return Err(HoldError::Api(error)),
        }
    }
}

/// The GPU that the device plugin names, or else the only one that the driver shows.
fn given(
    visible: Option<&str>,
    devices: impl FnOnce() -> Vec<Device>,
) -> Result<String, HoldError> {
    if let Some(uuid) = visible.filter(|uuid| uuid.starts_with("GPU-") && !uuid.contains(',')) {
        return Ok(uuid.to_owned());
    }
    let devices = devices();
    match &devices[..] {
        [Device { uuid: Some(uuid), .. }] => Ok(uuid.clone()),
        all => Err(HoldError::NotOne { seen: all.len() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::{Bytes, Health, Name};

    fn device(index: u32) -> Device {
        Device {
            index,
            minor: None,
            uuid: Some(format!("GPU-{index}")),
            model: Name::new("H200-141GB"),
            memory: Bytes::gb(141),
            health: Health::Ok,
            mig: None,
        }
    }

    #[test]
    fn the_device_plugin_says_which_gpu_it_is_or_else_the_driver() {
        let none = || panic!("the driver is not asked");
        assert_eq!(given(Some("GPU-7"), none).unwrap(), "GPU-7");
        // Lists of devices as volumes or by CDI leave a word or nothing in the environment.
        for visible in [None, Some("void"), Some("all"), Some("/var/run/nvidia-container-devices")]
        {
            assert_eq!(given(visible, || vec![device(0)]).unwrap(), "GPU-0");
        }
    }

    #[test]
    fn several_gpus_or_none_are_no_answer() {
        assert!(given(Some("GPU-1,GPU-2"), || vec![device(1), device(2)]).is_err());
        let error = given(None, Vec::new).unwrap_err().to_string();
        assert!(error.contains("shows 0"), "{error}");
    }
}
