//! `berth schedule`: jobs that run again and again. They are made by `berth run --schedule`.

use crate::complete;
use crate::context::Context;
use crate::fail::Result;
use crate::show::{Cell, Look, Page, Table, Tone};
use berth_api::wire::{Items, Schedule as Row};
use clap::{Args, Subcommand};

#[derive(Subcommand, Debug)]
pub enum Schedule {
    /// List schedules and when each runs next
    List,
    /// Pause a schedule
    Pause(ScheduleArgs),
    /// Resume a schedule
    Resume(ScheduleArgs),
    /// Delete a schedule; its jobs stay
    Rm(ScheduleArgs),
}

#[derive(Args, Debug)]
pub struct ScheduleArgs {
    #[arg(value_name = "SCHEDULE", add = complete::schedules())]
    schedule: String,
}

pub async fn run(context: &Context, args: &Schedule) -> Result<()> {
    let client = context.client()?;
    match args {
        Schedule::List => {
            let names = |all: &Items<Row>| all.items.iter().map(|one| one.id.clone()).collect();
            let text =
                |all: &Items<Row>, look: &Look| table(&all.items, look).or(look, "No schedules.");
            context.show(&Page::new(client.schedules().await?, text, names))
        }
        Schedule::Pause(which) => one(context, client.pause_schedule(&which.schedule).await?),
        Schedule::Resume(which) => one(context, client.resume_schedule(&which.schedule).await?),
        Schedule::Rm(which) => {
            client.delete_schedule(&which.schedule).await?;
            context.gone(&which.schedule, &format!("Deleted schedule {}", which.schedule))
        }
    }
}

fn one(context: &Context, schedule: Row) -> Result<()> {
    let text = |row: &Row, look: &Look| table(std::slice::from_ref(row), look).text(look);
    context.show(&Page::new(schedule, text, |row| vec![row.id.clone()]))
}

fn table(schedules: &[Row], look: &Look) -> Table {
    let titles =
        ["ID", "NAME", "USER", "TEAM", "CRON", "ZONE", "STATE", "NEXT", "LAST JOB", "REASON"];
    let mut table = Table::new(&titles);
    for schedule in schedules {
        table.row(vec![
            schedule.id.as_str().into(),
            schedule.name.as_str().into(),
            schedule.user.as_str().into(),
            schedule.team.as_str().into(),
            schedule.cron.as_str().into(),
            schedule.timezone.as_str().into(),
            match schedule.paused {
                true => Cell::toned("paused", Tone::Quiet),
                false => Cell::toned("active", Tone::Good),
            },
            look.maybe_at(schedule.next).into(),
            schedule.last_job.map(|job| job.to_string()).into(),
            schedule.reason.clone().into(),
        ]);
    }
    table
}
