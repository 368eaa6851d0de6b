//! Logs of real tasks.

use super::*;
use berth_model::TaskEnd;
use berth_node::LogLimits;

#[test]
fn a_hundred_megabytes_of_log_take_a_bounded_place() {
    let machine = machine();
    let mut spec = shell_task(&machine, 1, "head -c 100000000 /dev/zero | tr '\\0' x; echo end");
    spec.logs = LogLimits { file_bytes: 1 << 20, files: 4 };
    machine.start(spec);
    assert_eq!(machine.end(1).end(), TaskEnd::Done);
    let reader = machine.driver().log(lease(1), 0).unwrap();
    let range = reader.range().unwrap();
    assert_eq!(range.end, 100_000_004);
    assert!(range.end - range.start <= 4 << 20, "{range:?}");
    assert_eq!(reader.read(range.end - 5, 99).unwrap().bytes, b"xend\n");
    let logs = std::fs::read_dir(machine.folder(1).join("logs")).unwrap();
    let bytes: u64 = logs.map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    assert!(bytes < 5 << 20, "{bytes} bytes on the disk");
}

#[test]
fn a_log_is_followed_while_it_is_written_and_over_the_move_of_its_folder() {
    let machine = machine();
    machine.start_line(1, "echo one; while ! test -e go; do sleep 0.01; done; echo two");
    wait_until("the log is there", || machine.driver().log(lease(1), 0).is_ok());
    let mut follower = machine.driver().log(lease(1), 0).unwrap().follow(0);
    let mut read = |bytes: usize| {
        let mut text = Vec::new();
        wait_until("more log", || {
            text.extend(follower.read_more(100).unwrap().bytes);
            text.len() >= bytes
        });
        String::from_utf8(text).unwrap()
    };
    assert_eq!(read(4), "one\n");
    std::fs::write(machine.path("go"), "").unwrap();
    machine.end(1);
    machine.driver().acknowledge(lease(1)).unwrap();
    assert_eq!(read(4), "two\n");
    machine.driver().forget(lease(1)).unwrap();
    assert!(machine.driver().log(lease(1), 0).is_err());
}

#[test]
fn a_task_goes_on_although_its_log_cannot_be_written() {
    let machine = machine();
    let line = "while ! test -e go; do sleep 0.01; done; echo lost; echo ran > ran";
    machine.start_line(1, line);
    let logs = machine.folder(1).join("logs");
    wait_until("the folder of logs is there", || logs.exists());
    machine.supervisor(1);
    wait_until("it runs", || machine.folder(1).join("started.json").exists());
    std::fs::remove_dir(&logs).unwrap();
    std::fs::write(machine.path("go"), "").unwrap();
    let ended = machine.end(1);
    assert_eq!((ended.end(), ended.log_lost), (TaskEnd::Done, 5));
    assert!(machine.path("ran").exists());
}
