//! The machines of a replay: which are there, who runs on them, and what is going to happen.

use super::world::{BEGIN, node_name};
use crate::outcome::{Bought, Outage};
use crate::site::{Offer, Site};
use berth_model::{Micros, Name, Span, Time};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// What is going to happen to machines, in the order in which it is taken at one moment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MarketEvent {
    Repaired {
        node: u32,
        gpu: Option<u32>,
    },
    Price {
        offer: usize,
        price: Micros,
    },
    Weather {
        offer: usize,
        there: bool,
    },
    Booted(Name),
    /// A machine, by its place among those bought, will be taken back.
    Notice(usize),
    Gone(usize),
}

pub(super) struct Purchase {
    pub(super) offer: usize,
    pub(super) spot: bool,
    pub(super) at: Time,
}

pub(super) struct Owned {
    pub(super) name: Name,
    pub(super) offer: usize,
    pub(super) leaving: bool,
    pub(super) gone: bool,
}

/// Machines, who is on them, and what is going to happen to them.
pub(super) struct Market {
    pub(super) offers: Vec<Offer>,
    pub(super) seed: u64,
    pub(super) fixed: u32,
    pub(super) gpus: Vec<u32>,
    pub(super) numbers: BTreeMap<Name, u32>,
    /// Who has tasks on a node; kept only where machines may fail or leave.
    pub(super) on: Option<Vec<Vec<u32>>>,
    /// GPUs of fixed nodes that are out of order.
    pub(super) out: Vec<u32>,
    pub(super) coming: BinaryHeap<Reverse<(Time, MarketEvent)>>,
    pub(super) orders: BTreeMap<Name, Purchase>,
    pub(super) owned: Vec<Owned>,
    pub(super) bought: Vec<Bought>,
    pub(super) outages: Vec<Outage>,
    /// Whether spot can be had, by offer.
    pub(super) there: Vec<bool>,
}

impl Market {
    pub(super) fn new(site: &Site) -> Market {
        let fixed = site.fleet.nodes.len();
        let moving =
            !site.market.is_empty() || site.troubles.node.is_some() || site.troubles.gpu.is_some();
        let mut coming = BinaryHeap::new();
        for (offer, spot) in site.market.iter().enumerate() {
            let Some(spot) = &spot.spot else { continue };
            for (after, price) in &spot.prices {
                coming.push(Reverse((BEGIN + *after, MarketEvent::Price { offer, price: *price })));
            }
            for (after, there) in &spot.there {
                coming
                    .push(Reverse((BEGIN + *after, MarketEvent::Weather { offer, there: *there })));
            }
        }
        Market {
            offers: site.market.clone(),
            seed: site.troubles.seed,
            fixed: fixed as u32,
            gpus: site.fleet.nodes.iter().map(|node| node.gpus).collect(),
            numbers: (0..fixed as u32).map(|node| (node_name(node), node)).collect(),
            on: moving.then(|| vec![Vec::new(); fixed]),
            out: vec![0; fixed],
            coming,
            orders: BTreeMap::new(),
            owned: Vec::new(),
            bought: Vec::new(),
            outages: Vec::new(),
            there: vec![true; site.market.len()],
        }
    }

    pub(super) fn number(&self, node: &Name) -> u32 {
        self.numbers[node]
    }

    pub(super) fn here(&mut self, node: u32, job: u32) {
        if let Some(on) = &mut self.on {
            on[node as usize].push(job);
        }
    }

    pub(super) fn left(&mut self, node: u32, job: u32) {
        if let Some(on) = &mut self.on {
            let there = &mut on[node as usize];
            if let Some(place) = there.iter().position(|other| *other == job) {
                there.swap_remove(place);
            }
        }
    }

    /// Jobs with tasks on a node, in their order.
    pub(super) fn on(&self, node: u32) -> Vec<u32> {
        let mut jobs = self.on.as_ref().map_or(Vec::new(), |on| on[node as usize].clone());
        jobs.sort_unstable();
        jobs.dedup();
        jobs
    }

    pub(super) fn next_at(&self) -> Option<Time> {
        self.coming.peek().map(|Reverse((at, _))| *at)
    }

    pub(super) fn next_by(&mut self, now: Time) -> Option<MarketEvent> {
        self.coming.peek().filter(|Reverse((at, _))| *at <= now)?;
        self.coming.pop().map(|Reverse((_, coming))| coming)
    }

    pub(super) fn expect(&mut self, at: Time, coming: MarketEvent) {
        self.coming.push(Reverse((at, coming)));
    }

    /// The bill of machines that are still there ends with the run.
    pub(super) fn close(&mut self, at: Time) {
        for (bought, _) in self.bought.iter_mut().zip(&self.owned).filter(|(_, own)| !own.gone) {
            bought.to = at;
        }
    }

    pub(super) fn moved_by(self, moved: Span) -> (Vec<Outage>, Vec<Bought>) {
        let outage = |one: Outage| Outage { from: one.from - moved, to: one.to - moved, ..one };
        let bought = |one: Bought| Bought {
            from: one.from - moved,
            ready: one.ready - moved,
            to: one.to - moved,
            ..one
        };
        (
            self.outages.into_iter().map(outage).collect(),
            self.bought.into_iter().map(bought).collect(),
        )
    }
}
