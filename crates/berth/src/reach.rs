//! How others reach a server in a cluster: people by a Service, the API server by a webhook.

use crate::fail::{Failure, Result};
use crate::up::{self, Serving};
use berth_server::{AdmissionWebhook, Publish, Tls, Webhook};
use clap::Args;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct Reach {
    /// The Service without a selector, in the server's namespace, to point at the leader
    #[arg(long, value_name = "NAME", requires = "advertise")]
    pub service: Option<String>,
    /// The address of this replica for that Service; the port is that of --listen
    #[arg(long, value_name = "IP", requires = "service")]
    pub advertise: Option<IpAddr>,
    /// Serve the admission webhook here: pods that ask for GPUs and name no scheduler get the first
    /// --scheduler-name
    #[arg(long, value_name = "ADDR")]
    pub webhook_listen: Option<SocketAddr>,
    /// The certificate of the webhook, as PEM (the server's)
    #[arg(long, value_name = "FILE", requires = "webhook_key")]
    pub webhook_cert: Option<PathBuf>,
    /// The key of that certificate, as PEM
    #[arg(long, value_name = "FILE", requires = "webhook_cert")]
    pub webhook_key: Option<PathBuf>,
    /// Schedulers whose pods get --scheduler-name too, such as kai-scheduler,volcano
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "webhook_listen")]
    pub adopt_scheduler: Vec<String>,
}

impl Reach {
    pub fn publish(&self, serving: &Serving) -> Result<Option<Publish>> {
        let Some((service, ip)) = self.service.clone().zip(self.advertise) else {
            return Ok(None);
        };
        let port = up::address(&serving.listen)?.port();
        Ok(Some(Publish { service, address: SocketAddr::new(ip, port) }))
    }

    /// The webhook that gives pods with GPUs the name of a scheduler, and those that are ours by
    /// any name what they need for fractions.
    pub fn webhook(
        &self,
        serving: &Serving,
        scheduler: &str,
        ours: BTreeSet<String>,
    ) -> Result<Option<Webhook>> {
        let Some(listen) = self.webhook_listen else { return Ok(None) };
        let own = self.webhook_cert.clone().zip(self.webhook_key.clone());
        let pair = own.or_else(|| serving.tls_cert.clone().zip(serving.tls_key.clone()));
        let (certificate, key) = pair.ok_or_else(|| {
            Failure::usage(
                "--webhook-listen needs a certificate, because the API server uses only TLS: \
                 give --webhook-cert and --webhook-key, or --tls-cert and --tls-key",
            )
        })?;
        let scheduler = scheduler.to_owned();
        let adoption =
            AdmissionWebhook { scheduler, ours, instead_of: self.adopt_scheduler.clone() };
        Ok(Some(Webhook { listen, tls: Tls { certificate, key }, adoption }))
    }
}
