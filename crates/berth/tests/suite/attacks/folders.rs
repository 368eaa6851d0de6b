//! Attempts by folders of the machine: those that nobody shared, and those that turn into others
//! while a job starts.

use super::stage::{As, Stage, open_to_all};
use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;

fn open_folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    open_to_all(dir.path(), 0o777);
    dir
}

#[test]
fn where_jobs_have_the_servers_account_they_see_only_folders_that_are_shared() {
    let stage = Stage::without_accounts(&[]);
    let open = open_folder();
    let below = stage.work.path().join("below");
    fs::create_dir(&below).expect("a folder");
    open_to_all(&below, 0o777);
    let open = open.path().display();
    let unshared = [open.to_string(), format!("{open}/missing")];
    let usual = ["/tmp", "/var/tmp", "/var", "/home", "/missing"].map(str::to_owned);
    for path in unshared.iter().chain(&usual) {
        for line in [format!("workdir: {path}"), format!("volumes: {{/host: {path}}}")] {
            let file = format!("name: unshared\nteam: red\n{line}\nrun: ls /host\n");
            let said = stage.submit(&stage.token, &file).expect_err(&line);
            assert!(said.contains("berth up --share DIR"), "{line}: {said}");
        }
    }
    // A link does not lead around it.
    let link = stage.work.path().join("link");
    std::os::unix::fs::symlink(open.to_string(), &link).expect("a link");
    let file =
        format!("name: linked\nteam: red\nvolumes: {{/host: {}}}\nrun: ls /host\n", link.display());
    assert!(stage.submit(&stage.token, &file).is_err());
    let shared = format!(
        "name: shared\nteam: red\nvolumes: {{/host: {}}}\nrun: touch /host/made\n",
        below.display()
    );
    stage.run(&shared);
    assert!(below.join("made").exists());
    // Whoever started the server uses what that account may use.
    let file =
        format!("name: own\nteam: default\nvolumes: {{/host: {open}}}\nrun: touch /host/own\n");
    let id = stage.submit(&stage.server.token(), &file).expect("it is their account");
    stage.ended(&id);
    assert!(Path::new(&open.to_string()).join("own").exists());
}

