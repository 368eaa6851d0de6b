//! Looking inside: the live state as a world file, and backups.

mod anonymous;

use crate::context::Context;
use crate::fail::Result;
use crate::show::{Page, note, words};
use berth_api::wire::WorldText;
use clap::Subcommand;

#[derive(Subcommand, Debug)]
pub enum Debug {
    /// Print the live state as a world file, for `berth sim` and for reports
    World {
        /// Replace the names of users, teams, jobs and nodes by numbers
        #[arg(long)]
        anonymous: bool,
    },
}

pub async fn run(context: &Context, args: &Debug) -> Result<()> {
    let Debug::World { anonymous } = args;
    let mut world = context.client()?.world().await?;
    if *anonymous {
        world.text = anonymous::masked(&world.text)?;
    }
    let seq = |world: &WorldText| vec![world.seq.to_string()];
    context.show(&Page::new(world, |world, _| world.text.clone(), seq))
}

pub async fn backup(context: &Context) -> Result<()> {
    let done = context.client()?.backup().await?;
    if !context.format.is_for_programs() {
        let bytes = i64::try_from(done.bytes).unwrap_or(i64::MAX);
        note(&format!(
            "{} up to event {}, on the server's machine:",
            words::bytes(bytes),
            done.seq
        ));
    }
    context.show(&Page::new(done, |done, _| done.path.clone(), |done| vec![done.path.clone()]))
}
