//! HyperNodes of Volcano: nodes that are close to each other, in tiers. The lower a tier, the closer.
//!
//! A job may be allowed to lie in a HyperNode of some tier at most. So a node has a place at every
//! tier: the largest HyperNode around it of that tier or a lower one. Parts of a
//! HyperNode that make no sense are reported and left out, and the rest is used.

use crate::object::{LabelSelector, Labels, List, Text};
use crate::selector::{LabelMatcher, UnsupportedConstraint};
use berth_model::Name;
use regex::Regex;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The topology that HyperNodes make up. No object of Kubernetes can have that name.
pub const TOPOLOGY: &str = "volcano.sh/hypernodes";
const LEVEL: &str = "volcano.sh/tier-";
/// The highest tier. Each is a level for the scheduler, so that there must not be any number of them.
pub const MAX_TIER: u32 = 63;

/// The level of the scheduler that a tier is.
pub fn level(tier: u32) -> Name {
    Name::from(format!("{LEVEL}{tier}"))
}

/// The tier that a level is, if it is one.
pub fn tier(level: &str) -> Option<u32> {
    level.strip_prefix(LEVEL)?.parse().ok()
}

/// What is read of one. Its status is nothing to us.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HyperNode {
    pub tier: i64,
    pub tier_name: Option<Text>,
    pub members: List<Member>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Member {
    #[serde(rename = "type")]
    pub kind: Text,
    pub selector: MemberSelector,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MemberSelector {
    pub exact_match: Option<Exact>,
    pub regex_match: Option<Pattern>,
    /// For nodes alone.
    pub label_match: Option<LabelSelector>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Exact {
    pub name: Text,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Pattern {
    pub pattern: Text,
}

/// All of them, ready to say which are around a node.
#[derive(Debug, Default)]
pub struct HyperNodeTree {
    places: Vec<Place>,
    /// Those that name a node.
    named: BTreeMap<Text, Vec<usize>>,
    /// Those that have nodes in another way.
    selected: Vec<(Selected, usize)>,
    /// The tiers by the names that HyperNodes give them.
    pub names: BTreeMap<Name, u32>,
}

#[derive(Debug)]
struct Place {
    name: Name,
    tier: u32,
    above: Option<usize>,
}

#[derive(Debug)]
enum Selected {
    Pattern(Regex),
    Labels(LabelMatcher),
}

/// Why a HyperNode, or one of its members, is left out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HyperNodeError {
    #[error("tier {tier}: write one from 0 to {MAX_TIER}")]
    Tier { tier: i64 },
    #[error(
        "tier {tier} is called {name}, and so is tier {first}, which counts; give each tier a name \
         of its own"
    )]
    TierName { tier: u32, name: String, first: u32 },
    #[error("`{pattern}` is no regular expression")]
    Pattern { pattern: String },
    #[error(transparent)]
    Labels(#[from] UnsupportedConstraint),
    #[error("its member {member} is not there; make it, or take it out")]
    MissingMember { member: String },
    #[error(
        "a member of type {kind} is not understood; write Node or HyperNode with exactMatch or \
         regexMatch, or Node with labelMatch"
    )]
    MemberType { kind: String },
    #[error(
        "its member {member} is of tier {member_tier} and it itself of tier {tier}; members have to \
         be of a lower one"
    )]
    MemberTier { member: Name, member_tier: u32, tier: u32 },
    #[error("its member {member} is one of {parent} as well, which counts")]
    TwoParents { member: Name, parent: Name },
}

impl HyperNodeTree {
    pub fn new(all: &BTreeMap<Name, &HyperNode>) -> (HyperNodeTree, Vec<(Name, HyperNodeError)>) {
        let (mut tree, mut wrong) = (HyperNodeTree::default(), Vec::new());
        let mut at = BTreeMap::new();
        let mut used = Vec::new();
        for (name, object) in all {
            let Some(tier) = u32::try_from(object.tier).ok().filter(|tier| *tier <= MAX_TIER)
            else {
                wrong.push((name.clone(), HyperNodeError::Tier { tier: object.tier }));
                continue;
            };
            at.insert(name.as_str(), tree.places.len());
            tree.places.push(Place { name: name.clone(), tier, above: None });
            used.push(*object);
            if let Some(called) = object.tier_name.as_deref().filter(|called| !called.is_empty()) {
                let known = *tree.names.entry(Name::new(called)).or_insert(tier);
                if known != tier {
                    let name_of_tier = called.to_owned();
                    let error = HyperNodeError::TierName { tier, name: name_of_tier, first: known };
                    wrong.push((name.clone(), error));
                }
            }
        }
        for (ix, object) in used.into_iter().enumerate() {
            for member in object.members.iter() {
                if let Err(why) = tree.add(ix, member, &at) {
                    wrong.push((tree.places[ix].name.clone(), why));
                }
            }
        }
        (tree, wrong)
    }

