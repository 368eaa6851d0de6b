//! What came of asking the exporters, for people who look for figures.

use super::exporters::Exporter;
use super::reading::Reading;
use super::scrape::ScrapeError;
use berth_service::host::MeasuredGpu;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Exporters that do not answer so many times are asked less and less often, down to one of so many
/// rounds.
const PATIENCE: u32 = 3;
const MOST_ROUNDS: u32 = 10;

/// What is known of each node.
#[derive(Debug, Default)]
pub struct Known(Mutex<BTreeMap<String, Node>>);

#[derive(Debug)]
struct Node {
    /// The exporter that was asked.
    pod: String,
    gpus: BTreeMap<u32, MeasuredGpu>,
    outcome: Outcome,
}

#[derive(Debug)]
enum Outcome {
    Told { names_pods: bool },
    Failed { why: String, times: u32, again: Instant },
}

/// What is new after a round, for the log.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct News {
    /// Exporters that answered before, or are new, and why they do not.
    pub silent: Vec<String>,
    /// Those that answer again.
    pub back: Vec<String>,
}

impl Known {
    fn nodes(&self) -> MutexGuard<'_, BTreeMap<String, Node>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an exporter is asked in this round.
    pub fn is_due(&self, exporter: &Exporter, now: Instant) -> bool {
        let nodes = self.nodes();
        let known = nodes.get(&exporter.node).filter(|node| node.pod == exporter.pod);
        !matches!(known, Some(Node { outcome: Outcome::Failed { again, .. }, .. }) if *again > now)
    }

    pub fn told(&self, exporter: &Exporter, reading: &Reading, news: &mut News) {
        let gpus = reading.gpus.iter().map(|(index, gpu)| {
            (*index, MeasuredGpu { uuid: gpu.uuid.clone(), model: gpu.model.clone() })
        });
        let outcome = Outcome::Told { names_pods: reading.names_pods() };
        let now = Node { pod: exporter.pod.clone(), gpus: gpus.collect(), outcome };
        let before = self.nodes().insert(exporter.node.clone(), now);
        if matches!(before, Some(Node { outcome: Outcome::Failed { .. }, .. })) {
            news.back.push(format!("{} on {}", exporter.pod, exporter.node));
        }
    }

    pub fn failed(
        &self,
        exporter: &Exporter,
        why: &ScrapeError,
        (now, every): (Instant, Duration),
        news: &mut News,
    ) {
        let mut nodes = self.nodes();
        let before = nodes.get(&exporter.node).filter(|node| node.pod == exporter.pod);
        let times = match before {
            Some(Node { outcome: Outcome::Failed { times, .. }, .. }) => times.saturating_add(1),
            _ => 1,
        };
        if times == 1 {
            news.silent.push(format!("{} on {}: {why}", exporter.pod, exporter.node));
        }
        let rounds = 1_u32.checked_shl(times.saturating_sub(PATIENCE)).unwrap_or(MOST_ROUNDS);
        let rounds = rounds.min(MOST_ROUNDS);
        // A little earlier than the round that it is due in.
        let again = now + every * rounds - every / 2;
        let outcome = Outcome::Failed { why: why.to_string(), times, again };
        let gpus = before.map(|node| node.gpus.clone()).unwrap_or_default();
        nodes.insert(exporter.node.clone(), Node { pod: exporter.pod.clone(), gpus, outcome });
    }

    /// Forgets nodes without an exporter.
    pub fn retain(&self, there: &BTreeSet<&String>) {
        self.nodes().retain(|node, _| there.contains(node));
    }

    pub fn gpu(&self, node: &str, index: u32) -> Option<MeasuredGpu> {
        self.nodes().get(node)?.gpus.get(&index).cloned()
    }

    /// Why nothing is known of the GPUs of a node, or not of whose they are.
    pub fn why_not(&self, node: &str) -> Option<String> {
        let nodes = self.nodes();
        let Some(Node { pod, outcome, .. }) = nodes.get(node) else {
            return Some(format!(
                "no exporter tells figures of the GPUs of {node}: run NVIDIA's dcgm-exporter there, \
                 or Berth's node agent"
            ));
        };
        match outcome {
            Outcome::Told { names_pods: true } => None,
            Outcome::Told { names_pods: false } => Some(format!(
                "{pod} tells what the GPUs of {node} do and not which pod has which: it needs \
                 DCGM_EXPORTER_KUBERNETES=true and the kubelet's pod-resources socket"
            )),
            Outcome::Failed { why, .. } => {
                Some(format!("nothing is measured of the GPUs of {node}, since of {pod} {why}"))
            }
        }
    }

    /// How many exporters answered when they were last asked, and how many did not.
    pub fn count(&self) -> (usize, usize) {
        let nodes = self.nodes();
        let is_up = |node: &&Node| matches!(node.outcome, Outcome::Told { .. });
        let up = nodes.values().filter(is_up).count();
        (up, nodes.len() - up)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exporter(pod: &str) -> Exporter {
        let address = "10.0.0.7:9400".parse().unwrap();
        Exporter { node: "a".into(), pod: pod.into(), address }
    }

    fn silence() -> ScrapeError {
        let (address, timeout) = (exporter("x").address, Duration::from_secs(4));
        ScrapeError::Timeout { address, timeout }
    }

    #[test]
    fn an_exporter_that_is_silent_is_told_of_once_and_asked_ever_less_often() {
        let (known, every, begun) = (Known::default(), Duration::from_secs(30), Instant::now());
        let (mut asked, mut told) = (Vec::new(), 0);
        for round in 0..40 {
            let now = begun + every * round;
            if known.is_due(&exporter("gpus/x"), now) {
                let mut news = News::default();
                known.failed(&exporter("gpus/x"), &silence(), (now, every), &mut news);
                told += news.silent.len();
                asked.push(round);
            }
        }
        assert_eq!((asked, told), (vec![0, 1, 2, 3, 5, 9, 17, 27, 37], 1));
        assert_eq!(known.count(), (0, 1));
        let why = known.why_not("a").unwrap();
        assert!(why.contains("gpus/x") && why.contains("did not answer within"), "{why}");
        // Another one in its place is asked at once.
        assert!(known.is_due(&exporter("gpus/y"), begun + every * 38));

        let mut news = News::default();
        known.told(&exporter("gpus/x"), &Reading::default(), &mut news);
        assert_eq!(news.back, ["gpus/x on a"]);
        assert_eq!(known.count(), (1, 0));
        assert!(known.why_not("a").unwrap().contains("DCGM_EXPORTER_KUBERNETES"));
        assert!(known.why_not("b").unwrap().contains("no exporter"));
        known.retain(&BTreeSet::new());
        assert_eq!(known.count(), (0, 0));
    }
}
