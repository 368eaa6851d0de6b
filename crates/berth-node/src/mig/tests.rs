use super::player::{Played, Player};
use super::*;

/// What was captured on an H200 with four instances.
struct Captured;

impl Smi for Captured {
    fn run(&self, args: &[&str]) -> Result<String, SmiError> {
        let text = match args {
            ["mig", .., "-lgi"] => include_str!("captured/lgi.txt"),
            ["mig", .., "-lgip"] => include_str!("captured/lgip.txt"),
            ["mig", .., "-lgipp"] => include_str!("captured/lgipp.txt"),
            ["-L"] => include_str!("captured/L.txt"),
            [.., "-q", "-x"] => include_str!("captured/q.xml"),
            other => panic!("{other:?}"),
        };
        Ok(text.to_owned())
    }
}

#[test]
fn what_an_h200_says_is_read_as_it_is() {
    let found = instances(&Captured, 0).unwrap();
    let shown: Vec<String> = found
        .iter()
        .map(|one| {
            let uuid = one.uuid.as_deref().unwrap();
            format!("{} {} {}:{} {}", one.id, one.profile, one.start, one.size, &uuid[..8])
        })
        .collect();
    let expect = [
        "7 1g.18gb 0:1 MIG-bb13",
        "8 1g.18gb 1:1 MIG-52df",
        "4 2g.35gb 2:2 MIG-6d25",
        "2 3g.71gb 4:4 MIG-cd42",
    ];
    assert_eq!(shown, expect);
    let all = profiles(&Captured, 0).unwrap();
    assert_eq!(all.len(), 7);
    let three = all.iter().find(|one| one.name == "3g.71gb").unwrap();
    assert_eq!((three.id, three.multiprocessors, three.size), (9, 60, 4));
    assert_eq!(three.starts, [0, 4]);
}

fn slot(profile: &str, start: u8) -> MigSlot {
    MigSlot { profile: profile.into(), start }
}

fn held(uuids: &[&str]) -> BTreeSet<String> {
    uuids.iter().map(|uuid| (*uuid).to_owned()).collect()
}

struct Bench {
    _folder: tempfile::TempDir,
    player: Arc<Player>,
    mig: Mig,
}

fn bench() -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let player = Arc::new(Player::default());
    let mig = Mig { pause: Duration::ZERO, ..Mig::new(folder.path(), player.clone()) };
    Bench { _folder: folder, player, mig }
}

impl Bench {
    fn provide(&self, profile: &str, start: u8, held_by: &[&str]) -> Result<String, MigError> {
        let made = self.mig.provide(0, &slot(profile, start), &held(held_by));
        made.map(|instance| instance.uuid.unwrap())
    }

    fn there(&self) -> Vec<(String, u8)> {
        let found = self.mig.list(0).unwrap().into_iter();
        found.map(|one| (one.profile, one.start)).collect()
    }

    fn is_on(&self) -> bool {
        self.player.0.lock().unwrap().is_on
    }
}

#[test]
fn instances_are_made_where_they_were_placed_and_nothing_is_left_when_all_is_over() {
    let bench = bench();
    let mut uuids: Vec<String> = Vec::new();
    for (profile, start) in [("3g.71gb", 4), ("2g.35gb", 2), ("1g.18gb", 0), ("1g.18gb", 1)] {
        let others: Vec<&str> = uuids.iter().map(String::as_str).collect();
        let uuid = bench.provide(profile, start, &others).unwrap();
        uuids.push(uuid);
    }
    assert_eq!(bench.there().len(), 4);
    assert!(bench.is_on() && bench.mig.ours() == BTreeSet::from([0]));
    // The same place again is the same instance.
    assert_eq!(bench.provide("3g.71gb", 4, &[]).unwrap(), uuids[0]);
    bench.mig.make_whole(0, &held(&[])).unwrap();
    assert!(!bench.is_on() && bench.mig.ours().is_empty() && bench.there().is_empty());
}

#[test]
fn an_idle_instance_in_the_way_is_removed_and_one_that_a_task_has_is_not() {
    let bench = bench();
    let three = bench.provide("3g.71gb", 4, &[]).unwrap();
    let one = bench.provide("1g.18gb", 0, &[&three]).unwrap();
    // The first has ended.
    let two = bench.provide("2g.35gb", 4, &[&one]).unwrap();
    assert_eq!(bench.there(), [("1g.18gb".to_owned(), 0), ("2g.35gb".to_owned(), 4)]);
    let error = bench.provide("7g.141gb", 0, &[&one, &two]).unwrap_err();
    assert!(matches!(error, MigError::Taken { .. }), "{error}");
    let error = bench.mig.make_whole(0, &held(&[&two])).unwrap_err();
    assert!(matches!(error, MigError::Taken { .. }), "{error}");
    assert_eq!(bench.there(), [("2g.35gb".to_owned(), 4)]);
}

