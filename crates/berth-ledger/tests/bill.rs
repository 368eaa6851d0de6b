//! Whatever happens to machines and leases, the rows are the bill.

use berth_ledger::cost::{cumulative, split};
use berth_ledger::{CostRow, Keys, Ledger, Totals};
use berth_model::CostKind;
use berth_model::{JobId, LeaseId, Micros, Milli, Name, Span, Time};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// One thing that happens; numbers pick a node or a lease among those there are.
#[derive(Debug, Clone)]
enum Op {
    Open {
        node: usize,
        thousandths: i64,
    },
    Bind {
        lease: usize,
    },
    Stop {
        lease: usize,
    },
    Close {
        lease: usize,
    },
    Queue {
        job: u64,
    },
    Reprice {
        node: usize,
        price: i64,
        leases_too: bool,
    },
    Tick {
        fragmented: i64,
    },
    BillDue {
        fragmented: i64,
        owing: bool,
    },
    /// The ledger is rebuilt from its accounts, as after a restart.
    Restart,
    Leave {
        node: usize,
    },
}

fn ops() -> impl Strategy<Value = Vec<(i64, Op)>> {
    let op = prop_oneof![
        6 => (0..3usize, 0..=1_000i64).prop_map(|(node, thousandths)| Op::Open { node, thousandths }),
        4 => any::<usize>().prop_map(|lease| Op::Bind { lease }),
        2 => any::<usize>().prop_map(|lease| Op::Stop { lease }),
        4 => any::<usize>().prop_map(|lease| Op::Close { lease }),
        1 => (0..20u64).prop_map(|job| Op::Queue { job }),
        2 => (0..3usize, price(), any::<bool>())
            .prop_map(|(node, price, leases_too)| Op::Reprice { node, price, leases_too }),
        4 => price().prop_map(|fragmented| Op::Tick { fragmented }),
        4 => (price(), any::<bool>())
            .prop_map(|(fragmented, owing)| Op::BillDue { fragmented, owing }),
        1 => Just(Op::Restart),
        1 => (0..3usize).prop_map(|node| Op::Leave { node }),
    ];
    // Steps from nothing to days, so that amounts fall on both sides of a unit.
    let step = prop_oneof![Just(0), 1..50i64, 1..100_000i64, 1..300_000_000i64];
    prop::collection::vec((step, op), 1..60)
}

/// Tiny prices make rounding frequent, large ones make mistakes large.
fn price() -> impl Strategy<Value = i64> {
    prop_oneof![Just(0), 1..20i64, 1..100_000_000i64]
}

/// What is expected, computed by itself: sums of whole segments at one price.
#[derive(Default)]
struct Expected {
    /// Price and start of the current segment, what earlier segments cost, thousandths still free.
    nodes: BTreeMap<Name, (Micros, Time, Micros, i64)>,
    leases: BTreeMap<LeaseId, (Name, Micros, Time, i64)>,
    /// What closed segments of leases cost.
    closed: BTreeMap<LeaseId, Micros>,
    /// What nodes that left cost.
    gone: Micros,
}

impl Expected {
    fn end_lease(&mut self, id: LeaseId, now: Time) -> (Name, i64) {
        let (node, price, since, share) = self.leases.remove(&id).unwrap();
        *self.closed.entry(id).or_default() += cumulative(price, now - since);
        (node, share)
    }
}

struct World {
    ledger: Ledger,
    expected: Expected,
    rows: Vec<CostRow>,
    now: Time,
    opened: u64,
    repriced_alone: bool,
}

fn name(node: usize) -> Name {
    Name::from(format!("n{node}"))
}

fn keys() -> Keys {
    let [queue, project, experiment, user] = ["q", "p", "e", "u"].map(Name::new);
    Keys { queue, project, experiment, user }
}

impl World {
    fn new(prices: &[i64]) -> World {
        let mut world = World {
            ledger: Ledger::new(),
            expected: Expected::default(),
            rows: Vec::new(),
            now: Time(0),
            opened: 0,
            repriced_alone: false,
        };
        for (node, price) in prices.iter().enumerate() {
            world.ledger.node_joined(world.now, &name(node), Micros(*price));
            let fresh = (Micros(*price), world.now, Micros::ZERO, 1_000);
            world.expected.nodes.insert(name(node), fresh);
        }
        world
    }

    fn pick(&self, lease: usize) -> Option<LeaseId> {
        let open: Vec<LeaseId> = self.expected.leases.keys().copied().collect();
        (!open.is_empty()).then(|| open[lease % open.len()])
    }

