use crate::clock;
use crate::event_loop::Loop;
use crate::input::Request;
use crate::memory::CostBook;
use crate::recent_requests::RecentRequests;
use crate::retention::Retention;
use crate::*;
use berth_core::State;
use berth_file::job::{self, Abilities, Defaults, LogLimits, Models};
use berth_model::{
    Budget, BudgetAction, BudgetPeriod, Bytes, Cause, Event, GpuSpec, Health, LeaseId, Lifecycle,
    Micros, Name, NodeSpec, NodeState, Observed, QueueSpec, Rejected, Span, Stamped,
};
use berth_model::{JobChange, JobId, JobRequest, Time};
use berth_store::{AuditEntry, Batch, Options, SettingRow, Store, UserRow};
use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot, watch};

mod early;
mod trouble;

const HOUR: i64 = Span::hours(1).0;

/// What a loop knows that has taken nothing in yet.
fn core(stalled: Option<Stalled>) -> Core {
    Core {
        state: State::new(),
        jobs: BTreeMap::new(),
        budgeted: BTreeSet::new(),
        retries: BTreeSet::new(),
        forecast: None,
        plans: Plans::default(),
        tallies: Tallies::default(),
        costs: CostBook::default(),
        stalled,
    }
}

fn handle(stalled: Stalled) -> (Handle, mpsc::Receiver<Request>) {
    let core = core(Some(stalled));
    let (inputs, taken) = mpsc::channel(1);
    let news = News::since(Time(0));
    let (_, tree) = watch::channel(Arc::new(TeamTree::of(&core.state)));
    (Handle::new(inputs, Arc::new(Mutex::new(core)), news, tree, watch::channel(0).1), taken)
}

fn nothing() -> Write {
    Write::unnoted(berth_store::Batch::default())
}

#[tokio::test]
async fn while_the_log_cannot_be_written_nothing_new_is_taken() {
    let stalled = Stalled { since: Time(7), why: "no room".to_owned(), full: true };
    let (handle, mut taken) = handle(stalled.clone());
    assert_eq!(handle.write(nothing()).await, Err(Refused::Stalled(stalled)));
    assert!(taken.try_recv().is_err());
}

/// A site where nothing is ever carried out; it notes until when it was asked to purge.
#[derive(Default)]
struct Nowhere {
    purged: Arc<Mutex<Option<Time>>>,
    /// All there is: a machine of that name, and a job for it.
    knows: Option<&'static str>,
    /// What happened while no server ran.
    meanwhile: Vec<Observed>,
}

