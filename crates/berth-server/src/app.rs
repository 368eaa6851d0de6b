//! What every request handler has at hand.

use crate::audit_export::Export;
use crate::listen::Connections;
use crate::notifier::NoticeFigures;
use crate::oidc::Oidc;
use crate::tracking::Tracking;
use berth_cluster::ManagedJobs;
use berth_kube::ClientMetrics;
use berth_machine::Host;
use berth_service::Service;
use std::ops::Deref;
use std::sync::Arc;
use url::Url;

#[derive(Clone)]
pub struct App(Arc<Parts>);

pub struct Parts {
    pub service: Service,
    /// Where jobs run on the machine of the server.
    pub machine: Option<Arc<Host>>,
    /// Where jobs run as pods.
    pub pods: Option<Arc<ManagedJobs>>,
    /// How the API server was asked, where jobs run on a cluster.
    pub figures: Option<Arc<ClientMetrics>>,
    /// Where the audit log goes.
    pub audit_exports: Vec<Arc<Export>>,
    pub notices: Arc<NoticeFigures>,
    /// Who is connected.
    pub connections: Connections,
    /// Where browsers find the server, where it does not see that itself.
    pub public_url: Option<Url>,
    /// Who says who somebody is, where a provider does.
    pub oidc: Option<Arc<Oidc>>,
    /// Experiments, runs and registered models.
    pub tracking: Tracking,
}

impl App {
    pub fn new(parts: Parts) -> App {
        App(Arc::new(parts))
    }
}

impl Deref for App {
    type Target = Parts;
    fn deref(&self) -> &Parts {
        &self.0
    }
}
