//! A program that ends when we do.

use crate::Account;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Runs the program, and ends it by SIGQUIT when it is told so. When nobody is left to tell it,
/// because this process is over or was killed, it also deletes the folder.
const SCRIPT: &str = r#"
folder=$1; shift
exec 3<&0
"$@" </dev/null 3<&- &
pid=$!
{
    read -r word || word=gone
    kill -QUIT "$pid" 2>/dev/null
    if [ "$word" = gone ]; then
        while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
        rm -rf "$folder"
    fi
} <&3 &
exec 3<&-
wait "$pid"
"#;

#[derive(Debug)]
pub(crate) struct Guard {
    shell: Child,
}

impl Guard {
    /// `command` is a program with its arguments, `folder` where it keeps its data.
    pub fn start(command: &[&str], folder: &Path, account: Option<Account>, log: File) -> Guard {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", SCRIPT, "guard"]).arg(folder).args(command);
        let errors = log.try_clone().expect("a file can be opened twice");
        shell.stdin(Stdio::piped()).stdout(log).stderr(errors);
        if let Some(account) = account {
            account.run(&mut shell);
        }
        Guard { shell: shell.spawn().expect("there is a /bin/sh") }
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
