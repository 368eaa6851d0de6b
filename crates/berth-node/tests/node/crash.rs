//! Every point at which a server or a supervisor may die.

use super::*;
use berth_model::TaskEnd;
use berth_node::State;

fn only_state(machine: &Machine) -> State {
    let all = machine.driver().adopt().unwrap();
    assert_eq!(all.len(), 1, "{all:?}");
    all[0].state
}

#[test]
fn a_new_server_finds_what_runs_and_hears_of_its_end() {
    let mut machine = machine();
    machine.start_line(1, "echo $$ > pid; while ! test -e go; do sleep 0.01; done; exit 4");
    let pid = machine.number("pid");
    machine.restart();
    assert_eq!(only_state(&machine), State::Running);
    let adopted = machine.driver().adopt().unwrap().remove(0);
    assert_eq!(adopted.spec.unwrap().command[0], "sh");
    assert!(is_alive(pid));
    assert_eq!(machine.start(shell_task(&machine, 1, "echo twice > twice")), Started::Known);
    std::fs::write(machine.path("go"), "").unwrap();
    let news = machine.news_to_the_end(1);
    assert!(matches!(news[0], Observed::Started { .. }), "{news:?}");
    assert!(matches!(&news[1], Observed::Ended(e) if e.end() == TaskEnd::Failed(4)));
    assert!(!machine.path("twice").exists());
}

#[test]
fn an_end_that_nobody_heard_is_told_by_the_next_server_until_it_is_acknowledged() {
    let mut machine = machine();
    machine.start_line(1, "echo ran >> runs");
    wait_until("it has ended", || machine.folder(1).join("exit.json").exists());
    for _ in 0..2 {
        machine.restart();
        assert_eq!(only_state(&machine), State::Ended);
        assert_eq!(machine.end(1).end(), TaskEnd::Done);
    }
    machine.driver().acknowledge(lease(1)).unwrap();
    machine.restart();
    assert_eq!(machine.driver().adopt().unwrap(), []);
    assert_eq!(machine.driver().wait(Duration::ZERO).unwrap(), []);
    assert_eq!(machine.start(shell_task(&machine, 1, "echo ran >> runs")), Started::Known);
    assert_eq!(std::fs::read_to_string(machine.path("runs")).unwrap(), "ran\n");
    assert_eq!(machine.driver().ended(lease(1)).unwrap().unwrap().end(), TaskEnd::Done);
}

#[test]
fn a_folder_without_a_supervisor_is_started_when_asked_again() {
    let mut machine = machine();
    std::fs::create_dir(machine.folder(1)).unwrap();
    machine.restart();
    assert_eq!(only_state(&machine), State::Prepared);
    assert_eq!(machine.driver().wait(Duration::from_millis(700)).unwrap(), []);
    assert_eq!(machine.run(1, "exit 0").end(), TaskEnd::Done);
}

#[test]
fn a_folder_without_a_supervisor_can_be_stopped() {
    let mut machine = machine();
    std::fs::create_dir(machine.folder(1)).unwrap();
    machine.restart();
    machine.stop(1, Span::hours(1));
    assert_eq!(machine.end(1).end(), TaskEnd::Stopped);
    assert_eq!(machine.start(shell_task(&machine, 1, "exit 0")), Started::Known);
}

#[test]
fn a_supervisor_that_had_begun_and_started_nothing_is_lost_and_not_run_again() {
    let mut machine = machine();
    std::fs::create_dir(machine.folder(1)).unwrap();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let begun = format!(
        r#"{{"at":"2026-11-15T09:00:00Z","boot":"{}","supervisor":2147483646,"cgroup":null}}"#,
        boot.trim()
    );
    std::fs::write(machine.folder(1).join("lock"), begun).unwrap();
    machine.restart();
    assert_eq!(machine.start(shell_task(&machine, 1, "echo ran > ran")), Started::Known);
    let ended = machine.end(1);
    assert_eq!(ended.end(), TaskEnd::Lost);
    assert_eq!(ended.lost.as_deref(), Some("its supervisor was killed"));
    assert!(!machine.path("ran").exists());
}

#[test]
fn what_ran_before_the_machine_was_restarted_is_lost() {
    let mut machine = machine();
    std::fs::create_dir(machine.folder(1)).unwrap();
    // The number of this very process: it must not be touched.
    let begun = format!(
        r#"{{"at":"2026-11-15T09:00:00Z","boot":"another","supervisor":{},"cgroup":null}}"#,
        std::process::id()
    );
    std::fs::write(machine.folder(1).join("lock"), begun).unwrap();
    machine.restart();
    let ended = machine.end(1);
    assert_eq!(ended.lost.as_deref(), Some("the machine was restarted while it ran"));
}

