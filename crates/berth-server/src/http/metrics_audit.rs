//! Figures about the audit log, refused requests and messages.

use super::metrics::Page;
use crate::app::App;

impl Page {
    pub(super) fn audit(&mut self, app: &App) {
        let found = app.service.audit_watch.findings().len();
        let help =
            "What the server found changed in the database without it; see berth audit verify";
        self.figure("audit_findings", help, found as f64);
        let (refused, suppressed) = app.service.refusals.totals();
        self.count("refused_requests", "Requests refused since the start", refused);
        let help = "Refused requests that the audit log has only as a number";
        self.count("refused_requests_suppressed", help, suppressed);
        let notices = self.counts("notices", "Messages by what became of a try to send them");
        for (outcome, count) in app.notices.totals() {
            notices.get_or_create(&vec![("outcome", outcome.to_owned())]).inc_by(count);
        }
        let end = app.service.store.follow_audit_end().borrow().as_ref().map(|end| end.seq);
        let exported = self.counts("audit_exported_rows", "Audit rows exported since the start");
        let failures = self.counts("audit_export_failures", "Tries to export rows that failed");
        let behind =
            self.family("audit_export_behind_rows", "Audit rows that are not exported yet");
        for export in &app.audit_exports {
            let labels = vec![("to", export.shown())];
            exported.get_or_create(&labels).inc_by(export.exported());
            failures.get_or_create(&labels).inc_by(export.failures());
            behind.get_or_create(&labels).set(export.behind(end.unwrap_or(0)) as f64);
        }
    }
}
