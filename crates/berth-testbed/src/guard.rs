//! A program that ends when we do.

use crate::Account;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Runs the program, says which process it is, and ends it by a signal when it is told so. When
/// nobody is left to tell it, because this process is over or was killed, it also deletes the
/// folders. That is tried a few times: another program may still write into one of them, but it
/// has a guard as well and is about to end.
const SCRIPT: &str = r#"
signal=$1; shift
folders=$1; shift
exec 3<&0
"$@" </dev/null >&2 3<&- &
pid=$!
echo "$pid"
{
    read -r word || word=gone
    kill "-$signal" "$pid" 2>/dev/null
    if [ "$word" = gone ]; then
        while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
        IFS='
'
        for try in 1 2 3 4 5; do
            rm -rf $folders && break
            sleep 0.2
        done
    fi
} <&3 >&2 &
exec 3<&-
wait "$pid"
"#;

/// How a program is told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// By SIGQUIT, which PostgreSQL takes as "now".
    Quit,
    /// By SIGKILL, which also ends what is paused.
    Kill,
}

#[derive(Debug)]
pub(crate) struct Guard {
    shell: Child,
    process: u32,
}

impl Guard {
    /// `command` is a program with its arguments. `folders` are deleted if nobody is left to do
    /// so; they have plain names.
    pub fn start(
        command: &[&str],
        end: End,
        folders: &[&Path],
        account: Option<Account>,
        log: File,
    ) -> Guard {
        let signal = match end {
            End::Quit => "QUIT",
            End::Kill => "KILL",
        };
        let folders: Vec<&str> =
            folders.iter().map(|path| path.to_str().expect("folders have plain names")).collect();
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", SCRIPT, "guard", signal, &folders.join("\n")]).args(command);
        // In a group of its own: Ctrl-C in a terminal is for us, and we end the program.
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).process_group(0);
        if let Some(account) = account {
            account.run(&mut shell);
        }
        let mut shell = shell.spawn().expect("there is a /bin/sh");
        let mut line = String::new();
        let said = shell.stdout.take().expect("it is piped");
        BufReader::new(said).read_line(&mut line).expect("the shell says which process it is");
        let process = line.trim().parse().expect("a process has a number");
        Guard { shell, process }
    }

    /// The number of the program's process, not of the shell's.
    pub fn process(&self) -> u32 {
        self.process
    }

    pub fn is_over(&mut self) -> bool {
        matches!(self.shell.try_wait(), Ok(Some(_)))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(mut input) = self.shell.stdin.take() {
            // If this fails, the shell is over, and so is the program.
            let _ = input.write_all(b"stop\n");
        }
        let _ = self.shell.wait();
    }
}
