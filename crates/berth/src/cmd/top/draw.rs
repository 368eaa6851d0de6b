//! The screen: a line of figures, the GPUs by node, what runs, and who waits.

use super::{Screen, waits};
use crate::cmd::ps;
use crate::show::{Look, words};
use berth_api::wire::{Gpu, Job, Queue};
use berth_model::Milli;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Paragraph};
use std::collections::BTreeMap;

/// Lines of the blocks beside their content: the title and the head of a table.
const FRAME: u16 = 2;

/// How many lines the screen needs to show everything.
pub fn height(screen: &Screen) -> u16 {
    let lines = |count: usize| u16::try_from(count.max(1)).unwrap_or(u16::MAX / 8);
    let nodes = lines(nodes(&screen.gpus).len()) + 1;
    let queues = lines(screen.queues.len()) + FRAME;
    let jobs = lines(screen.running.len()) + lines(screen.waiting.len()) + 2 * FRAME;
    2 + nodes + queues + jobs
}

pub fn screen(frame: &mut Frame<'_>, screen: &Screen, look: &Look) {
    let nodes = nodes(&screen.gpus);
    let content = |count: usize, extra: u16| {
        Constraint::Max(u16::try_from(count.max(1)).unwrap_or(u16::MAX / 8) + extra)
    };
    let [head, gpus, queues, running, waiting, foot] = Layout::vertical([
        Constraint::Length(1),
        content(nodes.len(), 1),
        content(screen.queues.len(), FRAME),
        content(screen.running.len(), FRAME),
        Constraint::Min(3),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(figures(screen)), head);
    block(frame, gpus, "GPUs  █ held  ▒ shared  · free  - closed  x failed", &nodes, "No GPUs.");
    block(frame, queues, "Queues", &queue_lines(&screen.queues), "No queues.");
    block(frame, running, "Running", &job_lines(&screen.running, look), "Nothing runs.");
    block(frame, waiting, "Waiting", &job_lines(&screen.waiting, look), "No jobs wait.");
    let foot_text = screen.trouble.clone().unwrap_or_else(|| "q quits".to_owned());
    frame.render_widget(Paragraph::new(foot_text).style(faint()), foot);
}

fn faint() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

fn block(frame: &mut Frame<'_>, area: Rect, title: &str, lines: &[String], nothing: &str) {
    let title = Line::from(title.to_owned()).style(Style::new().add_modifier(Modifier::BOLD));
    let frame_of = Block::new().borders(Borders::TOP).title(title);
    let lines: Vec<Line<'_>> = match lines.is_empty() {
        true => vec![Line::from(nothing.to_owned()).style(faint())],
        false => lines.iter().map(|line| Line::from(line.as_str())).collect(),
    };
    frame.render_widget(Paragraph::new(lines).block(frame_of), area);
}

/// `256 GPUs  9 free  2 failed  14 running  37 waiting  $412.00/h`.
fn figures(screen: &Screen) -> String {
    let declared = if screen.gpus.iter().any(|gpu| gpu.declared) { " (declared)" } else { "" };
    let usable = screen.gpus.iter().filter(|gpu| gpu.healthy);
    let free: i64 = usable.map(Gpu::usable_milli).sum();
    let failed = screen.gpus.iter().filter(|gpu| !gpu.healthy).count();
    let count = |waiting: bool| {
        let states = screen.counts.iter().filter(|(state, _)| waits(**state) == waiting);
        words::thousands(states.map(|(_, count)| count).sum())
    };
    let parts = [
        format!("{} GPUs{declared}", screen.gpus.len()),
        format!("{} free", Milli(free)),
        format!("{failed} failed"),
        format!("{} running", count(false)),
        format!("{} waiting", count(true)),
        format!("{}/h", words::money(screen.rate)),
    ];
    parts.join("  ")
}

/// A line for each node, a sign for each GPU.
fn nodes(gpus: &[Gpu]) -> Vec<String> {
    let mut nodes: BTreeMap<&str, Vec<&Gpu>> = BTreeMap::new();
    for gpu in gpus {
        nodes.entry(&gpu.node).or_default().push(gpu);
    }
    let width = nodes.keys().map(|node| node.chars().count()).max().unwrap_or(0);
    let line = |(node, gpus): (&str, Vec<&Gpu>)| {
        let signs: String = gpus.iter().map(|gpu| sign(gpu)).collect();
        let busy: Vec<u32> = gpus.iter().filter_map(|gpu| gpu.utilization).collect();
        let mean = match busy.is_empty() {
            true => String::new(),
            false => format!("  {}% busy", busy.iter().sum::<u32>() / busy.len() as u32),
        };
        format!("{node:<width$}  {signs}  {}{mean}", gpus[0].model)
    };
    nodes.into_iter().map(line).collect()
}

fn sign(gpu: &Gpu) -> char {
    match (gpu.healthy, gpu.free_milli, gpu.closed) {
        (false, _, _) => 'x',
        (true, 1_000, Some(_)) => '-',
        (true, 1_000, None) => '·',
        (true, 0, _) => '█',
        (true, _, _) => '▒',
    }
}

fn queue_lines(queues: &[Queue]) -> Vec<String> {
    let width = queues.iter().map(|queue| queue.name.chars().count()).max().unwrap_or(0);
    let line = |queue: &Queue| {
        format!(
            "{:<width$}  {} of {} GPUs, share {}  {} running  {} waiting",
            queue.name,
            Milli(queue.used_milli),
            Milli(queue.quota_milli),
            Milli(queue.fair_share_milli),
            queue.running,
            queue.waiting
        )
    };
    queues.iter().map(line).collect()
}

/// The rows of `berth ps`; the screen cuts them itself, and has its own colours.
fn job_lines(jobs: &[Job], look: &Look) -> Vec<String> {
    if jobs.is_empty() {
        return Vec::new();
    }
    let plain = Look { width: None, colour: false, wide: false, links: None, ..look.clone() };
    ps::table(jobs, &plain).text(&plain).lines().map(str::to_owned).collect()
}
