//! Who is entitled to what, and why, in words.

use crate::fault::Fault;
use crate::service::Service;
use berth_api::wire;
use berth_core::QueueReport;
use berth_model::{Milli, Name};
use std::collections::BTreeMap;

pub async fn list(service: &Service) -> Result<wire::Items<wire::Share>, Fault> {
    let (reports, nodes, queues) = {
        let mut core = service.engine.core();
        let state = &mut core.state;
        (state.queue_reports(), state.node_snapshots(), state.queue_snapshots())
    };
    let gpus: usize = nodes.iter().map(|node| node.spec.gpus.len()).sum();
    let weights: BTreeMap<Name, Milli> =
        queues.into_iter().map(|queue| (queue.spec.name, queue.spec.weight)).collect();
    let lent = lent(&reports, Milli::whole(gpus as i64));
    let items = reports.iter().map(|report| {
        let weight = weights.get(&report.name).copied().unwrap_or(Milli::ONE);
        let lent = lent.get(&report.name).copied().unwrap_or(Milli::ZERO);
        share(report, weight, lent)
    });
    Ok(wire::Items { items: items.collect() })
}

fn share(report: &QueueReport, weight: Milli, lent: Milli) -> wire::Share {
    wire::Share {
        queue: report.name.to_string(),
        parent: report.parent.as_ref().map(ToString::to_string),
        quota_milli: report.quota.0,
        weight_milli: weight.0,
        fair_share_milli: report.fair_share.0,
        used_milli: report.used.0,
        demand_milli: report.demand.0,
        borrowed_milli: borrowed(report).0,
        lent_milli: lent.0,
        credits_gpu_s: report.credits,
        past_use_gpu_s: report.past_use,
        text: sentence(report, lent),
    }
}

fn borrowed(report: &QueueReport) -> Milli {
    (report.used - report.quota).max(Milli::ZERO)
}

fn idle(report: &QueueReport) -> Milli {
    (report.quota - report.used).max(Milli::ZERO)
}

/// How much of each queue's quota others use. Among siblings, what is borrowed comes first from
/// what no quota promises, then from all idle quotas alike.
fn lent(reports: &[QueueReport], cluster: Milli) -> BTreeMap<Name, Milli> {
    let mut families: BTreeMap<Option<&Name>, Vec<&QueueReport>> = BTreeMap::new();
    for report in reports {
        families.entry(report.parent.as_ref()).or_default().push(report);
    }
    let mut lent = BTreeMap::new();
    for (parent, family) in families {
        let above = reports.iter().find(|report| Some(&report.name) == parent);
        let has = above.map_or(cluster, |above| above.quota.max(above.used));
        let sum = |of: fn(&QueueReport) -> Milli| family.iter().map(|one| of(one)).sum::<Milli>();
        let unpromised = (has - sum(|one| one.quota)).max(Milli::ZERO);
        let idle_sum = sum(idle);
        let taken = (sum(borrowed) - unpromised).max(Milli::ZERO).min(idle_sum);
        for one in &family {
            let part =
                i128::from(taken.0) * i128::from(idle(one).0) / i128::from(idle_sum.0.max(1));
            // No part is larger than the whole, which fits.
            lent.insert(one.name.clone(), Milli(i64::try_from(part).unwrap_or(i64::MAX)));
        }
    }
    lent
}

fn gpus(amount: Milli) -> String {
    let unit = if amount == Milli::ONE { "GPU" } else { "GPUs" };
    format!("{amount} {unit}")
}

fn sentence(report: &QueueReport, lent: Milli) -> String {
    let QueueReport { name, quota, fair_share, used, demand, waiting, .. } = report;
    let mut text = match quota.is_zero() {
        true => format!("{name} has no quota and uses {}", gpus(*used)),
        false => format!("{name} is promised {} and uses {}", gpus(*quota), gpus(*used)),
    };
    let borrowed = borrowed(report);
    if !borrowed.is_zero() && !quota.is_zero() {
        text.push_str(&format!(", {borrowed} of them borrowed"));
    }
    if !lent.is_zero() {
        text.push_str(&format!(", while others use {lent} of its own"));
    }
    text.push_str(&format!("; its fair share now is {}", gpus(*fair_share)));
    let missing = *demand - *used;
    if *waiting > 0 && missing > Milli::ZERO {
        let verb = if *waiting == 1 { "job waits" } else { "jobs wait" };
        text.push_str(&format!(", and {waiting} {verb} for {} more", gpus(missing)));
    }
    text.push('.');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(name: &str, parent: Option<&str>, quota: i64, used: i64) -> QueueReport {
        QueueReport {
            name: name.into(),
            parent: parent.map(Name::new),
            quota: Milli::whole(quota),
            fair_share: Milli::whole(quota),
            used: Milli::whole(used),
            demand: Milli::whole(used),
            waiting: 0,
            running: 0,
            overcommitted: false,
            credits: 0,
            past_use: 0,
            spent: None,
        }
    }

    #[test]
    fn what_is_borrowed_is_lent_by_siblings_with_idle_quota() {
        let reports = [
            report("nlp", None, 4, 10),
            report("vision", None, 8, 5),
            report("audio", None, 4, 3),
            report("speech", Some("audio"), 4, 3),
        ];
        // Four of the 20 GPUs are in no quota: two of the six come from the quotas of other teams.
        let lent = lent(&reports, Milli::whole(20));
        assert_eq!(lent["vision"], Milli(1_500));
        assert_eq!(lent["audio"], Milli(500));
        assert_eq!((lent["nlp"], lent["speech"]), (Milli::ZERO, Milli::ZERO));
    }

    #[test]
    fn a_sentence_says_what_a_queue_has_and_what_it_waits_for() {
        let mut nlp = report("nlp", None, 4, 6);
        nlp.demand = Milli::whole(7);
        nlp.waiting = 1;
        assert_eq!(
            sentence(&nlp, Milli::ZERO),
            "nlp is promised 4 GPUs and uses 6 GPUs, 2 of them borrowed; its fair share now is \
             4 GPUs, and 1 job waits for 1 GPU more."
        );
        let vision = report("vision", None, 8, 1);
        assert_eq!(
            sentence(&vision, Milli::whole(2)),
            "vision is promised 8 GPUs and uses 1 GPU, while others use 2 of its own; its fair \
             share now is 8 GPUs."
        );
        let open = report("open", None, 0, 3);
        assert_eq!(
            sentence(&open, Milli::ZERO),
            "open has no quota and uses 3 GPUs; its fair share now is 0 GPUs."
        );
    }
}
