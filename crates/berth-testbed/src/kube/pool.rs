//! Clusters that the tests of one process use one after another. A start takes several seconds of
//! CPU time, most of it the API server's; to delete what a test has left takes a tenth of that.

use super::reset::Baseline;
use super::{Builder, Cluster};
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Clusters that are all started alike. It grows to as many as tests use at once.
///
/// The clusters end with the process: their guards notice.
pub struct Pool {
    options: fn() -> Builder,
    idle: Mutex<Vec<(Cluster, Baseline)>>,
}

impl Pool {
    pub const fn new(options: fn() -> Builder) -> Pool {
        Pool { options, idle: Mutex::new(Vec::new()) }
    }

    /// A cluster without any objects but its own, for one test.
    ///
    /// # Panics
    ///
    /// If none is idle and another one does not start.
    pub fn take(&'static self) -> Pooled {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let (cluster, baseline) = idle.unwrap_or_else(|| {
            let cluster = (self.options)().start();
            let baseline = cluster.baseline().expect("the API server lists its objects");
            (cluster, baseline)
        });
        Pooled { cluster: Some((cluster, baseline)), pool: self }
    }
}

/// A cluster that goes back to its pool. A test that stops or pauses a part of it needs one of its
/// own instead: this one cannot be borrowed mutably.
pub struct Pooled {
    /// None only while it is dropped.
    cluster: Option<(Cluster, Baseline)>,
    pool: &'static Pool,
}

impl Deref for Pooled {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster.as_ref().expect("it is not dropped yet").0
    }
}

impl Drop for Pooled {
    /// A cluster on which a test failed, or which is not as it was, is not used again.
    fn drop(&mut self) {
        let Some((cluster, baseline)) = self.cluster.take() else { return };
        if thread::panicking() {
            return;
        }
        match cluster.reset(&baseline) {
            Ok(()) => {
                let mut idle = self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner);
                idle.push((cluster, baseline));
            }
            Err(why) => eprintln!("a cluster is not used again: {why}"),
        }
    }
}
