//! What happens to machines: they fail and are repaired, are bought, come, and leave.

use super::Error;
use super::market::{MarketEvent, Owned, Purchase};
use super::play::Play;
use super::world::{node_name, node_spec, pool, pool_name};
use crate::outcome::{Bought, Outage};
use crate::random::{Rng, ln};
use crate::site::Fault;
use berth_model::{Decision, Event, Health, Lifecycle, Micros, Name, NodeState, Span, Time};
use std::cmp::Reverse;

/// How long an offering is left alone that could not be had, where nobody knows better.
const RETRY: Span = Span::mins(10);

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
