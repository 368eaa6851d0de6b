//! What happens to machines: they fail and are repaired, are bought, come, and leave.

use super::Error;
use super::play::{BEGIN, Play};
use super::world::{node_name, node_spec};
use crate::outcome::{Bought, Outage};
use crate::random::{Rng, ln};
use crate::site::{Fault, Offer, Site, Spot};
use berth_model::{
    Bytes, Decision, Event, Health, Lifecycle, Micros, Name, NodeState, Offering, PoolSpec, Span,
    Time,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// How long an offering is left alone that could not be had, where nobody knows better.
const RETRY: Span = Span::mins(10);

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

struct Purchase {
    offer: usize,
    spot: bool,
    at: Time,
}

struct Owned {
    name: Name,
    offer: usize,
    leaving: bool,
    gone: bool,
}

/// Machines, who is on them, and what is going to happen to them.
pub(super) struct Market {
    offers: Vec<Offer>,
    seed: u64,
    fixed: u32,
    gpus: Vec<u32>,
    numbers: BTreeMap<Name, u32>,
    /// Who has tasks on a node; kept only where machines may fail or leave.
    on: Option<Vec<Vec<u32>>>,
    /// GPUs of fixed nodes that are out of order.
    out: Vec<u32>,
    coming: BinaryHeap<Reverse<(Time, MarketEvent)>>,
    orders: BTreeMap<Name, Purchase>,
    owned: Vec<Owned>,
    bought: Vec<Bought>,
    outages: Vec<Outage>,
    /// Whether spot can be had, by offer.
    there: Vec<bool>,
}

fn pool_name(offer: usize) -> Name {
    Name::from(format!("pool-{offer}"))
}

/// The offers as the core sees them.
pub(super) fn pools(site: &Site) -> Vec<PoolSpec> {
    let one = |(number, offer): (usize, &Offer)| {
        let price = offer.spot.as_ref().map(|spot| spot.price);
        pool(site, number, offer, price)
    };
    site.market.iter().enumerate().map(one).collect()
}

fn pool(site: &Site, number: usize, offer: &Offer, spot_price: Option<Micros>) -> PoolSpec {
    let offering = |lifecycle, price, interruptions| Offering {
        instance: Name::from(format!("{}x{}", offer.gpus, site.fleet.models[offer.model as usize])),
        gpus: offer.gpus,
        model: site.fleet.models[offer.model as usize].clone(),
        memory_per_gpu: Bytes::gb(80),
        cpu: None,
        memory: None,
        zone: Name::new("zone"),
        lifecycle,
        price,
        boot: offer.boot,
        interruptions,
        unavailable_until: None,
    };
    let per_1000_h =
        |spot: &Spot| spot.lasts.map_or(0, |lasts| Span::hours(1_000).0 / lasts.0.max(1));
    let spot = offer.spot.as_ref().zip(spot_price);
    let spot = spot.map(|(spot, price)| offering(Lifecycle::Spot, price, per_1000_h(spot)));
    let on_demand = offer.on_demand.map(|price| offering(Lifecycle::OnDemand, price, 0));
    PoolSpec {
        name: pool_name(number),
        min: 0,
        max: offer.max,
        offerings: spot.into_iter().chain(on_demand).collect(),
        labels: BTreeMap::new(),
    }
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

    fn expect(&mut self, at: Time, coming: MarketEvent) {
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

impl Play<'_> {
    pub(super) fn fail(&mut self, fault: Fault) -> Result<(), Error> {
        let Fault { at, node, gpu, until } = fault;
        let name = node_name(node);
        match gpu {
            Some(gpu) => {
                self.append(at, Event::GpuChanged { node: name, gpu, health: Health::Failed })?;
            }
            None => {
                self.append(at, Event::NodeChanged { node: name, state: NodeState::Failed })?;
            }
        }
        self.lose(at, node, gpu)?;
        let market = &mut self.market;
        let left = market.gpus[node as usize] - market.out[node as usize];
        let gpus = if gpu.is_some() { left.min(1) } else { left };
        if gpus > 0 {
            market.outages.push(Outage { node, gpus, from: at, to: until });
        }
        market.out[node as usize] += gpus;
        market.expect(until, MarketEvent::Repaired { node, gpu });
        Ok(())
    }

    pub(super) fn repaired(&mut self, at: Time, node: u32, gpu: Option<u32>) -> Result<(), Error> {
        let outages = &self.market.outages;
        let still = |one: &&Outage| one.node == node && one.to > at;
        self.market.out[node as usize] = outages.iter().filter(still).map(|one| one.gpus).sum();
        let node = node_name(node);
        match gpu {
            Some(gpu) => self.append(at, Event::GpuChanged { node, gpu, health: Health::Ok }),
            None => self.append(at, Event::NodeChanged { node, state: NodeState::Ready }),
        }
    }

    pub(super) fn order(&mut self, at: Time, decision: Decision) -> Result<(), Error> {
        match decision {
            Decision::Claim { claim, pool, lifecycle, .. } => {
                let count = self.market.offers.len();
                let Some(offer) = (0..count).find(|offer| pool_name(*offer) == pool) else {
                    return Ok(());
                };
                let spot = lifecycle == Lifecycle::Spot;
                if spot && !self.market.there[offer] {
                    let back = self.market.coming.iter().filter_map(|Reverse((at, coming))| {
                        let back = MarketEvent::Weather { offer, there: true };
                        (*coming == back).then_some(*at)
                    });
                    let retry_at = back.min().unwrap_or(at + RETRY).max(at + Span::secs(1));
                    return self.append(at, Event::ClaimFailed { claim, retry_at });
                }
                let ready = at + self.market.offers[offer].boot;
                self.market.orders.insert(claim.clone(), Purchase { offer, spot, at });
                self.market.expect(ready, MarketEvent::Booted(claim));
                Ok(())
            }
            Decision::Return { node } => self.remove(at, &node),
            _ => Ok(()),
        }
    }

    fn price_now(&self, offer: usize, spot: bool) -> Micros {
        let offer = &self.market.offers[offer];
        match (&offer.spot, spot) {
            (Some(spot), true) => spot.price,
            _ => offer.on_demand.unwrap_or_default(),
        }
    }

    pub(super) fn booted(&mut self, at: Time, claim: &Name) -> Result<(), Error> {
        let Some(Purchase { offer, spot, at: from }) = self.market.orders.remove(claim) else {
            return Ok(());
        };
        if spot && !self.market.there[offer] {
            let retry_at = at + RETRY;
            return self.append(at, Event::ClaimFailed { claim: claim.clone(), retry_at });
        }
        let price = self.price_now(offer, spot);
        let kind = &self.market.offers[offer];
        let (gpus, model) = (kind.gpus, kind.model);
        let lasts = kind.spot.as_ref().filter(|_| spot).and_then(|spot| spot.lasts);
        let mut node = node_spec(claim.clone(), gpus, &self.site.fleet.models[model as usize]);
        node.price = Some(price);
        node.pool = Some(pool_name(offer));
        node.lifecycle = if spot { Lifecycle::Spot } else { Lifecycle::OnDemand };
        let market = &mut self.market;
        let place = market.owned.len();
        market.owned.push(Owned { name: claim.clone(), offer, leaving: false, gone: false });
        market.bought.push(Bought { gpus, model, spot, price, from, ready: at, to: at });
        market.numbers.insert(claim.clone(), market.fixed + place as u32);
        market.on.get_or_insert_default().push(Vec::new());
        if let Some(lasts) = lasts {
            // Apart from the streams of failing nodes.
            let mut rng = Rng::stream(market.seed, u64::MAX - place as u64);
            let lives = -ln(1.0 - rng.unit()) * lasts.0 as f64;
            market.expect(at + Span(lives as i64 + 1), MarketEvent::Notice(place));
        }
        self.append(at, Event::ClaimReady { claim: claim.clone(), node: Box::new(node) })
    }

    pub(super) fn notice(&mut self, at: Time, place: usize) -> Result<(), Error> {
        let own = &mut self.market.owned[place];
        if own.gone || std::mem::replace(&mut own.leaving, true) {
            return Ok(());
        }
        let (node, offer) = (own.name.clone(), own.offer);
        let notice = self.market.offers[offer].spot.as_ref().map_or(Span::ZERO, |spot| spot.notice);
        let leaves = at + notice.max(Span::secs(1));
        self.market.expect(leaves, MarketEvent::Gone(place));
        self.append(at, Event::NodeChanged { node, state: NodeState::Leaving { at: leaves } })
    }

    pub(super) fn gone(&mut self, at: Time, place: usize) -> Result<(), Error> {
        if self.market.owned[place].gone {
            return Ok(());
        }
        let number = self.market.fixed + place as u32;
        self.lose(at, number, None)?;
        let name = self.market.owned[place].name.clone();
        self.remove(at, &name)
    }

    fn remove(&mut self, at: Time, node: &Name) -> Result<(), Error> {
        let Some(number) = self.market.numbers.get(node).copied() else { return Ok(()) };
        let place = (number - self.market.fixed) as usize;
        self.market.owned[place].gone = true;
        self.market.bought[place].to = at;
        self.append(at, Event::NodeRemoved { node: node.clone() })
    }

    pub(super) fn priced(&mut self, at: Time, offer: usize, price: Micros) -> Result<(), Error> {
        if let Some(spot) = &mut self.market.offers[offer].spot {
            spot.price = price;
        }
        let pool = pool(self.site, offer, &self.site.market[offer], Some(price));
        self.append(at, Event::PoolSet { pool: Box::new(pool) })
    }

    /// Spot can be had, or all of it is taken back.
    pub(super) fn weather(&mut self, at: Time, offer: usize, there: bool) -> Result<(), Error> {
        self.market.there[offer] = there;
        if there {
            return Ok(());
        }
        let mine = |place: &usize| {
            let own = &self.market.owned[*place];
            own.offer == offer && !own.gone && self.market.bought[*place].spot
        };
        let all: Vec<usize> = (0..self.market.owned.len()).filter(mine).collect();
        for place in all {
            self.notice(at, place)?;
        }
        Ok(())
    }
}
