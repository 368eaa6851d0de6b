//! A comparison as one page that needs nothing but itself: no script, no font, no address.

mod chart;
mod gantt;
mod svg;

use crate::fleet::Fleet;
use crate::metrics::{Account, Parts, Report};
use crate::outcome::{SizeClass, Timeline};
use berth_model::{Name, Time};
use serde::Serialize;
use std::fmt::Write;
use svg::escape;

/// Points of a distribution.
const POINTS: usize = 200;
/// Teams that a chart has room for.
const TEAMS: usize = 12;

/// One policy's run, made small enough to keep beside others.
#[derive(Debug, Clone, Serialize)]
pub struct RunSummary {
    pub name: String,
    pub report: Report,
    pub account: Account,
    /// Waits in seconds, each with the part of the jobs that waited no longer.
    pub waits: Vec<(f64, f64)>,
    /// Of the GPU time that was held, the part of each team.
    pub shares: Vec<f64>,
    #[serde(skip)]
    gantt: String,
}

impl RunSummary {
    pub fn new(
        name: &str,
        timeline: &Timeline,
        fleet: &Fleet,
        teams: usize,
        report: Report,
        account: Account,
    ) -> RunSummary {
        let mut waits: Vec<i64> = timeline
            .outcomes
            .iter()
            .filter_map(|outcome| outcome.wait())
            .map(|wait| wait.0)
            .collect();
        waits.sort_unstable();
        let point = |place: usize| {
            let rank = (waits.len() * place).div_ceil(POINTS).max(1);
            (waits[rank - 1] as f64 / 1_000.0, place as f64 / POINTS as f64)
        };
        let points = if waits.is_empty() { 0 } else { POINTS };
        let mut held = vec![0.0; teams];
        for outcome in &timeline.outcomes {
            if let Some(sum) = held.get_mut(outcome.team as usize) {
                *sum += outcome.gpus.0 as f64 * outcome.ran().0 as f64;
            }
        }
        let all: f64 = held.iter().sum();
        let submits: Vec<Time> = timeline.outcomes.iter().map(|outcome| outcome.submit).collect();
        RunSummary {
            name: name.to_owned(),
            gantt: gantt::draw(name, timeline, fleet, gantt::window(&submits)),
            report,
            account,
            waits: (1..=points).map(point).collect(),
            shares: held.iter().map(|sum| sum / all.max(1.0)).collect(),
        }
    }
}

/// What the page is about.
#[derive(Debug, Clone)]
pub struct Page<'a> {
    pub title: &'a str,
    /// What was run, on what, with which options; a line each.
    pub about: &'a [String],
    pub teams: &'a [Name],
    /// In any unit; empty where teams have none.
    pub quotas: &'a [u64],
    pub pictures: &'a [RunSummary],
}

