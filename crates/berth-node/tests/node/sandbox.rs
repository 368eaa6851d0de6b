//! Tasks in sandboxes, as root and as an ordinary user, whichever runs the tests.

use super::*;
use berth_model::TaskEnd;
use berth_node::{Accounts, Confine, Isolation, Launch, Opener, Shown, Size};
use std::io::Read;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// A machine whose tasks run in sandboxes, with a folder that they may write to.
fn sandboxes() -> Machine {
    let options = Options { isolation: Wanted::Required, ..Options::default() };
    let machine = machine_with(options);
    let work = machine.path("work");
    std::fs::create_dir(&work).unwrap();
    // Whatever account the task has.
    std::fs::set_permissions(&work, std::fs::Permissions::from_mode(0o777)).unwrap();
    machine
}

fn task(machine: &Machine, job: u64, line: &str) -> TaskSpec {
    let work = machine.path("work").canonicalize().unwrap();
    let mut spec = TaskSpec::new(lease(job), &["sh", "-c", line], &work);
    let is_root = rustix::process::geteuid().is_root();
    spec.confine = Some(Confine {
        account: is_root.then(|| Accounts::made_up("ana")),
        user: "ana".to_owned(),
        home: work.clone(),
        shown: vec![Shown::in_place(&work, true)],
        ..Confine::default()
    });
    spec
}

fn run(machine: &Machine, job: u64, line: &str) -> (TaskEnd, String) {
    machine.start(task(machine, job, line));
    let end = machine.end(job).end();
    (end, machine.log(job, 0))
}

fn work(machine: &Machine, name: &str) -> PathBuf {
    machine.path("work").join(name)
}

#[test]
fn a_task_sees_the_system_and_its_own_folders_and_nothing_else() {
    let machine = sandboxes();
    assert!(machine.driver().isolation().is_on());
    std::fs::write(machine.path("secret"), "hunter2").unwrap();
    let root = machine.dir.path().canonicalize().unwrap();
    let line = format!(
        "ls {0}; cat {0}/secret; ls $BERTH_TASK_DIR/..; ls /home /root; echo data > data; \
         echo note > $BERTH_TASK_DIR/note; echo t > /tmp/t && ls /tmp; \
         touch /etc/x /usr/x /x $BERTH_PREEMPT_FILE; echo $USER $HOME",
        root.display()
    );
    let (end, log) = run(&machine, 1, &line);
    assert_eq!(end, TaskEnd::Done, "{log}");
    assert!(log.starts_with("root\nwork\n"), "{log}");
    assert!(!log.contains("hunter2") && !log.contains("lock") && !log.contains("\nexit"), "{log}");
    assert!(log.contains("job\nnotices\n"), "{log}");
    assert!(log.contains("ana "), "{log}");
    for place in ["/etc/x", "/usr/x", "/x", "stop.json"] {
        let refused = log.lines().any(|line| line.starts_with("touch:") && line.contains(place));
        assert!(refused, "{place}: {log}");
    }
    assert_eq!(std::fs::read_to_string(work(&machine, "data")).unwrap(), "data\n");
    assert_eq!(std::fs::read_to_string(machine.folder(1).join("job/note")).unwrap(), "note\n");
    assert!(!Path::new("/tmp/t").exists());
    wait_until("its /tmp is removed", || {
        std::fs::read_dir(machine.path("root/rooms")).unwrap().next().is_none()
    });
}

#[test]
fn a_task_sees_no_process_but_its_own() {
    let machine = sandboxes();
    let (end, log) = run(&machine, 1, "ls /proc | grep -E '^[0-9]+$' | wc -l; cat /proc/1/environ");
    assert_eq!(end, TaskEnd::Failed(1), "{log}");
    let count: u32 = log.lines().next().unwrap().trim().parse().unwrap();
    assert!(count <= 6, "{log}");
    assert!(log.contains("Permission denied"), "{log}");
}

#[test]
fn a_task_has_an_account_and_no_way_to_another() {
    let machine = sandboxes();
    let line = "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status; id -u; \
                unshare -U true; mount -t tmpfs x /tmp; chroot / true";
    let (_, log) = run(&machine, 1, line);
    for name in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        let none = format!("{name}:\t0000000000000000");
        assert!(log.contains(&none), "{name}: {log}");
    }
    assert!(log.contains("NoNewPrivs:\t1") && log.contains("Seccomp:\t2"), "{log}");
    let refused = ["unshare failed: Operation not permitted", "mount: ", "chroot: cannot"];
    assert!(refused.iter().all(|what| log.contains(what)), "{log}");
    let uid = match rustix::process::geteuid().as_raw() {
        0 => Accounts::made_up("ana").uid,
        own => own,
    };
    assert!(log.lines().any(|line| line == uid.to_string()), "{log}");
}

