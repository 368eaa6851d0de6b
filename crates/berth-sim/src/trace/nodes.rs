//! Nodes from a trace.

use super::error::Result;
use super::jobs::{Names, gibibytes};
use super::table::{Row, Schema, Table, Use};
use berth_model::{Bytes, Cpu, Name};

/// A machine. What the trace does not tell is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub id: Name,
    pub gpu_type: Option<Name>,
    pub gpus: u32,
    /// The number of GPUs as somebody has corrected it later.
    pub gpus_revised: Option<u32>,
    /// Of each GPU.
    pub gpu_memory: Option<Bytes>,
    pub cpu: Option<Cpu>,
    pub memory: Option<Bytes>,
    /// Who it belongs to.
    pub team: Option<Name>,
}

static NODES: Schema = Schema {
    what: "node traces",
    columns: &[
        ("node_id", Use::Needed),
        ("gpus", Use::Needed),
        ("gpu_type", Use::Read),
        ("gpu_mem_gib", Use::Read),
        ("cpu", Use::Read),
        ("mem_gib", Use::Read),
        ("team", Use::Read),
        ("gpus_revised", Use::Read),
    ],
};

/// Reads nodes from the text of `file`, in its order. `file` is only for messages.
pub fn nodes(file: &str, text: &str) -> Result<Vec<Node>> {
    let mut table = Table::open(file, text, &NODES)?;
    let mut names = Names::default();
    let mut found = Vec::new();
    while let Some(row) = table.next_row()? {
        found.push(read(&row, &mut names)?);
    }
    Ok(found)
}

fn read(row: &Row<'_, '_>, names: &mut Names) -> Result<Node> {
    let id = row.text("node_id").ok_or_else(|| row.wrong("node_id", "a name for the node"))?;
    let id = Name::new(id);
    let gpus = row.count("gpus")?.ok_or_else(|| row.wrong("gpus", "a whole number such as 8"))?;
    let cpu = row.number("cpu", "a number of CPU cores such as 8 or 0.5", |cpu| cpu >= 0)?;
    let mut name = |column| row.text(column).map(|text| names.get(text));
    Ok(Node {
        id,
        gpus,
        gpu_type: name("gpu_type"),
        team: name("team"),
        gpus_revised: row.count("gpus_revised")?,
        gpu_memory: gibibytes(row, "gpu_mem_gib")?,
        cpu: cpu.map(Cpu),
        memory: gibibytes(row, "mem_gib")?,
    })
}
