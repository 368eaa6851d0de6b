//! The openb nodes and pods, and what was published about packing them.

use crate::csv::{Row, Table};
use anyhow::{Result, ensure};
use berth_sim::packing::{Node, Pod, WHOLE};
use std::collections::BTreeMap;
use std::path::Path;

/// Variants of the list of pods that come with the traces.
pub const VARIANTS: &[&str] = &[
    "default",
    "gpushare20",
    "gpushare40",
    "gpushare80",
    "multigpu20",
    "multigpu40",
    "gpuspec05",
    "gpuspec10",
    "gpuspec25",
    "cpu0",
    "cpu050",
    "cpu072",
    "cpu200",
    "cpu235",
];

/// The nodes with GPUs, and the types they are of.
pub struct Cluster {
    pub nodes: Vec<Node>,
    pub types: Vec<String>,
    /// Memory of one GPU of each type, in thousandths of GiB.
    pub gpu_memory_mgib: Vec<i64>,
}

impl Cluster {
    pub fn capacity_milli(&self) -> i64 {
        self.nodes.iter().map(Node::free_milli).sum()
    }
}

fn memory_mib(row: &Row<'_>) -> Result<i64> {
    Ok(row.milli("mem_gib")? * 1_024 / 1_000)
}

pub fn nodes(folder: &Path) -> Result<Cluster> {
    let table = Table::open(folder, "openb_nodes")?;
    let mut cluster = Cluster { nodes: Vec::new(), types: Vec::new(), gpu_memory_mgib: Vec::new() };
    for row in table.rows()? {
        let gpus = row.integer("gpus")?;
        if gpus == 0 {
            continue;
        }
        let name = row.text("gpu_type")?;
        let known = cluster.types.iter().position(|known| known == name);
        let at = match known {
            Some(at) => at,
            None => {
                cluster.types.push(name.to_owned());
                cluster.gpu_memory_mgib.push(row.milli("gpu_mem_gib")?);
                cluster.types.len() - 1
            }
        };
        ensure!(at < 64, "no more than 64 types of GPU can be told apart");
        let (cpu, memory) = (row.milli("cpu")?, memory_mib(&row)?);
        cluster.nodes.push(Node::new(row.text("node_id")?, gpus as usize, at as u8, cpu, memory));
    }
    cluster.nodes.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(cluster)
}

fn pod(row: &Row<'_>, types: &[String]) -> Result<Pod> {
    let args = row.milli("gpus")?;
    if args > WHOLE && args % WHOLE != 0 {
        return Err(row.wrong("gpus", "a share of one GPU or a whole number of them"));
    }
    let (gpus, gpu_milli) = match args {
        0 => (0, 0),
        1..WHOLE => (1, args),
        _ => ((args / WHOLE) as u32, WHOLE),
    };
    let named = row.text("gpu_type")?.split('|').filter(|name| !name.is_empty());
    let mut mask = 0;
    for name in named {
        let at = types.iter().position(|known| known == name);
        mask |= 1 << at.ok_or_else(|| row.wrong("gpu_type", "types that some node has"))?;
    }
    let (cpu_milli, memory_mib) = (row.milli("cpu")?, memory_mib(row)?);
    Ok(Pod { gpus, gpu_milli, cpu_milli, memory_mib, types: mask })
}

/// The pods of a variant, in the order of the file.
pub fn pods(folder: &Path, variant: &str, types: &[String]) -> Result<Vec<Pod>> {
    if variant == "default" {
        let table = Table::open(folder, "openb_pods_default")?;
        return table.rows()?.iter().map(|row| pod(row, types)).collect();
    }
    let table = Table::open(folder, "openb_pods_variants")?;
    let mut found = Vec::new();
    for row in table.rows()? {
        if row.text("variant")? == variant {
            found.push(pod(&row, types)?);
        }
    }
    ensure!(!found.is_empty(), "there are no pods of a variant {variant}");
    Ok(found)
}

/// Published means in percent, by variant, policy, measure and demand.
pub type Published = BTreeMap<(String, String, String, i64), f64>;

pub fn published(folder: &Path) -> Result<Published> {
    let table = Table::open(folder, "published_fgd")?;
    let mut found = Published::new();
    for row in table.rows()? {
        let own = |column: &str| row.text(column).map(str::to_owned);
        let key = (own("variant")?, own("policy")?, own("metric")?, row.integer("demand_pct")?);
        found.insert(key, row.milli("mean_pct")? as f64 / 1_000.0);
    }
    Ok(found)
}
