//! `sim.json` and `sim.md`.

use super::Found;
use super::parts::about;
use crate::report::{Machine, Row};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::path::Path;

/// A row as it stands in the file, which is flat.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Dated {
    part: String,
    #[serde(flatten)]
    row: Row,
    date: String,
}

/// What an earlier run has written, if there is one.
pub fn read(folder: &Path) -> Result<Vec<Found>> {
    let path = folder.join("sim.json");
    let Ok(text) = std::fs::read_to_string(&path) else { return Ok(Vec::new()) };
    let rows: Vec<Dated> =
        serde_json::from_str(&text).with_context(|| format!("reading {}", path.display()))?;
    let mut found: Vec<Found> = Vec::new();
    for Dated { part, row, date } in rows {
        match found.last_mut() {
            Some(last) if last.part == part => last.rows.push(row),
            _ => found.push(Found { text: about(&part), part, rows: vec![row], date }),
        }
    }
    Ok(found)
}

pub fn write(folder: &Path, machine: &Machine, found: &[Found]) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    let rows = |found: &Found| {
        let dated = |row: &Row| Dated {
            part: found.part.clone(),
            row: row.clone(),
            date: found.date.clone(),
        };
        found.rows.iter().map(dated).collect::<Vec<_>>()
    };
    let rows: Vec<Dated> = found.iter().flat_map(rows).collect();
    let json = serde_json::to_string_pretty(&rows)? + "\n";
    for (name, text) in [("sim.json", json), ("sim.md", page(machine, found)?)] {
        let path = folder.join(name);
        berth_fs::write_output(&path, text.as_bytes())
            .with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

fn page(machine: &Machine, found: &[Found]) -> Result<String> {
    let mut out = String::new();
    let rows = || found.iter().flat_map(|found| &found.rows);
    let held = rows().filter(|row| row.holds == Some(true)).count();
    let targets = rows().filter(|row| row.holds.is_some()).count();
    writeln!(out, "# The simulator in figures\n")?;
    writeln!(
        out,
        "Taken with `make evidence-sim TRACES=FOLDER` on {} cores of {}, {} GiB of memory, Linux \
         {}. The same rows are in `sim.json`, each with the command and the seed that reproduce \
         it. FOLDER holds the traces as `NAME.csv` or `NAME.csv.gz`, with columns as in \
         [the trace format](../trace-format.md).\n",
        machine.cores, machine.cpu, machine.memory_gib, machine.system
    )?;
    writeln!(out, "{held} of {targets} targets hold.\n")?;
    for Found { part, text, rows, date } in found {
        writeln!(out, "## {part}\n\n{text}\n\nMeasured on {date}.\n")?;
        writeln!(out, "| figure | value | unit | target | holds | seed |")?;
        writeln!(out, "| --- | ---: | --- | ---: | --- | ---: |")?;
        for Row { name, value, unit, target, holds, seed, .. } in rows {
            let target = target.as_deref().unwrap_or("");
            let holds = match holds {
                Some(true) => "yes",
                Some(false) => "NO",
                None => "",
            };
            writeln!(out, "| {name} | {value} | {unit} | {target} | {holds} | {seed} |")?;
        }
        let mut commands: Vec<&str> = rows.iter().map(|row| row.command.as_str()).collect();
        commands.dedup();
        writeln!(out, "\n```text")?;
        commands.iter().try_for_each(|command| writeln!(out, "{command}"))?;
        writeln!(out, "```\n")?;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Target;

    #[test]
    fn what_is_written_is_read_back_and_counts_its_targets() {
        let folder = std::env::temp_dir().join(format!("berth-evidence-{}", std::process::id()));
        let row = |value| Row::new("wait", value, "s", Target::Below(5.0));
        let rows = vec![row(1.0), row(9.0)];
        let (part, text, date) = ("p".to_owned(), "About it.".to_owned(), "today".to_owned());
        let found = Found { part, text, rows, date };
        write(&folder, &Machine::here(), std::slice::from_ref(&found)).unwrap();
        let back = read(&folder).unwrap();
        assert_eq!((back[0].part.as_str(), back[0].rows.len()), ("p", 2));
        let page = std::fs::read_to_string(folder.join("sim.md")).unwrap();
        assert!(page.contains("1 of 2 targets hold") && page.contains("| NO |"), "{page}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
