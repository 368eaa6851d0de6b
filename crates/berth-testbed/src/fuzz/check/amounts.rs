//! Quantities of resources, in thousandths.

use serde_json::Value;
use std::collections::BTreeMap;

pub type Amounts = BTreeMap<String, i128>;

/// The factor of a suffix, in thousandths.
const SUFFIXES: [(&str, i128); 9] = [
    ("Ki", 1_024_000),
    ("Mi", 1_048_576_000),
    ("Gi", 1_073_741_824_000),
    ("Ti", 1_099_511_627_776_000),
    ("m", 1),
    ("k", 1_000_000),
    ("M", 1_000_000_000),
    ("G", 1_000_000_000_000),
    ("T", 1_000_000_000_000_000),
];

/// # Panics
///
/// If it is none of the quantities that worlds have.
pub fn quantity(text: &str) -> i128 {
    let found =
        SUFFIXES.iter().find_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?, *factor)));
    let (number, factor) = found.unwrap_or((text, 1_000));
    let number: i128 = number.parse().unwrap_or_else(|_| panic!("{text} is no quantity"));
    number * factor
}

pub fn amounts(value: &Value) -> Amounts {
    let entries = value.as_object().into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), quantity(value.as_str()?)))).collect()
}

fn add(to: &mut Amounts, more: &Amounts) {
    for (key, amount) in more {
        *to.entry(key.clone()).or_default() += amount;
    }
}

fn raise(to: &mut Amounts, floor: &Amounts) {
    for (key, amount) in floor {
        let known = to.entry(key.clone()).or_default();
        *known = (*known).max(*amount);
    }
}

/// What a node must have for a pod: its containers and sidecars, or what an init container needs
/// beside the sidecars before it.
pub fn of_pod(spec: &Value) -> Amounts {
    let requests = |container: &Value| amounts(&container["resources"]["requests"]);
    let mut running = Amounts::new();
    for container in spec["containers"].as_array().into_iter().flatten() {
        add(&mut running, &requests(container));
    }
    let (mut sidecars, mut starting) = (Amounts::new(), Amounts::new());
    for init in spec["initContainers"].as_array().into_iter().flatten() {
        let mut needed = requests(init);
        if init["restartPolicy"] == "Always" {
            add(&mut running, &needed);
            add(&mut sidecars, &needed);
            needed = sidecars.clone();
        } else {
            add(&mut needed, &sidecars);
        }
        raise(&mut starting, &needed);
    }
    raise(&mut running, &starting);
    running.retain(|_, amount| *amount > 0);
    running
}

#[cfg(test)]
mod tests {
    use super::{of_pod, quantity};
    use serde_json::json;

    #[test]
    fn quantities_are_read_with_their_suffixes() {
        assert_eq!(quantity("250m"), 250);
        assert_eq!(quantity("3"), 3_000);
        assert_eq!(quantity("1Gi"), 1_073_741_824_000);
    }

    #[test]
    fn an_init_container_counts_only_where_it_needs_more() {
        let container = |cpu: &str| json!({ "resources": { "requests": { "cpu": cpu } } });
        let mut sidecar = container("1");
        sidecar["restartPolicy"] = "Always".into();
        let spec = |init: &str| {
            json!({
                "containers": [container("2")],
                "initContainers": [sidecar.clone(), container(init)],
            })
        };
        assert_eq!(of_pod(&spec("500m"))["cpu"], 3_000);
        assert_eq!(of_pod(&spec("5"))["cpu"], 6_000);
    }
}
