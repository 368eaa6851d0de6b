//! `berth top`: the cluster on one screen.

mod draw;

use super::ps;
use crate::context::Context;
use crate::fail::{Exit, Failure, Result};
use crate::show::{self, Look};
use crate::watch::Changes;
use berth_api::Client;
use berth_api::wire::{EventQuery, Gpu, Job, JobQuery, JobState, Queue};
use clap::Args;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::{DefaultTerminal, Terminal};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use tokio::sync::mpsc;

#[derive(Args, Debug)]
pub struct Top {
    /// Print one screen as text, and end
    #[arg(long)]
    once: bool,
}

/// More jobs than any screen has lines.
const MOST: u32 = 200;

/// What is on the screen.
#[derive(Debug, Clone, Default)]
pub struct Screen {
    gpus: Vec<Gpu>,
    running: Vec<Job>,
    waiting: Vec<Job>,
    queues: Vec<Queue>,
    /// All jobs that have not ended, by state, with those that have no line.
    counts: BTreeMap<JobState, u64>,
    /// What an hour of all that run costs, in millionths of a dollar.
    rate: i64,
    /// The server does not answer: what is shown is old.
    trouble: Option<String>,
}

pub async fn run(context: &Context, args: &Top) -> Result<()> {
    let client = context.client()?;
    let first = fetch(client).await?;
    if args.once {
        return show::print(&text(&first, &context.look())?);
    }
    if !std::io::stdout().is_terminal() {
        return Err(Failure::usage("standard output is not a terminal")
            .next("`berth top --once` prints one screen as text."));
    }
    let mut terminal = ratatui::init();
    let ended = watch(context, client, &mut terminal, first).await;
    ratatui::restore();
    ended
}

async fn fetch(client: &Client) -> Result<Screen> {
    let state = Some("active".to_owned());
    let query = JobQuery { state, counts: true, ..JobQuery::default() };
    let list = ps::list(client, &query, MOST).await?;
    let shown = || list.jobs.iter().filter_map(|job| job.price_micros_per_hour).sum();
    let rate = list.price_micros_per_hour.unwrap_or_else(shown);
    let (waiting, running) = list.jobs.into_iter().partition(|job: &Job| waits(job.state));
    let (gpus, queues) = (client.gpus().await?.items, client.queues().await?.items);
    Ok(Screen { gpus, running, waiting, queues, counts: list.counts, rate, trouble: None })
}

fn waits(state: JobState) -> bool {
    matches!(state, JobState::Pending | JobState::Paused)
}

async fn watch(
    context: &Context,
    client: &Client,
    terminal: &mut DefaultTerminal,
    mut screen: Screen,
) -> Result<()> {
    let mut keys = keys();
    let kind = Some("job,node,queue".to_owned());
    let mut changes = Changes::new(client, EventQuery { kind, ..EventQuery::default() });
    loop {
        let look = context.look();
        terminal
            .draw(|frame| draw::screen(frame, &screen, &look))
            .map_err(|error| Failure::io("drawing", &error))?;
        tokio::select! {
            key = keys.recv() => match key {
                Some(Key::Quit) | None => return Ok(()),
                Some(Key::Redraw) => {}
            },
            () = changes.next() => match fetch(client).await {
                Ok(fresh) => screen = fresh,
                Err(failure) if failure.exit == Exit::Unreachable => {
                    screen.trouble = Some(failure.to_string().replace('\n', "; "));
                }
                Err(failure) => return Err(failure),
            },
        }
    }
}

enum Key {
    Quit,
    Redraw,
}

/// Keys are read by a thread of its own: a read of a terminal cannot be called off.
fn keys() -> mpsc::Receiver<Key> {
    let (send, receive) = mpsc::channel(4);
    std::thread::spawn(move || {
        while let Ok(event) = event::read() {
            if let Some(key) = meaning(&event)
                && send.blocking_send(key).is_err()
            {
                return;
            }
        }
    });
    receive
}

fn meaning(event: &Event) -> Option<Key> {
    match event {
        Event::Resize(..) => Some(Key::Redraw),
        Event::Key(key) if key.kind == KeyEventKind::Press => match key.code {
            KeyCode::Char('q') | KeyCode::Esc => Some(Key::Quit),
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(Key::Quit),
            _ => None,
        },
        _ => None,
    }
}

