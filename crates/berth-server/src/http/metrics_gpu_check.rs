//! What the last check of each GPU came to.

use super::metrics::Page;
use crate::app::App;
use std::collections::BTreeMap;

impl Page {
    pub(super) fn gpu_checks(&mut self, app: &App) {
        let Some(machine) = &app.machine else { return };
        let node = machine.inventory.node.name.to_string();
        let facts: BTreeMap<u32, _> = machine
            .inventory
            .devices
            .iter()
            .filter_map(|device| Some((device.index, app.service.host.gpu(&node, device.index)?)))
            .collect();
        let help = "1 while a GPU is checked before it takes work";
        let running = self.family("gpu_check_running", help);
        let help = "1 where a GPU passed its last check, 0 where it did not";
        let passed = self.family("gpu_check_passed", help);
        let help = "When a GPU was checked last";
        let when = self.family("gpu_check_timestamp_seconds", help);
        let help = "How fast the last check copied: in the memory, to the GPU and from it";
        let copies = self.family("gpu_check_bytes_per_second", help);
        let help = "How fast the last check multiplied matrices";
        let product = self.family("gpu_check_flops", help);
        for (index, facts) in facts {
            let gpu = vec![("node", node.clone()), ("gpu", index.to_string())];
            if facts.checking.is_some() {
                running.get_or_create(&gpu).set(1.0);
            }
            let Some(check) = facts.checked else { continue };
            passed.get_or_create(&gpu).set(if check.passed { 1.0 } else { 0.0 });
            when.get_or_create(&gpu).set(check.at.0.0 as f64 / 1e3);
            for figure in check.figures {
                match figure.unit.as_str() {
                    "GFLOPS" => product.get_or_create(&gpu).set(figure.measured as f64 * 1e9),
                    _ => {
                        let labels = [gpu.clone(), vec![("copy", figure.of)]].concat();
                        copies.get_or_create(&labels).set(figure.measured as f64 * 1e6)
                    }
                };
            }
        }
    }
}
