//! A month of a lab, played through the real loop into a real home: for looking at pages, for tests and
//! for measurements with as many jobs as a server has after a while.
//!
//! Jobs come from a recorded trace. They are submitted, planned, billed and booked by the code of the
//! server, at the times of the history, so nothing that is read later differs from what a server has
//! written. Only the machine pretends. The audit log has who asked for what.
//!
//! Deliberately absent: rows of jobs, leases or costs that are written by hand, and any use of this
//! crate by what ships.

pub mod live;
mod load;
mod machine;
mod measured;
mod names;
pub mod people;
mod play;
pub mod recording;

use anyhow::{Context, Result, ensure};
use berth_engine::first_events;
use berth_engine::played::PlayedLoop;
use berth_model::{Event, Span, Time};
use berth_node::{Declared, Inventory, Known, Limits, Probe};
use berth_service::audit_key::KeyFile;
use berth_service::audit_watch::AuditWatch;
use berth_service::notify_address::NotifyAddresses;
use berth_service::refusals::Refusals;
use berth_service::sessions::Sessions;
use berth_service::sign_in::{Devices, SignInLimits};
use berth_service::stream_checks::StreamChecks;
use berth_service::{
    self as service, BlobBook, HeavyReads, Home, Service, TokenUse, Vault, audit_end,
};
use berth_sim::random::Rng;
use berth_sim::trace::{self, Select};
use berth_store::Store;
use load::Frame;
use machine::Machine;
use people::People;
use play::{Play, PlayedHost};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Where requests seem to come from.
pub(crate) const DEFAULT_FROM: &str = "10.20.4.17";
/// How often what is held is billed: a server does so every minute, and nobody reads that in a month.
const BILL_EVERY: Span = Span::hours(1);
/// The last submission, and the time in which everything comes to its end.
const LAST_SUBMISSION: Span = Span::mins(70);
const CLOSING: (Span, Span) = (Span::mins(50), Span::mins(10));

/// What to write.
#[derive(Debug, Clone)]
pub struct Options {
    /// A folder without a database.
    pub home: PathBuf,
    pub days: u32,
    /// Elements of arrays count.
    pub jobs: u32,
    pub seed: u64,
    /// A trace as CSV with its name; the bundled one where left out.
    pub trace: Option<(String, String)>,
    /// What the machine is called, and its GPUs, as `berth up` is told.
    pub node: String,
    pub gpus: String,
    /// Of how many days there are figures of GPUs.
    pub figure_days: u32,
    /// When it ends.
    pub until: Time,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    pub jobs: usize,
    pub submissions: usize,
    pub events: u64,
    pub plans: u64,
    pub from: Time,
    pub until: Time,
}

/// The file with everybody's tokens, below the home.
pub const TOKENS: &str = "tokens.json";

