//! Devices that are claimed (dynamic resource allocation): what drivers say there is, what claims
//! ask for, and writing down who was given what. Claims on GPUs are understood; what a claim says
//! beyond that makes its pod wait.

mod allocate;
mod cel;
mod claim;
mod device;
mod slice;

pub use allocate::Allocation;
pub use cel::{DeviceSelector, UnsupportedExpression};
pub use claim::{
    ClaimError, ClaimRequests, DeviceClass, DeviceRequest, RequestError, ResourceClaim,
};
pub use device::{Device, DeviceId};
pub use slice::{ResourceSlice, gpu_spec, node_devices};

/// Where these objects are.
pub const GROUP: &str = "/apis/resource.k8s.io/v1";
pub const SLICES: &str = "/apis/resource.k8s.io/v1/resourceslices";
pub const CLASSES: &str = "/apis/resource.k8s.io/v1/deviceclasses";
pub const CLAIMS: &str = "/apis/resource.k8s.io/v1/resourceclaims";