/// One screen as text, as high as it needs to be.
fn text(screen: &Screen, look: &Look) -> Result<String> {
    let width = u16::try_from(look.width.unwrap_or(120)).unwrap_or(120);
    let mut terminal = Terminal::new(TestBackend::new(width, draw::height(screen)))
        .map_err(|error| Failure::internal(error.to_string()))?;
    terminal
        .draw(|frame| draw::screen(frame, screen, look))
        .map_err(|error| Failure::internal(error.to_string()))?;
    Ok(lines(terminal.backend().buffer()))
}

fn lines(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width);
    let rows = buffer.content.chunks(width.max(1)).map(|row| {
        let line: String = row.iter().map(ratatui::buffer::Cell::symbol).collect();
        format!("{}\n", line.trim_end())
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::tests::job;
    use berth_api::wire::GpuHolder;

    fn gpu(node: &str, index: u32, free_milli: i64) -> Gpu {
        let holder = GpuHolder {
            job: "17".parse().unwrap(),
            name: "bert".into(),
            user: "kim".into(),
            team: "nlp".into(),
            since: None,
            milli: 1_000 - free_milli,
            share: "whole".into(),
        };
        Gpu {
            node: node.into(),
            index,
            model: "H100-80GB".into(),
            memory_bytes: 80 << 30,
            uuid: None,
            declared: true,
            healthy: index != 3,
            held: None,
            failed: None,
            checking: None,
            checked: None,
            closed: None,
            free_milli,
            holders: if free_milli == 1_000 { Vec::new() } else { vec![holder] },
            price_micros_per_hour: 3_100_000,
            utilization: None,
            used_bytes: None,
            watts: None,
            celsius: None,
            idle_ms: None,
        }
    }

    #[test]
    fn one_screen_shows_gpus_what_runs_and_who_waits() {
        let waits = Job {
            id: "18".parse().unwrap(),
            name: "llama".into(),
            state: JobState::Pending,
            started: None,
            reason: Some("no room".into()),
            ..job()
        };
        let gpus = (0..4).map(|index| gpu("n1", index, if index == 0 { 0 } else { 1_000 }));
        let screen = Screen {
            gpus: gpus.collect(),
            running: vec![job()],
            waiting: vec![waits],
            queues: Vec::new(),
            counts: BTreeMap::from([(JobState::Running, 1), (JobState::Pending, 1)]),
            rate: 3_100_000,
            trouble: None,
        };
        let text = text(&screen, &Look::fixed()).unwrap_or_else(|failure| panic!("{failure}"));
        assert!(
            text.contains("4 GPUs (declared)  2 free  1 failed  1 running  1 waiting"),
            "{text}"
        );
        assert!(text.contains("n1  █··x"), "{text}");
        assert!(text.contains("17"), "{text}");
        assert!(text.contains("no room"), "{text}");
    }

    #[test]
    fn gpus_of_a_closed_node_are_not_counted_as_free() {
        let closed = Some(berth_api::wire::NodeState::Draining);
        let held = Gpu { closed, ..gpu("n2", 1, 0) };
        let screen = Screen {
            gpus: vec![gpu("n1", 0, 1_000), Gpu { closed, ..gpu("n2", 0, 1_000) }, held],
            running: Vec::new(),
            waiting: Vec::new(),
            queues: Vec::new(),
            counts: BTreeMap::new(),
            rate: 0,
            trouble: None,
        };
        let text = text(&screen, &Look::fixed()).unwrap_or_else(|failure| panic!("{failure}"));
        assert!(text.contains("3 GPUs (declared)  1 free"), "{text}");
        assert!(text.contains("n2  -█"), "{text}");
    }

    #[test]
    fn jobs_without_a_line_are_counted_and_paid_for_too() {
        let screen = Screen {
            running: vec![job()],
            counts: BTreeMap::from([
                (JobState::Running, 1_200),
                (JobState::Stopping, 3),
                (JobState::Pending, 45_000),
                (JobState::Paused, 1),
            ]),
            rate: 4_100_000_000,
            ..Screen::default()
        };
        let text = text(&screen, &Look::fixed()).unwrap_or_else(|failure| panic!("{failure}"));
        assert!(text.contains("1,203 running  45,001 waiting  $4,100.00/h"), "{text}");
    }

    #[test]
    fn an_empty_cluster_is_a_screen_too() {
        let text = text(&Screen::default(), &Look::fixed());
        let text = text.unwrap_or_else(|failure| panic!("{failure}"));
        assert!(text.contains("0 GPUs"), "{text}");
        assert!(text.contains("Nothing runs."), "{text}");
    }
}