#[test]
fn a_killed_supervisor_takes_its_task_along_and_the_task_is_lost() {
    let machine = machine();
    machine.start_line(1, "setsid sh -c 'echo $$ > away; exec sleep 1000' & echo $$ > pid; wait");
    let (pid, away) = (machine.number("pid"), machine.number("away"));
    wait_until("it is known to run", || machine.folder(1).join("started.json").exists());
    kill(machine.supervisor(1));
    let ended = machine.end(1);
    assert_eq!(ended.end(), TaskEnd::Lost);
    assert!(ended.started_at.is_some());
    assert!(!is_alive(pid) && !is_alive(away), "the task holds its GPUs still");
    assert_eq!(machine.start(shell_task(&machine, 1, "exit 0")), Started::Known);
}

#[test]
fn a_supervisor_killed_while_there_was_no_server_is_found_out() {
    let mut machine = machine();
    machine.start_line(1, "echo $$ > pid; exec sleep 1000");
    let (pid, supervisor) = (machine.number("pid"), machine.supervisor(1));
    machine.driver = None;
    kill(supervisor);
    machine.restart();
    assert_eq!(machine.end(1).end(), TaskEnd::Lost);
    assert!(!is_alive(pid));
}

#[test]
fn a_killed_task_is_signalled_and_not_lost() {
    let machine = machine();
    machine.start_line(1, "echo $$ > pid; exec sleep 1000");
    kill(machine.number("pid"));
    assert_eq!(machine.end(1).end(), TaskEnd::Signalled(9));
}

#[test]
fn a_lease_is_started_once_however_often_it_is_asked_for() {
    let machine = machine();
    machine.start_line(1, "echo ran >> runs; exec sleep 0.2");
    for _ in 0..5 {
        assert_eq!(machine.start(shell_task(&machine, 1, "echo ran >> runs")), Started::Known);
    }
    machine.end(1);
    assert_eq!(machine.start(shell_task(&machine, 1, "echo ran >> runs")), Started::Known);
    assert_eq!(std::fs::read_to_string(machine.path("runs")).unwrap(), "ran\n");
}

#[test]
fn of_two_supervisors_of_one_lease_only_one_runs_it() {
    let mut machine = machine();
    // The first server dies right after it has started a supervisor; the second one, which
    // finds nothing begun, starts another.
    for _ in 0..10 {
        machine.start(shell_task(&machine, 1, "echo ran >> runs; exec sleep 0.1"));
        machine.restart();
    }
    assert_eq!(machine.end(1).end(), TaskEnd::Done);
    assert_eq!(std::fs::read_to_string(machine.path("runs")).unwrap(), "ran\n");
}

#[test]
fn a_supervisor_that_cannot_begin_is_told_with_its_reason() {
    let machine = machine();
    std::fs::create_dir_all(machine.folder(1).join("exit.spare")).unwrap();
    machine.start_line(1, "exit 0");
    let TaskEnd::NotStarted(why) = machine_end_after_removing(&machine, "exit.spare") else {
        panic!("it started");
    };
    assert!(why.contains("its supervisor gave up before it could start it"), "{why}");
    assert!(why.contains("directory"), "{why}");
}

/// The driver needs the place that the supervisor could not have.
fn machine_end_after_removing(machine: &Machine, name: &str) -> TaskEnd {
    let log = machine.folder(1).join("supervisor.log");
    wait_until("the supervisor complains", || std::fs::read(&log).is_ok_and(|l| !l.is_empty()));
    std::fs::remove_dir(machine.folder(1).join(name)).unwrap();
    machine.end(1).end()
}

#[test]
fn a_root_has_one_driver() {
    let machine = machine();
    let again = Driver::open(&machine.path("root"), launcher(), unconfined());
    assert!(again.unwrap_err().to_string().contains("in use by another Berth server"));
}

#[test]
fn a_missing_supervisor_is_an_error_and_the_start_can_be_tried_again() {
    let mut machine = machine();
    let root = machine.path("root");
    machine.driver = None;
    let missing = Launcher { exe: "/no/such/berth".into(), args: Vec::new() };
    let driver = Driver::open(&root, missing, unconfined()).unwrap();
    let error = driver.start(shell_task(&machine, 1, "exit 0")).unwrap_err();
    assert!(error.to_string().contains("cannot start the supervisor /no/such/berth"), "{error}");
    drop(driver);
    machine.restart();
    assert_eq!(machine.run(1, "exit 0").end(), TaskEnd::Done);
}
