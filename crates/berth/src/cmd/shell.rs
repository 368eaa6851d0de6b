//! `berth shell`: this terminal, in a running job.

use crate::complete;
use crate::context::Context;
use crate::fail::{Exit, Failure, Result};
use berth_api::client::{Shell as Remote, ShellOutput};
use berth_api::wire::{ShellAsk, ShellTell};
use clap::Args;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{self, IsTerminal, Read, Write};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

#[derive(Args, Debug)]
pub struct Shell {
    /// A running job, by number or name
    #[arg(value_name = "JOB", add = complete::jobs())]
    job: String,
    /// On which of its nodes, from 0
    #[arg(long, value_name = "N")]
    task: Option<u32>,
    /// A command instead of the shell
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub async fn run(context: &Context, args: &Shell) -> Result<()> {
    let ended = open(context, args).await;
    match args.command.is_empty() {
        true => ended,
        false => ended.map_err(Failure::while_attached),
    }
}

async fn open(context: &Context, args: &Shell) -> Result<()> {
    let mut remote = context.client()?.shell(&args.job).await?;
    let (rows, columns) = size();
    let open = ShellAsk::Open {
        task: args.task,
        command: args.command.clone(),
        term: std::env::var("TERM").unwrap_or_else(|_| "dumb".to_owned()),
        rows,
        columns,
    };
    remote.ask(&open).await?;
    let raw = Raw::start().map_err(|error| Failure::io("preparing the terminal", &error))?;
    let ended = talk(&mut remote).await;
    drop(raw);
    ended
}

async fn talk(remote: &mut Remote) -> Result<()> {
    let mut keys = keys();
    let mut resized = resizes()?;
    let mut typing = true;
    loop {
        tokio::select! {
            output = remote.next() => match output? {
                Some(ShellOutput::Bytes(bytes)) => put(&bytes)?,
                Some(ShellOutput::Tell(tell)) => return ended(tell),
                None => {
                    let lost = "the connection to the terminal was lost";
                    return Err(Failure::new(Exit::Unreachable, lost));
                }
            },
            typed = keys.recv(), if typing => match typed {
                Some(bytes) => remote.write(bytes).await?,
                // The end of what is piped in is what Ctrl-D is on a terminal.
                None => {
                    typing = false;
                    remote.write(vec![4]).await?;
                }
            },
            _ = resized.recv() => {
                let (rows, columns) = size();
                remote.ask(&ShellAsk::Resize { rows, columns }).await?;
            }
        }
    }
}

fn ended(tell: ShellTell) -> Result<()> {
    match tell {
        ShellTell::Exit { code: 0 } => Ok(()),
        ShellTell::Exit { code } => Err(Failure::of_job(exit_code(code))),
        ShellTell::Problem { problem } => Err(problem.into()),
    }
}

/// What a program that ends with this code ends with here.
fn exit_code(code: i32) -> u8 {
    u8::try_from(code).ok().filter(|code| *code != 0).unwrap_or(Exit::Failed as u8)
}

fn put(bytes: &[u8]) -> Result<()> {
    let mut out = io::stdout().lock();
    let put = out.write_all(bytes).and_then(|()| out.flush());
    put.map_err(|error| Failure::io("writing to the terminal", &error))
}

/// What is typed, read by a thread of its own: a read of a terminal cannot be called off.
fn keys() -> mpsc::Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel(16);
    std::thread::spawn(move || {
        let mut buffer = [0u8; 4_096];
        while let Ok(read @ 1..) = io::stdin().read(&mut buffer) {
            if send.blocking_send(buffer[..read].to_vec()).is_err() {
                return;
            }
        }
    });
    receive
}

fn resizes() -> Result<Signal> {
    signal(SignalKind::window_change())
        .map_err(|error| Failure::io("watching the size of the terminal", &error))
}

/// Rows and columns; 24 by 80 without a terminal.
fn size() -> (u16, u16) {
    match tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_row > 0 && size.ws_col > 0 => (size.ws_row, size.ws_col),
        _ => (24, 80),
    }
}

/// A terminal that hands on every key, until dropped.
struct Raw(Option<Termios>);

impl Raw {
    fn start() -> io::Result<Raw> {
        if !io::stdin().is_terminal() {
            return Ok(Raw(None));
        }
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        Ok(Raw(Some(before)))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_api::{Code, Problem};

    #[test]
    fn a_command_that_failed_in_the_job_fails_here_with_the_same_code() {
        assert!(ended(ShellTell::Exit { code: 0 }).is_ok());
        assert_eq!(ended(ShellTell::Exit { code: 3 }).unwrap_err().status(), 3);
        assert_eq!(ended(ShellTell::Exit { code: -1 }).unwrap_err().status(), 1);
        let problem = Problem::new(Code::WrongState, "17 does not run");
        assert_eq!(ended(ShellTell::Problem { problem }).unwrap_err().exit, Exit::Refused);
    }
}
