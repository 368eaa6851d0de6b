//! From prices to amounts: everything is floored once, from the start, so that differences
//! telescope.

use berth_model::{
    Cpu, Micros, MigProfile, Milli, Name, NodeSpec, Share, Slice, Span, Time, catalog,
};
use std::collections::BTreeMap;

const HOUR_MS: i128 = 3_600_000;

/// An amount as wide as a product was; beyond nine trillion dollars it stays there.
fn micros(amount: i128) -> Micros {
    Micros(i64::try_from(amount).unwrap_or(if amount < 0 { i64::MIN } else { i64::MAX }))
}

/// What something at this price cost from its start to `span` later, rounded down.
pub fn cumulative(price_per_hour: Micros, span: Span) -> Micros {
    micros((i128::from(price_per_hour.0) * i128::from(span.0)).div_euclid(HOUR_MS))
}

/// The part of the cost since `since` that falls between `from` and `to`.
///
/// Rounding each interval by itself would lose up to a unit per row; the difference of two
/// cumulative costs loses nothing, wherever the cuts are.
pub fn row(price_per_hour: Micros, since: Time, from: Time, to: Time) -> Micros {
    cumulative(price_per_hour, to - since) - cumulative(price_per_hour, from - since)
}

/// Splits a total by weights so that the parts sum to it exactly. What rounding leaves over goes to
/// the largest weights, one unit each, the lowest index first. Weights below zero count as zero;
/// where all are zero the parts are equal. Nothing can be split over nobody: no weights, no parts.
pub fn split(total: Micros, weights: &[i64]) -> Vec<Micros> {
    let mut weights: Vec<i128> = weights.iter().map(|w| i128::from(*w).max(0)).collect();
    if weights.iter().all(|w| *w == 0) {
        weights.fill(1);
    }
    let sum: i128 = weights.iter().sum();
    let mut parts: Vec<i128> =
        weights.iter().map(|w| (i128::from(total.0) * w).div_euclid(sum)).collect();
    let left = i128::from(total.0) - parts.iter().sum::<i128>();
    let mut largest: Vec<usize> = (0..weights.len()).collect();
    largest.sort_by_key(|index| std::cmp::Reverse(weights[*index]));
    // Each part was rounded down by less than one, so there are fewer units left than weights.
    for index in largest.into_iter().take(left as usize) {
        parts[index] += 1;
    }
    parts.into_iter().map(micros).collect()
}

/// The price of an hour of one GPU of a model: the configured one, else the catalogue's, if any.
pub fn model_price(model: &Name, prices: &BTreeMap<Name, Micros>) -> Option<Micros> {
    prices.get(model).copied().or_else(|| catalog(model).map(|info| info.price))
}

/// The price per hour of every GPU of a node, by index.
///
/// The node's own price wins and is split by the prices of its GPUs' models; equally when one of
/// them is unknown, because a GPU without a known price is not a free one. A node without a price
/// costs what its GPUs' models do, and nothing for a model that nobody has priced.
pub fn gpu_prices(node: &NodeSpec, prices: &BTreeMap<Name, Micros>) -> Vec<Micros> {
    let models: Vec<Option<Micros>> =
        node.gpus.iter().map(|gpu| model_price(&gpu.model, prices)).collect();
    let Some(price) = node.price else {
        return models.into_iter().map(Option::unwrap_or_default).collect();
    };
    let known: Option<Vec<i64>> = models.iter().map(|price| price.map(|p| p.0)).collect();
    split(price, &known.unwrap_or_else(|| vec![1; models.len()]))
}

/// What an hour of the whole node costs: its own price, else the sum of its GPUs' prices.
pub fn node_price(node: &NodeSpec, prices: &BTreeMap<Name, Micros>) -> Micros {
    node.price.unwrap_or_else(|| gpu_prices(node, prices).into_iter().sum())
}

/// How much of its GPU a slice is. A MIG profile the model does not have counts as nothing: it
/// cannot have been started.
pub fn slice_milli(slice: &Slice, models: &[Name]) -> Milli {
    match &slice.share {
        Share::Whole => Milli::ONE,
        Share::Fraction(milli) | Share::Mps(milli) | Share::TimeSlice(milli) => *milli,
        Share::Mig(slot) => models
            .get(slice.gpu as usize)
            .and_then(|model| MigProfile::find(model, &slot.profile))
            .map_or(Milli::ZERO, |profile| Milli(profile.milli())),
    }
}

/// How many GPUs the slices are together.
pub fn lease_gpus(slices: &[Slice], models: &[Name]) -> Milli {
    slices.iter().map(|slice| slice_milli(slice, models)).sum()
}

/// The price per hour of a lease: the thousandths it holds of each GPU's price, rounded down once
/// for the whole lease. The leases of a GPU thus never cost more than the GPU; what is left over
/// is the node's.
pub fn lease_price(gpu_prices: &[Micros], slices: &[Slice], models: &[Name]) -> Micros {
    let thousandths = slices.iter().map(|slice| {
        let price = gpu_prices.get(slice.gpu as usize).copied().unwrap_or_default();
        i128::from(price.0) * i128::from(slice_milli(slice, models).0)
    });
    micros(thousandths.sum::<i128>().div_euclid(1_000))
}

