//! Writing refused requests into the audit log.

use crate::audit::server_audit;
use crate::refusals::{Refusal, entry, summary};
use crate::service::Service;
use berth_engine::{Write, clock};
use berth_store::Batch;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Between two rows that say how many refusals were not recorded.
const SUMMARY: Duration = Duration::from_secs(300);
/// How long the end of a server waits for refusals to be written.
const PATIENCE: Duration = Duration::from_secs(3);
/// The audit row that says how many refusals were not recorded.
const SUPPRESSED: &str = "refusals_suppressed";

/// Records a refusal, or counts it. The request does not wait for that.
pub fn note(service: &Service, refusal: Refusal) {
    if !service.refusals.admit(&refusal, clock::now()) {
        return;
    }
    let service = service.clone();
    tokio::spawn(async move {
        let write = Write::documents(Batch::default(), entry(&refusal));
        let written = service.engine.write(write).await.is_ok();
        service.refusals.written(&refusal, written, clock::now());
    });
}

/// Waits for what is being written, and says how many refusals were not recorded: nothing is
/// forgotten when the server stops. A database that is away is not waited for.
pub async fn finish(service: &Service) {
    let all_written = async {
        while service.refusals.are_being_written() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        flush(service).await;
    };
    let _ = tokio::time::timeout(PATIENCE, all_written).await;
}

/// Says from time to time how many refusals were not recorded.
pub fn begin(service: Service) -> JoinHandle<()> {
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(SUMMARY).await;
            flush(&service).await;
        }
    })
}

/// Says how many refusals were not recorded, if any.
pub async fn flush(service: &Service) {
    let suppressed = service.refusals.take_suppressed();
    if suppressed.is_empty() {
        return;
    }
    let mut audit = server_audit("berth", SUPPRESSED, String::new());
    audit.outcome = "refused".to_owned();
    audit.detail = summary(&suppressed).to_string();
    let write = Write::documents(Batch::default(), audit);
    if service.engine.write(write).await.is_err() {
        service.refusals.put_back(suppressed);
    }
}