#[test]
fn idle_instances_elsewhere_go_where_compute_slices_are_short() {
    let bench = bench();
    // Three and four compute slices are all seven, though one memory half is free of them.
    let three = bench.provide("3g.71gb", 4, &[]).unwrap();
    bench.provide("4g.71gb", 0, &[&three]).unwrap();
    // The four has ended; a seven needs both gone.
    bench.provide("1g.18gb", 3, &[&three]).unwrap();
    assert_eq!(bench.there(), [("1g.18gb".to_owned(), 3), ("3g.71gb".to_owned(), 4)]);
}

#[test]
fn a_layout_of_the_operators_is_used_and_never_changed() {
    let bench = bench();
    {
        let mut card = bench.player.0.lock().unwrap();
        card.is_on = true;
        let there = Played { id: 90, profile: 14, start: 0, has_compute: true, is_open: false };
        card.instances.push(there);
    }
    assert_eq!(bench.provide("2g.35gb", 0, &[]).unwrap(), "MIG-90");
    let error = bench.provide("2g.35gb", 2, &[]).unwrap_err();
    assert!(matches!(error, MigError::NotOurs { .. }), "{error}");
    bench.mig.make_whole(0, &held(&[])).unwrap();
    assert_eq!((bench.mig.reconcile(&held(&[])).len(), bench.there().len()), (0, 1));
}

#[test]
fn a_profile_that_the_gpu_does_not_have_there_is_refused_with_its_name() {
    let bench = bench();
    for (profile, start) in [("9g.9gb", 0), ("3g.71gb", 1)] {
        let error = bench.provide(profile, start, &[]).unwrap_err();
        assert!(matches!(error, MigError::NoProfile { .. }), "{error}");
    }
}

#[test]
fn an_instance_that_a_process_holds_a_moment_longer_is_waited_for_and_then_told() {
    let bench = bench();
    bench.provide("3g.71gb", 4, &[]).unwrap();
    bench.player.0.lock().unwrap().instances[0].is_open = true;
    let error = bench.mig.make_whole(0, &held(&[])).unwrap_err();
    assert!(error.to_string().contains("In use by another client"), "{error}");
    bench.player.0.lock().unwrap().instances[0].is_open = false;
    bench.mig.make_whole(0, &held(&[])).unwrap();
    assert!(!bench.is_on());
}

/// The server is killed before each of its calls in turn.
#[test]
fn a_crash_at_any_step_leaves_nothing_that_the_next_start_does_not_remove() {
    let steps = {
        let bench = bench();
        bench.provide("3g.71gb", 4, &[]).unwrap();
        bench.provide("2g.35gb", 2, &["MIG-1"]).unwrap();
        bench.mig.make_whole(0, &held(&[])).unwrap();
        bench.player.0.lock().unwrap().calls.len()
    };
    for step in 1..=steps {
        let bench = bench();
        bench.player.0.lock().unwrap().dies_at = Some(step);
        let _ = bench.provide("3g.71gb", 4, &[]);
        let _ = bench.provide("2g.35gb", 2, &["MIG-1"]);
        let _ = bench.mig.make_whole(0, &held(&[]));
        let failed = bench.mig.reconcile(&held(&[]));
        assert!(failed.is_empty(), "step {step}: {failed:?}");
        assert!(!bench.is_on() && bench.there().is_empty(), "step {step}");
        assert!(bench.mig.ours().is_empty(), "step {step}");
    }
}

#[test]
fn a_start_keeps_the_instances_of_tasks_that_still_run() {
    let bench = bench();
    let three = bench.provide("3g.71gb", 4, &[]).unwrap();
    bench.provide("2g.35gb", 2, &[&three]).unwrap();
    assert!(bench.mig.reconcile(&held(&[&three])).is_empty());
    assert_eq!(bench.there(), [("3g.71gb".to_owned(), 4)]);
    assert!(bench.is_on());
}

#[test]
fn an_instance_is_kept_for_a_while_before_it_is_tidied_up() {
    let bench = bench();
    bench.provide("3g.71gb", 4, &[]).unwrap();
    assert!(bench.mig.tidy(&held(&[])).is_empty());
    assert_eq!(bench.there().len(), 1);
    let long_ago = Instant::now().checked_sub(KEEP).unwrap();
    bench.mig.state().idle.values_mut().for_each(|since| *since = long_ago);
    assert!(bench.mig.tidy(&held(&[])).is_empty());
    assert!(bench.there().is_empty() && !bench.is_on());
}
