//! The topology domains a group may lie in, in the order they are tried.

use crate::cluster::domain::Level;
use crate::ix::{DomainIx, NodeIx};
use crate::plan::fit::search::Search;
use crate::shape::leaf::Together;

impl<'d, 's> Search<'d, 's> {
    /// The domains a group may lie in, in the order to try them: the preferred level and those
    /// between it and the required one, in each the tightest domain first.
    pub(super) fn domains_for(&self, together: &Together, within: DomainIx) -> Vec<DomainIx> {
        let cluster = &self.state().cluster;
        let depth_of = |level: Option<Level>| match level {
            Some(Level::Label { depth, .. }) => Some(depth),
            _ => None,
        };
        let topology = match together.required.or(together.preferred) {
            Some(Level::Label { topology, .. }) => topology,
            _ => return vec![within],
        };
        let lowest = depth_of(together.preferred).or(depth_of(together.required)).unwrap_or(0);
        let highest = depth_of(together.required);
        let inside = |domain: &DomainIx| cluster.lies_in(*domain, within);
        let mut found = Vec::new();
        let mut depth = lowest as i64;
        while depth >= i64::from(highest.unwrap_or(0)) {
            let mut level: Vec<(usize, Option<NodeIx>, DomainIx)> = cluster
                .domains_of(topology, depth as u32)
                .filter(inside)
                .map(|domain| (self.free_in(domain), cluster.first_of(domain), domain))
                .collect();
            level.sort();
            found.extend(level.into_iter().map(|(_, _, domain)| domain));
            depth -= 1;
        }
        if highest.is_none() {
            found.push(within);
        }
        found
    }
}