impl Site for Nowhere {
    type Observation = ();
    fn last_job(&self) -> u64 {
        0
    }
    fn meanwhile(&mut self, _: &Core) -> Result<Vec<Observed>, BootError> {
        Ok(std::mem::take(&mut self.meanwhile))
    }
    fn sync(&mut self, turn: &mut Turn<'_>) -> Result<InitialSync, Rejected> {
        let Some(name) = self.knows else { return Ok(InitialSync::Partial) };
        submit_one(turn, name, Micros::dollars(16));
        Ok(InitialSync::Complete)
    }
    fn reconcile(&mut self, _: &Core, _: &mut FollowUps<()>) -> Result<(), BootError> {
        Ok(())
    }
    fn observe(&mut self, _: &mut Turn<'_>, (): ()) {}
    fn start(&mut self, _: &Core, _: LeaseId, _: &mut FollowUps<()>) {}
    fn stop(&mut self, _: LeaseId, _: Cause, _: Span, _: &mut FollowUps<()>) {}
    fn acknowledge(&mut self, _: LeaseId) {}
    fn purge(&mut self, before: Time) {
        *self.purged.lock().unwrap() = Some(before);
    }
}

/// A loop on a real database, with a site that carries nothing out.
async fn turning(folder: &TempDir, keep: Option<Span>) -> Loop<Nowhere> {
    let url = berth_store::sqlite_url(&folder.path().join("berth.db"));
    let store = Store::open(&url, Options::default()).await.unwrap();
    let writer = store.writer("a test").await.unwrap();
    let core = core(None);
    let (teams, _) = watch::channel(Arc::new(TeamTree::of(&core.state)));
    let now = clock::now();
    Loop {
        core: Arc::new(Mutex::new(core)),
        requests: mpsc::channel(1).1,
        reports: mpsc::channel(1).1,
        deferred: Vec::new(),
        follow_ups: Vec::new(),
        news: News::since(Time(0)),
        teams,
        rights: watch::channel(0).0,
        is_busy: false,
        snapshot_at: writer.last_seq(),
        checks: store.with_own_reader(),
        writer,
        site: Nowhere::default(),
        next_job: 1,
        recent: RecentRequests::default(),
        wake: None,
        billed: now,
        // As if it had started long ago.
        retention: Retention::new(keep, now - Span::hours(1)),
    }
}

fn tick(seq: u64, at: Time) -> Stamped {
    Stamped { seq, at, event: Event::Tick }
}

/// Applies and commits ticks at these times.
async fn ticks(turning: &mut Loop<Nowhere>, times: impl IntoIterator<Item = Time>) {
    for at in times {
        let tick = tick(turning.writer.last_seq() + 1, at);
        let _ = turning.core.lock().unwrap().state.apply(&tick).unwrap();
        turning.commit(&Batch { events: vec![tick], ..Batch::default() }).await.unwrap();
    }
}

#[tokio::test]
async fn the_server_purges_what_is_older_than_its_retention_while_it_runs() {
    let folder = TempDir::new().unwrap();
    let now = clock::now();
    let mut turning = turning(&folder, Some(Span::days(30))).await;
    let days = [90, 60, 31, 29, 1];
    ticks(&mut turning, days.map(|days| now - Span::days(days))).await;
    let site = Nowhere::default();
    let purged = site.purged.clone();
    turning.site = site;
    turning.purge().await.unwrap();
    let purged = purged.lock().unwrap().expect("the site purges what it has of them, too");
    assert!(purged <= clock::now() - Span::days(30), "{purged:?}");
    let kept = turning.writer.store().events(0, 100).await.unwrap();
    // Whole days are purged, so the events of 30 days ago may stay.
    assert!(kept.len() < 4, "{kept:?}");
    assert!(kept.iter().all(|event| now - Span::days(32) < event.at), "{kept:?}");
    assert_eq!(turning.writer.last_seq(), 5);
    // The next round is a day away: a loop that asked again at once would never rest.
    assert!(turning.retention.due().unwrap() > now + Span::hours(23));
}

#[tokio::test]
async fn a_server_without_a_retention_purges_nothing() {
    let folder = TempDir::new().unwrap();
    let mut turning = turning(&folder, None).await;
    let long_ago = clock::now() - Span::days(900);
    ticks(&mut turning, [long_ago, long_ago + Span::days(1)]).await;
    turning.purge().await.unwrap();
    assert_eq!(turning.writer.store().events(0, 100).await.unwrap().len(), 2);
    assert_eq!(turning.retention.due(), None);
}

/// Polls so many times, and then drops what is not over: as a connection that is lost half-way.
async fn cut_short<T>(polls: u32, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    let mut left = polls;
    std::future::poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        work.as_mut().poll(context).map(Some)
    })
    .await
}

/// A snapshot whose commit was asked for and not answered, whatever became of it.
async fn leave_in_doubt(turning: &mut Loop<Nowhere>) {
    let outline = turning.core.lock().unwrap().state.outline();
    // Which poll is the one after the commit was asked for depends on how fast the database is.
    for polls in (1..=30).cycle().take(3_000) {
        let _ = cut_short(polls, turning.writer.snapshot(&outline, |_| Vec::new())).await;
        if turning.writer.is_in_doubt() {
            return;
        }
    }
    panic!("it was never in doubt");
}