#[test]
fn a_job_that_may_not_start_where_its_user_is_starts_in_its_own_folder_and_says_so() {
    let stage = Stage::without_accounts(&[]);
    let open = open_folder();
    let mut command = stage.server.command(&["run", "--team", "red", "--", "pwd"]);
    command.env_remove("BERTH_HOME").env("BERTH_URL", &stage.server.url);
    command.env("BERTH_TOKEN", &stage.token).env("HOME", stage.work.path());
    let ran = command.current_dir(open.path()).output().expect("berth runs");
    let [out, said] = [ran.stdout, ran.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(ran.status.success() && out.contains("/jobs/"), "{out}{said}");
    assert!(said.contains("starts in the job's own folder") && said.contains("--share"), "{said}");
    let settings = stage.server.run_ok(&["config", "server"]);
    let shared = stage.work.path().display().to_string();
    let names = |line: &str| line.starts_with("share") && line.contains(&shared);
    assert!(settings.lines().any(names), "{settings}");
}

/// The folders of somebody else, closed to mallory, in one where everybody may rename things.
fn project() -> tempfile::TempDir {
    let project = open_folder();
    for (folder, file) in [("m", "mine"), ("bob", "secret")] {
        let data = project.path().join(folder).join("data");
        fs::create_dir_all(&data).expect("a folder");
        fs::write(data.join(file), format!("{folder}s things")).expect("a file");
        open_to_all(&data, 0o755);
    }
    open_to_all(&project.path().join("m"), 0o777);
    let bob = project.path().join("bob");
    chown(&bob, Some(12_345), Some(12_345)).expect("we are root");
    open_to_all(&bob, 0o700);
    project
}

#[test]
fn a_folder_that_turns_into_another_while_a_job_starts_is_not_shown() {
    let Some(stage) = Stage::set(As::Us, &[]).filter(Stage::has_accounts) else { return };
    let project = project();
    let path = project.path().canonicalize().expect("it is there");
    let path = path.display();
    let racer = Racer::start(&stage, &path.to_string(), ["bob", "m"]);
    let mut breaches = 0;
    let worked = racer.until_some_worked(|| {
        let file = format!(
            "name: try\nteam: red\nvolumes: {{/data: {path}/m/data}}\n\
             run: cat /data/mine /data/secret\n"
        );
        let printed = stage.run(&file);
        breaches += usize::from(printed.contains("bobs things"));
        printed.contains("ms things")
    });
    fs::write(project.path().join("stop"), "").expect("it can be written");
    assert!(racer.raced(&stage), "nothing was exchanged");
    assert!(worked, "no folder was ever shown");
    assert_eq!(breaches, 0);
}

/// A job that exchanges two names in a folder until there is a file `stop` in it.
struct Racer(String);

impl Racer {
    fn start(stage: &Stage, folder: &str, names: [&str; 2]) -> Racer {
        // renameat2 with RENAME_EXCHANGE, as x86-64 and aarch64 number it.
        let script = stage.work.path().join("race.pl");
        let [a, b] = names;
        let race = format!(
            "my $call = `uname -m` =~ /x86_64/ ? 316 : 276; my ($a, $b) = (q(/race/{a}), q(/race/{b})); \
             $| = 1; my $told = 0; until (-e q(/race/stop)) {{ \
             my $done = syscall($call, -100, $a, -100, $b, 2); \
             print qq(races\n) if $done == 0 && !$told++ }}"
        );
        fs::write(&script, race).expect("it can be written");
        let file = format!(
            "name: racer\nteam: red\nvolumes: {{/race: {folder}}}\nrun: |\n  \
             mkdir -p /race/{a} /race/{b}\n  perl {}\n",
            script.display()
        );
        let racer = Racer(stage.submit(&stage.token, &file).expect("mallory may"));
        let races = || stage.server.run_ok(&["logs", &racer.0]).contains("races");
        crate::machine::server::until("it races", races);
        racer
    }

    /// Whether one of the tries has worked. There are enough for an attack that wins now and then,
    /// and more until one has worked.
    fn until_some_worked(&self, mut works: impl FnMut() -> bool) -> bool {
        let mut worked = false;
        for _ in 0..16 {
            worked |= works();
        }
        worked || (0..200).any(|_| works())
    }

    fn raced(&self, stage: &Stage) -> bool {
        stage.ended(&self.0);
        stage.server.job(&self.0)["state"] == "done"
    }
}

/// The place of a mount lies in a folder of another job, which puts a link in its place.
#[test]
fn a_folder_that_turns_into_a_link_while_a_job_starts_makes_nothing_writable() {
    let stage = Stage::without_accounts(&[]);
    let closed = stage.work.path().join("closed");
    fs::create_dir(&closed).expect("a folder");
    if let Some(account) = berth_testbed::Account::unprivileged() {
        account.give(&closed).expect("we are root");
    }
    open_to_all(&closed, 0o755);
    let folders = "name: folders\nteam: red\nvolumes: {/z: v}\n\
                   run: 'mkdir -p /z/a/m /z/b; ln -s /closed /z/b/m'\n";
    stage.run(folders);
    let racer = Racer::start(&stage, "v", ["a", "b"]);
    let worked = racer.until_some_worked(|| {
        let file = format!(
            "name: try\nteam: red\nvolumes: {{/z: v, /z/a/m: w, /closed: {}}}\n\
             run: 'touch /closed/made; echo has started'\n",
            closed.display()
        );
        stage.run(&file).contains("has started")
    });
    stage.run("name: stop\nteam: red\nvolumes: {/z: v}\nrun: touch /z/stop\n");
    assert!(racer.raced(&stage), "nothing was exchanged");
    assert!(worked, "no job has started");
    assert_eq!(fs::read_dir(&closed).expect("it is there").count(), 0, "the share was written to");
}

/// The places of volumes are made with no more rights than the job has.
#[test]
fn nothing_is_made_in_a_folder_of_somebody_else() {
    let Some(stage) = Stage::set(As::Us, &[]).filter(Stage::has_accounts) else { return };
    let project = project();
    let path = project.path().canonicalize().expect("it is there");
    for (place, made) in [("bob/evil", "bob/evil"), ("bob/data/evil", "bob/data/evil")] {
        for source in ["v", "/etc/hostname"] {
            let file = format!(
                "name: evil\nteam: red\nvolumes: {{/proj: {}, /proj/{place}: {source}}}\n\
                 run: echo got in\n",
                path.display()
            );
            let printed = stage.run(&file);
            assert!(!printed.contains("got in"), "{place}: {printed}");
            assert!(!path.join(made).exists(), "{made} was made");
        }
    }
    // In what is open to the job it is made as the job's own.
    let file = format!(
        "name: good\nteam: red\nvolumes: {{/proj: {}, /proj/m/v: v}}\nrun: touch /proj/m/v/x\n",
        path.display()
    );
    stage.run(&file);
    assert!(path.join("m/v").is_dir());
    assert_eq!(stage.server.job("good")["state"], "done");
}
