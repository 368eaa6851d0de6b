//! Which schedulers are compared, by their names on the command line.

use crate::fail::BadValue;
use anyhow::{Context, Result};
use berth_sim::outcome::Timeline;
use berth_sim::peers;
use berth_sim::replay::{self, Preset, Rules, StartForecast};
use berth_sim::site::Site;
use berth_sim::workload::Workload;
use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    Peer(peers::Policy),
    Core(Preset),
}

impl Policy {
    pub fn word(self) -> &'static str {
        match self {
            Policy::Peer(policy) => policy.word(),
            Policy::Core(preset) => preset.word(),
        }
    }

    /// How the core runs; nothing for a peer.
    pub fn rules(self) -> Option<Rules> {
        match self {
            Policy::Peer(_) => None,
            Policy::Core(preset) => Some(preset.rules()),
        }
    }

    /// What happened, and the forecasts that jobs got at submission. `rules` are for the core.
    /// `progress` gets the number of jobs that have finished.
    pub fn run(
        self,
        site: &Site,
        workload: &Workload,
        quotas: &[u64],
        rules: Option<&Rules>,
        progress: &mut dyn FnMut(usize),
    ) -> Result<(Timeline, Vec<StartForecast>)> {
        match (self, rules) {
            (Policy::Core(preset), Some(rules)) => {
                let replayed = replay::run(rules, site.clone(), workload, progress);
                let mut replayed =
                    replayed.with_context(|| format!("running {}", preset.word()))?;
                let forecasts = std::mem::take(&mut replayed.forecasts);
                Ok((replayed.timeline(), forecasts))
            }
            (Policy::Core(preset), None) => {
                let rules = preset.rules();
                self.run(site, workload, quotas, Some(&rules), progress)
            }
            (Policy::Peer(policy), _) => {
                Ok((peers::run_at(policy, site, &workload.jobs, quotas), Vec::new()))
            }
        }
    }
}

impl FromStr for Policy {
    type Err = BadValue;

    fn from_str(word: &str) -> Result<Policy, BadValue> {
        let peer = peers::Policy::from_word(word).map(Policy::Peer);
        peer.or_else(|| Preset::from_word(word).map(Policy::Core)).ok_or_else(|| {
            let peers = peers::Policy::ALL.iter().map(|policy| policy.word());
            let all: Vec<&str> = Preset::ALL.iter().map(|own| own.word()).chain(peers).collect();
            BadValue(format!("there is {}", all.join(", ")))
        })
    }
}
