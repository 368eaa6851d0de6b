//! A GPU as the agent names it.

use berth_node::Device;

/// A GPU of the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gpu {
    pub index: u32,
    pub uuid: String,
    /// The number of its device node.
    pub minor: Option<u32>,
    pub model: String,
}

impl From<&Device> for Gpu {
    /// One that is declared is called after its number.
    fn from(device: &Device) -> Gpu {
        let index = device.index;
        Gpu {
            index,
            uuid: device.uuid.clone().unwrap_or_else(|| format!("GPU-{index}")),
            minor: device.minor.or(device.declared().then_some(index)),
            model: device.model.to_string(),
        }
    }
}
