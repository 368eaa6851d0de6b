//! Figures of GPUs, asked of the exporters of a cluster again and again, beside the loop. What is
//! measured decides nothing.
//!
//! The device plugin chooses the GPUs of a pod, and exporters say which these are. That is kept
//! among the figures of the task, since nothing else in the log or the cluster has it.

mod exporters;
mod exposition;
mod gather;
mod join;
mod known;
mod max_clock;
mod reading;
mod scrape;

use crate::options::{FigureSources, PodSettings};
use berth_kube::Api;
use berth_service::host::MeasuredGpu;
use berth_service::{Book, Figures};
use exporters::{Exporters, Rules};
use known::Known;
use std::sync::Arc;

pub use gather::gather;

/// Where figures of a cluster come from, and where they go.
pub struct ClusterFigures {
    figures: Arc<Figures>,
    rules: Arc<Rules>,
    exporters: Arc<Exporters>,
    known: Known,
}

impl ClusterFigures {
    /// Nothing where figures are not gathered.
    pub fn new(
        api: &Api,
        sources: &FigureSources,
        settings: &PodSettings,
    ) -> Option<Arc<ClusterFigures>> {
        let figures = sources.figures.begin()?;
        let rules = Rules::new(sources.clone(), settings.clone(), api.namespace());
        Some(Arc::new(ClusterFigures {
            figures,
            rules: Arc::new(rules),
            exporters: Arc::default(),
            known: Known::default(),
        }))
    }

    pub fn book(&self) -> &Book {
        &self.figures.book
    }

    pub fn gpu(&self, node: &str, index: u32) -> Option<MeasuredGpu> {
        self.known.gpu(node, index)
    }

    pub fn why_not(&self, node: &str) -> Option<String> {
        self.known.why_not(node)
    }

    /// How many exporters answer, and how many do not.
    pub fn count(&self) -> (usize, usize) {
        self.known.count()
    }
}
