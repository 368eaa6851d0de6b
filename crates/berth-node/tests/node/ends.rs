//! How tasks end, and that nothing of them is left.

use super::*;
use berth_model::TaskEnd;
use berth_node::{Gpus, Launch, Ready};

#[test]
fn a_task_that_ends_well_is_told_as_started_and_done_once() {
    let machine = machine();
    machine.start_line(1, "echo out; echo err >&2");
    let news = machine.news_to_the_end(1);
    assert!(matches!(news[0], Observed::Started { .. }), "{news:?}");
    let Observed::Ended(ended) = &news[1] else { panic!("{news:?}") };
    assert_eq!(ended.end(), TaskEnd::Done);
    assert!(ended.started_at.unwrap() <= ended.at);
    assert_eq!(news.len(), 2);
    assert_eq!(machine.log(1, 0), "out\nerr\n");
    assert_eq!(machine.driver().wait(Duration::from_millis(700)).unwrap(), []);
}

#[test]
fn exits_are_told_apart() {
    let machine = machine();
    assert_eq!(machine.run(1, "exit 3").end(), TaskEnd::Failed(3));
    assert_eq!(machine.run(2, "exit 99").end(), TaskEnd::Requeue);
    assert_eq!(machine.run(3, "kill -SEGV $$").end(), TaskEnd::Signalled(11));
}

#[test]
fn a_failure_is_explained_by_an_error_of_its_own_gpu() {
    let machine = machine();
    for (job, index) in [(1, 0), (2, 1)] {
        let line = "while ! test -e go; do sleep 0.01; done; exit 1";
        let mut spec = shell_task(&machine, job, line);
        spec.gpus = Gpus::Real { indices: vec![index], uuids: vec![format!("GPU-{index}")] };
        machine.start(spec);
    }
    machine.driver().note_gpu_error(1, 79).unwrap();
    std::fs::write(machine.path("go"), "").unwrap();
    let mut kinds = std::collections::BTreeMap::new();
    wait_until("both have ended", || {
        for news in machine.driver().wait(Duration::from_secs(1)).unwrap() {
            if let Observed::Ended(ended) = news {
                kinds.insert(ended.lease.job.number, (ended.end(), ended.gpu_error));
            }
        }
        kinds.len() == 2
    });
    assert_eq!(kinds[&1], (TaskEnd::Failed(1), None));
    assert_eq!(kinds[&2], (TaskEnd::GpuError, Some(79)));
}

#[test]
fn a_command_that_cannot_be_started_says_why() {
    let machine = machine();
    let script = machine.path("script");
    std::fs::write(&script, "echo hi\n").unwrap();
    let script = script.display().to_string();
    let cases: [(&[&str], &str); 3] = [
        (&["no-such-command"], "no such program: no-such-command (PATH="),
        (&["/no/such/command"], "does not exist"),
        (&[&script], "chmod +x"),
    ];
    for (job, (command, expect)) in (1..).zip(cases) {
        let spec = TaskSpec::new(lease(job), command, machine.dir.path());
        machine.start(spec);
        match machine.end(job).end() {
            TaskEnd::NotStarted(why) => assert!(why.contains(expect), "{why}"),
            other => panic!("{command:?} ended as {other:?}"),
        }
    }
    // A folder of PATH that the job's account may not use is named.
    let mut spec = TaskSpec::new(lease(8), &["no-such-command"], machine.dir.path());
    spec.env.insert("PATH".to_owned(), "/nowhere/bin:/usr/bin".to_owned());
    machine.start(spec);
    let TaskEnd::NotStarted(why) = machine.end(8).end() else { panic!("it started") };
    assert!(why.contains("no such program: no-such-command (PATH=/nowhere/bin"), "{why}");
    assert!(why.contains("may not read /nowhere/bin, or it does not exist"), "{why}");
    machine.start(TaskSpec::new(lease(9), &["true"], "/no/such/directory"));
    let TaskEnd::NotStarted(why) = machine.end(9).end() else { panic!("it started") };
    assert_eq!(why, "the working directory /no/such/directory does not exist");
}

#[test]
fn a_task_sees_its_contract_and_only_its_own_environment() {
    let machine = machine();
    let mut spec = shell_task(&machine, 7, "env");
    spec.env.insert("TOKEN".to_owned(), "hunter2".to_owned());
    machine.start(spec);
    machine.end(7);
    let log = machine.log(7, 0);
    for line in ["SLURM_JOB_ID=7", "BERTH_ATTEMPT=0", "TOKEN=hunter2"] {
        assert!(log.lines().any(|found| found == line), "{line} is not in\n{log}");
    }
    assert!(log.contains("PATH=") && !log.contains("CARGO_"), "{log}");
    // The value was on no disk but the log, where the task itself has put it.
    for entry in std::fs::read_dir(machine.folder(7)).unwrap().flatten() {
        if entry.file_type().unwrap().is_file() {
            let text = std::fs::read_to_string(entry.path()).unwrap();
            assert!(!text.contains("hunter2"), "{}", entry.path().display());
        }
    }
}

