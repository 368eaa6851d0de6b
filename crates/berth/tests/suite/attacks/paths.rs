//! Attempts by paths in a job file.

use super::stage::{As, Stage, open_to_all};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

fn attack(who: As) {
    let Some(stage) = Stage::set(who, &[]) else { return };
    let home = stage.home();
    let work = stage.work.path().canonicalize().expect("it is there");
    let link = work.join("link");
    symlink(&home, &link).expect("a link");
    let closed = work.join("closed");
    std::fs::create_dir(&closed).expect("a folder");
    std::fs::create_dir(closed.join("open")).expect("a folder");
    open_to_all(&closed.join("open"), 0o777);
    open_to_all(&closed, 0o700);
    // Each is refused when it is submitted, or when it starts.
    let (home, link, closed) = (home.display(), link.display(), closed.join("open"));
    let closed = closed.display();
    for line in [
        format!("workdir: {home}"),
        format!("workdir: {home}/jobs/{}", stage.victim),
        format!("workdir: {link}"),
        format!("workdir: {closed}"),
        "workdir: /root".to_owned(),
        format!("volumes: {{/data: {home}}}"),
        format!("volumes: {{/data: {link}/node}}"),
        format!("volumes: {{/data: {closed}}}"),
        "volumes: {/data: /root}".to_owned(),
        "volumes: {/data: /}".to_owned(),
        "volumes: {/data: /proc}".to_owned(),
        "volumes: {/data: /proc/1/root}".to_owned(),
        "volumes: {/data: /dev}".to_owned(),
        "volumes: {/data: /run}".to_owned(),
        "workdir: /".to_owned(),
        "volumes: {/data: ../blue/shared}".to_owned(),
        "volumes: {/data: ..}".to_owned(),
        "volumes: {/data/../../etc: mine}".to_owned(),
        "volumes: {/etc: mine}".to_owned(),
        "volumes: {/etc/passwd: mine}".to_owned(),
        "volumes: {/usr/bin: mine}".to_owned(),
        "volumes: {/proc: mine}".to_owned(),
        "volumes: {/dev/shm: mine}".to_owned(),
        "volumes: {/: mine}".to_owned(),
        format!("volumes: {{{home}/node: mine}}"),
        "checkpoint: {path: ../../x}".to_owned(),
        "checkpoint: {path: a/../../../x}".to_owned(),
        "checkpoint: {path: /etc/x}".to_owned(),
        format!("checkpoint: {{path: {home}/x}}"),
    ] {
        let file = format!("name: path\nteam: red\n{line}\nrun: 'ls -la . /data; echo got in'\n");
        let Ok(id) = stage.submit(&stage.token, &file) else { continue };
        let ended = || {
            let job = stage.server.job(&id);
            let state = job["state"].as_str().unwrap_or_default().to_owned();
            ["done", "failed", "cancelled"].contains(&state.as_str()).then_some(state)
        };
        crate::machine::server::until("the job has ended", || ended().is_some());
        let logs = stage.server.run_ok(&["logs", &id]);
        assert!(ended().as_deref() == Some("failed") && !logs.contains("got in"), "{line}: {logs}");
    }
}

#[test]
fn a_path_in_a_job_file_leads_to_nothing_that_its_user_may_not_reach() {
    attack(As::Us);
}

#[test]
fn a_path_leads_nowhere_where_the_server_is_an_ordinary_user() {
    attack(As::Ordinary);
}

#[test]
fn volumes_belong_to_a_team_and_leave_nothing_on_the_machine() {
    let stage = Stage::set(As::Us, &[]).expect("it is us");
    let file = |name: &str, line: &str| {
        format!("name: {name}\nteam: red\nvolumes: {{/mydata: shared}}\nrun: '{line}'\n")
    };
    // The same name, and another volume than blue's.
    let printed = stage.run(&file("first", "ls /mydata | wc -l; echo reds > /mydata/reds; pwd"));
    assert!(printed.starts_with("0\n"), "{printed}");
    let printed = stage.run(&file("second", "cat /mydata/reds"));
    assert!(printed.starts_with("reds\n"), "{printed}");
    assert!(!Path::new("/mydata").exists(), "a place is left in the machine's root");
}

#[test]
fn a_teammate_goes_on_from_a_checkpoint_and_nobody_else_reads_it() {
    let stage = Stage::set(As::Us, &[]).expect("it is us");
    let lines =
        ["user add trudy", "member set red trudy researcher", "member set blue trudy researcher"];
    for line in lines {
        stage.server.run_ok(&line.split(' ').collect::<Vec<_>>());
    }
    let trudy = stage.token_of("trudy");
    let file = "name: saves\nteam: red\n\
                run: 'cat $BERTH_RESUME_FROM/saved; echo saved > $BERTH_CHECKPOINT_DIR/saved'\n";
    let printed = stage.run(file);
    assert!(!printed.starts_with("saved"), "{printed}");
    let cloned = stage.with_token(&trudy, &["clone", "saves", "--resume", "--name", "goes-on"]);
    assert!(cloned.status.success(), "{cloned:?}");
    // A job of another team does not get it, whoever may read about both.
    let away = ["clone", "saves", "--resume", "--name", "away", "--team", "blue"];
    let refused = stage.with_token(&trudy, &away);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("team red's"), "{said}");
    stage.ended("goes-on");
    let printed = stage.server.run_ok(&["logs", "goes-on"]);
    assert!(printed.starts_with("saved\n"), "{printed}");
}

