//! Figures as rows, and the two files they are published in.

use anyhow::{Context, Result};
use comfy_table::{Table, presets::NOTHING};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;

/// One published figure.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    pub name: String,
    pub value: f64,
    pub unit: String,
    /// What was promised; nothing for figures that only inform.
    pub target: Option<String>,
    pub holds: Option<bool>,
    pub command: String,
    pub seed: u64,
    /// The section's text has it already, in a table of its own.
    #[serde(skip)]
    pub told: bool,
}

/// What a figure is held against.
#[derive(Debug, Clone, Copy)]
pub enum Target {
    Below(f64),
    AtMost(f64),
    AtLeast(f64),
    Within(f64, f64),
    Exactly(f64),
    None,
}

impl Row {
    pub fn new(name: impl Into<String>, value: f64, unit: &str, target: Target) -> Row {
        let rounded = |value: f64| (value * 1_000.0).round() / 1_000.0;
        let (text, holds) = match target {
            // What is held against a measured figure may be equal to it, and is rounded like it.
            Target::AtMost(most) => (Some(format!("≤ {}", rounded(most))), Some(value <= most)),
            Target::AtLeast(least) => (Some(format!("≥ {}", rounded(least))), Some(value >= least)),
            Target::Below(most) => (Some(format!("< {most}")), Some(value < most)),
            Target::Within(least, most) => {
                let holds = (least..=most).contains(&value);
                (Some(format!("{least} to {most}")), Some(holds))
            }
            // Counts are exact as floats, so half a unit tells them apart.
            Target::Exactly(count) => {
                (Some(format!("= {count}")), Some((value - count).abs() < 0.5))
            }
            Target::None => (None, None),
        };
        Row {
            name: name.into(),
            value: rounded(value),
            unit: unit.to_owned(),
            target: text,
            holds,
            command: String::new(),
            seed: 0,
            told: false,
        }
    }
}

fn verdict(row: &Row) -> &'static str {
    match row.holds {
        Some(true) => "yes",
        Some(false) => "NO",
        None => "",
    }
}

pub fn table(rows: &[Row]) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header(["figure", "value", "unit", "target", "holds"]);
    for row in rows {
        let target = row.target.as_deref().unwrap_or("");
        table.add_row([&row.name, &row.value.to_string(), &row.unit, target, verdict(row)]);
    }
    table.to_string()
}

/// The machine that the figures are from.
pub struct Machine {
    pub cores: usize,
    pub cpu: String,
    pub memory_gib: u64,
    pub system: String,
    pub date: String,
}

impl Machine {
    pub fn here() -> Machine {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let after_colon = |text: &str, key: &str| {
            let line = text.lines().find(|line| line.starts_with(key));
            line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned())
        };
        let kib = after_colon(&read("/proc/meminfo"), "MemTotal")
            .and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
        let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let today = since_1970.map_or(0, |span| span.as_millis() as i64);
        Machine {
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            cpu: after_colon(&read("/proc/cpuinfo"), "model name")
                .unwrap_or_else(|| "unknown".to_owned()),
            memory_gib: kib.unwrap_or(0).div_ceil(1 << 20),
            system: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            date: berth_model::Time(today).to_string().chars().take(10).collect(),
        }
    }
}

/// One group of figures on the page.
pub struct Section {
    pub title: Cow<'static, str>,
    pub text: String,
    pub rows: Vec<Row>,
}

/// What is published together: `NAME.json` has the rows, `NAME.md` shows them.
pub struct Page {
    pub name: &'static str,
    pub title: &'static str,
    /// How the figures were taken; it goes between the machine and the figures.
    pub method: &'static str,
    pub sections: Vec<Section>,
}

impl Page {
    pub fn write(&self, folder: &Path, machine: &Machine) -> Result<()> {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("creating {}", folder.display()))?;
        let rows: Vec<&Row> = self.rows().collect();
        let json = serde_json::to_string_pretty(&rows)? + "\n";
        for (kind, text) in [("json", json), ("md", self.text(machine)?)] {
            let name = format!("{}.{kind}", self.name);
            let path = folder.join(&name);
            berth_fs::write_output(&path, text.as_bytes())
                .with_context(|| format!("writing {}", path.display()))?;
        }
        Ok(())
    }

    fn rows(&self) -> impl Iterator<Item = &Row> {
        self.sections.iter().flat_map(|section| &section.rows)
    }

    fn text(&self, machine: &Machine) -> Result<String> {
        let Page { name, title, method, sections } = self;
        let Machine { date, cores, cpu, memory_gib, system } = machine;
        let mut out = String::new();
        writeln!(out, "# {title}\n")?;
        writeln!(
            out,
            "Taken on {date} with `make evidence-{name}` on {cores} cores of {cpu}, {memory_gib} \
             GiB of memory, Linux {system}. The same rows are in `{name}.json`, each with the \
             command and the seed that reproduce it.\n",
        )?;
        let held = self.rows().filter(|row| row.holds == Some(true)).count();
        let targets = self.rows().filter(|row| row.holds.is_some()).count();
        writeln!(
            out,
            "{held} of the {targets} targets measured in this run hold; what was not measured is \
             named below.\n"
        )?;
        writeln!(out, "{method}\n")?;
        for section in sections {
            writeln!(out, "## {}\n\n{}\n", section.title, section.text)?;
            writeln!(out, "| figure | value | unit | target | holds |")?;
            writeln!(out, "| --- | ---: | --- | ---: | --- |")?;
            for row in section.rows.iter().filter(|row| !row.told) {
                let target = row.target.as_deref().unwrap_or("");
                let (name, value, unit) = (&row.name, row.value, &row.unit);
                writeln!(out, "| {name} | {value} | {unit} | {target} | {} |", verdict(row))?;
            }
            writeln!(out)?;
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_equal_to_the_one_it_is_held_against_holds_and_rounding_helps_nobody() {
        let holds = |value, target| Row::new("a", value, "s", target).holds;
        assert_eq!(holds(1.0, Target::AtMost(1.0)), Some(true));
        assert_eq!(holds(1.000_1, Target::AtMost(1.0)), Some(false));
        assert_eq!(holds(1.0, Target::AtLeast(1.0)), Some(true));
        assert_eq!(holds(0.999_9, Target::AtLeast(1.0)), Some(false));
        assert_eq!(Row::new("a", 1.0, "s", Target::AtMost(2.0 / 3.0)).target.unwrap(), "≤ 0.667");
    }
}
