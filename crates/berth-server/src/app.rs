//! What every request handler has at hand.

use crate::engine::Handle;
use crate::home::Home;
use crate::http::uses::Uses;
use crate::vault::Vault;
use berth_api::wire;
use berth_node::{Driver, Inventory, Probe};
use berth_store::Store;
use std::ops::Deref;
use std::sync::Arc;

#[derive(Clone)]
pub struct App(Arc<Parts>);

pub struct Parts {
    pub engine: Handle,
    pub store: Store,
    pub vault: Vault,
    pub driver: Arc<Driver>,
    pub inventory: Arc<Inventory>,
    pub probe: Probe,
    pub home: Home,
    /// The settings of the server, and where each comes from.
    pub config: Vec<wire::ConfigEntry>,
    pub uses: Uses,
}

impl App {
    pub fn new(parts: Parts) -> App {
        App(Arc::new(parts))
    }
}

impl Deref for App {
    type Target = Parts;
    fn deref(&self) -> &Parts {
        &self.0
    }
}
