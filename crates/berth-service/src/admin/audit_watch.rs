//! The server looks at its audit log while it runs: at rows as they come, and at whether users, members
//! and tokens are what the log says they are. What it finds is logged, counted, and written into the
//! log, where whoever caused it cannot take it out again.

use crate::audit::server_audit;
use crate::audit_end;
use crate::service::Service;
use berth_engine::Write;
use berth_store::{AuditCheck, AuditFollower, Batch};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::task::JoinHandle;

/// The interval between two passes.
const LOOK: Duration = Duration::from_secs(30);
/// Findings of one look that are written down one by one.
const MOST_FINDINGS: usize = 50;
/// The audit row that says that rights were changed without the server.
pub const RIGHTS_CHANGED: &str = "rights_changed_outside";
/// The audit row that says that the log itself was changed.
pub const LOG_CHANGED: &str = "audit_changed";

/// Looks from time to time. The first look is at the whole log.
pub fn begin(service: Service) -> JoinHandle<()> {
    tokio::spawn(async move {
        // A log that was cut off was told at the start.
        let mut follower = AuditFollower::new(service.store.clone(), None);
        let mut told = BTreeSet::new();
        loop {
            match follower.check().await {
                Ok(check) => tell(&service, check, &mut told).await,
                Err(error) => tracing::warn!(%error, "the audit log could not be looked at"),
            }
            tokio::time::sleep(LOOK).await;
        }
    })
}

/// A finding: what the row is called, what it is about, and what is wrong.
type Finding = (&'static str, String, String);

async fn tell(service: &Service, check: AuditCheck, told: &mut BTreeSet<Finding>) {
    let found: BTreeSet<Finding> = match check {
        AuditCheck::Broken(broken) => {
            [(LOG_CHANGED, format!("row {}", broken.seq), broken.why)].into()
        }
        AuditCheck::Whole(whole) => whole
            .rights
            .into_iter()
            .map(|finding| (RIGHTS_CHANGED, finding.what, finding.why.to_owned()))
            .collect(),
    };
    let words = |(_, what, why): &Finding| format!("{what}: {why}");
    service.audit_watch.set(found.iter().map(words).collect());
    told.retain(|finding| found.contains(finding));
    for finding in found.into_iter().take(MOST_FINDINGS) {
        if told.contains(&finding) {
            continue;
        }
        let (what, target, why) = &finding;
        tracing::error!(
            target = %target, why = %why,
            "the database was changed without the server; see `berth audit verify`"
        );
        let mut audit = server_audit("berth", what, target.clone());
        audit.outcome = "found".to_owned();
        audit.detail = json!({ "why": why }).to_string();
        // What could not be written is found again at the next look.
        if service.engine.write(Write::documents(Batch::default(), audit)).await.is_ok() {
            told.insert(finding);
        }
    }
}

/// What the log tells about earlier findings: kinds of rows that stand for one.
pub(super) const FOUND: &[&str] =
    &[RIGHTS_CHANGED, LOG_CHANGED, audit_end::CUT_OFF, audit_end::NOT_SEALED];
