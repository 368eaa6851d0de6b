//! What every request handler has at hand.

use crate::engine::Handle;
use crate::home::Home;
use crate::http::uses::Uses;
use crate::kube::own::Jobs;
use crate::vault::Vault;
use berth_api::wire;
use berth_kube::Figures;
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
    /// Nothing where jobs run elsewhere.
    pub here: Option<Here>,
    /// Nothing where jobs do not run as pods.
    pub pods: Option<Jobs>,
    /// How the API server was asked, where jobs run on a cluster.
    pub figures: Option<Arc<Figures>>,
    pub home: Home,
    /// The settings of the server, and where each comes from.
    pub config: Vec<wire::ConfigEntry>,
    pub uses: Uses,
}

/// The machine the server runs on, where jobs run there.
pub struct Here {
    pub driver: Arc<Driver>,
    pub inventory: Arc<Inventory>,
    pub probe: Probe,
}

impl App {
    pub fn new(parts: Parts) -> App {
        App(Arc::new(parts))
    }

    /// Whether the GPUs are bookkeeping.
    pub fn declared(&self) -> bool {
        self.here.as_ref().is_some_and(|here| here.inventory.declared)
    }

    /// The machine, if that is the one of this name.
    pub fn here(&self, node: &str) -> Option<&Here> {
        self.here.as_ref().filter(|here| here.inventory.node.name.as_str() == node)
    }

    pub fn driver(&self) -> Option<Arc<Driver>> {
        self.here.as_ref().map(|here| here.driver.clone())
    }
}

impl Deref for App {
    type Target = Parts;
    fn deref(&self) -> &Parts {
        &self.0
    }
}
