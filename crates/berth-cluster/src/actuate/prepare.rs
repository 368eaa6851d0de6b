//! Writes what has to be written before a pod is bound.

use crate::state::orders::BindStep;
use berth_kube::Api;
use berth_model::PodRef;

/// Why a pod is not bound.
#[derive(Debug)]
pub enum Unprepared {
    Api(berth_kube::Error),
    Gone(String),
}

impl BindStep {
    /// Doing it again does nothing.
    pub async fn carry_out(&self, api: &Api, pod: &PodRef) -> Result<(), Unprepared> {
        match self {
            BindStep::Claim(allocation) => {
                api.allocate(allocation, pod).await.map_err(Unprepared::Api)
            }
            BindStep::Gone(why) => Err(Unprepared::Gone(why.clone())),
        }
    }
}
