//! The machines a workload runs on, and what a job asks of them.

use berth_model::Name;
use serde::{Deserialize, Serialize};

/// What nodes are said to hold when nobody says.
pub const UNNAMED: &str = "GPU";
/// Models that one fleet can have: a job's choice among them is a word of bits.
pub const MODELS: usize = 64;

/// Every job may run on these models of a fleet, as bits by their place in its list.
pub const ANY: u64 = u64::MAX;

/// One node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Machine {
    pub gpus: u32,
    /// The place of its model in the fleet's list.
    pub model: u32,
}

/// Nodes, in the order in which ties are broken.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Fleet {
    pub models: Vec<Name>,
    pub nodes: Vec<Machine>,
}

impl Fleet {
    /// Nodes by GPUs and model. Nothing if they have more models than [`MODELS`].
    pub fn new<'a>(nodes: impl IntoIterator<Item = (u32, &'a str)>) -> Option<Fleet> {
        let mut fleet = Fleet::default();
        for (gpus, model) in nodes {
            let model = fleet.model(model)?;
            fleet.nodes.push(Machine { gpus, model });
        }
        Some(fleet)
    }

    pub fn like(nodes: u32, gpus: u32, model: &str) -> Fleet {
        let machine = Machine { gpus, model: 0 };
        Fleet { models: vec![Name::new(model)], nodes: vec![machine; nodes as usize] }
    }

    /// The place of a model, which is new to the list if need be.
    pub fn model(&mut self, name: &str) -> Option<u32> {
        let known = self.models.iter().position(|model| model.as_str() == name);
        if let Some(place) = known {
            return Some(place as u32);
        }
        (self.models.len() < MODELS).then(|| {
            self.models.push(Name::new(name));
            self.models.len() as u32 - 1
        })
    }

    pub fn gpus(&self) -> u64 {
        self.nodes.iter().map(|node| u64::from(node.gpus)).sum()
    }

    /// GPUs of the largest node of a model.
    pub fn largest(&self, model: usize) -> u32 {
        let of = self.nodes.iter().filter(|node| node.model as usize == model);
        of.map(|node| node.gpus).max().unwrap_or(0)
    }

    /// How many nodes there are of each kind, in the order in which they first come.
    pub fn kinds(&self) -> Vec<(Machine, u32)> {
        let mut kinds: Vec<(Machine, u32)> = Vec::new();
        for node in &self.nodes {
            match kinds.iter_mut().find(|(kind, _)| kind == node) {
                Some((_, count)) => *count += 1,
                None => kinds.push((*node, 1)),
            }
        }
        kinds
    }

    /// `12 nodes of 8 A100 and 3 nodes of 4 T4`.
    pub fn describe(&self) -> String {
        let one = |(kind, count): &(Machine, u32)| {
            let nodes = if *count == 1 { "node" } else { "nodes" };
            let model = match self.models[kind.model as usize].as_str() {
                UNNAMED => "GPUs",
                model => model,
            };
            format!("{count} {nodes} of {} {model}", kind.gpus)
        };
        let kinds: Vec<String> = self.kinds().iter().map(one).collect();
        match kinds.as_slice() {
            [] => "no fixed nodes".to_owned(),
            [one] => one.clone(),
            [first @ .., last] if first.len() < 6 => format!("{} and {last}", first.join(", ")),
            many => format!("{} nodes of {} kinds", self.nodes.len(), many.len()),
        }
    }

    /// More nodes like those of the first kind.
    #[must_use]
    pub fn with_more(&self, nodes: u32) -> Fleet {
        let mut fleet = self.clone();
        if let Some(first) = self.nodes.first() {
            fleet.nodes.extend(std::iter::repeat_n(*first, nodes as usize));
        }
        fleet
    }
}

/// Nodes that all have the same number of GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    pub nodes: u32,
    pub gpus_per_node: u32,
}

impl Pool {
    pub fn gpus(self) -> u64 {
        u64::from(self.nodes) * u64::from(self.gpus_per_node)
    }
}

impl From<Pool> for Fleet {
    fn from(pool: Pool) -> Fleet {
        Fleet::like(pool.nodes, pool.gpus_per_node, UNNAMED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_one_kind_are_counted_together() {
        let fleet = Fleet::new([(8, "A100"), (4, "T4"), (8, "A100")]).unwrap();
        assert_eq!(fleet.describe(), "2 nodes of 8 A100 and 1 node of 4 T4");
        assert_eq!((fleet.gpus(), fleet.largest(1)), (20, 4));
        assert_eq!(fleet.with_more(3).describe(), "5 nodes of 8 A100 and 1 node of 4 T4");
    }
}