#[test]
fn a_job_that_puts_a_link_in_the_place_of_its_checkpoints_gains_nothing() {
    let stage = Stage::set(As::Us, &[]).expect("it is us");
    let before = std::fs::metadata("/etc").expect("it is there").uid();
    let file = "name: linked\nteam: red\nretry: {error: 2, wait: 1s}\n\
                run: 'rmdir $BERTH_CHECKPOINT_DIR; ln -s /etc $BERTH_CHECKPOINT_DIR; \
                      touch $BERTH_CHECKPOINT_DIR/x && echo got in; exit 1'\n";
    let printed = stage.run(file);
    assert!(!printed.contains("got in"), "{printed}");
    assert_eq!(std::fs::metadata("/etc").expect("it is there").uid(), before);
}

/// What lies above Berth's own folder can be shown, and that folder cannot be seen in it.
#[test]
fn a_volume_above_berths_own_folder_does_not_show_it() {
    for who in [As::Us, As::Ordinary] {
        let Some(stage) = Stage::set(who, &[]) else { continue };
        let home = stage.home();
        let (above, name) = (home.parent().unwrap(), home.file_name().unwrap().to_str().unwrap());
        let file = format!(
            "name: above\nteam: red\nvolumes: {{/data: {}}}\n\
             run: 'ls -A /data/{name} | wc -l; cat /data/{name}/admin.token; true'\n",
            above.display()
        );
        let Ok(id) = stage.submit(&stage.token, &file) else { continue };
        stage.ended(&id);
        let printed = stage.server.run_ok(&["logs", &id]);
        assert!(printed.is_empty() || printed.starts_with("0\n"), "{printed}");
        let token = stage.server.token();
        assert!(!printed.contains(&token), "the token of the administrator is shown");
    }
}

/// The server makes the places of volumes with more rights than any job has.
#[test]
fn a_link_in_a_volume_leads_the_place_of_another_volume_nowhere() {
    let stage = Stage::set(As::Us, &[]).expect("it is us");
    let target = stage.work.path().canonicalize().expect("it is there").join("machine");
    std::fs::create_dir(&target).expect("a folder");
    let etc = std::fs::read_dir("/etc").expect("it is there").count();
    for (number, to) in ["/etc", "/opt", &target.display().to_string()].iter().enumerate() {
        let made = format!(
            "name: links-{number}\nteam: red\nvolumes: {{/mnt: v}}\nrun: ln -sfn {to} /mnt/a\n"
        );
        stage.run(&made);
        for source in ["/etc/hostname", "other"] {
            let file = format!(
                "name: through-{number}\nteam: red\n\
                 volumes: {{/mnt: v, /mnt/a/berth-was-here: {source}}}\nrun: echo got in\n"
            );
            let Ok(id) = stage.submit(&stage.token, &file) else { continue };
            stage.ended(&id);
            let printed = stage.server.run_ok(&["logs", &id]);
            assert!(!printed.contains("got in"), "{to}, {source}: {printed}");
            let left = Path::new(to).join("berth-was-here");
            assert!(left.symlink_metadata().is_err(), "{} was made", left.display());
        }
    }
    assert_eq!(std::fs::read_dir("/etc").expect("it is there").count(), etc);
}

/// The server reads some of what a job leaves in its folder, and waits for none of it.
#[test]
fn a_job_that_leaves_a_pipe_in_place_of_a_file_stops_nobody_elses_start() {
    let stage = Stage::set(As::Us, &[]).expect("it is us");
    let file = "name: trap\nteam: red\nretry: {error: 1, wait: 1s}\n\
                run: 'mkdir -p .venv; mkfifo .venv/pyvenv.cfg; exit 1'\n";
    stage.run(file);
    let printed = stage.run("name: next\nteam: red\nrun: echo it starts\n");
    assert!(printed.contains("it starts"), "{printed}");
}

/// Its checkpoints lie in a volume, which the server knows by another name.
#[test]
fn a_job_goes_on_from_a_checkpoint_in_a_volume_and_saves_there_again() {
    let stage = Stage::set(As::Us, &[]).expect("it is us");
    let file = "name: saves\nteam: red\nretry: {error: 1, wait: 1s}\n\
                volumes: {/ckpt: v}\ncheckpoint: {path: /ckpt}\n\
                run: 'cat $BERTH_RESUME_FROM/saved; \
                      echo saved-$BERTH_ATTEMPT > $BERTH_CHECKPOINT_DIR/saved && echo kept; \
                      [ $BERTH_ATTEMPT = 1 ]'\n";
    let printed = stage.run(file);
    assert!(printed.contains("saved-0\nkept\n"), "{printed}");
}