#[test]
fn a_task_cannot_write_how_it_ended() {
    let machine = sandboxes();
    let line =
        "for d in $BERTH_TASK_DIR $BERTH_TASK_DIR/..; do echo '{}' > $d/exit.json; done; exit 7";
    let (end, _) = run(&machine, 1, line);
    assert_eq!(end, TaskEnd::Failed(7));
}

#[test]
fn a_task_that_deletes_its_folder_still_ends_as_it_ended() {
    let machine = sandboxes();
    let (end, _) = run(&machine, 1, "rm -rf $BERTH_TASK_DIR $BERTH_TASK_DIR/..; exit 3");
    assert_eq!(end, TaskEnd::Failed(3));
}

#[test]
fn everything_in_a_sandbox_dies_with_its_supervisor_and_with_its_task() {
    let machine = sandboxes();
    let line = "setsid sh -c 'while :; do date > alive; sleep 0.01; done' & exec sleep 1000";
    machine.start(task(&machine, 1, line));
    wait_until("it is alive", || work(&machine, "alive").exists());
    kill(machine.supervisor(1));
    assert_eq!(machine.end(1).end(), TaskEnd::Lost);
    std::fs::remove_file(work(&machine, "alive")).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    assert!(!work(&machine, "alive").exists(), "it goes on");

    let (end, _) = run(&machine, 2, "setsid sh -c 'trap \"\" TERM; exec sleep 1000' & exit 0");
    assert_eq!(end, TaskEnd::Done);
}

#[test]
fn the_ranks_of_a_task_share_their_sandbox() {
    let machine = sandboxes();
    let line = "echo $RANK > /tmp/rank$RANK; ls /tmp > seen$RANK; \
                while ! test -e /tmp/rank0 -a -e /tmp/rank1; do sleep 0.01; done; exit $RANK";
    let mut spec = task(&machine, 1, line);
    spec.launch = Launch::Ranks { count: 2 };
    machine.start(spec);
    let ended = machine.end(1);
    assert_eq!((ended.end(), ended.rank), (TaskEnd::Failed(1), 1));
}

/// As NCCL does. The machine's own abstract sockets are closed to them.
#[test]
fn the_ranks_of_a_task_reach_each_other_by_abstract_sockets() {
    let machine = sandboxes();
    let script = "use Socket; my $at = sockaddr_un(\"\\0berth-$ENV{BERTH_TASK_DIR}\"); \
                  socket(S, AF_UNIX, SOCK_STREAM, 0) or die $!; \
                  if ($ENV{RANK} == 0) { \
                      bind(S, $at) && listen(S, 1) or die $!; open F, q(>/tmp/up); accept(C, S); \
                  } else { \
                      until (-e q(/tmp/up)) { select undef, undef, undef, 0.01 } \
                      connect(S, $at) or die $!; print qq(connected\\n); \
                  }";
    let mut spec = task(&machine, 1, "");
    spec.command = ["perl", "-e", script].map(str::to_owned).to_vec();
    spec.launch = Launch::Ranks { count: 2 };
    machine.start(spec);
    assert_eq!(machine.end(1).end(), TaskEnd::Done, "{}", machine.log(1, 1));
    assert_eq!(machine.log(1, 1), "connected\n");
}

/// What was checked before may be another folder by now.
#[test]
fn a_named_folder_is_opened_with_no_more_rights_than_its_opener_has() {
    let machine = sandboxes();
    let (open, closed) = (work(&machine, "open"), work(&machine, "closed"));
    std::fs::create_dir_all(closed.join("inside")).unwrap();
    std::fs::create_dir(&open).unwrap();
    let set = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set(machine.dir.path(), 0o755);
    set(&open, 0o755);
    set(&closed, 0o750);
    let below = work(&machine, "").canonicalize().unwrap();
    let mut openers = vec![Opener::Everybody { below: below.clone() }];
    // Without root the account is the owner of all of this.
    openers.extend(rustix::process::geteuid().is_root().then_some(Opener::Account));
    let mut job = 0;
    for by in openers {
        for (name, write, shown) in [
            ("open", false, true),
            ("open", true, false),
            ("closed", false, false),
            ("closed/inside", false, false),
        ] {
            job += 1;
            let mut spec = task(&machine, job, "ls /data");
            let (source, by) = (below.join(name), Some(by.clone()));
            let folder = Shown { at: "/data".into(), source, write, by };
            spec.confine.as_mut().unwrap().shown.push(folder);
            machine.start(spec);
            match machine.end(job).end() {
                TaskEnd::Done => assert!(shown, "{name} is shown"),
                TaskEnd::NotStarted(why) => {
                    assert!(!shown && why.contains("Permission denied"), "{name}: {why}");
                }
                other => panic!("{name}: {other:?}"),
            }
        }
    }
}