#[tokio::test]
async fn a_snapshot_in_doubt_is_not_taken_for_the_batch_after_it() {
    let folder = TempDir::new().unwrap();
    let mut turning = turning(&folder, None).await;
    let now = clock::now();
    ticks(&mut turning, [now]).await;
    leave_in_doubt(&mut turning).await;
    ticks(&mut turning, [now + Span::secs(1)]).await;
    let kept = turning.writer.store().events(0, 100).await.unwrap();
    assert_eq!(kept, [tick(1, now), tick(2, now + Span::secs(1))]);
}

#[tokio::test]
async fn who_amends_a_queue_sees_what_was_written_before_in_the_same_turn() {
    let folder = TempDir::new().unwrap();
    let turning = turning(&folder, None).await;
    let (mut recent, mut next_job) = (RecentRequests::default(), 1);
    let mut core = turning.core.lock().unwrap();
    let mut turn = turn::Turn::new(&mut core, &mut recent, &mut next_job, clock::now());
    let seen = Arc::new(Mutex::new(0));
    for _ in 0..2 {
        let seen = seen.clone();
        let amend = move |state: &State| {
            *seen.lock().unwrap() = state.seq();
            Ok(vec![Event::Tick])
        };
        let act = Act::Amend(Box::new(amend));
        turn.write(Write { act, ..nothing() }).unwrap();
    }
    assert_eq!(*seen.lock().unwrap(), 1);
}

/// A node of one GPU that costs `price` an hour.
fn node(name: &str, price: Micros) -> NodeSpec {
    let memory = Bytes(80_000_000_000);
    let gpu =
        GpuSpec { model: "h100".into(), memory, health: Health::Ok, mig: None, division: None };
    NodeSpec {
        name: name.into(),
        gpus: vec![gpu],
        cpu: None,
        memory: None,
        labels: BTreeMap::new(),
        taints: Vec::new(),
        nvlink: Vec::new(),
        state: NodeState::Ready,
        price: Some(price),
        pool: None,
        lifecycle: Lifecycle::OnDemand,
        tasks: None,
        counted: BTreeMap::new(),
    }
}

fn request(state: &State, file: &str) -> JobRequest {
    let defaults = Defaults {
        user: Name::new("ada"),
        team: Name::new("vision"),
        project: Name::new("default"),
        classes: state.classes().clone(),
        policy: state.policy().clone(),
        models: Models::new(state.gpu_models()),
        levels: Vec::new(),
        abilities: Abilities::default(),
        logs: LogLimits::default(),
    };
    let file = job::read(file).unwrap().file;
    job::lower(&file, &defaults, clock::now()).unwrap().0
}

/// A machine at that price, and a job for it.
fn submit_one(turn: &mut Turn<'_>, name: &str, price: Micros) {
    let request = request(&turn.core.state, "run: sleep 1\ngpus: 1\n");
    turn.apply_observed(Event::NodeAdded { node: Box::new(node(name, price)) });
    turn.submit(request).unwrap();
}