    fn open(&mut self, node: usize, thousandths: i64) {
        let Some((price, _, _, free)) = self.expected.nodes.get_mut(&name(node)) else { return };
        let share = thousandths.min(*free);
        *free -= share;
        let price = Micros(price.0 * share / 1_000);
        self.opened += 1;
        let id = LeaseId { job: JobId::new(self.opened / 2), task: self.opened as u32, attempt: 0 };
        self.ledger.lease_opened(self.now, id, keys(), &name(node), Milli(share), price);
        self.expected.leases.insert(id, (name(node), price, self.now, share));
    }

    fn close(&mut self, id: LeaseId) {
        let closed = self.ledger.lease_closed(self.now, id, Some(Span::mins(1)));
        self.rows.extend(closed.rows);
        assert_eq!(closed.loss.unwrap().job, id.job);
        let (node, share) = self.expected.end_lease(id, self.now);
        self.expected.nodes.get_mut(&node).unwrap().3 += share;
    }

    fn reprice(&mut self, node: usize, price: i64, leases_too: bool) {
        let (node, price) = (name(node), Micros(price));
        let Some((old, since, cost, _)) = self.expected.nodes.get_mut(&node) else { return };
        // The same price is no new segment.
        if *old == price {
            return;
        }
        *cost += cumulative(*old, self.now - *since);
        (*old, *since) = (price, self.now);
        self.rows.extend(self.ledger.node_repriced(self.now, &node, price));
        self.repriced_alone |= !leases_too;
        let here: Vec<LeaseId> = self.expected.leases.keys().copied().collect();
        for id in here.into_iter().filter(|_| leases_too) {
            let (of, old, _, share) = self.expected.leases[&id].clone();
            if of != node {
                continue;
            }
            let price = Micros(price.0 * share / 1_000);
            self.rows.extend(self.ledger.lease_repriced(self.now, id, price));
            // A small share may cost the same although the node does not.
            if old == price {
                continue;
            }
            self.expected.end_lease(id, self.now);
            self.expected.leases.insert(id, (node.clone(), price, self.now, share));
        }
    }

    fn leave(&mut self, node: usize) {
        let node = name(node);
        let Some((price, since, cost, _)) = self.expected.nodes.remove(&node) else { return };
        self.expected.gone += cost + cumulative(price, self.now - since);
        let here: Vec<LeaseId> = self.expected.leases.keys().copied().collect();
        for id in here {
            if self.expected.leases[&id].0 == node {
                self.expected.end_lease(id, self.now);
            }
        }
        self.rows.extend(self.ledger.node_left(self.now, &node));
    }

    fn restart(&mut self) {
        let mut fresh = Ledger::new();
        for (name, account) in self.ledger.nodes() {
            fresh.restore_node(name, *account);
        }
        for (id, node, account) in self.ledger.leases() {
            fresh.restore_lease(id, node, account.clone());
        }
        self.ledger = fresh;
    }

    fn play(&mut self, op: &Op) {
        let now = self.now;
        match op {
            Op::Open { node, thousandths } => self.open(*node, *thousandths),
            Op::Bind { lease } => {
                let id = self.pick(*lease);
                self.rows.extend(id.map(|id| self.ledger.lease_bound(now, id)).unwrap_or_default());
            }
            Op::Stop { lease } => {
                let id = self.pick(*lease);
                self.rows
                    .extend(id.map(|id| self.ledger.lease_stopping(now, id)).unwrap_or_default());
            }
            Op::Close { lease } => {
                if let Some(id) = self.pick(*lease) {
                    self.close(id);
                }
            }
            Op::Queue { job } => {
                let queue = Name::new("other");
                self.rows.extend(self.ledger.queue_changed(now, JobId::new(*job), &queue));
            }
            Op::Reprice { node, price, leases_too } => self.reprice(*node, *price, *leases_too),
            Op::Tick { fragmented } => self.tick(*fragmented),
            Op::BillDue { fragmented, owing } => self.bill_due(*fragmented, *owing),
            Op::Restart => self.restart(),
            Op::Leave { node } => self.leave(*node),
        }
    }

    fn tick(&mut self, fragmented: i64) {
        self.rows.extend(self.ledger.tick(self.now, &|_| Micros(fragmented)));
        self.check();
    }

    /// Rows are written for what is due only. With what is not on a row yet they are the bill.
    fn bill_due(&mut self, fragmented: i64, owing: bool) {
        let queues = owing.then(|| Name::new("q")).into_iter().collect();
        let now = self.now;
        self.rows.extend(self.ledger.bill_due(now, &|_| Micros(fragmented), &queues));
        let hour = Time(now.0 - now.0.rem_euclid(Span::hours(1).0));
        for (_, _, lease) in self.ledger.leases() {
            let owes = owing && *lease.keys.queue == *"q";
            assert!(lease.billed >= if owes { now } else { hour.min(now).max(lease.since) });
        }
        self.check();
    }