/// The price per hour of a lease without GPUs on a node without GPUs: its part of the node's CPU.
/// Nothing where CPU does not bind, because a part of an unbounded amount cannot be told. On a node
/// with GPUs they carry the whole price, and a lease without any is free.
pub fn cpu_price(node_price: Micros, node_cpu: Option<Cpu>, cpu: Cpu) -> Micros {
    match node_cpu {
        Some(all) if all.0 > 0 => {
            let held = i128::from(cpu.0.clamp(0, all.0));
            micros((i128::from(node_price.0) * held).div_euclid(i128::from(all.0)))
        }
        Some(_) | None => Micros::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::{Bytes, GpuSpec, Health, Lifecycle, MigSlot, NodeState};

    fn node(models: &[&str], price: Option<&str>) -> NodeSpec {
        let gpu = |model: &&str| GpuSpec {
            model: Name::new(model),
            memory: Bytes::gb(80),
            health: Health::Ok,
            mig: None,
            division: None,
        };
        NodeSpec {
            name: Name::new("n"),
            gpus: models.iter().map(gpu).collect(),
            cpu: None,
            memory: None,
            labels: BTreeMap::new(),
            taints: Vec::new(),
            nvlink: Vec::new(),
            state: NodeState::Ready,
            price: price.map(|p| p.parse().unwrap()),
            pool: None,
            lifecycle: Lifecycle::OnDemand,
            tasks: None,
            counted: BTreeMap::new(),
        }
    }

    fn check_prices(models: &[&str], price: Option<&str>, expect: &[&str]) {
        let prices = BTreeMap::from([(Name::new("A100-80GB"), Micros::dollars(2))]);
        let node = node(models, price);
        let found: Vec<String> = gpu_prices(&node, &prices).iter().map(Micros::to_string).collect();
        assert_eq!(found, expect);
        let sum: Micros = gpu_prices(&node, &prices).into_iter().sum();
        assert_eq!(node_price(&node, &prices), sum);
    }

    #[test]
    fn rows_cut_at_any_moment_sum_to_the_whole_cost() {
        let price = Micros(7);
        let whole = row(price, Time(0), Time(0), Time(3_600_000));
        let cut: Micros =
            (0..3_600).map(|s| row(price, Time(0), Time(s * 1_000), Time((s + 1) * 1_000))).sum();
        assert_eq!((whole, cut), (Micros(7), Micros(7)));
    }

    #[test]
    fn a_century_of_the_dearest_machine_does_not_overflow() {
        assert_eq!(cumulative(Micros(i64::MAX), Span::hours(1)), Micros(i64::MAX));
        assert_eq!(cumulative(Micros(i64::MAX), Span::MAX), Micros(i64::MAX));
        assert_eq!(
            cumulative(Micros::dollars(1_000), Span::days(36_500)),
            Micros::dollars(876_000_000)
        );
    }

    #[test]
    fn a_split_gives_remainders_to_the_largest_weights_then_the_lowest_index() {
        assert_eq!(split(Micros(10), &[1, 1, 1]), [4, 3, 3].map(Micros));
        assert_eq!(split(Micros(10), &[1, 4, 1]), [2, 7, 1].map(Micros));
        assert_eq!(split(Micros(11), &[1, 1, 4]), [2, 1, 8].map(Micros));
    }

    #[test]
    fn a_split_by_nothing_but_zeros_is_equal() {
        assert_eq!(split(Micros(7), &[0, 0]), [4, 3].map(Micros));
        assert_eq!(split(Micros(7), &[]), []);
    }

    #[test]
    fn without_a_node_price_the_configured_model_price_goes_before_the_catalogue() {
        check_prices(&["A100-80GB", "H100-80GB", "other"], None, &["2", "2.5", "0"]);
    }

    #[test]
    fn a_node_price_wins_and_is_split_by_the_prices_of_the_models() {
        check_prices(&["A100-80GB", "H100-80GB"], Some("9"), &["4", "5"]);
        check_prices(&["H100-80GB"; 3], Some("0.00001"), &["0.000004", "0.000003", "0.000003"]);
    }

    #[test]
    fn a_node_price_is_split_equally_when_a_model_is_unknown() {
        check_prices(&["A100-80GB", "other"], Some("9"), &["4.5", "4.5"]);
    }

    #[test]
    fn a_lease_costs_the_thousandths_it_holds_of_each_gpu() {
        let models = [Name::new("A100-40GB"), Name::new("A100-40GB")];
        let prices = [Micros(7_000_000), Micros(1_001)];
        let check = |slices: &[(u32, Share)], expect: i64| {
            let slices: Vec<Slice> = slices
                .iter()
                .map(|(gpu, share)| Slice { gpu: *gpu, share: share.clone() })
                .collect();
            assert_eq!(lease_price(&prices, &slices, &models), Micros(expect));
        };
        let mig = |profile: &str| Share::Mig(MigSlot { profile: Name::new(profile), start: 0 });
        check(&[(0, Share::Whole), (1, Share::Whole)], 7_001_001);
        check(&[(0, Share::Fraction(Milli(250)))], 1_750_000);
        check(&[(1, Share::Mps(Milli(500)))], 500);
        check(&[(1, Share::TimeSlice(Milli(500))), (1, Share::TimeSlice(Milli(500)))], 1_001);
        check(&[(0, mig("3g.20gb"))], 7_000 * 428);
        check(&[(0, mig("3g.71gb")), (9, Share::Whole)], 0);
    }

    #[test]
    fn a_lease_without_gpus_takes_its_part_of_the_cpu_or_nothing_where_cpu_is_unbounded() {
        let price = Micros::dollars(1);
        assert_eq!(cpu_price(price, Some(Cpu::cores(16)), Cpu::cores(4)), Micros(250_000));
        assert_eq!(cpu_price(price, None, Cpu::cores(4)), Micros::ZERO);
        assert_eq!(cpu_price(price, Some(Cpu::ZERO), Cpu::cores(4)), Micros::ZERO);
    }
}
