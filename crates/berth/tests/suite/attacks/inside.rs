//! Attempts from inside a job.

use super::stage::{As, SECRET, Stage};
use berth_node::hides_abstract_sockets;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;

fn attack(who: As) {
    let Some(stage) = Stage::set(who, &[]) else { return };
    let bait = format!("berth-bait-{}", std::process::id());
    let socket = format!("berth-attack-{}-{who:?}", std::process::id());
    let address = SocketAddr::from_abstract_name(&socket).expect("it is short");
    let _listener = UnixListener::bind_addr(&address).expect("nobody has it");
    let folders = ["/tmp", "/var/tmp", "/dev/shm"];
    for folder in folders {
        std::fs::write(Path::new(folder).join(&bait), "bait").expect("everybody may");
    }
    let script = include_str!("inside.sh")
        .replace("@HOME@", &stage.home().display().to_string())
        .replace("@VICTIM@", &stage.victim)
        .replace("@BAIT@", &bait)
        .replace("@SOCKET@", if hides_abstract_sockets() { &socket } else { "none" })
        .replace("@ACCOUNT@", if stage.has_accounts() { "own" } else { "shared" })
        .replace("@SERVER@", &stage.server.process().to_string())
        .replace("@SECRET@", SECRET);
    let path = stage.work.path().join("attack.sh");
    std::fs::write(&path, script).expect("it can be written");
    let file = format!("name: attack\nteam: red\ngpus: 1\nrun: bash {}\n", path.display());
    let printed = stage.run(&file);
    for folder in folders {
        let _ = std::fs::remove_file(Path::new(folder).join(&bait));
    }
    let breaches: Vec<&str> = printed.lines().filter(|line| line.contains("BREACH")).collect();
    assert!(breaches.is_empty(), "{breaches:#?}");
    let held = printed.lines().filter(|line| line.starts_with("held ")).count();
    assert!(held >= 68 && printed.contains("all attempts made"), "{held} held: {printed}");
    for left in ["/etc", "/usr/local", "/"].map(|folder| Path::new(folder).join("berth-was-here")) {
        assert!(!left.exists(), "{} is there", left.display());
    }
    // Mallory's job ended as it ended, and the victim never noticed.
    assert_eq!(stage.server.job("attack")["state"], "done");
    assert_eq!(stage.server.job("victim")["state"], "running");
}

#[test]
fn a_job_reaches_nothing_that_its_user_may_not() {
    attack(As::Us);
}

#[test]
fn a_job_reaches_nothing_that_its_user_may_not_where_the_server_is_an_ordinary_user() {
    attack(As::Ordinary);
}

#[test]
fn a_job_of_whoever_started_a_server_of_root_leaves_no_file_that_runs_with_its_group() {
    let stage = Stage::set(As::Us, &[]).expect("it is us");
    let tries = "umask 0; touch f; chmod g+s f; install -m 2755 /bin/true g; mkdir d; chmod g+s d; \
                 find . -perm /6000 | sed 's/^/BREACH /'; echo all attempts made";
    let file = format!("name: operator\nteam: blue\nrun: |\n  {tries}\n");
    let id = stage.submit(&stage.server.token(), &file).expect("the operator may");
    stage.ended(&id);
    let printed = stage.server.run_ok(&["logs", &id]);
    assert!(printed.contains("all attempts made") && !printed.contains("BREACH"), "{printed}");
}
