//! Figures about artifacts and data.

use super::metrics::Page;
use crate::app::App;
use std::sync::atomic::{AtomicU64, Ordering};

impl Page {
    pub(super) fn blobs(&mut self, app: &App) {
        let now = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let counts = &app.service.blobs.counts;
        self.count(
            "blob_uploads",
            "Artifacts and objects of data that were taken in",
            now(&counts.taken),
        );
        let help = "What they took";
        self.count("blob_uploaded_bytes", help, now(&counts.taken_bytes));
        let help = "What of that was there before, and is kept once";
        self.count("blob_same_bytes", help, now(&counts.same_bytes));
        let help = "Uploads that a quota, a limit or a full disk refused";
        self.count("blob_uploads_refused", help, now(&counts.refused));
        let help = "Objects that nothing named any more and that were removed";
        self.count("blobs_removed", help, now(&counts.removed));
        self.count("blob_removed_bytes", "What they took", now(&counts.removed_bytes));
        let help = "What artifacts and data of a team take, as far as the server has looked";
        let used = self.family("blob_bytes", help);
        for (team, bytes) in app.service.blobs.known_uses() {
            used.get_or_create(&vec![("team", team)]).set(bytes as f64);
        }
        let Some(machine) = &app.machine else { return };
        let counts = &machine.data.counts;
        let help = "Versions of data that were on the machine when a task wanted them";
        self.count("data_found", help, now(&counts.found));
        let help = "Versions of data that were put on the machine for a task";
        self.count("data_fetched", help, now(&counts.fetched));
        let help = "What was copied for that; links are no copies";
        self.count("data_copied_bytes", help, now(&counts.copied_bytes));
        let help = "Versions of data that were removed from the machine";
        self.count("data_removed", help, now(&counts.removed));
        let help = "What copies of data take on the machine";
        self.figure("data_copies_bytes", help, machine.data.copied_now() as f64);
    }
}
