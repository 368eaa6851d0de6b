//! A job as it is now, and how it ended.

use crate::fail::Result;
use crate::outage::Outage;
use crate::show::{Look, words};
use berth_api::Client;
use berth_api::wire::{Job, JobState};

/// The job as it is now, also from a server that is starting anew.
pub async fn look_up(client: &Client, id: &str) -> Result<Job> {
    let mut outage = Outage::default();
    loop {
        match client.job(id).await {
            Ok(job) => return Ok(job),
            Err(error) => outage.sit_out(error.into()).await?,
        }
    }
}

/// How a job ended, in a line.
pub fn ending(job: &Job, look: &Look) -> String {
    let state = look.paint(words::state_tone(job.state), job.state.as_str());
    let time = job.started.map_or(0, |at| job.ended.map_or(0, |end| (end.0 - at.0).0));
    let why = job.exit.as_ref().map(|exit| exit.text.clone()).or_else(|| job.reason.clone());
    // For a job that is done, show only why it ended early.
    let is_news = |why: &String| job.state != JobState::Done || why != "done";
    let why = why.filter(is_news).map(|why| format!(": {why}"));
    let (id, name) = (job.id, &job.name);
    let (time, cost) = (words::span(time), words::money(job.cost_micros));
    format!("{id} {name} {state} after {time}, {cost}{}", why.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::tests::job;

    #[test]
    fn the_last_line_says_how_it_ended_and_what_it_cost() {
        let failed = Job {
            state: JobState::Failed,
            reason: Some("exit code 3".into()),
            ended: Some("2026-11-15T13:30:00Z".parse().unwrap()),
            ..job()
        };
        let stopped = "stopped by its rule: loss is nan (newest NaN at step 4)";
        let early = Job {
            state: JobState::Done,
            reason: Some(stopped.into()),
            ended: Some("2026-11-15T13:30:00Z".parse().unwrap()),
            ..job()
        };
        let line = ending(&early, &Look::fixed());
        assert_eq!(line, format!("17 bert done after 30m, $1.20: {stopped}"));
        let done = Job { reason: Some("done".into()), ..early };
        assert_eq!(ending(&done, &Look::fixed()), "17 bert done after 30m, $1.20");
        assert_eq!(ending(&failed, &Look::fixed()), "17 bert failed after 30m, $1.20: exit code 3");
    }
}
