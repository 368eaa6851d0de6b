//! What `berth logs` shows of jobs with several processes, of jobs that wait, and of arrays.

use super::server::{Server, until};
use std::io::Read;
use std::process::{Child, Output, Stdio};

fn submit(server: &Server, file: &str) -> String {
    let path = server.home.path().join("job.yaml");
    std::fs::write(&path, file).unwrap();
    server.run_ok(&["run", "-d", "-o", "name", "-f", path.to_str().unwrap()]).trim().to_owned()
}

fn until_is(server: &Server, job: &str, state: &str) {
    until(&format!("job {job} is {state}"), || server.job(job)["state"] == state);
}

fn texts(ran: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&ran.stdout), text(&ran.stderr))
}

fn follow(server: &Server, job: &str) -> Child {
    let mut command = server.command(&["logs", "-f", job]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn refused(server: &Server, args: &[&str], says: &str) {
    let ran = server.berth(args);
    let (_, errors) = texts(&ran);
    assert!(!ran.status.success() && errors.contains(says), "{args:?}: {errors}");
}

const RANKS: &str = "name: ranks
gpus: 4
launch: ranks
run: |
  echo \"rank $RANK starts\"
  sleep 1
  if [ $RANK = 2 ]; then echo \"loss is nan\"; exit 9; fi
  sleep 600
";

#[test]
fn all_ranks_are_shown_with_their_numbers_and_the_one_that_failed_is_named_with_its_last_lines() {
    let server = Server::start(&["--gpus", "4xH100"]);
    let job = submit(&server, RANKS);
    until_is(&server, &job, "failed");
    let (shown, said) = texts(&server.berth(&["logs", &job]));
    for rank in 0..4 {
        assert!(shown.contains(&format!("[{rank}] rank {rank} starts\n")), "{shown}");
    }
    assert!(shown.contains("[2] loss is nan\n"), "{shown}");
    let named = said.find("rank 2 failed with exit code 9; its last lines:").expect(&said);
    assert!(said[named..].contains("\n  loss is nan"), "{said}");
    // One alone is shown as it printed.
    assert_eq!(server.run_ok(&["logs", &job, "--rank", "3"]), "rank 3 starts\n");
    refused(&server, &["logs", &job, "--rank", "4"], "4 ranks, from 0 to 3; there is no rank 4");
    refused(&server, &["logs", &job, "--task", "1"], "one task, number 0; there is no task 1");
    refused(&server, &["logs", &job, "--attempt", "7"], "there is no attempt 7");
}

#[test]
fn a_rank_counts_over_all_tasks_of_a_job() {
    let server = Server::start(&["--gpus", "4xH100"]);
    let file =
        "name: two\nnodes: 2\ngpus: 2\nlaunch: ranks\nrun: 'echo rank $RANK of $WORLD_SIZE'\n";
    let job = submit(&server, file);
    until_is(&server, &job, "done");
    assert_eq!(server.run_ok(&["logs", &job, "--rank", "3"]), "rank 3 of 4\n");
    assert_eq!(server.run_ok(&["logs", &job, "--task", "1", "--rank", "0"]), "rank 2 of 4\n");
    let of_task = server.run_ok(&["logs", &job, "--task", "1"]);
    assert!(of_task.contains("[2] rank 2") && of_task.contains("[3] rank 3"), "{of_task}");
    assert!(!of_task.contains("[0]"), "{of_task}");
    let last = server.run_ok(&["logs", &job, "-n", "2"]);
    assert_eq!(last.lines().count(), 2, "{last}");
    refused(&server, &["logs", &job, "--rank", "4"], "there is no rank 4");
    assert_eq!(server.run_ok(&["logs", &job, "--search", "rank 3", "--count"]).trim(), "1");
}

#[test]
fn lines_a_second_apart_have_different_times() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let job = submit(&server, "name: slow\nrun: 'for i in 1 2 3 4; do echo $i; sleep 1; done'\n");
    until_is(&server, &job, "done");
    let shown = server.run_ok(&["logs", &job, "--timestamps"]);
    let times: std::collections::BTreeSet<&str> =
        shown.lines().map(|line| line.rsplit_once(' ').unwrap().0).collect();
    assert_eq!(times.len(), 4, "{shown}");
}

#[test]
fn who_follows_a_job_that_waits_is_told_why_and_in_the_end_how_it_ended() {
    let server = Server::start(&["--gpus", "1xL4"]);
    let first = submit(&server, "name: first\ngpus: 1\nrun: 'sleep 600'\n");
    until_is(&server, &first, "running");
    let next = submit(&server, "name: next\ngpus: 1\nrun: 'echo at last; exit 3'\n");
    let mut follows = follow(&server, &next);
    let mut errors = follows.stderr.take().unwrap();
    let mut told = String::new();
    until("it is told why it waits", || {
        let mut some = [0; 4096];
        let length = errors.read(&mut some).unwrap();
        told.push_str(&String::from_utf8_lossy(&some[..length]));
        told.contains("pending")
    });
    assert!(told.contains("GPU"), "{told}");
    server.run_ok(&["stop", &first]);
    errors.read_to_string(&mut told).unwrap();
    let mut shown = String::new();
    follows.stdout.take().unwrap().read_to_string(&mut shown).unwrap();
    assert!(follows.wait().unwrap().success(), "{told}");
    assert_eq!(shown, "at last\n");
    let last = told.lines().last().unwrap_or_default();
    assert!(last.contains("failed") && last.contains("exit code 3"), "{told}");
}

#[test]
fn who_follows_a_job_misses_nothing_when_the_server_starts_anew() {
    for kill in [true, false] {
        let mut server = Server::start(&["--gpus", "2xL4"]);
        let script = "for i in $(seq 1 80); do echo line $i of $RANK; sleep 0.1; done";
        let file = format!("name: goes-on\ngpus: 2\nlaunch: ranks\nrun: '{script}'\n");
        let job = submit(&server, &file);
        until_is(&server, &job, "running");
        let follows = follow(&server, &job);
        std::thread::sleep(std::time::Duration::from_secs(2));
        match kill {
            true => server.kill(),
            false => server.stop(),
        }
        server.start_again();
        let ran = follows.wait_with_output().unwrap();
        let (shown, said) = texts(&ran);
        assert!(ran.status.success(), "{said}");
        for rank in 0..2 {
            let of_rank = |line: &&str| line.starts_with(&format!("[{rank}] "));
            let lines: Vec<&str> = shown.lines().filter(of_rank).collect();
            let expect: Vec<String> =
                (1..=80).map(|n| format!("[{rank}] line {n} of {rank}")).collect();
            assert_eq!(lines, expect, "killed: {kill}; {said}");
        }
        assert!(said.lines().last().unwrap_or_default().contains("done"), "{said}");
    }
}

#[test]
fn an_array_is_shown_element_by_element_or_says_how_to_choose() {
    let server = Server::start(&["--gpus", "2xL4"]);
    let job = submit(&server, "name: sweep\nsweep: {lr: [1, 2, 3]}\nrun: 'echo lr is $lr'\n");
    until("all are done", || {
        let jobs = server.all_jobs();
        jobs.len() == 3 && jobs.iter().all(|job| job["state"] == "done")
    });
    let shown = server.run_ok(&["logs", &job]);
    assert_eq!(shown, "[0] lr is 1\n[1] lr is 2\n[2] lr is 3\n");
    assert_eq!(server.run_ok(&["logs", &format!("{job}_2")]), "lr is 3\n");
    assert_eq!(server.run_ok(&["logs", "-f", &job]).lines().count(), 3);
    let large = submit(&server, "name: large\narray: 0-299\nhold: true\nrun: 'true'\n");
    let next = format!("from `berth logs {large}_0` to `berth logs {large}_299`");
    refused(&server, &["logs", &large], &next);
}
