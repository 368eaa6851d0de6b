//! Which nodes keep the data of a job, in words.

use berth_engine::Core;
use berth_model::{Bytes, JobState, Name};
use berth_store::JobRow;
use std::collections::BTreeSet;

/// Nodes that one line names.
const MOST: usize = 3;

/// What is good to know of a job that has data: the nodes that it prefers or, once it has started, whether
/// its nodes had the data.
pub fn told(core: &Core, row: &JobRow) -> Option<String> {
    let places = core.state.data_places(row.id);
    if matches!(row.state, JobState::Pending | JobState::Paused) {
        return prefers(&places);
    }
    let job = core.jobs.get(&row.id)?;
    let nodes: BTreeSet<&str> = job.leases.values().map(|lease| lease.row.node.as_str()).collect();
    let there: Vec<String> = places
        .iter()
        .filter(|(node, _)| nodes.contains(node.as_str()))
        .take(MOST)
        .map(|(node, bytes)| format!("{node} has {} of its data", size(*bytes)))
        .collect();
    (!there.is_empty()).then(|| there.join(", "))
}

fn prefers(places: &[(Name, Bytes)]) -> Option<String> {
    let mut named: Vec<String> = Vec::new();
    for (node, bytes) in places.iter().take(MOST) {
        let what = if named.is_empty() { " of its data" } else { "" };
        named.push(format!("{node} has {}{what}", size(*bytes)));
    }
    if named.is_empty() {
        return None;
    }
    match places.len().saturating_sub(MOST) {
        0 => {}
        1 => named.push("1 other has some".to_owned()),
        others => named.push(format!("{others} others have some")),
    }
    Some(format!("among equal places it prefers nodes with its data: {}", named.join(", ")))
}

/// As the command line shows sizes.
fn size(bytes: Bytes) -> String {
    const UNITS: [(&str, i64); 4] =
        [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let Some((word, unit)) = UNITS.into_iter().find(|(_, unit)| bytes.0 >= *unit) else {
        return format!("{} B", bytes.0);
    };
    match (bytes.0 / unit, i128::from(bytes.0 % unit) * 10 / i128::from(unit)) {
        (whole, 0) => format!("{whole} {word}"),
        (whole, tenth) => format!("{whole}.{tenth} {word}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nodes_with_most_of_the_data_are_named_and_the_others_counted() {
        let place = |name: &str, gib: i64| (Name::new(name), Bytes(gib << 30));
        let places = [place("n3", 12), place("n1", 9), place("n2", 9), place("n4", 1)];
        let head = "among equal places it prefers nodes with its data: n3 has 12 GiB of its data";
        assert_eq!(prefers(&places[..1]).as_deref(), Some(head));
        let all = prefers(&places).unwrap();
        assert_eq!(all, format!("{head}, n1 has 9 GiB, n2 has 9 GiB, 1 other has some"));
        assert_eq!(prefers(&[]), None);
    }

    #[test]
    fn sizes_are_those_of_the_command_line() {
        for (bytes, expect) in [
            (6, "6 B"),
            (1_536, "1.5 KiB"),
            (2 << 20, "2 MiB"),
            (12 << 30, "12 GiB"),
            (i64::MAX, "8388607.9 TiB"),
        ] {
            assert_eq!(size(Bytes(bytes)), expect);
        }
    }
}
