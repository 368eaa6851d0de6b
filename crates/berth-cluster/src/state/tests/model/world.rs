//! Small worlds: what exists in them, and what happens in which order.

use std::fmt;

/// Numbers from a seed (SplitMix64), so that a failing run is seen again by its number.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// Where two pods are together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Host,
    Zone,
}

impl Key {
    pub fn label(self) -> &'static str {
        match self {
            Key::Host => "kubernetes.io/hostname",
            Key::Zone => "topology.kubernetes.io/zone",
        }
    }
}

/// What a pod requires of other pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    Away(char, Key),
    Near(char, Key),
    /// Of its own kind no place has more than one beyond another.
    Spread(Key),
}

/// Who makes another pod when one goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    NoController,
    /// As soon as the pod is asked to end, under another name.
    AtOnce,
    /// When the pod is gone, under the same name.
    Afterwards,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PodSpec {
    pub app: char,
    pub gpus: u32,
    pub port: Option<u16>,
    pub rule: Option<Rule>,
    pub maker: Maker,
    /// The gang it is in, and how many pods that has.
    pub gang: Option<(usize, usize)>,
    /// It is numbered in its gang.
    pub is_ranked: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeSpec {
    pub zone: char,
    pub gpus: u32,
}

#[derive(Debug, Clone, Default)]
pub struct World {
    pub nodes: Vec<NodeSpec>,
    pub pods: Vec<PodSpec>,
}

/// How an order to the API server comes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Done,
    /// It is refused there, and may be accepted elsewhere.
    Infeasible,
    /// It is done, and the answer gets lost: it is asked for again.
    Unanswered,
}

/// What happens. Each means something in any order, so that a trace without some of its steps is a
/// trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A user makes this node, or this pod.
    Node(usize),
    Pod(usize),
    /// A user deletes a pod, or a node.
    Delete(usize),
    DropNode(usize),
    /// The kubelet has ended a pod that was asked to end.
    Killed(usize),
    /// A controller makes another pod in the place of one.
    Replace(usize),
    /// Another kind of pod, as its labels say now, before it has a node.
    Relabel(usize, char),
    /// So many of the changes of nodes, or of pods, arrive.
    SeeNodes(usize),
    SeePods(usize),
    /// An order that is under way reaches the API server.
    Act(usize, Fate),
    /// The outcome of an order arrives.
    Hear(usize),
    /// What has arrived is taken in together, and planned.
    Turn,
    /// The clock goes on, and Berth looks at it.
    Tick(i64),
    /// Another leader takes over. Orders of the one before it are still under way, or get lost.
    Restart(bool),
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, node) in self.nodes.iter().enumerate() {
            writeln!(f, "  node {at}: {node:?}")?;
        }
        for (at, pod) in self.pods.iter().enumerate() {
            writeln!(f, "  pod {at}: {pod:?}")?;
        }
        Ok(())
    }
}

const APPS: [char; 3] = ['x', 'y', 'z'];

pub fn world(dice: &mut Dice) -> World {
    let nodes = (0..1 + dice.below(4))
        .map(|_| NodeSpec { zone: dice.of(&['a', 'b']), gpus: 1 + dice.below(4) as u32 })
        .collect();
    let mut pods = Vec::new();
    for gang in 0..2 + dice.below(6) {
        let app = dice.of(&APPS);
        let maker = dice.of(&[Maker::NoController, Maker::AtOnce, Maker::Afterwards]);
        let key = dice.of(&[Key::Host, Key::Host, Key::Zone]);
        if dice.one_in(4) {
            let size = 2 + dice.below(2);
            let is_ranked = dice.one_in(2);
            let rule = dice.one_in(4).then_some(Rule::Away(app, Key::Host));
            let gpus = 1 + dice.below(2) as u32;
            let gang = Some((gang, size));
            let spec = PodSpec { app, gpus, port: None, rule, maker, gang, is_ranked };
            pods.extend(std::iter::repeat_n(spec, size));
            continue;
        }
        let rule = match dice.below(6) {
            0 | 1 => Some(Rule::Away(dice.of(&APPS), key)),
            2 => Some(Rule::Near(dice.of(&APPS), key)),
            3 => Some(Rule::Spread(key)),
            _ => None,
        };
        let port = dice.one_in(6).then_some(8080);
        let gpus = dice.below(3) as u32;
        let spec = PodSpec { app, gpus, port, rule, maker, gang: None, is_ranked: false };
        pods.extend(std::iter::repeat_n(spec, 1 + dice.below(2)));
    }
    World { nodes, pods }
}

/// What happens in a world, by an adversary that chooses every order that is possible.
pub fn steps(dice: &mut Dice, world: &World) -> Vec<Step> {
    let (nodes, pods) = (world.nodes.len(), world.pods.len());
    let mut steps = Vec::new();
    let mut nodes_to_make: Vec<usize> = (0..nodes).collect();
    let mut pods_to_make: Vec<usize> = (0..pods).collect();
    let pods_first = dice.one_in(2);
    for _ in 0..60 + dice.below(80) {
        let next = match dice.below(20) {
            0..=2 => {
                make(&mut nodes_to_make, pods_first && !pods_to_make.is_empty()).map(Step::Node)
            }
            3..=5 => make(&mut pods_to_make, false).map(Step::Pod),
            6 | 7 => Some(Step::SeeNodes(1 + dice.below(4))),
            8 | 9 => Some(Step::SeePods(1 + dice.below(6))),
            10..=12 => Some(Step::Turn),
            13 | 14 => {
                let fate = match dice.below(12) {
                    0 => Fate::Infeasible,
                    1 => Fate::Unanswered,
                    _ => Fate::Done,
                };
                Some(Step::Act(dice.below(4), fate))
            }
            15 => Some(Step::Hear(dice.below(3))),
            16 => Some(Step::Tick(dice.of(&[0, 1, 1, 2, 5, 20]))),
            17 => Some(match dice.below(10) {
                0 => Step::DropNode(dice.below(nodes)),
                1 => Step::Relabel(dice.below(pods), dice.of(&APPS)),
                2 => Step::Restart(dice.one_in(2)),
                _ => Step::Delete(dice.below(pods)),
            }),
            18 => Some(Step::Killed(dice.below(pods))),
            _ => Some(Step::Replace(dice.below(pods))),
        };
        steps.extend(next);
    }
    steps.extend(pods_to_make.into_iter().map(Step::Pod));
    steps.extend(nodes_to_make.into_iter().map(Step::Node));
    steps
}

fn make(rest: &mut Vec<usize>, waits: bool) -> Option<usize> {
    if waits || rest.is_empty() { None } else { Some(rest.remove(0)) }
}
