//! Writes what has to be written before a pod is bound.

use crate::state::device_claims::DeviceClaimError;
use crate::state::orders::BindStep;
use berth_kube::Api;
use berth_model::PodRef;

/// Why a pod is not bound.
#[derive(Debug, thiserror::Error)]
pub enum Unprepared {
    #[error(transparent)]
    Api(#[from] berth_kube::Error),
    #[error(transparent)]
    Devices(#[from] DeviceClaimError),
}

impl BindStep {
    /// Doing it again does nothing.
    pub async fn carry_out(&self, api: &Api, pod: &PodRef) -> Result<(), Unprepared> {
        match self {
            BindStep::Claim(allocation) => Ok(api.allocate(allocation, pod).await?),
            BindStep::Gone(why) => Err(why.clone().into()),
        }
    }
}
