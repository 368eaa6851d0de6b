//! `nvidia-cuda-mps-control`, and what stands for it in a test.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a daemon may take to answer. A job that keeps its socket busy keeps it from that.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

/// `nvidia-cuda-mps-control`, or what stands for it in a test.
pub trait MpsControl: Send + Sync {
    /// Whether the program is there.
    fn exists(&self) -> bool;
    /// Starts a daemon for a GPU. It returns when the daemon is in the background.
    fn start(&self, folder: &Path, uuid: &str) -> io::Result<()>;
    /// Gives a command to the daemon of a folder. An error says nothing about the daemon: jobs
    /// reach its socket, too, and may keep it busy.
    fn tell(&self, folder: &Path, command: &str) -> io::Result<String>;
    /// Whether the daemon of a folder has a socket by which new clients reach it.
    fn has_socket(&self, folder: &Path) -> bool {
        pipe(folder).join("control").exists()
    }
    /// The process that the daemon of a folder says it is. Anybody who gets at the folder may write
    /// another number there, so this is asked only before a job sees it.
    fn daemon(&self, folder: &Path) -> Option<i32>;
}

/// The program of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct NvidiaMps;

const PROGRAM: &str = "nvidia-cuda-mps-control";
/// As the kernel cuts it.
const SHORT_NAME: &str = "nvidia-cuda-mps";
/// The file in which a daemon says its process id.
const PID_FILE: &str = "nvidia-cuda-mps-control.pid";

impl NvidiaMps {
    fn command(folder: &Path) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .env("CUDA_MPS_PIPE_DIRECTORY", pipe(folder))
            .env("CUDA_MPS_LOG_DIRECTORY", folder.join("log"))
            .current_dir("/");
        command
    }
}

impl MpsControl for NvidiaMps {
    fn exists(&self) -> bool {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&paths).any(|dir| dir.join(PROGRAM).exists())
    }

    fn start(&self, folder: &Path, uuid: &str) -> io::Result<()> {
        let mut command = NvidiaMps::command(folder);
        command.arg("-d").env("CUDA_VISIBLE_DEVICES", uuid);
        if rustix::process::geteuid().is_root() {
            // Tasks of different users share one server; otherwise they would wait for each other.
            command.arg("-M");
        }
        // What it prints goes to its log; a pipe would stay open with the daemon.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let status = command.status()?;
        if status.success() {
            return Ok(());
        }
        Err(io::Error::other(format!("{PROGRAM} -d ended with {status}")))
    }

    fn tell(&self, folder: &Path, command: &str) -> io::Result<String> {
        // Without a daemon the program would wait for one.
        if !self.has_socket(folder) {
            return Err(io::ErrorKind::NotFound.into());
        }
        ask(&mut NvidiaMps::command(folder), command, ANSWER_TIMEOUT)
    }

    fn daemon(&self, folder: &Path) -> Option<i32> {
        let text = fs::read_to_string(pipe(folder).join(PID_FILE)).ok()?;
        let pid = text.trim().parse::<i32>().ok().filter(|pid| *pid > 1)?;
        let process = PathBuf::from(format!("/proc/{pid}"));
        let name = fs::read_to_string(process.join("comm")).ok()?;
        let owner = fs::metadata(&process).ok()?.uid();
        // Where the server is root, no job can start a process that would pass.
        let is_ours = !rustix::process::geteuid().is_root() || owner == 0;
        (is_ours && name.trim() == SHORT_NAME).then_some(pid)
    }
}

/// Where clients find the daemon of a folder.
pub fn pipe(folder: &Path) -> PathBuf {
    folder.join("pipe")
}

/// Gives a line to a program and waits for the end of what it says, but not for longer.
fn ask(command: &mut Command, line: &str, limit: Duration) -> io::Result<String> {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let deadline = Instant::now() + limit;
    let input = child.stdin.take();
    // A line fits into the pipe, so this does not wait.
    let asked = input
        .ok_or(io::ErrorKind::BrokenPipe.into())
        .and_then(|mut input| writeln!(input, "{line}"));
    let ended = loop {
        match child.try_wait()? {
            Some(status) => break Some(status),
            None if Instant::now() >= deadline => break None,
            None => std::thread::sleep(PAUSE),
        }
    };
    let Some(status) = ended else {
        let _ = child.kill();
        child.wait()?;
        return Err(io::ErrorKind::TimedOut.into());
    };
    asked?;
    if !status.success() {
        return Err(io::Error::other(format!("{PROGRAM} ended with {status}")));
    }
    let mut said = Vec::new();
    if let Some(output) = child.stdout.take() {
        output.take(MOST_SAID).read_to_end(&mut said)?;
    }
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// A program that says more waits for its reader and runs into the limit.
const MOST_SAID: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_that_does_not_answer_is_not_waited_for() {
        let limit = Duration::from_millis(100);
        let silent = ask(Command::new("sleep").arg("600"), "quit", limit);
        assert_eq!(silent.unwrap_err().kind(), io::ErrorKind::TimedOut);
        let said = ask(&mut Command::new("cat"), "get_server_list", Duration::from_secs(60));
        assert_eq!(said.unwrap(), "get_server_list\n");
        assert!(ask(&mut Command::new("false"), "quit", Duration::from_secs(60)).is_err());
    }

    #[test]
    fn a_process_that_is_no_daemon_is_not_taken_for_one() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(pipe(folder.path())).unwrap();
        for text in [std::process::id().to_string(), "1".to_owned(), "-1".into(), "x".into()] {
            fs::write(pipe(folder.path()).join(PID_FILE), text).unwrap();
            assert_eq!(NvidiaMps.daemon(folder.path()), None);
        }
    }
}
