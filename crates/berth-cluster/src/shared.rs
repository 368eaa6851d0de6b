//! The state of the cluster as the loop and its readers share it.

use crate::state::orders::ApiOrder;
use crate::state::pod_orders::PodOrder;
use crate::state::{ClusterState, Orders};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

/// The state, and the ways to those who carry its orders out.
pub struct SharedState {
    state: Mutex<ClusterState>,
    /// The loop must not wait for the API server, so neither queue has a bound of its own. What
    /// bounds them is the cluster: each lease orders a binding and an eviction, each pod a reason
    /// and an event at a time, each shared GPU one reservation, and each suspended job one change.
    api_orders: mpsc::UnboundedSender<ApiOrder>,
    /// At most a start, a stop, a removal and a forget for each lease of a managed job.
    pod_orders: mpsc::UnboundedSender<PodOrder>,
}

/// Where orders arrive.
pub struct OrderQueues {
    pub api: mpsc::UnboundedReceiver<ApiOrder>,
    pub pods: mpsc::UnboundedReceiver<PodOrder>,
}

impl SharedState {
    pub fn new(state: ClusterState) -> (SharedState, OrderQueues) {
        let (api_orders, api) = mpsc::unbounded_channel();
        let (pod_orders, pods) = mpsc::unbounded_channel();
        let shared = SharedState { state: Mutex::new(state), api_orders, pod_orders };
        (shared, OrderQueues { api, pods })
    }

    pub fn read<T>(&self, look: impl FnOnce(&ClusterState) -> T) -> T {
        look(&self.lock())
    }

    /// Changes the state, and sends its orders while the lock is held: orders keep the sequence of
    /// the changes.
    pub fn update<T>(&self, change: impl FnOnce(&mut ClusterState) -> T) -> T {
        let mut state = self.lock();
        let done = change(&mut state);
        let Orders { api, pods } = state.take_orders();
        // The receivers are gone only when the server stops; the next server orders again.
        for order in api {
            let _ = self.api_orders.send(order);
        }
        for order in pods {
            let _ = self.pod_orders.send(order);
        }
        done
    }

    fn lock(&self) -> MutexGuard<'_, ClusterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
