//! Stopping.

use super::*;
use berth_model::Cause;
use berth_model::TaskEnd;
use berth_node::Launch;

#[test]
fn a_task_that_obeys_term_is_stopped_whatever_it_exits_with() {
    let machine = machine();
    machine.start_line(1, "trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.05; done");
    wait_until("it is up", || machine.folder(1).join("logs/0.0").exists());
    wait_until("its trap is set", || machine.log(1, 0).contains("up"));
    machine.stop(1, Span::secs(60));
    let ended = machine.end(1);
    assert_eq!(ended.end(), TaskEnd::Stopped);
    assert_eq!((ended.asked, ended.code), (Some(Cause::Preempt), Some(0)));
    assert!(machine.log(1, 0).ends_with("saved\n"), "{}", machine.log(1, 0));
}

const DEAF: &str = "trap '' TERM; echo up > up; while :; do sleep 0.05; done";

#[test]
fn a_task_that_ignores_term_is_killed_after_the_grace() {
    let machine = machine();
    machine.start_line(1, DEAF);
    wait_until("it is up", || machine.path("up").exists());
    let asked = Instant::now();
    machine.stop(1, Span::ms(400));
    let ended = machine.end(1);
    assert_eq!((ended.end(), ended.signal), (TaskEnd::Stopped, Some(9)));
    assert!(asked.elapsed() >= Duration::from_millis(400), "it did not get its grace");
}

#[test]
fn a_second_stop_shortens_the_grace_and_keeps_the_cause() {
    let machine = machine();
    machine.start_line(1, DEAF);
    wait_until("it is up", || machine.path("up").exists());
    machine.stop(1, Span::hours(1));
    let again = Stop { cause: Cause::Cancelled, grace: Span(0), signal: None };
    machine.driver().stop(lease(1), again).unwrap();
    assert_eq!(machine.end(1).asked, Some(Cause::Preempt));
}

#[test]
fn a_task_with_a_failed_rank_has_failed_although_it_is_stopped_for_the_failure_of_another() {
    let machine = machine();
    let line = "if test $RANK = 1; then while ! test -e up; do sleep 0.01; done; exit 5; fi; \
                trap 'echo told > told' TERM; echo up > up; while :; do sleep 0.05; done";
    let mut spec = shell_task(&machine, 1, line);
    spec.launch = Launch::Ranks { count: 2 };
    machine.start(spec);
    wait_until("the other rank is told", || machine.path("told").exists());
    let stop = Stop { cause: Cause::PeerFailed, grace: Span(0), signal: None };
    machine.driver().stop(lease(1), stop).unwrap();
    let ended = machine.end(1);
    assert_eq!((ended.end(), ended.rank, ended.asked), (TaskEnd::Failed(5), 1, None));
}

#[test]
fn the_grace_ends_although_the_server_is_gone() {
    let mut machine = machine();
    machine.start_line(1, "trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done");
    let pid = machine.number("pid");
    machine.stop(1, Span::ms(200));
    machine.driver = None;
    wait_until("the supervisor kills it by itself", || !is_alive(pid));
    machine.restart();
    assert_eq!(machine.end(1).end(), TaskEnd::Stopped);
}

#[test]
fn a_stop_whose_poke_got_lost_is_noticed() {
    let machine = machine();
    machine.start_line(1, "echo up > up; exec sleep 1000");
    wait_until("it is up", || machine.path("up").exists());
    let request = r#"{"cause":"drain","at":"2026-11-15T09:00:00Z","grace_ms":0,"signal":null}"#;
    std::fs::write(machine.folder(1).join("stop.json"), request).unwrap();
    assert_eq!(machine.end(1).asked, Some(Cause::Drain));
}

#[test]
fn another_signal_than_term_can_be_asked_for() {
    let machine = machine();
    machine.start_line(1, "trap 'exit 7' USR1; echo up > up; while :; do sleep 0.05; done");
    wait_until("it is up", || machine.path("up").exists());
    let stop = Stop { cause: Cause::Preempt, grace: Span::secs(60), signal: Some(10) };
    machine.driver().stop(lease(1), stop).unwrap();
    assert_eq!(machine.end(1).code, Some(7));
}

#[test]
fn stopping_what_has_ended_does_nothing_and_what_never_was_is_an_error() {
    let machine = machine();
    machine.run(1, "exit 0");
    machine.stop(1, Span(0));
    machine.driver().acknowledge(lease(1)).unwrap();
    machine.stop(1, Span(0));
    let stop = Stop { cause: Cause::Preempt, grace: Span(0), signal: None };
    let error = machine.driver().stop(lease(2), stop).unwrap_err();
    assert!(error.to_string().contains("no task for lease 2/0#0"), "{error}");
}