#[tokio::test]
async fn an_hour_that_only_costs_money_writes_that_alone_and_a_restart_knows_it() {
    let folder = TempDir::new().unwrap();
    let mut turning = turning(&folder, None).await;
    // The full hour before this moment: an hour later exactly one is over.
    let now = Time(clock::now().0.div_euclid(HOUR) * HOUR);
    let (mut recent, mut next_job) = (RecentRequests::default(), 1);
    let core = turning.core.clone();
    let price = Micros::dollars(16);

    let (batch, _) = {
        let mut core = core.lock().unwrap();
        let mut turn = turn::Turn::new(&mut core, &mut recent, &mut next_job, now);
        turn.apply_observed(Event::QueueSet { queue: Box::new(QueueSpec::new("vision")) });
        submit_one(&mut turn, "node-a", price);
        turn.plan();
        turn.finish_turn()
    };
    assert_eq!(batch.leases.len(), 1);
    turning.commit(&batch).await.unwrap();

    let hour = now + Span::hours(1);
    let (batch, _) = {
        let mut core = core.lock().unwrap();
        let mut turn = turn::Turn::new(&mut core, &mut recent, &mut next_job, hour);
        turn.bill();
        turn.finish_turn()
    };
    assert_eq!((batch.jobs.len(), batch.leases.len(), batch.costs.len()), (0, 0, 1));
    turning.commit(&batch).await.unwrap();

    let minute = hour + Span::mins(1);
    let (batch, _) = {
        let mut core = core.lock().unwrap();
        let mut turn = turn::Turn::new(&mut core, &mut recent, &mut next_job, minute);
        turn.bill();
        turn.finish_turn()
    };
    assert_eq!(batch.costs.len(), 0, "nothing has changed");
    turning.commit(&batch).await.unwrap();
    {
        let core = core.lock().unwrap();
        let half = hour + Span::mins(30);
        assert_eq!(core.cost(&core.jobs[&JobId::new(1)], half), Micros(24_000_000));
        let Unbilled { upto, rows } = core.unbilled(half);
        let amounts: Vec<Micros> = rows.iter().map(|row| row.amount).collect();
        assert_eq!((upto, amounts), (1, vec![Micros::dollars(8)]));
    }

    let store = turning.writer.store();
    let job = store.job(JobId::new(1)).await.unwrap().unwrap();
    assert_eq!((job.state, job.cost), (berth_model::JobState::Running, price));
    let leases = store.open_leases().await.unwrap();
    assert_eq!(leases.iter().map(|lease| lease.cost).collect::<Vec<_>>(), [price]);
}

