//! Compatibility with other schedulers: whose manifests are accepted, and what their names mean
//! here.

use berth_model::Name;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

/// A scheduler whose manifests are taken as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    Kai,
    Kueue,
    Volcano,
}

impl Peer {
    /// As `--stand-in` has them.
    pub const NAMES: [&str; 3] = ["kai", "kueue", "volcano"];

    /// What its pods name as their scheduler. Pods of Kueue name the default scheduler; Berth
    /// recognises them by their queue.
    const fn scheduler_name(self) -> Option<&'static str> {
        match self {
            Peer::Kai => Some("kai-scheduler"),
            Peer::Volcano => Some("volcano"),
            Peer::Kueue => None,
        }
    }
}

/// A name that is no scheduler whose manifests Berth takes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} is not one of {}", Peer::NAMES.join(", "))]
pub struct UnknownPeer {
    pub name: String,
}

impl FromStr for Peer {
    type Err = UnknownPeer;
    fn from_str(name: &str) -> Result<Peer, UnknownPeer> {
        match name {
            "kai" => Ok(Peer::Kai),
            "kueue" => Ok(Peer::Kueue),
            "volcano" => Ok(Peer::Volcano),
            other => Err(UnknownPeer { name: other.to_owned() }),
        }
    }
}

/// What names of others mean here, as `--map` has it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PeerMap {
    /// Pods that name one of these are ours, too.
    pub schedulers: BTreeSet<String>,
    /// Queues of others, or `NAMESPACE/NAME`, to ours.
    pub queues: BTreeMap<String, String>,
}

/// A map of names that cannot be read. The parser's error is large, so it is boxed.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct BadPeerMap(Box<serde_saphyr::Error>);

impl FromStr for PeerMap {
    type Err = BadPeerMap;
    fn from_str(text: &str) -> Result<PeerMap, BadPeerMap> {
        serde_saphyr::from_str(text).map_err(|error| BadPeerMap(Box::new(error)))
    }
}

/// The schedulers that Berth replaces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Compat {
    pub peers: BTreeSet<Peer>,
    pub map: PeerMap,
}

impl Compat {
    pub fn is_for(&self, peer: Peer) -> bool {
        self.peers.contains(&peer)
    }

    /// The scheduler names of all pods that Berth schedules.
    pub fn scheduler_names(&self, own: &[String]) -> BTreeSet<String> {
        let foreign = self.peers.iter().filter_map(|peer| peer.scheduler_name());
        let foreign = foreign.map(str::to_owned).chain(self.map.schedulers.iter().cloned());
        own.iter().cloned().chain(foreign).collect()
    }

    /// Gates by which they keep pods from being scheduled until there is room.
    pub fn gates(&self) -> Vec<&'static str> {
        let of = |peer: &Peer| -> &'static [&'static str] {
            match peer {
                Peer::Kueue => &["kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology"],
                Peer::Volcano => &["scheduling.volcano.sh/queue-allocation-gate"],
                Peer::Kai => &[],
            }
        };
        self.peers.iter().flat_map(of).copied().collect()
    }

    pub fn queues(&self) -> BTreeMap<String, Name> {
        let queues = self.map.queues.iter();
        queues.map(|(foreign, ours)| (foreign.clone(), Name::new(ours))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_others_are_ours_where_their_place_is_taken() {
        let map = "schedulers: [training]\nqueues: {team-a/main: vision, best-effort: spare}\n";
        let peers = [Peer::Kai, Peer::Kueue].into();
        let compat = Compat { peers, map: map.parse().unwrap() };
        let names = compat.scheduler_names(&["berth".to_owned()]);
        assert_eq!(Vec::from_iter(names), ["berth", "kai-scheduler", "training"]);
        assert_eq!(compat.queues()["team-a/main"], Name::new("vision"));
        assert!("queue: {a: b}".parse::<PeerMap>().is_err(), "an unknown key is an error");
    }
}
