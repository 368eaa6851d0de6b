//! What every use case works with.

use crate::audit_key::KeyFile;
use crate::audit_watch::AuditWatch;
use crate::blob_book::BlobBook;
use crate::device_book::Devices;
use crate::heavy_reads::HeavyReads;
use crate::home::Home;
use crate::host::JobHost;
use crate::notify_address::NotifyAddresses;
use crate::refusals::Refusals;
use crate::session_book::Sessions;
use crate::sign_in_limits::SignInLimits;
use crate::stream_checks::StreamChecks;
use crate::token_use::TokenUse;
use crate::vault::Vault;
use berth_api::wire;
use berth_engine::Handle;
use berth_store::Store;
use std::ops::Deref;
use std::sync::Arc;

/// Cheap to clone: everybody shares one set of parts.
#[derive(Clone)]
pub struct Service(Arc<Parts>);

pub struct Parts {
    pub engine: Handle,
    pub store: Store,
    pub vault: Vault,
    /// Where jobs run.
    pub host: Arc<dyn JobHost>,
    pub home: Home,
    /// Objects: artifacts, and data.
    pub blobs: Arc<BlobBook>,
    /// The settings of the server, and where each comes from.
    pub config: Vec<wire::ConfigEntry>,
    pub token_use: TokenUse,
    /// Requests that were refused, as far as the audit log has to know.
    pub refusals: Refusals,
    /// What the audit log is signed with.
    pub audit_keys: KeyFile,
    /// What the server itself found out about the audit log.
    pub audit_watch: AuditWatch,
    /// Where messages may go.
    pub notify_addresses: NotifyAddresses,
    /// Grams of CO₂ for each kWh, where that is known.
    pub carbon_intensity: Option<i64>,
    pub heavy_reads: HeavyReads,
    pub stream_checks: StreamChecks,
    /// Browsers that are signed in.
    pub sessions: Sessions,
    /// How often one may try to sign in.
    pub sign_in_limits: SignInLimits,
    /// Command lines that wait for somebody to approve them.
    pub devices: Devices,
}

impl Service {
    pub fn new(parts: Parts) -> Service {
        Service(Arc::new(parts))
    }
}

impl Deref for Service {
    type Target = Parts;
    fn deref(&self) -> &Parts {
        &self.0
    }
}
