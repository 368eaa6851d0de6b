//! Nodes on which something has changed: their GPU release times are outdated, and whoever stores
//! something about each node has to look at them again.

use crate::cluster::Cluster;
use crate::cluster::release_times::GpuReleaseTimes;
use crate::ix::NodeIx;
use berth_model::Time;

impl Cluster {
    /// Adds an entry for a new node. Its release times are not known yet.
    pub fn add_release_times(&mut self, ix: NodeIx) {
        self.release_times.push(GpuReleaseTimes::default());
        self.outdated.push(ix);
    }

    /// Marks a node as changed: its release times no longer hold.
    pub fn mark_dirty(&mut self, ix: NodeIx) {
        let times = &mut self.release_times[ix.at()];
        if !std::mem::replace(&mut times.is_dirty, true) {
            self.dirty.push(ix);
        }
        if times.is_known {
            times.is_known = false;
            self.outdated.push(ix);
        }
    }

    /// Nodes on which a lease was opened, closed or stopped, or a place was promised, since the last
    /// call.
    pub fn take_dirty(&mut self) -> Vec<NodeIx> {
        let dirty = std::mem::take(&mut self.dirty);
        dirty.iter().for_each(|ix| self.release_times[ix.at()].is_dirty = false);
        dirty
    }

    pub fn mark_all_dirty(&mut self) {
        for at in 0..self.release_times.len() {
            self.mark_dirty(NodeIx(at as u32));
        }
    }

    /// Takes over the release times of a node, earliest first.
    pub fn set_release_times(&mut self, ix: NodeIx, times: &[Time]) {
        self.release_times[ix.at()].set(times);
    }
}
