//! Variables with which the client of MLflow in a pod logs to the run of its job: the address of the server,
//! and a token in the Secret of the pod.

use super::fetch::trusted;
use super::launch::literal;
use crate::options::FetchSettings;
use crate::state::pod_orders::CreatePod;
use crate::view::managed_names;
use berth_service::job_token::JobTokens;
use berth_service::tracked_run;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// The keys of the token and the certificates in the Secret of the pod. No variable of a job can have such
/// a name.
const TOKEN: &str = "berth.track-token";
const CERTIFICATES: &str = "berth.track-ca";
/// The volume with the certificates, and its mount path.
const VOLUME: &str = "berth-server";
const TRUST: &str = "/berth-server";
const TRUST_FILE: &str = "ca.pem";

/// A job whose pods get the variables of this server.
pub struct Track {
    url: String,
    /// The certificates that its client trusts exclusively.
    pem: Option<String>,
    run: String,
}

impl Track {
    /// `None` if the server has no address for pods, or the job sets another tracking server.
    pub fn of(create: &CreatePod, known: &FetchSettings) -> Option<Track> {
        let start = &create.start;
        let url = known.url.clone().filter(|_| tracked_run::is_told(&start.run))?;
        let pem = known.certificate.as_deref().and_then(|path: &Path| trusted(path).ok());
        let pem = pem.filter(|pem| tracked_run::is_told_certificates(&start.run, pem));
        Some(Track { url, pem, run: tracked_run::run_id(start.lease.job, start.submitted) })
    }

    /// Adds the Secret with the token to the pod.
    pub fn sealing(create: &CreatePod, known: &FetchSettings) -> CreatePod {
        let mut create = create.clone();
        if create.secret.is_none() && Track::of(&create, known).is_some() {
            create.secret = Some(managed_names::secret(&create.pod().name));
        }
        create
    }

    /// Adds variables that the job does not set.
    pub fn env(&self, create: &CreatePod) -> Vec<Value> {
        let run = &create.start.run;
        let token = json!({ "name": create.secret, "key": TOKEN });
        let mut all = vec![
            json!({ "name": tracked_run::URI, "value": literal(&self.url) }),
            json!({ "name": tracked_run::TOKEN, "valueFrom": { "secretKeyRef": token } }),
        ];
        if tracked_run::is_resumed(run) {
            all.push(json!({ "name": tracked_run::RUN, "value": self.run }));
        }
        if self.pem.is_some() {
            let file = format!("{TRUST}/{TRUST_FILE}");
            all.push(json!({ "name": tracked_run::CERTIFICATE, "value": file }));
        }
        all.retain(|one| {
            let name = one["name"].as_str().unwrap_or_default();
            !run.env.contains_key(name) && !run.secrets.contains_key(name)
        });
        all
    }

    /// Adds the volume with the certificates, and its mount.
    pub fn volume(&self, create: &CreatePod) -> Option<(Value, Value)> {
        self.pem.as_ref()?;
        let items = json!([{ "key": CERTIFICATES, "path": TRUST_FILE }]);
        let secret = json!({ "secretName": create.secret, "items": items });
        let mount = json!({ "name": VOLUME, "mountPath": TRUST, "readOnly": true });
        Some((json!({ "name": VOLUME, "secret": secret }), mount))
    }

    /// The data for the Secret of the pod.
    pub fn sealed(&self, create: &CreatePod, tokens: &JobTokens) -> BTreeMap<String, String> {
        let token = tokens.mint_for_tracking(create.start.lease);
        let mut sealed = BTreeMap::from([(TOKEN.to_owned(), token)]);
        sealed.extend(self.pem.clone().map(|pem| (CERTIFICATES.to_owned(), pem)));
        sealed
    }
}
