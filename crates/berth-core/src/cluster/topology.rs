//! Looking up levels and domains of the topologies.

use crate::cluster::Cluster;
use crate::cluster::domain::{Domain, Level, WHOLE};
use crate::ix::{DomainIx, NodeIx};
use berth_model::{Name, NodeSpec};
use std::collections::BTreeSet;

impl Cluster {
    /// The level a request names: `node`, `nvlink` or a label key of the topology.
    pub fn level(&self, topology: Option<&Name>, name: &str) -> Option<Level> {
        match name {
            "node" => return Some(Level::Node),
            "nvlink" => return Some(Level::Nvlink),
            _ => {}
        }
        let wanted = topology.map_or("default", Name::as_str);
        let (at, (_, keys)) =
            self.topologies.iter().enumerate().find(|(_, (name, _))| name.as_str() == wanted)?;
        let depth = keys.iter().position(|key| key.as_str() == name)?;
        Some(Level::Label { topology: at as u32, depth: depth as u32 })
    }

    pub fn level_name(&self, level: Level) -> Name {
        match level {
            Level::Nvlink => Name::new("nvlink"),
            Level::Node => Name::new("node"),
            Level::Label { topology, depth } => {
                self.topologies[topology as usize].1[depth as usize].clone()
            }
        }
    }

    /// The domains of a label level, in the order they appeared.
    pub fn domains_of(&self, topology: u32, depth: u32) -> impl Iterator<Item = DomainIx> + '_ {
        self.domains.iter().enumerate().filter_map(move |(at, domain)| {
            (domain.topology == topology && domain.depth == depth && !domain.nodes.is_empty())
                .then_some(DomainIx(at as u32))
        })
    }

    /// The node of a domain that joined first. Ties between domains are broken by it, because the
    /// ordinal of a domain depends on history.
    pub fn first_of(&self, domain: DomainIx) -> Option<NodeIx> {
        self.domains[domain.at()].nodes.first().copied()
    }

    /// Whether a domain lies in another one, whole.
    pub fn lies_in(&self, inner: DomainIx, outer: DomainIx) -> bool {
        if outer == WHOLE || inner == outer {
            return true;
        }
        let (inner, outer) = (&self.domains[inner.at()], &self.domains[outer.at()]);
        let Some(first) = inner.nodes.first().filter(|_| inner.nodes.len() <= outer.nodes.len())
        else {
            return false;
        };
        // Domains of one topology lie in each other or apart.
        match inner.topology == outer.topology {
            true => outer.nodes.contains(first),
            false => inner.nodes.is_subset(&outer.nodes),
        }
    }

    /// The domains of a label level by their first nodes.
    pub fn domains_in_order(&self, topology: u32, depth: u32) -> Vec<DomainIx> {
        let mut found: Vec<DomainIx> = self.domains_of(topology, depth).collect();
        found.sort_by_key(|domain| self.first_of(*domain));
        found
    }

    /// The domain of that level a node lies in, if its labels say so.
    pub fn domain_of(&self, node: NodeIx, topology: u32, depth: u32) -> Option<DomainIx> {
        self.node(node).domains.iter().copied().find(|ix| {
            let domain = &self.domains[ix.at()];
            domain.topology == topology && domain.depth == depth
        })
    }

    fn intern_domain(&mut self, topology: u32, path: Vec<Name>) -> DomainIx {
        if let Some(ix) = self.domain_by_path.get(&(topology, path.clone())) {
            return *ix;
        }
        let ix = DomainIx(self.domains.len() as u32);
        self.domains.push(Domain {
            topology,
            depth: path.len() as u32 - 1,
            name: path.last().cloned().unwrap_or_default(),
            nodes: BTreeSet::new(),
            counts: Vec::new(),
            uncommitted: 0,
            contested: 0,
        });
        self.domain_by_path.insert((topology, path), ix);
        ix
    }

    pub(super) fn domains_for(&mut self, spec: &NodeSpec) -> Vec<DomainIx> {
        let mut found = vec![WHOLE];
        for topology in 0..self.topologies.len() {
            let mut path = Vec::new();
            for key in self.topologies[topology].1.clone() {
                // A node that lacks a label has no domain there, nor below.
                let Some(value) = spec.labels.get(&key) else { break };
                path.push(value.clone());
                found.push(self.intern_domain(topology as u32, path.clone()));
            }
        }
        found
    }

    /// Where the levels of a topology begin in a list of all levels.
    pub(crate) fn level_at(&self, topology: u32, depth: u32) -> usize {
        let before = self.topologies[..topology as usize].iter().map(|(_, keys)| keys.len());
        before.sum::<usize>() + depth as usize
    }

    pub(crate) fn levels(&self) -> usize {
        self.topologies.iter().map(|(_, keys)| keys.len()).sum()
    }
}