    /// What is on rows and what is not yet must be the bill. After a tick everything is on rows.
    fn check(&self) {
        let rows = [self.rows.clone(), self.ledger.due(self.now)].concat();
        let totals: Totals = rows.iter().collect();
        let mut all = self.expected.gone;
        for (node, (price, since, cost, _)) in &self.expected.nodes {
            let cost = *cost + cumulative(*price, self.now - *since);
            let found = totals.nodes.get(node).copied().unwrap_or_default();
            assert_eq!(found.total(), cost, "what {node} cost");
            all += cost;
        }
        assert_eq!(totals.sum.total(), all);
        assert_eq!(totals.sum.attributed() + totals.sum.idle() + totals.sum.shared, all);
        let mut leases = self.expected.closed.clone();
        for (id, (_, price, since, _)) in &self.expected.leases {
            *leases.entry(*id).or_default() += cumulative(*price, self.now - *since);
        }
        for (id, cost) in leases {
            let of = rows.iter().filter(|row| row.lease == Some(id));
            assert_eq!(of.map(|row| row.amount).sum::<Micros>(), cost, "what lease {id} cost");
        }
        self.check_rows(&rows, &totals);
    }

    fn check_rows(&self, rows: &[CostRow], totals: &Totals) {
        let mut until: BTreeMap<LeaseId, (Time, CostKind)> = BTreeMap::new();
        for row in rows {
            assert!(row.from < row.to);
            assert_eq!(row.lease.is_some(), row.kind.is_attributed());
            assert!(row.kind == CostKind::Shared || row.amount >= Micros::ZERO, "{row:?}");
            let Some(id) = row.lease else { continue };
            if let Some((end, kind)) = until.insert(id, (row.to, row.kind)) {
                assert_eq!(end, row.from, "rows of a lease neither overlap nor leave a gap");
                assert!(
                    (kind, row.kind) != (CostKind::Used, CostKind::Held),
                    "used, and held again"
                );
            }
        }
        let shared = totals.sum.shared.0.abs();
        let bound = rows.len() as i64 * (self.opened as i64 + 1);
        assert!(self.repriced_alone || shared <= bound, "{shared} is more than rounding");
        for sums in [&totals.queues, &totals.projects, &totals.experiments, &totals.users] {
            let sum: Micros = sums.values().map(|amounts| amounts.total()).sum();
            assert_eq!(sum, totals.sum.attributed());
        }
        let jobs: Micros = totals.jobs.values().map(|amounts| amounts.total()).sum();
        assert_eq!(jobs, totals.sum.attributed());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn attributed_and_idle_and_shared_are_what_the_machines_cost(
        prices in prop::collection::vec(price(), 3),
        ops in ops(),
    ) {
        let mut world = World::new(&prices);
        for (step, op) in &ops {
            world.now = world.now + Span(*step);
            world.play(op);
        }
        world.tick(0);
    }

    #[test]
    fn a_restarted_ledger_writes_the_same_rows(
        prices in prop::collection::vec(price(), 3),
        ops in ops(),
        restart in 0..60usize,
    ) {
        let mut worlds = [World::new(&prices), World::new(&prices)];
        for (index, (step, op)) in ops.iter().enumerate() {
            for world in &mut worlds {
                world.now = world.now + Span(*step);
                world.play(op);
            }
            if index == restart {
                worlds[1].restart();
            }
        }
        prop_assert_eq!(&worlds[0].rows, &worlds[1].rows);
    }

    #[test]
    fn a_split_sums_to_its_total_and_follows_the_weights(
        total in 0..i64::MAX,
        weights in prop::collection::vec(prop_oneof![Just(0), 1..10i64, 0..i64::MAX], 1..20),
    ) {
        let parts = split(Micros(total), &weights);
        prop_assert_eq!(parts.iter().map(|part| i128::from(part.0)).sum::<i128>(), i128::from(total));
        for (a, part_a) in weights.iter().zip(&parts) {
            for (b, part_b) in weights.iter().zip(&parts) {
                prop_assert!(a <= b || part_a >= part_b);
            }
        }
        let sum: i128 = weights.iter().map(|w| i128::from(*w)).sum();
        for (weight, part) in weights.iter().zip(&parts).filter(|_| sum > 0) {
            // Within one unit of the exact part.
            let exact = i128::from(total) * i128::from(*weight);
            prop_assert!((i128::from(part.0) * sum - exact).abs() <= sum);
        }
    }
}