/// Runs `tell` in a turn at that time and commits it. Returns what was written.
async fn at(turning: &mut Loop<Nowhere>, time: Time, tell: impl FnOnce(&mut Turn<'_>)) -> Batch {
    let (batch, _) = {
        let mut core = turning.core.lock().unwrap();
        let mut turn = Turn::new(&mut core, &mut turning.recent, &mut turning.next_job, time);
        tell(&mut turn);
        turn.finish_turn()
    };
    turning.commit(&batch).await.unwrap();
    batch
}

/// A loop with a team, and with a site that has all to say.
async fn with_a_team(folder: &TempDir, time: Time, budget: Option<Budget>) -> Loop<Nowhere> {
    let mut turning = turning(folder, None).await;
    turning.site = Nowhere { knows: Some("node-b"), ..Nowhere::default() };
    let queue = Box::new(QueueSpec { budget, ..QueueSpec::new("vision") });
    at(&mut turning, time, |turn| {
        turn.apply_observed(Event::QueueSet { queue });
    })
    .await;
    turning
}

#[tokio::test]
async fn what_a_site_says_in_its_greeting_is_decided_and_written_with_it_and_billed_later() {
    let folder = TempDir::new().unwrap();
    let began = clock::now();
    let mut turning = with_a_team(&folder, began, None).await;
    (turning.wake, turning.billed) = (Some(began), began);
    turning.sync().await.unwrap();
    let store = turning.writer.store();
    assert_eq!(store.open_leases().await.unwrap().len(), 1);
    let told = store.events(0, 100).await.unwrap();
    assert!(told.iter().all(|stamped| stamped.event != Event::BillDue), "{told:?}");
    // What is left is the end of the job's time, and no moment that is due at once.
    assert!(turning.wake.is_none_or(|wake| wake > began + Span::mins(1)), "{:?}", turning.wake);
}

#[tokio::test]
async fn what_ran_while_the_server_was_away_is_billed_before_anything_is_decided() {
    let folder = TempDir::new().unwrap();
    let before = clock::now() - Span::hours(3);
    let budget = Budget {
        limit: Micros::dollars(20),
        per: BudgetPeriod::Once,
        action: BudgetAction::Block,
        thresholds: Vec::new(),
    };
    let mut turning = with_a_team(&folder, before, Some(budget)).await;
    let batch = at(&mut turning, before, |turn| {
        submit_one(turn, "node-a", Micros::dollars(16));
        turn.plan();
    })
    .await;
    assert_eq!(batch.leases.len(), 1, "there is money for it");
    turning.billed = before;
    // Three hours of it have cost more than there was.
    turning.sync().await.unwrap();
    let store = turning.writer.store();
    assert!(store.job(JobId::new(1)).await.unwrap().unwrap().cost > Micros::dollars(20));
    assert_eq!(store.open_leases().await.unwrap().len(), 1, "the other one waits");
}

#[test]
fn a_minute_is_over_when_the_next_one_has_begun() {
    use crate::turn::is_period_over;
    let every = Span::mins(1);
    assert!(is_period_over(Time(59_999), Time(60_000), every));
    assert!(!is_period_over(Time(60_000), Time(119_999), every));
}

#[tokio::test]
async fn a_turn_that_the_core_asked_for_bills_only_when_a_minute_is_over() {
    let folder = TempDir::new().unwrap();
    let before = clock::now() - Span::hours(2);
    let mut turning = with_a_team(&folder, before, None).await;
    at(&mut turning, before, |turn| {
        submit_one(turn, "node-a", Micros::dollars(16));
        turn.plan();
    })
    .await;
    let spent = async |turning: &Loop<Nowhere>| {
        turning.writer.store().job(JobId::new(1)).await.unwrap().unwrap().cost
    };

    let now = clock::now();
    (turning.wake, turning.billed) = (Some(now), now + Span::mins(1));
    turning.turn(Vec::new(), Vec::new()).await.unwrap();
    assert!(turning.core.lock().unwrap().state.now() >= now, "the core knows what time it is");
    assert_eq!(spent(&turning).await, Micros::ZERO);

    // The last moment of the minute before this one, which may be less than a minute ago.
    let minute = Span::mins(1).0;
    let last = Time(now.0.div_euclid(minute) * minute - 1);
    (turning.wake, turning.billed) = (Some(now), last);
    turning.turn(Vec::new(), Vec::new()).await.unwrap();
    assert!(spent(&turning).await >= Micros::dollars(16));
}

#[tokio::test]
async fn a_job_that_is_stopped_while_it_waits_does_not_say_what_it_waited_for() {
    let folder = TempDir::new().unwrap();
    let mut turning = with_a_team(&folder, clock::now(), None).await;
    at(&mut turning, clock::now(), |turn| {
        let request = request(&turn.core.state, "run: sleep 1\ngpus: 1\n");
        let job = turn.submit(request).unwrap();
        turn.set_reason(job, "made room for a job of a higher class".to_owned());
        let act = Act::Cancel { job, now: false };
        turn.write(Write { act, ..nothing() }).unwrap();
    })
    .await;
    let job = turning.writer.store().job(JobId::new(1)).await.unwrap().unwrap();
    assert_eq!((job.state, &*job.reason), (berth_model::JobState::Cancelled, "was stopped"));
}

#[tokio::test]
async fn a_change_of_an_array_is_one_of_each_element_that_has_not_ended() {
    let folder = TempDir::new().unwrap();
    let mut turning = with_a_team(&folder, clock::now(), None).await;
    at(&mut turning, clock::now(), |turn| {
        let request = request(&turn.core.state, "run: sleep 1\ngpus: 1\narray: 0-2\n");
        let job = turn.submit(request).unwrap();
        let stop = Act::Cancel { job: job.element(1), now: false };
        turn.write(Write { act: stop, ..nothing() }).unwrap();
    })
    .await;
    at(&mut turning, clock::now(), |turn| {
        let changes = vec![JobChange::Priority(7), JobChange::Hold(true)];
        let act = Act::Change { job: JobId::new(1), changes };
        turn.write(Write { act, ..nothing() }).unwrap();
        let unknown = Act::Change { job: JobId::new(9), changes: vec![JobChange::Hold(true)] };
        assert!(matches!(
            turn.write(Write { act: unknown, ..nothing() }),
            Err(Refused::Rejected(Rejected::UnknownJob { .. }))
        ));
    })
    .await;
    for (element, priority) in [(0, 7), (1, 50), (2, 7)] {
        let id = JobId::new(1).element(element);
        let job = turning.writer.store().job(id).await.unwrap().unwrap();
        assert_eq!(job.priority, priority, "{id}");
    }
}

#[tokio::test]
async fn who_watches_rights_hears_of_changes_of_users_and_tokens_and_not_of_their_use() {
    let folder = TempDir::new().unwrap();
    let mut turning = turning(&folder, None).await;
    let rights = turning.rights.subscribe();
    let audit = AuditEntry {
        at: Time(0),
        who: "ada".to_owned(),
        token: String::new(),
        from: String::new(),
        method: String::new(),
        what: "create_user".to_owned(),
        target: String::new(),
        outcome: "ok".to_owned(),
        detail: "{}".to_owned(),
    };
    let user = UserRow {
        name: "kim".to_owned(),
        full_name: String::new(),
        role: None,
        created: Time(0),
        disabled: None,
    };
    let setting = SettingRow { name: "a".to_owned(), value: "b".to_owned() };
    let batch = |put: &dyn Fn(&mut Batch)| {
        let mut batch = Batch::default();
        put(&mut batch);
        batch
    };
    let of_user = || batch(&|batch| batch.put(&user));
    let of_setting = || batch(&|batch| batch.put(&setting));
    let writes = [
        (Write::documents(of_user(), audit.clone()), 1),
        (Write::unnoted(batch(&|batch| batch.touch(&user))), 1),
        (Write::documents(of_setting(), audit.clone()), 1),
        (Write::documents(batch(&|batch| batch.delete::<UserRow>("kim")), audit.clone()), 2),
    ];
    for (write, count) in writes {
        let (answer, answered) = oneshot::channel();
        turning.turn(vec![Request::Write(Box::new(write), answer)], Vec::new()).await.unwrap();
        assert!(answered.await.unwrap().is_ok());
        assert_eq!(*rights.borrow(), count);
    }
    // Which team lies below which decides, too.
    let queue = Box::new(QueueSpec::new("vision"));
    let write = Write::act(Act::Events(vec![Event::QueueSet { queue }]), audit);
    let (answer, _) = oneshot::channel();
    turning.turn(vec![Request::Write(Box::new(write), answer)], Vec::new()).await.unwrap();
    assert_eq!(*rights.borrow(), 3);
}

/// The audit row is what vouches for rights: without one they would look forged.
#[tokio::test]
async fn a_change_of_rights_has_an_audit_row_also_when_nobody_asked_for_it() {
    let folder = TempDir::new().unwrap();
    let mut turning = turning(&folder, None).await;
    let user = UserRow {
        name: "ada".to_owned(),
        full_name: String::new(),
        role: None,
        created: Time(1),
        disabled: None,
    };
    let put = |fill: fn(&mut Batch, &UserRow)| {
        let mut documents = Batch::default();
        fill(&mut documents, &user);
        Write::unnoted(documents)
    };
    let now = clock::now();
    let written = at(&mut turning, now, |turn| {
        turn.write(put(|batch, user| batch.put(user))).unwrap();
    });
    let whats: Vec<String> = written.await.audit.into_iter().map(|row| row.what).collect();
    assert_eq!(whats, ["change_rights"]);
    let written = at(&mut turning, now, |turn| {
        turn.write(put(|batch, user| batch.touch(user))).unwrap();
    });
    assert_eq!(written.await.audit.len(), 0);
}
