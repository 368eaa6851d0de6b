//! Metrics of the tracking store.

use super::metrics::Page;
use crate::app::App;

impl Page {
    pub(super) fn tracking(&mut self, app: &App) {
        let figures = app.tracking.store.figures();
        let help = "Committed groups of changes of experiments, runs and models";
        self.count("tracking_commits", help, figures.commits());
        let help = "Groups of changes that could not be committed";
        self.count("tracking_failed_commits", help, figures.failed_commits());
        let help = "Changes in groups that were committed";
        self.count("tracking_changes", help, figures.changes());
        let help = "Points of metrics that were logged";
        self.count("tracking_points", help, figures.points());
        let help = "Deleted runs that were removed for good";
        self.count("tracking_removed_runs", help, figures.removed_runs());
        let help = "Deleted experiments that were removed for good";
        self.count("tracking_removed_experiments", help, figures.removed_experiments());
        let help = "Points of metrics of removed runs";
        self.count("tracking_removed_points", help, figures.removed_points());
        let runs = &app.tracking.runs;
        let help = "Times that the run of a job could not be brought up to date";
        self.count("job_run_failures", help, runs.failures());
        let help = "Jobs whose runs are behind them because of that";
        self.figure("job_runs_behind", help, runs.behind() as f64);
        let help = "Time that writing groups of changes took, in seconds";
        let seconds = figures.commit_micros() as f64 / 1e6;
        self.foreign_count("berth_tracking_commit_seconds", help, seconds);
    }
}
