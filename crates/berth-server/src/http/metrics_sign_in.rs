//! Figures about browsers that are signed in, and tries to sign in.

use super::answer::Failure;
use super::metrics::Page;
use crate::app::App;
use berth_engine::clock;

impl Page {
    pub(super) async fn sign_ins(&mut self, app: &App) -> Result<(), Failure> {
        let now = clock::now();
        let idle = app.service.sessions.limits.idle;
        let open = app.service.store.count_sessions(now, now - idle).await?;
        self.figure("sessions_open", "Browsers that are signed in", open as f64);
        let help = "Sign-ins of browsers since the start, by how they ended";
        let sign_ins = self.counts("sign_ins", help);
        for (outcome, count) in app.service.sessions.totals() {
            sign_ins.get_or_create(&vec![("outcome", outcome.to_owned())]).inc_by(count);
        }
        let help = "Tries to sign in that came too often";
        self.count("sign_ins_limited", help, app.service.sign_in_limits.limited());
        Ok(())
    }
}