    fn add(
        &mut self,
        ix: usize,
        member: &Member,
        at: &BTreeMap<&str, usize>,
    ) -> Result<(), HyperNodeError> {
        let MemberSelector { exact_match, regex_match, label_match } = &member.selector;
        let pattern = |pattern: &Pattern| {
            let pattern = &*pattern.pattern;
            Regex::new(pattern).map_err(|_| HyperNodeError::Pattern { pattern: pattern.to_owned() })
        };
        match (&*member.kind, exact_match, regex_match, label_match) {
            ("Node", Some(exact), None, None) => {
                self.named.entry(exact.name.clone()).or_default().push(ix);
            }
            ("Node", None, Some(regex), None) => {
                self.selected.push((Selected::Pattern(pattern(regex)?), ix));
            }
            ("Node", None, None, Some(labels)) => {
                let labels = LabelMatcher::of("labelMatch", Some(labels));
                self.selected.push((Selected::Labels(labels?), ix));
            }
            ("HyperNode", Some(exact), None, None) => {
                let below = at.get(&*exact.name).copied();
                let below = below.ok_or_else(|| HyperNodeError::MissingMember {
                    member: exact.name.to_string(),
                })?;
                self.put_below(below, ix)?;
            }
            ("HyperNode", None, Some(regex), None) => {
                let regex = pattern(regex)?;
                let found = at.iter().filter(|(name, at)| **at != ix && regex.is_match(name));
                for below in found.map(|(_, at)| *at).collect::<Vec<usize>>() {
                    self.put_below(below, ix)?;
                }
            }
            (kind, ..) => {
                return Err(HyperNodeError::MemberType { kind: kind.to_owned() });
            }
        }
        Ok(())
    }

    /// Tiers rise from one to the next, so that nothing is around itself.
    fn put_below(&mut self, below: usize, above: usize) -> Result<(), HyperNodeError> {
        let (tier, name) = (self.places[above].tier, self.places[below].name.clone());
        let known = self.places[below].above.filter(|known| *known != above);
        if self.places[below].tier >= tier {
            let member_tier = self.places[below].tier;
            return Err(HyperNodeError::MemberTier { member: name, member_tier, tier });
        }
        if let Some(known) = known {
            let parent = self.places[known].name.clone();
            return Err(HyperNodeError::TwoParents { member: name, parent });
        }
        self.places[below].above = Some(above);
        Ok(())
    }

    /// The tiers there are.
    pub fn tiers(&self) -> impl Iterator<Item = u32> + '_ {
        self.places.iter().map(|place| place.tier)
    }

    /// The HyperNodes around a node by their tiers. Of several in one tier the first by name counts,
    /// and the second value says of which tier there are such.
    pub fn around(&self, node: &str, labels: &Labels) -> (BTreeMap<u32, &Name>, Option<u32>) {
        let named = self.named.get(node).into_iter().flatten().copied();
        let selected = self.selected.iter().filter(|(how, _)| match how {
            Selected::Pattern(pattern) => pattern.is_match(node),
            Selected::Labels(selector) => selector.matches(labels),
        });
        let direct = named.chain(selected.map(|(_, ix)| *ix));
        let all = direct.flat_map(|ix| {
            std::iter::successors(Some(ix), |ix| self.places[*ix].above).map(|ix| &self.places[ix])
        });
        let (mut found, mut twice) = (BTreeMap::<u32, &Name>::new(), None);
        for Place { name, tier, .. } in all {
            let known = found.entry(*tier).or_insert(name);
            if *known != name {
                twice = Some(*tier);
                *known = name.min(known);
            }
        }
        (found, twice)
    }
}

#[cfg(test)]
mod tests;