#[test]
fn a_start_that_fails_in_a_sandbox_says_why_in_the_same_words() {
    let machine = sandboxes();
    let mut missing = task(&machine, 1, "");
    missing.command = vec!["no-such-program".to_owned()];
    machine.start(missing);
    let TaskEnd::NotStarted(why) = machine.end(1).end() else { panic!("it started") };
    assert!(why.contains("no such program: no-such-program (PATH="), "{why}");
    let mut elsewhere = task(&machine, 2, "true");
    elsewhere.directory = "/no/such/folder".into();
    machine.start(elsewhere);
    let TaskEnd::NotStarted(why) = machine.end(2).end() else { panic!("it started") };
    assert!(why.contains("/no/such/folder is not there for the job"), "{why}");
}

#[test]
fn a_shell_is_in_the_sandbox_of_its_task_and_ends_with_it() {
    let machine = sandboxes();
    machine.start(task(&machine, 1, "exec sleep 1000"));
    wait_until("it runs", || machine.folder(1).join("started.json").exists());
    let line = "tty; id -u; ls /proc | grep -cE '^[0-9]+$'; pwd; echo done; exec sleep 1000";
    let words = ["sh", "-c", line].map(str::to_owned);
    let size = Size { rows: 24, columns: 80 };
    let mut shell = machine.driver().shell(lease(1), &words, "dumb", size).unwrap();
    let terminal = std::os::fd::AsFd::as_fd(&shell).try_clone_to_owned().unwrap();
    let mut terminal = std::fs::File::from(terminal);
    let mut shown = String::new();
    while !shown.contains("done") {
        let mut buffer = [0; 1024];
        let length = terminal.read(&mut buffer).unwrap();
        shown.push_str(&String::from_utf8_lossy(&buffer[..length]));
    }
    let processes = shown.lines().nth(2).and_then(|line| line.trim().parse::<u32>().ok());
    assert!(processes.is_some_and(|count| count <= 6), "{shown}");
    assert!(shown.contains(&machine.path("work").display().to_string()), "{shown}");
    machine.stop(1, Span(0));
    assert_eq!(machine.end(1).end(), TaskEnd::Stopped);
    wait_until("the shell has ended", || shell.try_wait().unwrap().is_some());
}

#[test]
fn a_shell_reaches_no_abstract_socket_of_the_machine() {
    if !berth_node::hides_abstract_sockets() {
        return;
    }
    let name = format!("berth-shell-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _listener = UnixListener::bind_addr(&address).unwrap();
    let machine = sandboxes();
    machine.start(task(&machine, 1, "exec sleep 1000"));
    wait_until("it runs", || machine.folder(1).join("started.json").exists());
    let script = format!(
        "use Socket; socket(S, AF_UNIX, SOCK_STREAM, 0); \
         print connect(S, sockaddr_un(qq(\\0{name}))) ? qq(in\\n) : qq(out: $!\\n)"
    );
    let words = ["perl", "-e", &script].map(str::to_owned);
    let size = Size { rows: 24, columns: 80 };
    let mut shell = machine.driver().shell(lease(1), &words, "dumb", size).unwrap();
    let terminal = std::os::fd::AsFd::as_fd(&shell).try_clone_to_owned().unwrap();
    let (mut terminal, mut shown) = (std::fs::File::from(terminal), Vec::new());
    // The end of a terminal is an error.
    let _ = terminal.read_to_end(&mut shown);
    let shown = String::from_utf8_lossy(&shown);
    assert!(shown.contains("out: Operation not permitted"), "{shown}");
    wait_until("the shell has ended", || shell.try_wait().unwrap().is_some());
}

#[test]
fn a_task_without_network_reaches_nothing() {
    let machine = sandboxes();
    let line = "tail -n +3 /proc/net/dev | cut -d: -f1; \
                echo > /dev/tcp/127.0.0.1/9 || echo refused; echo > /dev/tcp/192.0.2.1/9 || echo none";
    let mut spec = task(&machine, 1, line);
    spec.command[0] = "bash".to_owned();
    spec.confine.as_mut().unwrap().network = berth_node::Network::None;
    machine.start(spec);
    assert_eq!(machine.end(1).end(), TaskEnd::Done);
    let log = machine.log(1, 0);
    assert!(log.trim_start().starts_with("lo\n"), "{log}");
    // The loopback is up: nobody listens there. Elsewhere there is no way.
    assert!(log.contains("Connection refused") && log.contains("Network is unreachable"), "{log}");
}

#[test]
fn a_server_that_requires_isolation_does_not_start_without() {
    let dir = tempfile::tempdir().unwrap();
    let missing = Launcher { exe: "/no/such/berth".into(), args: Vec::new() };
    let options = Options { isolation: Wanted::Required, ..Options::default() };
    let error = Driver::open(dir.path(), missing.clone(), options).unwrap_err();
    assert!(error.to_string().contains("jobs cannot be isolated on this machine"), "{error}");
    let driver = Driver::open(dir.path(), missing, Options::default()).unwrap();
    assert!(matches!(driver.isolation(), Isolation::Off { .. }));
}
