//! Worlds with constraints of all kinds.

use super::pods::{self, Ask};
use super::{PRIORITIES, nodes, rules, traits};
use crate::fuzz::random::Random;
use crate::fuzz::world::{Key, Kind, Phase, World};
use serde_json::Value;

pub fn world(seed: u64, random: &mut Random) -> World {
    let count = random.between(3, 7);
    let nodes = (0..count).map(|at| nodes::node(random, at)).collect();
    // In half of the worlds all pods are alike in this, so that none preempts another.
    let has_priorities = random.percent(50);
    let mut draw = Draw { random, nodes: count, has_priorities, volumes: Vec::new(), next: 0 };
    let first = draw.pods(10, 22);
    let is_alone = |pod: &&Value| pod["metadata"]["annotations"]["berth.dev/gang"].is_null();
    let mut leaving: Vec<Key> = first.iter().filter(is_alone).map(Key::of).collect();
    leaving.retain(|_| draw.random.percent(20));
    let second = draw.pods(5, 12);
    let phases = vec![Phase { leaving: Vec::new(), pods: first }, Phase { leaving, pods: second }];
    let volumes = draw.volumes;
    World { seed, kind: Kind::Mixed, nodes, volumes, budgets: Vec::new(), phases }
}

/// Pods that may not be together, and then nodes for them.
pub fn late_nodes(seed: u64, random: &mut Random) -> World {
    let count = random.between(2, 5);
    let nodes = (0..count).map(|at| nodes::node(random, at)).collect();
    let total = random.between(6, 16);
    let pods = (0..total).map(|at| {
        let ask = Ask { cpu_milli: random.pick(&[100, 500]), memory_mi: 64, gpus: 0 };
        let mut pod = pods::pod(random, &format!("p{at}"), &ask);
        match random.between(0, 5) {
            0 | 1 => rules::anti_affinity(random, &mut pod),
            2 => rules::affinity(random, &mut pod),
            // No spread: it is counted over the nodes that there are at the time.
            _ => {}
        }
        pod
    });
    let phases = vec![Phase { leaving: Vec::new(), pods: pods.collect() }];
    let (volumes, budgets) = (Vec::new(), Vec::new());
    World { seed, kind: Kind::LateNodes, nodes, volumes, budgets, phases }
}

struct Draw<'a> {
    random: &'a mut Random,
    nodes: usize,
    has_priorities: bool,
    volumes: Vec<Value>,
    next: usize,
}

impl Draw<'_> {
    fn pods(&mut self, least: usize, most: usize) -> Vec<Value> {
        let count = self.random.between(least, most);
        let mut pods = Vec::new();
        while pods.len() < count {
            if self.random.percent(6) {
                pods.extend(self.gang());
            } else {
                let pod = self.pod();
                pods.push(pod);
            }
        }
        pods
    }

    fn name(&mut self) -> String {
        self.next += 1;
        format!("p{}", self.next)
    }

    fn pod(&mut self) -> Value {
        let name = self.name();
        let ask = pods::ask(self.random);
        let mut pod = pods::pod(self.random, &name, &ask);
        let traits = self.random.pick(&[0, 0, 0, 1, 1, 1, 1, 2, 2, 3]);
        for _ in 0..traits {
            self.constrain(&mut pod);
        }
        if self.has_priorities {
            let value = self.random.pick(&PRIORITIES);
            pods::set_class(&mut pod, &format!("p{value}"));
        }
        let grace = self.random.pick(&[0, 0, 1]);
        pods::set_grace(&mut pod, grace);
        pod
    }

    fn constrain(&mut self, pod: &mut Value) {
        let random = &mut *self.random;
        match random.between(0, 15) {
            0 => traits::node_selector(random, pod),
            1 | 2 => traits::required_nodes(random, pod, self.nodes),
            3 => traits::preferred_nodes(random, pod, self.nodes),
            4 | 5 => traits::tolerations(random, pod),
            6 => traits::port(random, pod),
            7 => traits::init_container(random, pod),
            8 => traits::disk(random, pod),
            9 => traits::gate(pod),
            10 | 11 => rules::anti_affinity(random, pod),
            12 => rules::affinity(random, pod),
            13 | 14 => rules::spread(random, pod),
            _ => {
                if pod["spec"]["volumes"].is_null() {
                    self.volumes.extend(traits::claim(random, pod, self.nodes));
                }
            }
        }
    }

    /// Pods that begin together; some of them want a node each.
    fn gang(&mut self) -> Vec<Value> {
        let name = format!("gang-{}", self.next);
        let size = self.random.between(2, 4);
        let gpus = self.random.between(0, 2);
        let ask = Ask { cpu_milli: 250, memory_mi: 64, gpus };
        let mut member = pods::pod(self.random, "", &ask);
        // A label that no other pod has.
        member["metadata"]["labels"]["app"] = name.clone().into();
        pods::set_gang(&mut member, &name, size);
        if self.random.percent(30) {
            rules::apart(&mut member);
        }
        let members = (0..size).map(|_| {
            let mut pod = member.clone();
            pod["metadata"]["name"] = self.name().into();
            pod
        });
        members.collect()
    }
}