/// Writes a home with a history. It has to be called on a thread of its own: the thread has the time
/// of the history from then on.
pub async fn write(options: &Options) -> Result<Written> {
    let home =
        Home::open(&options.home).with_context(|| format!("opening {}", options.home.display()))?;
    ensure!(!home.database().exists(), "{} has a database already", options.home.display());
    let from = options.until - Span::days(i64::from(options.days));
    berth_engine::clock::play(from);
    let audit_keys = KeyFile::open(&home.audit_key())?;
    let store_options = berth_store::Options {
        audit_keys: audit_keys.keys().clone(),
        ..berth_store::Options::default()
    };
    let store = Store::open(&berth_store::sqlite_url(&home.database()), store_options).await?;
    let vault = Vault::open(&home.key(), store.clone())?;
    let writer = store.writer("a history").await?;
    let mut turns = PlayedLoop::begin(&store, writer, from, BILL_EVERY);
    let host = Arc::new(PlayedHost::default());
    let service = Service::new(service::Parts {
        engine: turns.handle(),
        store: store.clone(),
        blobs: Arc::new(BlobBook::closed(home.blobs())?),
        vault,
        host: host.clone(),
        home: home.clone(),
        config: Vec::new(),
        token_use: TokenUse::default(),
        refusals: Refusals::default(),
        audit_keys,
        audit_watch: AuditWatch::default(),
        notify_addresses: NotifyAddresses::new(Vec::new()),
        carbon_intensity: None,
        heavy_reads: HeavyReads::default(),
        stream_checks: StreamChecks::default(),
        sessions: Sessions::default(),
        sign_in_limits: SignInLimits::default(),
        devices: Devices::default(),
    });
    let gpus = set_up(&mut turns, options, from).await?;
    let prepared = turns.during(from, audit_end::prepare(&service)).await?;
    prepared?;
    let people = People::begin(&mut turns, &service, from).await?;
    people.keep_tokens(&home.root().join(TOKENS))?;
    let frame = Frame {
        from: from + Span::mins(1),
        until: options.until - LAST_SUBMISSION,
        gpus,
        jobs: options.jobs,
        seed: options.seed,
    };
    let submissions = load::submissions(&read_trace(options)?, frame);
    let closing = (options.until - CLOSING.0, options.until - CLOSING.1);
    let mut machine = Machine::new(&options.node, gpus, options.seed, closing);
    expect_trouble(&mut machine, frame);
    let mut play = Play {
        turns,
        service: service.clone(),
        host: &host,
        machine,
        people,
        rng: Rng::stream(options.seed, 1),
        looks_from: options.until - Span::days(i64::from(options.figure_days)),
        until: options.until,
        deeds: play::Deeds::default(),
    };
    play.run(from, &submissions).await?;
    let (events, plans) = {
        let handle = play.turns.handle();
        let core = handle.core();
        (core.state.seq(), core.plans.times.count())
    };
    play.turns.finish().await?;
    audit_end::finish(&service);
    store.close().await;
    let jobs = submissions.iter().map(|one| one.fates.len()).sum();
    Ok(Written { jobs, submissions: submissions.len(), events, plans, from, until: options.until })
}

/// What a server tells its core when it starts: prices, a first queue, and its machine. How many GPUs
/// that has.
async fn set_up(turns: &mut PlayedLoop, options: &Options, from: Time) -> Result<u32> {
    let declared: Declared = options.gpus.parse()?;
    let limits =
        Limits { groups: false, cpu: false, memory: false, processes: false, missing: None };
    let (probe, known) = (Probe::load(), Known::default());
    let inventory = Inventory::read(&options.node, Some(&declared), &probe, &known, limits);
    let node = inventory.node;
    let gpus = u32::try_from(node.gpus.len())?;
    let told = turns
        .turn(from, |turn| {
            let mut events = first_events(&turn.core.state.outline(), &BTreeMap::new());
            events.push(Event::NodeAdded { node: Box::new(node) });
            turn.all(events)
        })
        .await?;
    told?;
    Ok(gpus)
}

fn read_trace(options: &Options) -> Result<Vec<trace::Job>> {
    let bundled = ("the bundled trace".to_owned(), trace::BUNDLED.to_owned());
    let (name, text) = options.trace.clone().unwrap_or(bundled);
    Ok(trace::jobs(&name, &text, &Select::default())?)
}

/// GPUs that fail: one each ten days, for some hours.
fn expect_trouble(machine: &mut Machine, frame: Frame) {
    let mut rng = Rng::stream(frame.seed, 2);
    let days = (frame.until - frame.from).0 / Span::days(1).0;
    for day in (5..days).step_by(10) {
        let at = frame.from + Span::days(day) + Span::mins(rng.below(1_400) as i64);
        let lasts = Span::mins(120 + rng.below(700) as i64);
        if at + lasts < frame.until {
            machine.expect_failure(rng.below(u64::from(frame.gpus)) as u32, at, lasts);
        }
    }
}