#[test]
fn every_rank_has_its_number_and_its_log() {
    let machine = machine();
    let mut spec = shell_task(&machine, 1, "echo $RANK of $WORLD_SIZE");
    spec.launch = Launch::Ranks { count: 3 };
    machine.start(spec);
    assert_eq!(machine.end(1).end(), TaskEnd::Done);
    for rank in 0..3 {
        assert_eq!(machine.log(1, rank), format!("{rank} of 3\n"));
    }
}

#[test]
fn when_one_rank_fails_the_others_are_ended_and_its_exit_counts() {
    let machine = machine();
    let mut spec = shell_task(&machine, 1, "test $RANK = 1 && exit 5; exec sleep 1000");
    spec.launch = Launch::Ranks { count: 3 };
    machine.start(spec);
    let ended = machine.end(1);
    assert_eq!((ended.end(), ended.rank), (TaskEnd::Failed(5), 1));
}

#[test]
fn a_process_that_forked_away_does_not_survive_its_task() {
    let machine = machine();
    // A daemon in a session of its own, its parents gone, deaf to TERM.
    let daemon = "setsid sh -c 'trap \"\" TERM HUP; (echo $$ > daemon; exec sleep 1000) &' &";
    let line = format!("{daemon} while ! test -s daemon; do sleep 0.01; done; exit 0");
    let daemon = |machine: &Machine| machine.number("daemon");
    let ended = machine.run(1, &line);
    assert_eq!(ended.end(), TaskEnd::Done);
    assert!(!is_alive(daemon(&machine)), "the daemon runs on");
}

#[test]
fn a_daemon_does_not_survive_without_control_groups_either() {
    let machine = machine_with(Options { cgroups: false, ..unconfined() });
    assert!(!machine.driver().limits().groups);
    let line = "setsid sh -c 'trap \"\" TERM; echo $$ > daemon; while :; do sleep 1; done' & \
                while ! test -s daemon; do sleep 0.01; done";
    assert_eq!(machine.run(1, line).end(), TaskEnd::Done);
    assert!(!is_alive(machine.number("daemon")), "the daemon runs on");
}

#[test]
fn what_a_task_used_is_known() {
    let machine = machine();
    let ended = machine.run(1, "i=0; while test $i -lt 200000; do i=$((i+1)); done; sleep 0.3");
    assert!(ended.usage.cpu_ms > 0, "{ended:?}");
    assert!(ended.usage.memory_peak.is_some(), "{ended:?}");
}

#[test]
fn a_service_that_is_not_ready_in_time_is_ended_and_has_failed() {
    let machine = machine();
    let mut spec = shell_task(&machine, 1, "trap 'exit 0' TERM; while :; do sleep 0.01; done");
    // Nobody listens there: the port was free, and is given back.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    spec.port = Some(free.local_addr().unwrap().port());
    drop(free);
    spec.ready = Some(Ready::Connect);
    spec.ready_within = Some(Span::ms(200));
    machine.start(spec);
    let news = machine.news_to_the_end(1);
    assert!(!news.iter().any(|news| matches!(news, Observed::Ready { .. })), "{news:?}");
    let Some(Observed::Ended(ended)) = news.last() else { panic!("{news:?}") };
    assert_eq!((ended.end(), ended.asked), (TaskEnd::NotReady, None));
}

#[test]
fn a_service_is_ready_when_its_port_answers() {
    let machine = machine();
    // The test itself is the service: a shell cannot listen.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut spec = shell_task(&machine, 1, "echo $PORT; exec sleep 1000");
    spec.port = Some(listener.local_addr().unwrap().port());
    spec.ready = Some(Ready::Connect);
    machine.start(spec);
    let mut news = Vec::new();
    wait_until("the service is ready", || {
        news.extend(machine.driver().wait(Duration::from_secs(1)).unwrap());
        news.iter().any(|news| matches!(news, Observed::Ready { .. }))
    });
    machine.stop(1, Span(0));
    assert_eq!(machine.end(1).end(), TaskEnd::Stopped);
}

#[test]
fn many_short_tasks_all_end_once() {
    let machine = machine();
    for job in 1..=40 {
        machine.start_line(job, "exit 0");
    }
    let mut ended = Vec::new();
    wait_until("all have ended", || {
        for news in machine.driver().wait(Duration::from_secs(1)).unwrap() {
            if let Observed::Ended(end) = news {
                machine.driver().acknowledge(end.lease).unwrap();
                ended.push(end.lease.job.number);
            }
        }
        ended.len() >= 40
    });
    ended.sort_unstable();
    assert_eq!(ended, (1..=40).collect::<Vec<_>>());
    assert_eq!(machine.driver().adopt().unwrap(), []);
}

#[test]
#[ignore = "needs a control group with the memory controller delegated to it"]
fn a_task_over_its_memory_is_killed_as_a_whole_and_told_so() {
    let machine = machine();
    assert!(machine.driver().limits().memory, "{:?}", machine.driver().limits());
    let line = "sleep 1000 & head -c 400m /dev/zero | tail -c 390m > eaten; sleep 1000";
    let mut spec = shell_task(&machine, 1, line);
    spec.memory = Some(berth_model::Bytes::mib(64));
    machine.start(spec);
    let ended = machine.end(1);
    assert_eq!(ended.end(), TaskEnd::OutOfMemory);
    assert!(ended.usage.memory_peak.unwrap() <= berth_model::Bytes::mib(64));
}
