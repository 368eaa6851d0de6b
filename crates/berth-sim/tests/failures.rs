//! Worlds in which machines fail, are bought and leave, under the core and its peers.

use berth_model::{Micros, Span};
use berth_sim::estimate::Estimate;
use berth_sim::fleet::Fleet;
use berth_sim::metrics::Account;
use berth_sim::outcome::Timeline;
use berth_sim::peers::{self, Policy};
use berth_sim::prices::PriceList;
use berth_sim::replay::{self, Preset};
use berth_sim::site::{Checkpointing, FailureRates, Offer, Site, Spot};
use berth_sim::trace::{self, Select};
use berth_sim::workload::Workload;

fn workload() -> Workload {
    let jobs = trace::jobs("sample", trace::BUNDLED, &Select::default()).unwrap();
    Workload::new(&jobs, Estimate::noisy(1)).unwrap()
}

fn site() -> Site {
    let mut site = Site::from(Fleet::like(3, 8, "A100"));
    let (node, gpu) = (Some(Span::days(3)), Some(Span::days(20)));
    site.troubles = FailureRates { seed: 5, node, gpu, repair: Span::hours(4) };
    let (every, cost) = (Some(Span::mins(20)), Span::mins(1));
    site.saves = Checkpointing { every, cost, restart: Span::mins(5) };
    site
}

fn replayed(preset: Preset, site: &Site, workload: &Workload) -> Timeline {
    let replayed = replay::run(&preset.rules(), site.clone(), workload, &mut |_| ()).unwrap();
    assert_eq!(replayed.counts.findings, 0);
    replayed.timeline()
}

/// Every job has made its whole progress, whatever befell it, and the machines are accounted for.
fn check(name: &str, timeline: &Timeline, site: &Site, workload: &Workload) {
    for (job, outcome) in workload.jobs.iter().zip(&timeline.outcomes) {
        assert_eq!(outcome.ran() - outcome.wasted(), job.duration, "{name}: {outcome:?}");
        assert!(outcome.end.is_some(), "{name}: {outcome:?}");
    }
    let account = Account::new(timeline, &site.fleet, &workload.jobs, &PriceList::default());
    let fixed = site.fleet.gpus() as f64 * (account.to - account.from) / 3_600.0;
    let bought: f64 = timeline
        .bought
        .iter()
        .map(|one| f64::from(one.gpus) * (one.to - one.from).0 as f64 / 3.6e6)
        .sum();
    let all = account.gpu_hours.total();
    assert!((all - fixed - bought).abs() < 1e-6 * all, "{name}: {all} of {fixed} + {bought}");
}

#[test]
fn every_job_ends_with_its_whole_progress_although_machines_fail() {
    let (site, workload) = (site(), workload());
    for policy in [Policy::Fifo, Policy::Easy, Policy::Sjf, Policy::FairShare, Policy::Fgd] {
        let timeline = peers::run_at(policy, &site, &workload.jobs, &[]);
        assert!(timeline.outcomes.iter().any(|outcome| outcome.interruptions > 0));
        check(policy.word(), &timeline, &site, &workload);
    }
    for preset in Preset::ALL {
        let timeline = replayed(preset, &site, &workload);
        assert!(timeline.outcomes.iter().any(|outcome| outcome.interruptions > 0));
        check(preset.word(), &timeline, &site, &workload);
    }
}

#[test]
fn all_policies_meet_the_same_failures() {
    let (site, workload) = (site(), workload());
    let nodes = |timeline: &Timeline| {
        let first: Vec<_> = timeline.outages.iter().map(|one| (one.from, one.node)).collect();
        first.into_iter().take(5).collect::<Vec<_>>()
    };
    let fifo = peers::run_at(Policy::Fifo, &site, &workload.jobs, &[]);
    let easy = peers::run_at(Policy::Easy, &site, &workload.jobs, &[]);
    assert_eq!(nodes(&fifo), nodes(&easy));
    assert_eq!(nodes(&fifo), nodes(&replayed(Preset::Berth, &site, &workload)));
}

fn with_market(there: Vec<(Span, bool)>, lasts: Option<Span>) -> Site {
    let mut site = Site::from(Fleet::like(1, 8, "A100"));
    site.saves =
        Checkpointing { every: Some(Span::mins(20)), cost: Span::ZERO, restart: Span::mins(5) };
    let (price, notice) = (Micros::dollars(8), Span::mins(2));
    site.market.push(Offer {
        gpus: 8,
        model: 0,
        max: 4,
        on_demand: Some(Micros::dollars(24)),
        spot: Some(Spot { price, prices: Vec::new(), lasts, there, notice }),
        boot: Span::mins(5),
    });
    site
}

#[test]
fn machines_are_bought_and_taken_back_and_no_progress_is_forgotten() {
    let workload = workload();
    let site = with_market(Vec::new(), Some(Span::hours(6)));
    let timeline = replayed(Preset::Berth, &site, &workload);
    check("berth", &timeline, &site, &workload);
    assert!(timeline.bought.iter().any(|one| one.spot));
    assert!(timeline.bought.iter().all(|one| one.ready - one.from == Span::mins(5)));
    let stopped = |timeline: &Timeline| {
        timeline
            .outcomes
            .iter()
            .map(|outcome| outcome.preemptions + outcome.interruptions)
            .sum::<u32>()
    };
    assert!(stopped(&timeline) > 0, "a spot machine lasts six hours in the mean");
}

#[test]
fn where_no_spot_can_be_had_machines_are_bought_on_demand() {
    let workload = workload();
    let site = with_market(vec![(Span::ZERO, false)], None);
    let timeline = replayed(Preset::Berth, &site, &workload);
    check("berth", &timeline, &site, &workload);
    assert!(!timeline.bought.is_empty());
    assert!(timeline.bought.iter().all(|one| !one.spot && one.price == Micros::dollars(24)));
}