const STYLE: &str = "
:root{color-scheme:light dark;--back:#fff;--ink:#1d2330;--dim:#5d6675;--rule:#d9dde4;--free:#eef0f4;
--c0:#3b76b8;--c1:#e07b1a;--c2:#3f9a4a;--c3:#cf4446;--c4:#8e62b4;--c5:#95694f;--c6:#c2559a;--c7:#1f97a5;
--c8:#7d8a1f;--c9:#5a5fcf;--c10:#a34a2a;--c11:#6b7686}
@media (prefers-color-scheme:dark){:root{--back:#14171d;--ink:#e4e7ee;--dim:#9aa3b2;--rule:#343a46;
--free:#20252e;--c0:#6aa5e8;--c1:#f2a04f;--c2:#6cc477;--c3:#ee7274;--c4:#b690da;--c5:#c39a80;
--c6:#e68bc3;--c7:#56c2cf;--c8:#bccb52;--c9:#9398f5;--c10:#dc8765;--c11:#a2adbd}}
body{background:var(--back);color:var(--ink);font:15px/1.5 system-ui,sans-serif;max-width:960px;
margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2.2rem 0 .4rem}
p,figcaption{color:var(--dim);margin:.2rem 0}figure{margin:0}
.wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:13px}
td,th{padding:.25rem .34rem;text-align:right;border-bottom:1px solid var(--rule);white-space:nowrap}
td:first-child,th:first-child{text-align:left}th{font-weight:600;white-space:normal;vertical-align:bottom}
.key span{margin-right:1rem;white-space:nowrap}
.key b{display:inline-block;width:.7rem;height:.7rem;margin-right:.3rem}
svg{width:100%;min-width:640px;height:auto;display:block}svg text{fill:var(--dim);font:11px system-ui,sans-serif}
.grid{stroke:var(--rule);stroke-width:1}.axis{stroke:var(--dim);stroke-width:1}";

impl Page<'_> {
    pub fn html(&self) -> String {
        let mut out = String::new();
        let title = escape(self.title);
        let _ = write!(
            out,
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
             <meta name=\"viewport\" content=\"width=device-width\"/>\
             <title>{title}</title><style>{STYLE}</style></head>\n<body><h1>{title}</h1>\n"
        );
        for line in self.about {
            let _ = writeln!(out, "<p>{}</p>", escape(line));
        }
        self.table(&mut out);
        self.charts(&mut out);
        out.push_str("</body></html>\n");
        out
    }

    fn table(&self, out: &mut String) {
        let header = [
            "policy",
            "jobs",
            "mean wait",
            "P50",
            "P95",
            "longest",
            "mean JCT",
            "slowdown",
            "used",
            "held",
            "fragmented",
            "stops",
            "lost GPU-h",
            "cost",
            "energy",
        ];
        out.push_str("<h2>In figures</h2>\n<div class=\"wide\"><table><thead><tr>");
        header.iter().for_each(|name| {
            let _ = write!(out, "<th>{name}</th>");
        });
        out.push_str("</tr></thead><tbody>\n");
        for RunSummary { name, report, account, .. } in self.pictures {
            let (all, hours) = (&report.all, &account.gpu_hours);
            let cells = [
                escape(name),
                all.jobs.to_string(),
                chart::span(all.wait.mean),
                chart::span(all.wait.p50),
                chart::span(all.wait.p95),
                chart::span(all.wait.max),
                chart::span(all.completion.mean),
                format!("{:.1}", all.slowdown.mean),
                format!("{:.1} %", 100.0 * hours.utilization()),
                format!("{:.1} %", 100.0 * hours.allocation()),
                format!("{:.1} %", 100.0 * account.fragmentation),
                report.preemptions.to_string(),
                format!("{:.1}", report.lost_gpu_hours),
                format!("${:.0}", account.cost.total),
                format!("{:.0} kWh", account.energy_kwh),
            ];
            out.push_str("<tr>");
            cells.iter().for_each(|cell| {
                let _ = write!(out, "<td>{cell}</td>");
            });
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>\n");
    }

    fn charts(&self, out: &mut String) {
        let mut figure = |title: &str, caption: &str, drawing: &str| {
            let _ = writeln!(
                out,
                "<h2>{title}</h2>\n<figure><div class=\"wide\">{drawing}</div>\n\
                 <figcaption>{caption}</figcaption></figure>"
            );
        };
        let all = || self.pictures.iter();
        let names: Vec<String> = all().map(|picture| picture.name.clone()).collect();
        let held = |picture: &RunSummary| {
            let series = &picture.account.series;
            let pairs = series.held.iter().zip(&series.there);
            let part = |(held, there): (&f64, &f64)| 100.0 * held / there.max(1e-9);
            (picture.name.clone(), series.step, pairs.map(part).collect())
        };
        figure(
            "Utilization over time",
            "GPUs held by jobs, of those in working order, from the first submission on.",
            &chart::over_time("GPUs held over time", &all().map(held).collect::<Vec<_>>(), " %"),
        );
        let waiting = |picture: &RunSummary| {
            let series = &picture.account.series;
            (picture.name.clone(), series.step, series.waiting.clone())
        };
        figure(
            "Jobs that wait",
            "Paused jobs count.",
            &chart::over_time(
                "Jobs waiting over time",
                &all().map(waiting).collect::<Vec<_>>(),
                "",
            ),
        );
        let waits = |picture: &RunSummary| (picture.name.clone(), picture.waits.clone());
        figure(
            "Distribution of waits",
            "The part of all jobs that waited no longer; the scale of time is logarithmic.",
            &chart::distribution("Distribution of waits", &all().map(waits).collect::<Vec<_>>()),
        );
        figure(
            "P95 wait by size",
            "Hours, for jobs of so many GPUs.",
            &chart::groups("P95 wait by size of job", &names, &self.by_size(), hours, " h"),
        );
        figure(
            "Shares of the queues",
            "Parts of all GPU time that was held, the largest queues first, beside their quotas.",
            &self.shares(&names),
        );
        let parts = Parts::NAMES.map(str::to_owned);
        let cost = |picture: &RunSummary| {
            (picture.name.clone(), picture.account.cost.parts.all().to_vec())
        };
        figure(
            "Cost, and what for",
            "Dollars from the first submission to the last end. Idle money is split by why the \
             GPUs were idle.",
            &chart::stacked(
                "Cost by what it was for",
                &parts,
                &all().map(cost).collect::<Vec<_>>(),
            ),
        );
        let drawings: Vec<&str> = all().map(|picture| picture.gantt.as_str()).collect();
        figure(
            "Who ran where",
            "The first nodes, in the middle of the trace; a colour is a team. Policies that move \
             jobs freely keep no record of nodes.",
            &drawings.join("\n"),
        );
        self.key(out);
    }

    /// Which colour is which team, as far as colours do not repeat.
    fn key(&self, out: &mut String) {
        let named = self.teams.iter().enumerate().filter(|(_, team)| !team.is_empty());
        let named: Vec<(usize, &Name)> = named.take(svg::COLOURS).collect();
        if named.is_empty() {
            return;
        }
        out.push_str("<p class=\"key\">");
        for (team, name) in named {
            let (colour, name) = (svg::colour(team), escape(name));
            let _ = write!(out, "<span><b style=\"background:{colour}\"></b>{name}</span>");
        }
        if self.teams.len() > svg::COLOURS {
            out.push_str("<span>the others have the same colours again</span>");
        }
        out.push_str("</p>\n");
    }

    fn by_size(&self) -> Vec<(String, Vec<f64>)> {
        let of = |size: SizeClass| {
            let p95 = |picture: &RunSummary| {
                let found = picture.report.by_size.iter().find(|(other, _)| *other == size);
                found.map_or(0.0, |(_, group)| group.wait.p95 / 3_600.0)
            };
            let plural = if size.word() == "1" { "" } else { "s" };
            (format!("{} GPU{plural}", size.word()), self.pictures.iter().map(p95).collect())
        };
        SizeClass::ALL.into_iter().map(of).collect()
    }

    fn shares(&self, names: &[String]) -> String {
        let all: u64 = self.quotas.iter().sum();
        let quota = |team: usize| {
            self.quotas.get(team).map(|quota| 100.0 * *quota as f64 / all.max(1) as f64)
        };
        let share = |picture: &RunSummary, team: usize| {
            100.0 * picture.shares.get(team).copied().unwrap_or(0.0)
        };
        let mut order: Vec<usize> = (0..self.teams.len()).collect();
        let first = |team: &usize| self.pictures.first().map_or(0.0, |one| share(one, *team));
        order.sort_by(|a, b| first(b).total_cmp(&first(a)));
        let mut names = names.to_vec();
        if !self.quotas.is_empty() {
            names.push("quota".to_owned());
        }
        let group = |team: &usize| {
            let name = match self.teams[*team].as_str() {
                "" => "no team".to_owned(),
                name => name.to_owned(),
            };
            let held = self.pictures.iter().map(|picture| share(picture, *team));
            (name, held.chain(quota(*team)).collect())
        };
        let groups: Vec<(String, Vec<f64>)> = order.iter().take(TEAMS).map(group).collect();
        let percent = |value: f64| format!("{value:.1} %");
        chart::groups("Shares of the queues", &names, &groups, percent, " %")
    }
}

fn hours(value: f64) -> String {
    format!("{value:.2} h")
}

#[cfg(test)]
mod tests;
