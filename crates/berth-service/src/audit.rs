//! Changes that the server makes by itself.

use crate::service::Service;
use berth_engine::{Refused, Write, clock};
use berth_store::{AuditEntry, Batch};

/// What the audit log says of something that the server did by itself.
pub fn server_audit(who: &str, what: &str, target: String) -> AuditEntry {
    AuditEntry {
        at: clock::now(),
        who: who.to_owned(),
        token: String::new(),
        from: "server".to_owned(),
        method: String::new(),
        what: what.to_owned(),
        target,
        outcome: "ok".to_owned(),
        detail: "{}".to_owned(),
    }
}

/// Writes documents in the server's own name.
pub async fn put_as_server(
    service: &Service,
    documents: Batch,
    audit: AuditEntry,
) -> Result<(), Refused> {
    service.engine.write(Write::documents(documents, audit)).await.map(drop)
}
