//! The entry point of a container: it starts the command, and forwards the request to stop.

use berth_node::TaskSpec;

const SCRIPT: &str = include_str!("launch.sh");

/// The command of the container. Every image that has a shell can run it.
pub fn command(task: &TaskSpec) -> Vec<String> {
    let mut words = vec!["sh".to_owned(), "-c".to_owned(), without_comments(), "berth".to_owned()];
    words.push(task.processes().to_string());
    words.extend(task.argv());
    words
}

/// Kubernetes would replace `$(NAME)`; two dollars stand for one.
pub fn literal(text: &str) -> String {
    text.replace('$', "$$")
}

/// Without comments the manifest of the pod is shorter to read.
fn without_comments() -> String {
    let lines = SCRIPT.lines().filter(|line| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with('#')
    });
    lines.map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::{JobId, LeaseId};
    use berth_node::Launch;
    use std::os::unix::process::CommandExt;
    use std::path::Path;
    use std::process::{Child, Command, Output, Stdio};

    /// Runs a command as a container would: in a process group of its own.
    fn start(folder: &Path, ranks: u32, script: &str) -> Child {
        let lease = LeaseId { job: JobId::new(1), task: 1, attempt: 0 };
        let mut task = TaskSpec::new(lease, &["bash", "-c", script], "/");
        if ranks > 1 {
            task.launch = Launch::Ranks { count: ranks };
        }
        let words = command(&task);
        Command::new(&words[0])
            .args(&words[1..])
            .env("BERTH_TASK_DIR", folder)
            .env("BERTH_PREEMPT_FILE", folder.join("stop.json"))
            .env("BERTH_RESUME_FROM", folder.join("nothing"))
            .env("NODE_RANK", "1")
            .process_group(0)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }

    fn run(ranks: u32, script: &str) -> Output {
        let folder = tempfile::tempdir().unwrap();
        start(folder.path(), ranks, script).wait_with_output().unwrap()
    }

    fn lines(output: &Output) -> Vec<String> {
        let text = String::from_utf8_lossy(&output.stdout);
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }

    #[test]
    fn the_end_of_the_command_is_the_end_of_the_container() {
        let output = run(1, "echo \"$PWD ${BERTH_RESUME_FROM-none}\" | tr -d '/'; exit 3");
        assert_eq!(output.status.code(), Some(3));
        assert!(lines(&output)[0].ends_with(" none"), "nothing was saved: {output:?}");
    }

    #[test]
    fn each_rank_finds_its_place_and_the_first_failure_counts() {
        let output = run(3, "echo $RANK $LOCAL_RANK $SLURM_PROCID");
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(lines(&output), ["3 0 3", "4 1 4", "5 2 5"]);
        let script = "ready=$BERTH_TASK_DIR/ready; touch $ready; \
                      if [ $LOCAL_RANK = 1 ]; then \
                      until [ $(wc -l < $ready) = 2 ]; do sleep 0.01; done; exit 7; fi; \
                      trap 'echo ended; exit 0' TERM; echo x >> $ready; sleep 600 & wait";
        let output = run(3, script);
        assert_eq!(output.status.code(), Some(7));
        assert_eq!(lines(&output), ["ended", "ended"], "the others are asked to end");
    }

    #[test]
    fn a_request_to_stop_reaches_the_command_behind_its_shell() {
        for ranks in [1, 2] {
            let folder = tempfile::tempdir().unwrap();
            let script = "true; bash -c 'trap \"echo saved; exit 0\" TERM; echo ready >> \
                          $BERTH_TASK_DIR/ready; sleep 600 & wait'; true";
            let child = start(folder.path(), ranks, script);
            let ready = || std::fs::read_to_string(folder.path().join("ready"));
            while ready().unwrap_or_default().lines().count() < ranks as usize {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            let status = Command::new("kill").arg(child.id().to_string()).status().unwrap();
            assert!(status.success());
            let output = child.wait_with_output().unwrap();
            assert_eq!(lines(&output).len(), ranks as usize, "{output:?}");
            assert!(folder.path().join("stop.json").exists());
        }
    }
}
